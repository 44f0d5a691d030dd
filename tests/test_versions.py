"""What people paste into a bug report."""

import getpass
import importlib.metadata
import platform
import re

import numpy as np
import pytest
import scipy
import sklearn

import bayesvm


@pytest.fixture
def shown(capsys):
    assert bayesvm.show_versions() is None
    return capsys.readouterr().out


def value_of(name, shown):
    found = re.search(rf"^  {re.escape(name)} +(\S.*)$", shown, re.MULTILINE)
    assert found, f"{name} is not in\n{shown}"
    return found[1]


def test_versions_are_those_that_the_libraries_state_themselves(shown):
    assert value_of("Python", shown).startswith(platform.python_version())
    assert value_of("bayesvm", shown) == bayesvm.__version__
    for name, module in (("numpy", np), ("scipy", scipy), ("scikit-learn", sklearn)):
        assert value_of(name, shown) == module.__version__


def test_every_extra_is_listed_whether_installed_or_not(monkeypatch, capsys):
    real = importlib.metadata.version

    def without_arrow(name):
        if name == "pyarrow":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr("bayesvm.versions.version", without_arrow)
    bayesvm.show_versions()
    shown = capsys.readouterr().out
    assert value_of("pyarrow", shown) == "not installed"
    for name in ("dask", "matplotlib", "onnx", "rich", "typer"):
        assert value_of(name, shown)


def test_the_blas_is_listed(shown):
    assert re.search(r"^  (openblas|mkl|blis|flexiblas|openmp) +.*\d+ threads", shown, re.MULTILINE)


def test_nothing_in_it_is_private(shown):
    assert getpass.getuser() not in shown.split()
    assert not re.search(r"(^|\s)/\w+/|[A-Z]:\\", shown)  # a path
