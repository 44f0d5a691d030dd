"""The structure of the package: imports, private names, modules that depend on classes, and names that are not used."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bayesvm

ROOT = Path(bayesvm.__file__).parent
LIBRARIES = {"numpy", "scipy"}
# Package or module -> what it imports of bayesvm (itself included), and libraries beyond NumPy and SciPy.
TABLE = {
    "atomic": (set(), set()),
    "extras": (set(), set()),
    "schema": (set(), set()),
    "suggest": (set(), set()),
    "versions": (set(), {"sklearn", "threadpoolctl"}),
    "warn": (set(), set()),
    "core": ({"core", "suggest", "warn"}, set()),
    "kernels": ({"core"}, set()),
    "data": ({"atomic", "core", "data", "extras", "suggest", "warn"}, {"dask", "pyarrow", "sklearn", "threadpoolctl"}),
    "inference": ({"core", "data", "inference", "warn"}, {"sklearn", "threadpoolctl"}),
    "progress": ({"inference"}, {"rich"}),
    "persistence": ({"atomic"}, {"safetensors"}),
    "storage": (
        {"atomic", "core", "data", "inference", "persistence", "preparation", "schema", "storage", "warn"},
        set(),
    ),
    "estimators": (
        {
            "core",
            "data",
            "estimators",
            "extras",
            "inference",
            "persistence",
            "preparation",
            "progress",
            "schema",
            "storage",
            "suggest",
            "warn",
        },
        {"dask", "joblib", "sklearn"},
    ),
    "evaluation": ({"evaluation"}, {"sklearn"}),
    "inspection": ({"evaluation", "extras", "inspection"}, {"matplotlib", "sklearn"}),
    "datasets": ({"datasets", "extras"}, {"pooch", "pyarrow", "requests", "sklearn", "tqdm"}),
    "preparation": ({"data", "extras", "preparation", "schema", "suggest", "warn"}, {"pyarrow"}),
    "workflow": (
        {
            "data",
            "estimators",
            "evaluation",
            "extras",
            "inference",
            "persistence",
            "preparation",
            "schema",
            "storage",
            "warn",
            "workflow",
        },
        {"pyarrow", "sklearn", "threadpoolctl"},
    ),
    "report": (
        {"atomic", "evaluation", "extras", "inspection", "preparation", "report", "workflow"},
        {"jinja2", "matplotlib", "sklearn"},
    ),
    "export": ({"core", "data", "estimators", "export", "extras", "inference", "preparation", "warn"}, {"onnx"}),
    "cli": (
        {
            "atomic",
            "cli",
            "data",
            "datasets",
            "estimators",
            "evaluation",
            "export",
            "extras",
            "report",
            "warn",
            "workflow",
        },
        {"rich", "typer"},
    ),
    "__main__": ({"cli"}, set()),
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
TREES = {path: ast.parse(path.read_text()) for path in FILES}
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def package_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def module_of(path):
    return ".".join(("bayesvm", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def imports_in(tree):
    """Pairs of a module and the name that is taken from it, or None for the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, None) if inner in MODULES else (node.module, alias.name)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "optional":  # loads what an extra installs
            yield ast.literal_eval(node.args[0]), None


def imported_modules(path):
    return {module for module, _ in imports_in(TREES[path])}


def is_private(name):
    return name is not None and name.startswith("_") and not name.startswith("__")


def test_every_package_is_in_the_table():
    assert {package_of(path) for path in FILES} == set(TABLE)


@pytest.mark.parametrize("package", TABLE)
def test_a_package_imports_what_the_table_says_and_the_table_says_no_more(package):
    ours, others = set(), set()
    for path in FILES:
        if package_of(path) == package:
            for module in imported_modules(path):
                top, *rest = module.split(".")
                if top == "bayesvm":
                    assert rest, f"{path} imports the package as a whole"
                    ours.add(rest[0])
                elif top not in LIBRARIES | set(sys.stdlib_module_names):
                    others.add(top)
    assert (ours, others) == TABLE[package]


def test_packages_do_not_import_each_other_in_circles():
    graph = {package: ours - {package} for package, (ours, _) in TABLE.items()}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(TABLE)


def test_modules_do_not_import_each_other_in_circles():
    """Imports inside functions and for type checkers count, too: they hide a circle and do not avoid it."""
    graph = {name: {module for module in imported_modules(path) if module in MODULES} for name, path in MODULES.items()}
    assert graph["bayesvm.estimators.base"] >= {"bayesvm.inference.fitting", "bayesvm.storage.models"}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


# Without the extra, `bayesvm` prints what to install, so modules that need typer are imported when it runs.
LAZY = {("cli/__init__.py", "bayesvm.cli.app"), ("cli/__init__.py", "bayesvm.cli.console")}
LAZY |= {("workflow/fitting.py", "bayesvm.workflow.baselines")}  # ensembles, which only a fit of a table needs


def test_no_function_imports_modules_of_the_package():
    found = {
        (str(path.relative_to(ROOT)), module)
        for path, tree in TREES.items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for module, _ in imports_in(function)
        if module.split(".")[0] == "bayesvm"
    }
    assert found == LAZY


@EACH_FILE
def test_no_package_imports_what_is_private_in_another(path):
    for module, name in imports_in(TREES[path]):
        top, *rest = module.split(".")
        if top == "bayesvm" and rest[:1] != [package_of(path)]:
            assert not any(map(is_private, [*rest, name])), f"{path} imports {name or ''} of {module}"


# Public in spite of their names: methods of named tuples, and functions of the standard library. Dask's `_meta` is how
# its own documentation has one ask for the types of a collection.
PUBLIC = {"_replace", "_asdict", "_fields", "_exit", "_getframe", "_current_frames", "_meta"}


