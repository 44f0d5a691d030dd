"""Core: thresholds that scores of new rows seldom exceed, and p-values, from scores of rows left out (D35, D36)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import effective_rows
from bayesvm.core.linalg import Array

ROUNDING = 1e-12  # of (n + 1) · coverage, relative: 100 · 0.55 is 55, not 55.00000000000001


def require_coverage(coverage: Any) -> None:
    """Require a share strictly between 0 and 1."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:  # True is one
        raise ValueError(f"coverage is a share strictly between 0 and 1, such as 0.9; got {coverage!r}")


def conformal_threshold(scores: Array, weight: Array, coverage: float) -> float:
    """The smallest score s with ``Σ_{s_i ≤ s} ω_i ≥ (n + 1) · coverage``, ω the weights with sum n, effective (D35).

    Of equal weights, the ⌈(n + 1) · coverage⌉-th smallest score. Infinity where n rows are too few for that.
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
    """What ``1 - p`` of an outcome must not exceed to be in the set, a number for every column (D35).

    ``probabilities`` are those of rows left out, ``y`` the numbers of the columns that came true. With ``each``, every
    outcome has the threshold of its own rows.
    """
    scores = 1 - probabilities[np.arange(len(y)), y]
    n_outcomes = probabilities.shape[1]
    if not each:
        return np.full(n_outcomes, conformal_threshold(scores, weight, coverage))
    rows = [y == number for number in range(n_outcomes)]
    return np.array([conformal_threshold(scores[mine], weight[mine], coverage) for mine in rows])


def conformal_p_values(scores: Array, weight: Array, new: Array) -> Array:
    """``(1 + Σ_{s_i ≥ s} ω_i) / (n + 1)`` of new scores s: how often a new row has one as large (D36).

    At most 1 - coverage exactly where s is above the threshold of that coverage.
    """
    there = weight > 0
    scores, weight = scores[there], weight[there]
    n = effective_rows(weight)
    order = np.argsort(scores, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])]) / weight.sum()
    return np.asarray((1 + n * (1 - below[np.searchsorted(scores[order], new)])) / (n + 1))
