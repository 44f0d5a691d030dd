"""Workflow: statistics of the columns of a table, stored in the model; without single rows."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import MISSING

MOST_ROWS = 5_000  # enough for shares to ± 1.4 percentage points
MOST_COLUMNS = 200
MOST_CATEGORIES = 12  # with their own bars; the others share one
N_BINS = 16
OTHERS = "(others)"
DATE = re.compile(r"\d{4}-\d\d-\d\d")  # as recipes decode dates


def profile(recipe: Recipe, X: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """The kind, the share of missing values and a histogram of each column, from some rows of features.

    ``missing`` is a share, ``kind`` one of number, 0 or 1, date, category. Numbers and dates have ``quantiles``: 1%,
    quartiles and 99%, since the extremes would be single rows. Their ``counts`` are those of equal bins from ``low``
    to ``high``; the outermost bins include more extreme values. Columns with few distinct numbers, and categories, have
    ``counts`` by ``names``, in order or most frequent first.
    """
    values = recipe.decoded(X[:MOST_ROWS])
    return [_column(name, column) for name, column in list(values.items())[:MOST_COLUMNS]]


def _column(name: str, values: list[Any]) -> dict[str, Any]:
    present = [value for value in values if not _is_missing(value)]
    found: dict[str, Any] = {"name": name, "missing": (len(values) - len(present)) / max(len(values), 1)}
    if all(isinstance(value, int | float) for value in present):
        return found | _numbers(np.array(present, np.float64))
    counts = Counter(map(str, present)).most_common()
    if len(counts) > MOST_CATEGORIES and all(DATE.match(text) for text, _ in counts):
        return found | _dates(np.array(present, "datetime64[s]"))
    return found | {"kind": "category", "distinct": len(counts)} | _named(counts)


def _is_missing(value: Any) -> bool:
    return value is None or value == MISSING or (isinstance(value, float) and np.isnan(value))


def _named(counts: list[tuple[str, int]]) -> dict[str, Any]:
    shown, others = counts[:MOST_CATEGORIES], sum(count for _, count in counts[MOST_CATEGORIES:])
    shown = [*shown, (OTHERS, others)] if others else shown
    return {"names": [name for name, _ in shown], "counts": [count for _, count in shown]}


def _dates(present: npt.NDArray[np.datetime64]) -> dict[str, Any]:
    """Like numbers, but with dates as quantiles."""
    found = _numbers(present.astype(np.float64))
    days = np.array(found["quantiles"]).astype("datetime64[s]").astype("datetime64[D]")
    return found | {"kind": "date", "quantiles": days.astype(str).tolist()}


def _numbers(present: npt.NDArray[np.float64]) -> dict[str, Any]:
    distinct, counts = np.unique(present, return_counts=True)
    kind = "0 or 1" if len(distinct) and np.isin(distinct, (0, 1)).all() else "number"
    found: dict[str, Any] = {"kind": kind, "distinct": len(distinct)}
    if not len(distinct):
        return found | {"names": [], "counts": []}
    found["quantiles"] = np.quantile(present, (0.01, 0.25, 0.5, 0.75, 0.99)).tolist()
    if len(distinct) <= MOST_CATEGORIES:
        return found | {"names": [f"{value:.6g}" for value in distinct], "counts": counts.tolist()}
    low, high = np.quantile(present, (0.01, 0.99)).tolist()
    if low == high:
        low, high = float(distinct[0]), float(distinct[-1])
    counts, _ = np.histogram(present.clip(low, high), N_BINS, (low, high))
    return found | {"low": low, "high": high, "counts": counts.tolist()}
