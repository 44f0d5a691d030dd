"""Warnings point to the line that called bayesvm, whatever lies between."""

import warnings
from contextlib import contextmanager
from functools import partial
from types import FunctionType

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianLinearSVC, open_table
from bayesvm.caller import caller_level

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 2))
Y = np.array([f"class {row % 60:02}" for row in range(600)])


def of_package(function, name):
    """The function as if a module of that name had defined it."""
    return FunctionType(function.__code__, globals() | {"__name__": name}, function.__name__, function.__defaults__)


def warn():
    warnings.warn("look here", UserWarning, stacklevel=caller_level())


def through(function):
    return function()


def places(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [warning.filename for warning in caught]


@pytest.mark.parametrize("between", [["bayesvm.x"], ["bayesvm.x", "sklearn.base"], ["bayesvm", "joblib", "sklearn"]])
def test_frames_between_do_not_count(between):
    inner = of_package(warn, "bayesvm.deep")
    for name in between:
        inner = partial(of_package(through, name), inner)
    assert places(inner) == [__file__]


def test_with_statements_do_not_count():
    def entered():
        of_package(warn, "bayesvm.deep")()
        yield

    entered = of_package(entered, "bayesvm.session")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextmanager(entered)():
            pass
    assert caught[0].filename == __file__


def test_the_outermost_frame_is_the_last_resort(monkeypatch):
    monkeypatch.setattr("bayesvm.caller._is_between", lambda frame: True)
    assert len(places(warn)) == 1


def few_steps():
    return BayesianLinearSVC(tune=None, max_iter=2, tol=0, inference="batch", random_state=0)


def fit_table(folder):
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y}), folder / "t.parquet")
    return few_steps().fit(open_table(folder / "t.parquet", "y"))


def fit_dask(_):
    array = pytest.importorskip("dask.array")
    return few_steps().fit(array.from_array(X, (200, 2)), array.from_array(Y, 200))


WAYS = {
    "arrays": lambda _: few_steps().fit(X, Y),
    "table": fit_table,
    "dask": fit_dask,
    "pipeline": lambda _: make_pipeline(StandardScaler(), few_steps()).fit(X, Y),
    "cross-validation": lambda _: cross_val_score(few_steps(), X, Y, cv=2),
}


@pytest.mark.parametrize("way", WAYS)
def test_warnings_of_fit_point_to_the_caller(way, tmp_path):
    found = places(lambda: WAYS[way](tmp_path))
    assert found
    assert set(found) == {__file__}


def test_warnings_of_memory_point_to_the_caller(monkeypatch):
    monkeypatch.setattr("bayesvm.data.capacity.memory_bytes", lambda: 20_000.0)
    y = np.arange(600) % 2
    for call in (lambda: few_steps().fit(X, y), lambda: few_steps().partial_fit(X, y, classes=[0, 1])):
        assert places(call) == [__file__]
