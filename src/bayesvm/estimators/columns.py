"""Estimators: columns of data frames: the recipe that a fit learns of them, and the features that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.checks import left_out_without_target
from bayesvm.preparation import Frame, Recipe, learn_frame, nearest
from bayesvm.preparation.values import Values, are_missing
from bayesvm.warn import warn_user

Array = npt.NDArray[Any]


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """What the features are called: those that the recipe makes, or the columns themselves."""
    recipe = recipe_of(estimator)
    if recipe is not None:
        return recipe.names
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


def n_features(estimator: Any) -> int:
    """How many features the model has: as many as columns, unless a recipe makes them."""
    recipe = recipe_of(estimator)
    return int(estimator.n_features_in_) if recipe is None else len(recipe.names)


def input_names(estimator: Any) -> tuple[str, ...]:
    """What the columns are called that the estimator was given; x0, x1, … if they have no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{number}" for number in range(estimator.n_features_in_)) if names is None else tuple(names)


def recipe_of(estimator: Any) -> Recipe | None:
    """How columns become features; None where they are the features."""
    return getattr(estimator, "recipe_", None)


def needs_recipe(frame: Frame) -> bool:
    """Whether a frame has anything but numbers and booleans, none of them missing."""
    return not all(_is_plain(frame.values(name)) for name in frame.names)


def _is_plain(values: Values) -> bool:
    return values.kind == "number" and not (values.array.dtype.kind == "f" and np.isnan(values.array).any())


def learned(estimator: Any, frame: Frame) -> Array:
    """The features of a frame by a recipe learned from it; the estimator gets the recipe and what fit saw."""
    recipe = learn_frame(frame)
    use_recipe(estimator, recipe)
    report_left_out(recipe, "X")
    return recipe.encoded_frame(frame)


def use_recipe(estimator: Any, recipe: Recipe) -> None:
    """Give an estimator a recipe, and the columns that it was learned from."""
    estimator.recipe_ = recipe
    set_columns(estimator, recipe.inputs if recipe.named else None, len(recipe.inputs))


def set_columns(estimator: Any, names: tuple[str, ...] | None, n_columns: int) -> None:
    """Names and number of the columns that a fit was given."""
    estimator.n_features_in_ = n_columns
    if names is not None:
        estimator.feature_names_in_ = np.array(names, object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def report_left_out(recipe: Recipe, source: str) -> None:
    """One message about the columns that a recipe does not use, unless the user said so."""
    found = [f"{name!r} ({why})" for name, why in recipe.left_out.items() if why != "as asked for"]
    if found:
        more = f", and {len(found) - 6} more" if len(found) > 6 else ""
        remedy = (
            "in a data frame make it floats or a category type; of files, open_table(…, keep=[…]) keeps it"
            if any("?" in why for why in recipe.left_out.values())
            else ""
        )
        warn_user(
            f"{len(found)} column{'s' * (len(found) > 1)} of {source} left out: {', '.join(found[:6])}{more}"
            + (f". To use such a column, {remedy}" if remedy else "")
        )


def encoded(estimator: Any, X: Any) -> Array:
    """Rows to predict as features: of a data frame, or an array of the features themselves."""
    recipe, frame = estimator.recipe_, Frame.of(X)
    if frame is None:
        return _as_features(estimator, X)
    _require_columns(estimator, frame)
    return recipe.encoded_frame(frame)


def _as_features(estimator: Any, X: Any) -> Array:
    names = input_names(estimator)
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if rows.dtype.kind not in "iufb" or rows.ndim != 2 or rows.shape[1] != len(estimator.recipe_.names):
        raise TypeError(
            f"this {type(estimator).__name__} was fitted to a table with the columns "
            f"{', '.join(map(repr, names[:10]))}{', …' if len(names) > 10 else ''}; give a data frame with them, or a "
            f"table of open_table; got {type(X).__name__} of shape {rows.shape}"
        )
    return rows


def _require_columns(estimator: Any, frame: Frame) -> None:
    """scikit-learn's rules: the columns of the fit, in their order; those that are not used may be missing."""
    needed, expected = estimator.recipe_.needed, input_names(estimator)
    if not frame.named and not hasattr(estimator, "feature_names_in_"):
        if len(frame.names) != len(expected):
            raise ValueError(
                f"X has {len(frame.names)} columns, but {type(estimator).__name__} was fitted to {len(expected)}"
            )
        return
    given = set(frame.names)
    start = "The feature names should match those that were passed during fit. "
    if missing := [name for name in needed if name not in given]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"{start}X has no column {missing[0]!r}{more}{nearest(missing[0], frame.names)}")
    seen = set(expected)
    if extra := [name for name in frame.names if name not in seen]:
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        raise ValueError(f"{start}Column {extra[0]!r}{more} of X was not there{nearest(extra[0], expected)}; drop it")
    if list(frame.names) != [name for name in expected if name in given]:
        raise ValueError(
            f"{start}Feature names must be in the same order as they were in fit: X[model.feature_names_in_]"
        )


def missing_targets(y: Any) -> Array:
    """Which targets are missing: None, NaN, or the null of pandas and polars."""
    if hasattr(y, "isna"):
        return np.asarray(y.isna(), bool)
    if hasattr(y, "is_null"):
        nulls = y.is_null()
        return np.asarray(nulls.to_numpy(zero_copy_only=False) if hasattr(nulls, "num_chunks") else nulls, bool)
    labels = np.asarray(y)
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return np.zeros(len(labels), bool)
    return are_missing(labels)


def rows_with_targets(y: Any) -> Array | None:
    """Numbers of the rows that have a target, if others have none, which is reported; None: all have one."""
    missing = missing_targets(y)
    if not missing.any() or missing.all():
        return None
    warn_user(left_out_without_target(missing, "y", f"row {int(np.argmax(missing))}"))
    return np.flatnonzero(~missing)
