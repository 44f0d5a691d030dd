"""Core: conformal thresholds and p-values for scores of new rows, from scores of left-out rows (D35, D36)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import effective_rows
from bayesvm.core.linalg import Array

ROUNDING = 1e-12  # relative tolerance for (n + 1) · coverage: 100 · 0.55 is 55, not 55.00000000000001


def require_coverage(coverage: Any) -> None:
    """Require a number strictly between 0 and 1."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:  # True equals 1
        raise ValueError(f"coverage must be strictly between 0 and 1, such as 0.9; got {coverage!r}")


def conformal_threshold(scores: Array, weight: Array, coverage: float) -> float:
    """The smallest score s with ``Σ_{s_i ≤ s} ω_i ≥ (n + 1) · coverage`` (D35).

    The weights ω are scaled to sum to the effective number of rows n. For equal weights, this is the
    ⌈(n + 1) · coverage⌉-th smallest score. Infinity if there are too few rows.
    """
    there = weight > 0
    if not there.any():
        return np.inf
    scores, weight = scores[there], weight[there]
    n = effective_rows(weight)
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weight[order]) * (n / weight.sum())
    first = int(np.searchsorted(reached, (n + 1) * coverage * (1 - ROUNDING)))
    return float(scores[order[first]]) if first < len(scores) else np.inf


def prediction_set_thresholds(
    probabilities: Array,
    y: npt.NDArray[np.integer],
    weight: Array,
    coverage: float,
    *,
    each: bool = False,
) -> Array:
    """Thresholds: an outcome is in the prediction set if ``1 - p`` does not exceed that of its column (D35).

    ``probabilities`` are those of left-out rows, ``y`` the column numbers of the observed outcomes. With ``each``,
    every outcome has the threshold of its own rows.
    """
    scores = 1 - probabilities[np.arange(len(y)), y]
    n_outcomes = probabilities.shape[1]
    if not each:
        return np.full(n_outcomes, conformal_threshold(scores, weight, coverage))
    rows = [y == number for number in range(n_outcomes)]
    return np.array([conformal_threshold(scores[mine], weight[mine], coverage) for mine in rows])


def conformal_p_values(scores: Array, weight: Array, new: Array) -> Array:
    """``(1 + Σ_{s_i ≥ s} ω_i) / (n + 1)`` for new scores s (D36).

    A p-value is at most 1 - coverage exactly if s is above the threshold for this coverage.
    """
    there = weight > 0
    scores, weight = scores[there], weight[there]
    n = effective_rows(weight)
    order = np.argsort(scores, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])]) / weight.sum()
    return np.asarray((1 + n * (1 - below[np.searchsorted(scores[order], new)])) / (n + 1))
