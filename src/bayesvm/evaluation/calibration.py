"""Evaluation: do things happen as often as their stated probabilities say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from bayesvm.evaluation.predictions import Flags, Numbers, Predictions
from bayesvm.evaluation.rows import Floats

N_GROUPS = 15  # of the calibration error, at most
LEAST_ROWS = 50  # of a group: the share in which something happens is not known well from fewer
LEAST_GROUPS = 3  # however few rows there are: stated too much here and too little there must not even out
Z = float(ndtri(0.975))  # of a 95 % interval


class Claims(NamedTuple):
    """Stated probabilities of something, and whether it happened.

    Of two classes, that the second is true; of more, that the most probable one is.
    """

    stated: Floats
    happened: Flags

    @classmethod
    def of(cls, predictions: Predictions) -> Claims:
        """The claims of some predictions."""
        if len(predictions.classes) == 2:
            return cls(predictions.positive, predictions.y == 1)
        return cls(predictions.proba.max(axis=1), predictions.correct)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Groups of rows by their stated probability, in rising order; groups without rows are left out.

    Parameters
    ----------
    stated : array of shape (n_groups,)
        Mean stated probability of each group.
    observed : array of shape (n_groups,)
        Share in which it came true.
    low, high : array of shape (n_groups,)
        The 95 % interval of that share.
    count : array of shape (n_groups,)
        Number of rows.

    See Also
    --------
    reliability : Makes it of predictions.
    bayesvm.inspection.ReliabilityDisplay : Draws it.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, reliability
    >>> said = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> reliability(said, n_bins=2).observed
    array([0., 1.])
    """

    stated: Floats
    observed: Floats
    low: Floats
    high: Floats
    count: Numbers


def reliability(predictions: Predictions, n_bins: int = N_GROUPS) -> Reliability:
    """Stated probabilities against observed shares, in at most ``n_bins`` groups of equal numbers of rows (or weight).

    Of two classes, the probability of the second; of more, that of the most probable class. Equal probabilities stay in
    one group. The intervals are Wilson's, with ``(Σ w)² / Σ w²`` rows where rows have weights.

    Parameters
    ----------
    predictions : Predictions
        Stated probabilities, and what was true.
    n_bins : int
        Groups, at most.

    Returns
    -------
    Reliability
        The groups.

    Raises
    ------
    ValueError
        If ``n_bins`` is below 1.

    See Also
    --------
    metrics : Its ``calibration_error`` is one number for all groups.
    bayesvm.inspection.ReliabilityDisplay : Draws the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.evaluation import Predictions, reliability
    >>> p = np.random.default_rng(0).random(10_000)
    >>> y = np.random.default_rng(1).random(10_000) < p  # comes true as often as stated
    >>> found = reliability(Predictions.of([False, True], y, np.column_stack([1 - p, p])))
    >>> bool(np.abs(found.stated - found.observed).max() < 0.05)
    True
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins!r}")
    predictions = predictions.counted()
    claims, weight = Claims.of(predictions), predictions.weight_or_ones
    group = grouped(claims.stated, weight, n_bins)
    count = np.bincount(group, minlength=n_bins)
    total, squares, stated, happened = (
        np.bincount(group, values, n_bins)[count > 0]
        for values in (weight, weight * weight, weight * claims.stated, weight * claims.happened)
    )
    observed = np.clip(happened / total, 0.0, 1.0)
    low, high = wilson(observed, total**2 / squares)
    return Reliability(stated / total, observed, low, high, count[count > 0])


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of a share of n rows: ``(share + z²/2n ± z √(share(1-share)/n + z²/4n²)) / (1 + z²/n)``."""
    middle = share + Z**2 / (2 * n)
    half = Z * np.sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2)
    low, high = (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)  # at shares of 0 and 1, rounding goes past them


def grouped(stated: Floats, weight: Floats, n_groups: int) -> Numbers:
    """The number of each row's group: equal weight in each, and equal values together.

    A value goes where the middle of its weight lies. Rows that state the same must not be told apart, or the order of
    the rows would decide which of them seem off.
    """
    order = np.argsort(stated)
    ranked = stated[order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1.0))
    each = np.add.reduceat(weight[order], begins)
    middle = np.cumsum(each) - each / 2
    numbers = np.minimum((n_groups * middle / each.sum()).astype(np.intp), n_groups - 1)
    group = np.empty_like(order)
    group[order] = np.repeat(numbers, np.diff(begins, append=len(order)))
    return group


class CalibrationError:
    """Mean difference between stated and observed share, in groups of rows that state nearly the same, less chance.

    If a group is off by δ, then the difference d of its stated and observed share is δ and chance, of deviation σ, and
    |d| is on average above |δ|. So the mean of |d| over the groups, the usual estimate, is above zero however well
    calibrated the probabilities are (Kumar, Liang, Ma 2019; Roelofs et al. 2022). Here one half of a group's rows says
    in which direction it is off, and the other half how far; the mean over all halvings is, for normal d,

        |d| (2Φ(|d|/σ) - 1) - 2σ φ(d/σ),

    with the deviation that the stated probabilities p imply, ``σ² = Σ w² p(1-p) / (Σ w)²``. On average this is zero
    where δ is, |δ| where σ is small, and rather too small than too large in between. There are up to 15 groups of equal
    numbers of rows, made once. The mean over them is at least zero.
    """

    def __init__(self, predictions: Predictions) -> None:
        stated, happened = Claims.of(predictions)
        self._n_groups = int(np.clip(predictions.n_rows // LEAST_ROWS, LEAST_GROUPS, N_GROUPS))
        self._group = grouped(stated, predictions.weight_or_ones, self._n_groups)
        self._gap = stated - happened
        self._noise = stated * (1 - stated)

    def __call__(self, weight: Floats, squared: Floats) -> float:
        """Of rows that weigh so much; ``squared`` stands for w² in σ²."""
        # Both times the weight of the group, so that a group of which no row was drawn does no harm.
        off = np.abs(self._sums(weight * self._gap))
        sigma = np.sqrt(self._sums(squared * self._noise))
        # Beyond 40 deviations nothing is chance; with probabilities of 0 and 1 there is none at all.
        away = off / np.maximum(sigma, off / 40 + np.finfo(np.float64).tiny)
        each = off * (2 * ndtr(away) - 1) - 2 * sigma * np.exp(-0.5 * away**2) / np.sqrt(2 * np.pi)
        return max(0.0, float(each.sum() / weight.sum()))

    def _sums(self, values: Floats) -> Floats:
        """Over the rows of each group."""
        return np.bincount(self._group, values, self._n_groups).astype(np.float64)
