"""Estimators: columns that alone explain the target, which are often known only after the target (leakage)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesvm.preparation import Recipe
from bayesvm.warn import warn_user

Array = npt.NDArray[np.generic]
LEAST_ROWS, LEAST_OF_A_CLASS = 100, 10
MOST_ROWS = 5_000  # rows that are checked
ROWS_OF_A_VALUE = 10  # on average; rarer categories often have one class only by chance


def warn_of_giveaways(X: npt.NDArray[np.floating], codes: Array, recipe: Recipe) -> list[str]:
    """Warn about columns that alone determine the classes of all rows; ``X`` holds the features of a recipe."""
    if len(X) > MOST_ROWS:
        chosen = np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)
        X, codes = X[chosen], codes[chosen]
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if len(X) < LEAST_ROWS or len(counts) < 2 or counts.min() < LEAST_OF_A_CLASS:
        return []
    found = [name for name, group in recipe.groups.items() if _explains(X[:, group], codes)]
    if found:
        names = ", ".join(map(repr, found[:5])) + (", …" if len(found) > 5 else "")
        subject = (
            f"column {names} alone determines" if len(found) == 1 else f"each of the columns {names} alone determines"
        )
        warn_user(
            f"{subject} the classes of all {len(X):,} rows. If it is not known before the target (data leakage), drop "
            "it: new rows will not have it"
        )
    return found


def _explains(features: npt.NDArray[np.floating], codes: Array) -> bool:
    """Whether thresholds of one feature separate the classes, or the combined values of all features do."""
    n_classes = len(np.unique(codes))
    for feature in features.T:
        order = np.lexsort((codes, feature))
        values, sides = feature[order], codes[order]
        starts = np.flatnonzero(np.diff(values, prepend=-np.inf) != 0)
        mixed = np.minimum.reduceat(sides, starts) != np.maximum.reduceat(sides, starts)
        if not mixed.any() and 1 + np.count_nonzero(np.diff(sides)) == n_classes:
            return True
    if features.shape[1] < 2:
        return False
    _, which, sizes = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    pairs = np.unique(np.column_stack([which.ravel(), codes]), axis=0)
    return len(sizes) * ROWS_OF_A_VALUE <= len(codes) and len(pairs) == len(sizes)
