"""A warning points to the user's line, not to ours: however deep it is raised, and in whatever thread."""

import ast
import errno
import linecache
import os
import signal
import threading
import warnings
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, open_table, stop_on_interrupt
from bayesvm.core.linalg import JitterWarning
from bayesvm.datasets import waveform
from bayesvm.kernels import Stationary
from bayesvm.preparation import recipe
from bayesvm.workflow import fit_table

DATA = waveform(120, random_state=0)
X, Y = DATA.X[:, 4:8], DATA.y
UNEVEN = np.where(np.arange(120) == 7, 1e6, 1.0)
COPIES = np.repeat(np.arange(60), 2)


class NearlyCovariance(Stationary):
    """Its matrices have an eigenvalue a little below zero."""

    def profile(self, squared):
        return 1 - 0.01 * squared, np.full_like(squared, 0.02)


def kernel(**how):
    return BayesianSVC(**{"n_inducing": 8, "tune": None, "random_state": 0} | how)


def warned(call, *messages):
    """Make a call on a line that has ``# here`` on it; it gives these warnings, and all of them point to that line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(each.message) for each in caught]
    for message in messages:
        assert any(message in text for text in texts), (message, texts)
    for each in caught:
        assert each.filename == __file__, (each.filename, each.lineno, str(each.message))
        assert linecache.getline(__file__, each.lineno).rstrip().endswith("# here"), str(each.message)
    return caught


def test_every_warning_of_the_package_is_issued_so():
    """Except where there is nobody else to point to, in ``warn`` itself."""
    source, calls = Path(bayesvm.__file__).parent, []
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and ast.unparse(node.func) in {"warnings.warn", "warnings.warn_explicit"}:
                calls.append(path.relative_to(source).as_posix())
    assert set(calls) == {"warn.py"}


# ---- rows of every kind ----


def arrays(tmp_path, rows=slice(None), weight=None):
    return X[rows], Y[rows], None if weight is None else weight[rows]


def sparse_arrays(tmp_path, rows=slice(None), weight=None):
    return sparse.csr_matrix(X[rows]), Y[rows], None if weight is None else weight[rows]


def tables(tmp_path, rows=slice(None), weight=None):
    columns = {f"c{i}": X[rows, i] for i in range(4)} | {"y": Y[rows]}
    columns |= {} if weight is None else {"w": weight[rows]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=50)
    return (open_table(tmp_path / "t.parquet", "y", weight=None if weight is None else "w"),)


def dask(tmp_path, rows=slice(None), weight=None):
    da = pytest.importorskip("dask.array")
    given = [part for part in arrays(tmp_path, rows, weight) if part is not None]
    return [da.from_array(part, chunks=(50, *part.shape[1:])) for part in given]


KINDS = {"arrays": arrays, "sparse": sparse_arrays, "tables": tables, "dask": dask}
CASES = {
    "more points than rows": (lambda: kernel(n_inducing=500), {}, "n_inducing=500, but there are only"),
    "more points than rows, tuned": (lambda: kernel(n_inducing=500, tune="loo"), {}, "n_inducing=500, but there are"),
    "copies": (kernel, {"rows": COPIES}, "exact copies of other rows"),
    "uneven weights": (kernel, {"weight": UNEVEN}, "the weights are so uneven"),
    "not converged": (lambda: kernel(max_iter=1, tol=1e-12), {}, "used its budget"),
    "not converged, linear": (lambda: BayesianLinearSVC(tune=None, max_iter=1, tol=1e-12), {}, "used its budget"),
    "not converged, diagonal": (
        lambda: BayesianLinearSVC(covariance="diagonal", max_iter=1, tol=1e-12),
        {},
        "used its budget",
    ),
    "nearly singular": (lambda: kernel(kernel=NearlyCovariance(5.0)), {}, "nearly singular"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_fit(kind, case, tmp_path):
    make, given, message = CASES[case]
    model, rows = make(), KINDS[kind](tmp_path, **given)
    warned(
        lambda: model.fit(*rows),  # here
        message,
    )


@pytest.mark.parametrize("case", [name for name in CASES if "converged" not in name and "tuned" not in name])
def test_partial_fit(case, tmp_path):
    make, given, message = CASES[case]
    rows, y, weight = arrays(tmp_path, **given)
    warned(
        lambda: make().partial_fit(rows, y, np.unique(y), weight),  # here
        message,
    )


def test_many_classes(tmp_path):
    y = np.arange(204) % 51
    rows = np.random.default_rng(0).normal(size=(204, 2)) + y[:, None]
    names = np.char.add("class ", y.astype(str))
    columns = {"a": rows[:, 0], "b": rows[:, 1], "y": names}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table, model = open_table(tmp_path / "t.parquet", "y"), kernel(n_inducing=5, tol=1)
    for given in ((rows, names), (table,)):
        warned(
            lambda given=given: model.fit(*given),  # here
            "51 classes: the fit trains one model per class",
        )


def test_a_wide_table(monkeypatch):
    monkeypatch.setattr("bayesvm.data.capacity.memory_bytes", lambda: 2e4)
    warned(
        lambda: kernel().fit(X, Y),  # here
        "X has 4 columns",
    )
    warned(
        lambda: kernel().partial_fit(X, Y, [-1, 1]),  # here
        "X has 4 columns",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_that_cannot_be_written(kind, tmp_path, monkeypatch):
    rows = KINDS[kind](tmp_path)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    caught = warned(
        lambda: kernel().fit(*rows, checkpoint=tmp_path / "c", checkpoint_every=0),  # here
        "continues without its checkpoint",
    )
    assert len(caught) == 1


def test_ctrl_c():
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stop_on_interrupt():
            caught = warned(
                lambda: kernel(tol=1e-9).fit(X, Y, callback=lambda _: os.kill(os.getpid(), signal.SIGINT)),  # here
                "stopped by Ctrl-C",
            )
    finally:
        signal.signal(signal.SIGINT, old)
    assert caught[0].category is ConvergenceWarning


# ---- inside the tools of others ----


def test_cross_validation():
    warned(
        lambda: cross_val_score(kernel(max_iter=1, tol=1e-12), X, Y, cv=3),  # here
        "used its budget",
    )


def test_a_grid_search():
    search = GridSearchCV(kernel(max_iter=1, tol=1e-12), {"noise": [0.0, 1.0]}, cv=2)
    warned(
        lambda: search.fit(X, Y),  # here
        "used its budget",
    )


def test_cross_validation_in_threads():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        warned(
            lambda: cross_val_score(kernel(max_iter=1, tol=1e-12), X, Y, cv=3),  # here
            "used its budget",
        )


def test_a_thread_of_the_user():
    def work():
        kernel(max_iter=1, tol=1e-12).fit(X, Y)  # here

    def started():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    warned(started, "used its budget")


def test_a_filter_by_module_finds_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        kernel(n_inducing=500).fit(X, Y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=JitterWarning)
        with pytest.raises(JitterWarning):
            kernel(kernel=NearlyCovariance(5.0)).fit(X, Y)


# ---- predictions, files, tables ----


def test_no_warning_of_a_good_fit_and_its_predictions(tmp_path):
    def whole():
        model = kernel().fit(X, Y)
        model.predict_proba(X)
        model.save(tmp_path / "m")
        bayesvm.load(tmp_path / "m").predict_uncertainty(X)

    assert warned(whole) == []


def test_what_is_not_saved(model, tmp_path):
    estimator = kernel().fit(X, Y)
    estimator.notes_ = model.estimator.notes_ = "mine"
    for saved in (estimator, model):
        warned(
            lambda saved=saved: saved.save(tmp_path / "m"),  # here
            "notes_ is not a fitted attribute",
        )


def test_predictions_that_a_spreadsheet_would_run(tmp_path):
    model = kernel().fit(X, np.where(Y > 0, "=SUM(A1)", "no"))
    warned(
        lambda: model.predict_to(X, tmp_path / "p.csv"),  # here
        "spreadsheet programs execute",
    )


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{'uvw'[i % 3]},{'ab'[i % 2]},1" for i, a in enumerate(rng.normal(size=60))]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y,w", *rows]))
    return fit_table(tmp_path / "t.csv", "y", weight="w", estimator=BayesianLinearSVC(random_state=0))


def test_values_not_seen_in_training(model):
    new = pa.table({"x": [0.5, None], "z": ["u", "never"]})
    warned(
        lambda: model.predict_proba(new),  # here
        "column 'z' has categories not seen in training",
    )


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_uncertainty"])
def test_values_not_seen_in_training_in_a_thread_that_reads_ahead(method, model, tmp_path, monkeypatch):
    # Not a function of this module, whose line would be the first outside bayesvm.
    spy = {"__name__": "bayesvm.spy", "warn": recipe.warn_user, "threads": [], "threading": threading}
    exec("def noted(message): threads.append(threading.current_thread()); warn(message)", spy)  # noqa: S102
    monkeypatch.setattr(recipe, "warn_user", spy["noted"])
    parquet.write_table(
        pa.table({"x": [0.5] * 40, "z": ["u"] * 30 + ["never"] * 10}), tmp_path / "n.parquet", row_group_size=10
    )
    warned(
        lambda: getattr(model, method)(tmp_path / "n.parquet"),  # here
        "column 'z' has categories not seen in training",
    )
    assert spy["threads"]
    assert threading.main_thread() not in spy["threads"]


def test_weights_that_are_not_there(model, tmp_path):
    (tmp_path / "new.csv").write_text("x,z,y\n0.5,u,a\n0.1,v,b\n")
    warned(
        lambda: model.evaluate(tmp_path / "new.csv"),  # here
        "has no column 'w' of weights",
    )


def test_text_among_numbers(tmp_path):
    rows = [f"{'oops' if i == 7 else i % 9},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,v,y", *rows]))
    fit = {"estimator": BayesianLinearSVC(random_state=0), "holdout": 0}
    warned(
        lambda: fit_table(tmp_path / "t.csv", "y", **fit),  # here
        "column 'x' is treated as categorical",
    )


def test_too_many_features_for_a_covariance(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.workflow.fitting.WIDEST_FULL_COVARIANCE", 2)
    rows = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,v,y", *rows]))
    estimator = BayesianLinearSVC(random_state=0, max_iter=500)
    warned(
        lambda: fit_table(tmp_path / "t.csv", "y", estimator=estimator, holdout=0),  # here
        "only their variances are fitted",
    )
