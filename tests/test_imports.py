"""The house: a room imports only rooms above it, and importing the package loads nothing optional."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bayesvm

ROOT = Path(bayesvm.__file__).parent
LIBRARIES = {"numpy", "scipy"}
# Room -> rooms it may import (itself included), libraries beyond NumPy and SciPy.
TABLE = {
    "extras": (set(), set()),
    "atomic": (set(), set()),
    "schema": (set(), set()),
    "storage": (
        {"atomic", "warn", "core", "data", "inference", "persistence", "schema", "storage"},
        set(),
    ),
    "warn": (set(), set()),
    "core": ({"core"}, set()),
    "data": ({"core", "data", "extras", "atomic", "warn"}, {"threadpoolctl", "pyarrow", "sklearn", "dask"}),
    "inference": ({"warn", "core", "data", "inference"}, {"sklearn", "threadpoolctl"}),
    "progress": ({"inference"}, {"rich"}),
    "kernels": ({"core"}, set()),
    "datasets": ({"datasets", "extras"}, {"pyarrow", "pooch", "requests", "tqdm", "sklearn"}),
    "persistence": ({"atomic"}, {"safetensors"}),
    "estimators": (
        {
            "core",
            "data",
            "inference",
            "progress",
            "persistence",
            "extras",
            "estimators",
            "atomic",
            "warn",
            "schema",
            "storage",
        },
        {"sklearn", "joblib", "dask"},
    ),
    "evaluation": ({"evaluation"}, {"sklearn"}),
    "inspection": ({"evaluation", "extras", "inspection"}, {"sklearn", "matplotlib"}),
    "preparation": ({"data", "extras", "preparation", "schema", "warn"}, {"pyarrow"}),
    "workflow": (
        {"data", "evaluation", "estimators", "extras", "persistence", "preparation", "schema", "warn", "workflow"},
        {"pyarrow", "sklearn"},
    ),
    "report": (
        {"atomic", "evaluation", "inspection", "preparation", "workflow", "extras", "report"},
        {"jinja2", "matplotlib", "sklearn"},
    ),
    "export": ({"core", "data", "estimators", "extras", "preparation", "workflow", "export"}, {"onnx"}),
    "cli": (
        {
            "atomic",
            "cli",
            "data",
            "datasets",
            "evaluation",
            "estimators",
            "export",
            "report",
            "workflow",
            "preparation",
        },
        {"typer", "rich", "pyarrow"},
    ),
    "__main__": ({"cli"}, set()),
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (
                [f"bayesvm.{alias.name}" for alias in node.names] if node.module == "bayesvm" else [node.module]
            )
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "optional":  # loads what an extra installs
            yield ast.literal_eval(node.args[0])


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_room_is_in_the_table():
    assert {room_of(path) for path in FILES} == set(TABLE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_rooms_above_it(path):
    rooms, libraries = TABLE[room_of(path)]
    allowed = LIBRARIES | libraries | set(sys.stdlib_module_names)
    for module in imported_modules(path):
        top, *rest = module.split(".")
        if top == "bayesvm":
            assert rest[0] in rooms, f"{path} imports {module}"
        else:
            assert top in allowed, f"{path} imports {module}"


def test_only_the_inducing_points_use_scikit_learn_below_the_estimators():
    users = [
        p.name for p in FILES if room_of(p) == "inference" and any(m.startswith("sklearn") for m in imported_modules(p))
    ]
    assert users == ["inducing.py"]


def test_only_the_formats_of_tables_use_pyarrow_and_scikit_learn_in_the_data_room():
    users = {
        library: {
            p.name for p in FILES if room_of(p) == "data" and any(m.startswith(library) for m in imported_modules(p))
        }
        for library in ("pyarrow", "sklearn")
    }
    assert users == {
        "pyarrow": {"arrow_parts.py", "column_reading.py", "schemas.py", "csv_copy.py", "writing.py"},
        "sklearn": {"libsvm_copy.py"},
    }


def test_only_the_files_named_after_it_use_dask():
    assert {p.name for p in FILES if "dask" in {m.split(".")[0] for m in imported_modules(p)}} == {
        "dask_rows.py",
        "_dask.py",
    }


def loaded_by(statement):
    code = f"{statement}; import sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return set(out.stdout.split())


def test_importing_the_package_loads_nothing_that_scikit_learn_does_not():
    beyond = loaded_by("import bayesvm") - loaded_by("import sklearn.cluster")
    assert not beyond & {"matplotlib", "rich", "pandas", "pyarrow", "pooch", "dask", "torch", "onnx", "onnxruntime"}


def test_files_are_of_readable_length():
    assert {str(p): n for p in FILES if (n := len(p.read_text().splitlines())) > 400} == {}