def defined_in(tree):
    """Names that a module gives to functions, classes, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def is_self(node):
    return (isinstance(node, ast.Name) and node.id in {"self", "cls"}) or (
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
    )


def private_reads(tree):
    """Private attributes of objects other than self, also those that are read by ``getattr`` and its like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_self(node.value):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in {
            "getattr",
            "setattr",
            "hasattr",
            "delattr",
        }:
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and is_private(name.value) and not is_self(node.args[0]):
                yield name.value, node.lineno


@EACH_FILE
def test_private_attributes_are_read_where_they_are_defined(path):
    own = PUBLIC | set(defined_in(TREES[path]))
    assert [read for read in private_reads(TREES[path]) if read[0] not in own] == []


def test_the_rules_about_private_names_see_what_they_should():
    tree = ast.parse("model._features; self._x; super()._y; getattr(model, '_scaler'); t._replace(a=1)")
    assert [name for name, _ in private_reads(tree)] == ["_features", "_scaler", "_replace"]
    assert "_own" in set(defined_in(ast.parse("class A:\n    def _own(self): ...")))


def identifiers(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield from ((part, node.lineno) for part in (node.asname or node.name).split("."))
        elif isinstance(node, ast.ImportFrom):
            yield from ((part, node.lineno) for part in node.module.split("."))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def words_of(identifier):
    """``n_classes_`` and ``NClasses`` have the words n and classes."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


def test_words_of_identifiers():
    assert words_of("count_labels") == {"count", "labels"}
    assert words_of("ClassHead") == {"class", "head"}
    assert words_of("SIGN_of2") == {"sign", "of"}
    assert words_of("dataclass") == {"dataclass"}


def with_words(paths, words, exceptions):
    return [
        (str(path.relative_to(ROOT)), name, line)
        for path in paths
        for name, line in [*identifiers(TREES[path]), (path.stem, 1)]
        if name not in exceptions and not name.startswith("__") and words_of(name) & words
    ]


def test_only_heads_and_links_know_of_classes_and_signs_below_the_estimators():
    heads = {ROOT / "core" / "links.py", *(ROOT / "core" / "heads").iterdir()}
    paths = [path for path in FILES if package_of(path) in {"core", "data", "inference"} and path not in heads]
    words = {"class", "classes", "label", "labels", "sign", "signs", "signed"}
    assert with_words(paths, words, {"ClassVar"}) == []


# Words that meant too many things. The field has a word for each of them: metrics, plots, categories, workspace, ….
AVOIDED = {
    "figures", "pictures", "levels", "gaps", "invented", "machine", "machines", "lens", "lenses",
    "learner", "learners", "places", "arena", "known", "far", "hand", "usable", "level", "above", "audience",
    "forgetful", "silence", "told", "hears", "foretold",
}  # fmt: skip


def test_words_that_do_not_explain_themselves_are_not_names():
    assert with_words(FILES, AVOIDED, {"add_task"}) == []  # which is rich's


def test_only_the_inducing_points_use_scikit_learn_below_the_estimators():
    users = [
        path.name
        for path in FILES
        if package_of(path) == "inference" and any(m.startswith("sklearn") for m in imported_modules(path))
    ]
    assert users == ["inducing.py"]


def test_only_the_formats_of_tables_use_pyarrow_and_scikit_learn_in_the_data_package():
    users = {
        library: {
            path.name
            for path in FILES
            if package_of(path) == "data" and any(m.startswith(library) for m in imported_modules(path))
        }
        for library in ("pyarrow", "sklearn")
    }
    assert users == {
        "pyarrow": {"arrow_parts.py", "column_reading.py", "schemas.py", "csv_files.py", "csv_copy.py", "writing.py"},
        "sklearn": {"libsvm_copy.py"},
    }


def test_only_the_files_named_after_it_use_dask():
    assert {path.name for path in FILES if "dask" in {m.split(".")[0] for m in imported_modules(path)}} == {
        "dask_rows.py",
        "_dask.py",
    }


def loaded_by(statement):
    code = f"{statement}\nimport sys; print('loaded', *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return set(out.stdout.splitlines()[-1].split()[1:])


OPTIONAL = {"matplotlib", "pandas", "polars", "pyarrow", "pooch", "dask", "torch", "onnx", "onnxruntime"}
OPTIONAL |= {"jinja2", "tqdm", "requests", "typer"}
# Of the base install, what takes long to import and most programs do not need.
HEAVY = {"sklearn.svm", "sklearn.ensemble", "sklearn.cluster", "sklearn.mixture", "sklearn.linear_model"}
HEAVY |= {"sklearn.calibration", "sklearn.datasets"}


def test_importing_the_package_loads_none_of_its_modules():
    loaded = loaded_by("import bayesvm")
    assert not loaded & {"numpy", "scipy", "sklearn", *OPTIONAL}
    assert {module for module in loaded if module.startswith("bayesvm")} == {"bayesvm"}


def test_the_public_names_load_nothing_heavy_that_scikit_learn_itself_does_not():
    beyond = loaded_by("from bayesvm import *") - loaded_by("import sklearn.base, sklearn.metrics")
    assert not beyond & ({*OPTIONAL, "rich"} | HEAVY)


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=" ".join)
def test_help_loads_neither_scipy_nor_scikit_learn(words):
    pytest.importorskip("typer")
    loaded = loaded_by(
        f"import sys; sys.argv = ['bayesvm', *{words}]\n"
        "from bayesvm.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert not loaded & {"scipy", "sklearn", *OPTIONAL - {"typer"}}


def test_files_are_of_readable_length():
    assert {str(path): n for path in FILES if (n := len(path.read_text().splitlines())) > 400} == {}
