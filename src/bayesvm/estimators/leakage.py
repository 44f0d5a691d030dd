"""Estimators: columns that alone explain the target, which are often known only after the target (leakage)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import random_rows
from bayesvm.preparation import Recipe
from bayesvm.warn import warn_user

Array = npt.NDArray[np.generic]
LEAST_ROWS, LEAST_OF_A_CLASS = 100, 10
MOST_ROWS = 5_000  # rows that are checked
ROWS_OF_A_VALUE = 10  # on average; rarer categories often have one class only by chance
NEARLY_ALL = 0.965  # share of rows whose class a column alone predicts, from which it is reported,
FEWER_ERRORS = 0.15  # if there are so many fewer errors than without columns
VARIATION = 0.99  # share of the variance of a numeric target that a column alone explains


@dataclass(frozen=True)
class Leak:
    """A column that alone explains a share of the target: of the rows for classes, of the variance for numbers."""

    column: str
    share: float


def checked_rows(n_rows: int) -> npt.NDArray[np.intp]:
    """Some rows of a table, for ``leaks``: increasing numbers, the same at each call."""
    return np.arange(n_rows) if n_rows <= MOST_ROWS else random_rows(n_rows, MOST_ROWS, np.random.default_rng(0))


def warn_of_leakage(X: npt.NDArray[np.floating], y: Array, recipe: Recipe, *, numbers: bool) -> list[Leak]:
    """Find columns that alone explain the target, and warn; ``X`` holds the features of a recipe, in memory.

    ``numbers`` tells numeric targets from classes.
    """
    rows = checked_rows(len(X))
    found = leaks(X[rows], y[rows], recipe, numbers=numbers)
    report(found, len(rows), len(X), numbers=numbers)
    return found


def leaks(X: npt.NDArray[np.floating], y: Array, recipe: Recipe, *, numbers: bool) -> list[Leak]:
    """The columns that alone explain the target of some rows."""
    if len(X) < LEAST_ROWS:
        return []
    explained: Any = _variance_explained
    target = np.asarray(y, np.float64) if numbers else y
    if numbers:
        if np.ptp(target) == 0:
            return []
    else:
        _, target, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(counts) < 2 or counts.min() < LEAST_OF_A_CLASS:
            return []
        explained = _classes_explained
    shares = {name: explained(X[:, group], target) for name, group in recipe.groups.items()}
    return [Leak(name, share) for name, share in shares.items() if share]


def report(found: list[Leak], n_checked: int, n_rows: int, *, numbers: bool) -> None:
    """Warn about columns that alone explain the target."""
    remedy = "If it is not known before the target (data leakage), drop it: new rows will not have it"
    rows = f"all {n_rows:,} rows" if n_checked == n_rows else f"{n_checked:,} of {n_rows:,} rows, chosen at random"
    exact = [each.column for each in found if each.share == 1 and not numbers]
    if exact:
        names = ", ".join(map(repr, exact[:5])) + (", …" if len(exact) > 5 else "")
        subject = f"column {names}" if len(exact) == 1 else f"each of the columns {names}"
        warn_user(f"{subject} alone determines the classes of {rows}. {remedy}")
    for each in found[:5]:
        if each.column not in exact:
            what = (
                f"explains {each.share:.1%} of the variance of the target in"
                if numbers
                else f"predicts the classes of {each.share:.1%} of"
            )
            warn_user(f"column {each.column!r} alone {what} {rows}. {remedy}")


def _classes_explained(features: npt.NDArray[np.floating], codes: npt.NDArray[np.intp]) -> float:
    """The share of rows whose class the column predicts, 1 if it separates the classes; 0 if it is not suspicious."""
    if _separates(features, codes):
        return 1.0
    cells = _cells(features)
    counts = np.zeros((cells.max() + 1, codes.max() + 1))
    np.add.at(counts, (cells, codes), 1)
    wrong = 1 - counts.max(axis=1).sum() / len(codes)
    without = 1 - np.bincount(codes).max() / len(codes)
    return 1 - wrong if wrong <= min(1 - NEARLY_ALL, FEWER_ERRORS * without) else 0.0


def _variance_explained(features: npt.NDArray[np.floating], y: npt.NDArray[np.float64]) -> float:
    """The share of the variance that the column explains; 0 if it is not suspicious."""
    cells = _cells(features)
    sizes = np.bincount(cells)
    means = np.bincount(cells, y) / np.maximum(sizes, 1)
    # Every mean costs a degree of freedom.
    left = float(np.sum((y - means[cells]) ** 2)) / max(len(y) - int(np.count_nonzero(sizes)), 1)
    share = 1 - left / float(np.var(y, ddof=1))
    return share if share >= VARIATION else 0.0


def _cells(features: npt.NDArray[np.floating]) -> npt.NDArray[np.intp]:
    """A partition of the rows by the values of a column, with at least ten rows in a cell on average."""
    most = max(len(features) // ROWS_OF_A_VALUE, 1)
    distinct, cells = np.unique(features, axis=0, return_inverse=True)
    if len(distinct) > most:
        distinct, cells = np.unique(features[:, -1], return_inverse=True)  # of dates, the days
    cells = np.asarray(cells).ravel()
    if len(distinct) <= most:
        return cells
    before = np.cumsum(np.bincount(cells)) - 1
    return np.asarray(before * most // len(features))[cells]


def _separates(features: npt.NDArray[np.floating], codes: npt.NDArray[np.intp]) -> bool:
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
