"""Estimators: checks of data, with errors that name the row and the column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

LARGEST_VALUE = 1e100
_FLOATS = {"dtype": (np.float64, np.float32), "ensure_all_finite": False, "order": None}


def training_data(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``X`` as floats, ``y`` as ±1 and the two classes."""
    with _naming_text_columns(X):
        X, y = validate_data(estimator, X, y, ensure_min_samples=2, **_FLOATS)
    _require_usable(estimator, X)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            f"{type(estimator).__name__} needs two classes in y, but all {len(y)} rows have one class: {classes[0]!r}"
        )
    if kind != "binary" or len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}, with {len(classes)} classes."
        )
    return X, np.where(codes == 1, 1, -1).astype(np.int8), classes


def new_data(estimator: Any, X: Any) -> np.ndarray:
    """``X`` for prediction, of the width seen in ``fit``."""
    check_is_fitted(estimator)
    with _naming_text_columns(X):
        X = validate_data(estimator, X, reset=False, **_FLOATS)
    _require_usable(estimator, X)
    return X


def row_weights(
    sample_weight: Any, class_weight: Any, X: np.ndarray, sign: np.ndarray, classes: np.ndarray
) -> np.ndarray | None:
    """Sample weights times class weights; ``None`` when every row counts one."""
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("all sample weights are zero; some must be positive")
        for value, label in zip((-1, 1), classes, strict=True):
            if not weight[sign == value].any():
                raise ValueError(f"all rows of class {label!r} have zero weight; two classes with weight are needed")
    if class_weight is not None:
        codes = (sign > 0).astype(int)
        labels = classes[codes]
        if weight is not None and isinstance(class_weight, str):  # "balanced" means balanced as weighted
            share = np.bincount(codes, weight)
            factors = weight.sum() / (2 * share)
        else:
            factors = compute_class_weight(class_weight, classes=classes, y=labels)
        weight = factors[codes] * (1.0 if weight is None else weight)
    return weight


@contextmanager
def _naming_text_columns(X: Any) -> Iterator[None]:
    """Say which column holds the text that could not be read as a number."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        for column, values in enumerate(np.asarray(X, object).T):
            name = X.columns[column] if hasattr(X, "columns") else column
            for row, value in enumerate(values):
                if isinstance(value, str) and not _is_number(value):
                    raise ValueError(
                        f"{error}: X has text at row {row}, column {name!r}. "
                        "Encode such columns first, for example with sklearn.preprocessing.OneHotEncoder."
                    ) from error
        raise


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_usable(estimator: Any, X: np.ndarray) -> None:
    try:
        assert_all_finite(X)
        usable = max(X.max(), -X.min()) <= LARGEST_VALUE if X.dtype == np.float64 else True
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(_first_unusable(estimator, X))


def _first_unusable(estimator: Any, X: np.ndarray) -> str:
    bad = ~np.isfinite(X) | (np.abs(X) > LARGEST_VALUE)
    row, column = np.argwhere(bad)[0]
    names = getattr(estimator, "feature_names_in_", None)
    where = f"row {row}, column {column}" + ("" if names is None else f" ({names[column]!r})")
    value = X[row, column]
    if np.isnan(value):
        what, remedy = "NaN", "impute it (sklearn.impute.SimpleImputer) or drop the row"
    elif np.isinf(value):
        what, remedy = "infinity", "replace infinite values or drop the row"
    else:
        what, remedy = f"a value too large ({value:g}; at most {LARGEST_VALUE:g})", "rescale the column"
    more = int(bad.any(axis=1).sum()) - 1
    also = f"; {more} more rows are affected" if more else ""
    return f"Input X contains {what} at {where}{also}. {type(estimator).__name__} cannot use it: {remedy}."
