"""Estimators: columns of data frames: the recipe that a fit learns, and the features that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.checks import left_out_without_target
from bayesvm.preparation import Frame, Recipe, learn_frame, nearest
from bayesvm.preparation.values import Values, are_missing
from bayesvm.warn import ReadingNote, warn_user

Array = npt.NDArray[Any]


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """Names of the features: those of the recipe, or those of the columns."""
    recipe = recipe_of(estimator)
    if recipe is not None:
        return recipe.names
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


def n_features(estimator: Any) -> int:
    """Number of features: those of the recipe, or the columns."""
    recipe = recipe_of(estimator)
    return int(estimator.n_features_in_) if recipe is None else len(recipe.names)


def input_names(estimator: Any) -> tuple[str, ...]:
    """Names of the columns of X; x0, x1, … if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{number}" for number in range(estimator.n_features_in_)) if names is None else tuple(names)


def recipe_of(estimator: Any) -> Recipe | None:
    """How columns become features; None if the columns are the features."""
    return getattr(estimator, "recipe_", None)


def needs_recipe(frame: Frame) -> bool:
    """Whether a frame has other columns than numbers and booleans without missing values."""
    return not all(_is_plain(frame.values(name)) for name in frame.names)


def _is_plain(values: Values) -> bool:
    return (
        values.kind == "number"
        and not values.note
        and not (values.array.dtype.kind == "f" and np.isnan(values.array).any())
    )


def learned(estimator: Any, frame: Frame, y: Any = None) -> Array:
    """Learn a recipe from a frame, and return its features; sets the recipe and the columns of the estimator."""
    target = None if y is None else np.asarray(y)
    recipe = learn_frame(frame, None if target is None or target.shape != (frame.n_rows,) else target)
    use_recipe(estimator, recipe)
    report_left_out(recipe, "X")
    return recipe.encoded_frame(frame)


def use_recipe(estimator: Any, recipe: Recipe) -> None:
    """Set the recipe of an estimator, and the columns that it was learned from."""
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
    """Warn once about the columns that a recipe does not use, unless the user excluded them; note what it adds."""
    if recipe.marked:
        warn_user(marked_note(recipe.marked), ReadingNote)
    found = [f"{name!r} ({why})" for name, why in recipe.left_out.items() if why != "as requested"]
    if found:
        more = f", and {len(found) - 6} more" if len(found) > 6 else ""
        remedy = (
            "convert it to float or to a category type in a data frame; for files, use open_table(…, keep=[…])"
            if any("?" in why for why in recipe.left_out.values())
            else ""
        )
        warn_user(
            f"{len(found)} column{'s' * (len(found) > 1)} of {source} left out: {', '.join(found[:6])}{more}"
            + (f". To use such a column, {remedy}" if remedy else "")
        )


def marked_note(names: Sequence[str]) -> str:
    """The note about features that mark missing values."""
    shown = ", ".join(map(repr, names[:6])) + (f", … ({len(names) - 6} more)" if len(names) > 6 else "")
    one = f"column {shown}, so a feature marks them" if len(names) == 1 else f"columns {shown}, so features mark them"
    return f"the target depends on which values are missing in {one}"


def encoded(estimator: Any, X: Any) -> Array:
    """Rows to predict as features: from a data frame, or from an array of the features themselves."""
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
    """The rules of scikit-learn: the columns of the fit, in the same order; unused columns may be missing."""
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
        raise ValueError(
            f"{start}X has the column {extra[0]!r}{more}, not seen in fit{nearest(extra[0], expected)}; drop it"
        )
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
    """Indices of the rows with a target, with a warning about the others; None if all rows have a target."""
    missing = missing_targets(y)
    if not missing.any() or missing.all():
        return None
    warn_user(left_out_without_target(missing, "y", f"row {int(np.argmax(missing))}"))
    return np.flatnonzero(~missing)
