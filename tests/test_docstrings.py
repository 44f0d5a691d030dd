"""The reference is complete: numpydoc's own validation of every name that docs/api.md lists."""

import importlib
import inspect
import re

import pytest

from tests.pages import ROOT

validate = pytest.importorskip("numpydoc.validate").validate
Docstring = pytest.importorskip("numpydoc.docscrape").NumpyDocString

# Of numpydoc's checks, those of what is missing or wrong; not those of taste (where a summary begins, full stops).
SECTIONS = {"GL06", "GL07", "GL08", "GL10", "SS01", "YD01"}
PARAMETERS = {"PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03"}
CONTEXT = {"SA01", "EX01"}
LISTED = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE))


def public(name):
    """An object by its public name."""
    module, _, attribute = f"bayesvm.{name}".rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def own_methods(kind):
    """Public methods of a class, inherited ones too, apart from scikit-learn's and the inner contract of kernels."""
    if kind.__module__.startswith("bayesvm.core"):
        return
    for name, method in inspect.getmembers(kind, callable):
        module = getattr(method, "__module__", "")
        if not name.startswith("_") and module.startswith("bayesvm"):
            yield name


def objects():
    for name in sorted(LISTED):
        found = public(name)
        path = f"{found.__module__}.{found.__qualname__}"  # some functions have the name of their module
        yield pytest.param(path, SECTIONS | PARAMETERS | CONTEXT, id=name)
        if inspect.isclass(found):
            for method in own_methods(found):
                yield pytest.param(f"{path}.{method}", SECTIONS | PARAMETERS, id=f"{name}.{method}")


def problems(path, checks):
    return [f"{code}: {text}" for code, text in validate(path)["errors"] if code in checks]


@pytest.mark.parametrize(("path", "checks"), list(objects()))
def test_a_docstring_is_complete(path, checks):
    assert problems(path, checks) == []


@pytest.mark.parametrize("name", sorted(LISTED))
def test_every_attribute_has_an_entry_of_its_own(name):
    entries = Docstring(inspect.getdoc(public(name)))["Attributes"]
    assert [entry.name for entry in entries if "," in entry.name] == []
    assert all(entry.type and entry.desc for entry in entries)


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("BayesianSVC", {"fit", "partial_fit", "predict_proba", "predict_set", "sample_latent", "save", "score"}),
        ("BayesianLinearSVC", {"fit", "partial_fit", "predict_uncertainty", "sample_proba", "predict_to"}),
        ("BayesianSVR", {"fit", "partial_fit", "predict_interval", "predict_quantiles", "sample_y", "save"}),
        ("BayesianOneClassSVM", {"fit", "score_samples", "predict_p_value", "explain", "predict_to", "save"}),
        ("workflow.TableModel", {"load", "save", "predict", "evaluate"}),
        ("data.tables.Table", {"batches", "rows", "close"}),
    ],
)
def test_inherited_methods_are_validated_too(name, methods):
    assert methods <= set(own_methods(public(name)))


def test_the_validation_finds_what_is_missing():
    assert problems("tests.test_docstrings.public", {"PR01", "EX01"}) == [
        "PR01: Parameters {'name'} not documented",
        "EX01: No examples section found",
    ]
