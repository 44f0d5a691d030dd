"""Core: conformal thresholds, p-values and quantiles for new rows, from the scores of left-out rows (D35, D36)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import effective_rows
from bayesvm.core.linalg import Array

Groups = npt.NDArray[Any] | None  # the group of every row
EXTREME = 1e-9  # quantiles of smaller or larger shares are not computed
ROUNDING = 1e-12  # relative tolerance for (n + 1) · coverage: 100 · 0.55 is 55, not 55.00000000000001


def require_coverage(coverage: Any) -> None:
    """Require a number strictly between 0 and 1."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:  # True equals 1
        raise ValueError(f"coverage must be strictly between 0 and 1, such as 0.9; got {coverage!r}")


def effective_units(weight: Array, groups: Groups) -> float:
    """``(Σ ω)² / Σ_g Ω_g²``, the effective number of rows; with groups, which have weights Ω, that of groups (D35)."""
    if groups is None:
        return effective_rows(weight)
    _, number = np.unique(groups, return_inverse=True)
    return effective_rows(weight, np.asarray(np.bincount(number, weight)[number], np.float64))


def conformal_threshold(scores: Array, weight: Array, coverage: float, groups: Groups = None) -> float:
    """The smallest score s with ``Σ_{s_i ≤ s} ω_i ≥ (n + 1) · coverage`` (D35).

    The weights ω are scaled to sum to n, the effective number of rows, or of groups of rows. For equal weights without
    groups, this is the ⌈(n + 1) · coverage⌉-th smallest score. Infinity if there are too few rows or groups.
    """
    there = weight > 0
    if not there.any():
        return np.inf
    scores, weight = scores[there], weight[there]
    n = effective_units(weight, None if groups is None else groups[there])
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
    groups: Groups = None,
) -> Array:
    """Thresholds: an outcome is in the prediction set if ``1 - p`` does not exceed that of its column (D35).

    ``probabilities`` are those of left-out rows, ``y`` the column numbers of the observed outcomes. With ``each``,
    every outcome has the threshold of its own rows.
    """
    scores = 1 - probabilities[np.arange(len(y)), y]
    n_outcomes = probabilities.shape[1]
    if not each:
        return np.full(n_outcomes, conformal_threshold(scores, weight, coverage, groups))
    rows = [y == number for number in range(n_outcomes)]
    own = [None if groups is None else groups[mine] for mine in rows]
    return np.array([conformal_threshold(scores[i], weight[i], coverage, g) for i, g in zip(rows, own, strict=True)])


def conformal_p_values(scores: Array, weight: Array, new: Array, groups: Groups = None) -> Array:
    """``(1 + Σ_{s_i ≥ s} ω_i) / (n + 1)`` for new scores s (D36).

    A p-value is at most 1 - coverage exactly if s is above the threshold for this coverage.
    """
    there = weight > 0
    scores, weight = scores[there], weight[there]
    n = effective_units(weight, None if groups is None else groups[there])
    order = np.argsort(scores, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])]) / weight.sum()
    return np.asarray((1 + n * (1 - below[np.searchsorted(scores[order], new)])) / (n + 1))


@dataclass(frozen=True)
class CalibratedShares:
    """The map from shares of new rows to quantiles of the predicted distributions (D35).

    ``shares[k]`` of new rows are expected to be below the quantile ``predicted[k]``; linear in between.
    """

    shares: Array
    predicted: Array

    @classmethod
    def of(cls, below: Array, weight: Array, groups: Groups = None) -> CalibratedShares:
        """From the predicted distribution functions of left-out rows at their observed values.

        ``((n - 1) F + 1) / (n + 1)``, with F the share of the weight of the other rows that is below a row: it is
        ``k / (n + 1)`` for the k-th smallest of n rows of equal weight.
        """
        there = weight > 0
        below, weight = below[there], weight[there]
        n = effective_units(weight, None if groups is None else groups[there])
        order = np.argsort(below, kind="stable")
        total = np.cumsum(weight[order])
        others = np.maximum(total[-1] - weight[order], np.finfo(np.float64).tiny)
        below_it = np.minimum((total - weight[order]) / others, 1.0) if len(order) > 1 else np.full(len(order), 0.5)
        shares = ((n - 1) * below_it + 1) / (n + 1)
        return cls(np.concatenate([[0.0], shares, [1.0]]), np.concatenate([[0.0], below[order], [1.0]]))

    def __call__(self, share: npt.ArrayLike) -> Array:
        """The quantile of predictions below which this share of new rows is expected."""
        found = np.interp(np.asarray(share, np.float64), self.shares, self.predicted)
        return np.asarray(np.clip(found, EXTREME, 1 - EXTREME))

    def inverse(self, predicted: npt.ArrayLike) -> Array:
        """The share of new rows that is expected below this quantile of predictions."""
        return np.asarray(np.interp(np.asarray(predicted, np.float64), self.predicted, self.shares))
