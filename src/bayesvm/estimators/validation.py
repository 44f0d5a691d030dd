"""Estimators: checks of data, with errors that name the row and the column."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from bayesvm.data.checks import first_out_of_range, is_in_range, is_number, require_whole_text
from bayesvm.data.tables import Table
from bayesvm.estimators.columns import encoded, feature_names, learned, needs_recipe, recipe_of
from bayesvm.preparation import Frame, nearest

_FLOATS = {"dtype": (np.float64, np.float32), "ensure_all_finite": False, "order": None, "accept_sparse": "csr"}


def training_data(estimator: Any, X: Any, y: Any, *, first: bool = True) -> tuple[Any, np.ndarray]:
    """``X`` as floats and ``y`` as a vector of labels; ``first`` is false for later parts of a stream.

    For a data frame with other columns than numbers, the estimator learns a recipe, and ``X`` holds its features.
    """
    _require_rows(X)
    require_whole_labels(y)
    least = 2 if first else 1
    frame = Frame.of(X)
    if first and not (estimator.warm_start and recipe_of(estimator) is not None):
        estimator.recipe_ = None
    features = None
    if recipe_of(estimator) is not None:
        features = _encoded(estimator, X)
    elif first and frame is not None and frame.n_rows and needs_recipe(frame):
        features = learned(estimator, frame, y)
    if features is not None:
        X, y = check_X_y(features, y, ensure_min_samples=least, estimator=estimator, **_FLOATS)
    else:
        with _naming_values(X):
            X, y = validate_data(estimator, X, y, ensure_min_samples=least, reset=first, **_FLOATS)
    _require_in_range(estimator, X)
    return X, column_or_1d(y)


def training_rows_without_target(estimator: Any, X: Any) -> np.ndarray:
    """``X`` as floats, dense and without missing values, for a model that has no y; of a data frame its features."""
    _require_rows(X)
    estimator.recipe_ = estimator.completion_ = None
    dense = _FLOATS | {"accept_sparse": False, "ensure_min_samples": 2}
    frame = Frame.of(X)
    if frame is not None and frame.n_rows and needs_recipe(frame):
        X = check_array(learned(estimator, frame), estimator=estimator, **dense)
    else:
        with _naming_values(X):
            X = validate_data(estimator, X, reset=True, **dense)
    _require_in_range(estimator, X)
    return np.asarray(X)


def require_whole_labels(y: Any, name: str = "y") -> None:
    """Require labels that an array stores without loss."""
    if y is not None and getattr(getattr(y, "dtype", None), "kind", "O") == "O":
        require_whole_text(np.asarray(y, object), None, lambda row: f"{name}, row {row}")


def new_data(estimator: Any, X: Any) -> Any:
    """``X`` for prediction, checked against the columns of ``fit``."""
    check_is_fitted(estimator)
    return prediction_rows(estimator, X)


def prediction_rows(estimator: Any, X: Any) -> Any:
    """The same, also for an estimator during its fit."""
    _require_rows(X)
    if recipe_of(estimator) is not None:
        X = check_array(_encoded(estimator, X), estimator=estimator, input_name="X", **_FLOATS)
    else:
        with _naming_values(X), _naming_nearest_columns(estimator, X):
            X = validate_data(estimator, X, reset=False, **_FLOATS)
    _require_in_range(estimator, X)
    return X


def _encoded(estimator: Any, X: Any) -> Any:
    """The features of the recipe; ``X`` has its columns, or the features themselves."""
    recipe, frame = estimator.recipe_, Frame.of(X)
    is_array = frame is None or not recipe.named
    if not (is_array and recipe.of_numbers) or (frame is None and np.shape(X)[1:] == (len(recipe.names),)):
        return encoded(estimator, X)
    with _naming_values(X), _naming_nearest_columns(estimator, X):
        rows = validate_data(estimator, X, reset=False, **_FLOATS)
    return recipe.encoded_numbers(rows.toarray() if hasattr(rows, "toarray") else rows)


def _require_rows(X: Any) -> None:
    """Require rows in memory: not a path and not a table."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"X is a path, {os.fspath(X)!r}: open the file with bayesvm.open_table and pass the table")
    if isinstance(X, Table):
        raise TypeError("this method needs rows in memory; only fit, predict_to and the predict methods take tables")
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", None) in {"m", "M"}:
        raise TypeError(
            f"X is an array of type {dtype}. Pass a data frame, whose columns may hold dates and durations, or convert "
            "the array to numbers"
        )


def row_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Sample weights, checked; ``None`` if there are none."""
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


@contextmanager
def _naming_values(X: Any) -> Iterator[None]:
    """Name the row and column of a value that is not a number, such as text or a date."""
    try:
        yield
    except (TypeError, ValueError) as error:
        is_text = "could not convert string" in str(error)
        if hasattr(X, "tocsr") or not (is_text or "float() argument" in str(error)):
            raise
        for column, values in enumerate(np.asarray(X, object).T):
            name = X.columns[column] if hasattr(X, "columns") else column
            for row, value in enumerate(values):
                if is_text and isinstance(value, str) and not is_number(value):
                    raise ValueError(
                        f"{error}: X has text at row {row}, column {name!r}. "
                        "Pass a data frame, whose columns may hold text, or encode the column first."
                    ) from error
                if isinstance(value, date | time | timedelta):
                    raise TypeError(
                        f"X has the date or time {value} at row {row}, column {name!r}. Pass a data frame, whose "
                        "columns may hold dates, or encode the column first."
                    ) from error
        raise


@contextmanager
def _naming_nearest_columns(estimator: Any, X: Any) -> Iterator[None]:
    """Add to scikit-learn's message about other columns than those of the fit which names are similar."""
    try:
        yield
    except ValueError as error:
        frame, expected = Frame.of(X), getattr(estimator, "feature_names_in_", None)
        if frame is None or expected is None or not str(error).startswith("The feature names should match"):
            raise
        unseen = [name for name in frame.names if name not in set(expected)]
        pairs = [(name, nearest(name, [each for each in expected if each not in frame.names])) for name in unseen[:3]]
        hints = [f"X has the column {name!r}{hint}" for name, hint in pairs if hint]
        if not hints:
            ordered = set(expected) <= set(frame.names)
            hints = ["Select the columns of the fit: X[model.feature_names_in_]"] if ordered else []
        raise ValueError("\n".join([str(error).rstrip("\n"), *hints, ""])) from error


def column_name(estimator: Any, column: int) -> str:
    """The name of a column of X in messages."""
    names = feature_names(estimator)
    return str(column) if names is None else repr(names[column])


def _require_in_range(estimator: Any, X: Any) -> None:
    """Require values in range; they may be missing, except in sparse rows and for models without a completion."""
    missing = not hasattr(X, "tocsr") and getattr(estimator, "completion_", True) is not None
    if not is_in_range(X, missing=missing):
        row, column, affected, what, remedy = first_out_of_range(X, missing=missing)
        names = feature_names(estimator)
        where = f"row {row}, column {column}" + ("" if names is None else f" ({names[column]!r})")
        also = f"; {affected - 1} more rows are affected" if affected > 1 else ""
        raise ValueError(
            f"Input X contains {what} at {where}{also}. {type(estimator).__name__} cannot use it. {remedy}."
        )


def columns_of(estimator: Any) -> tuple[Any, ...] | int | None:
    """Names of the columns of the last fit, or their number."""
    names = getattr(estimator, "feature_names_in_", None)
    return getattr(estimator, "n_features_in_", None) if names is None else tuple(names)


def require_same_columns(before: Any, estimator: Any) -> None:
    """Require the columns of the earlier fit that this fit continues."""
    now = columns_of(estimator)
    if before != now:
        was, is_now = (
            ", ".join(map(repr, columns)) if isinstance(columns, tuple) else f"{columns} without names"
            for columns in (before, now)
        )
        raise ValueError(
            f"warm_start needs the columns of the earlier fit, {was}; X has {is_now}. Give the same columns, or "
            "fit with warm_start=False"
        )
