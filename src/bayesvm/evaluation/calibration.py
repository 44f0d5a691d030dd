"""Evaluation: calibration, the agreement of predicted probabilities and observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from bayesvm.evaluation.predictions import Flags, Numbers, Predictions
from bayesvm.evaluation.rows import Floats

N_GROUPS = 15  # maximum, for the calibration error
LEAST_ROWS = 50  # per group; fewer rows give a poor estimate of a frequency
LEAST_GROUPS = 3  # minimum for any number of rows, so that over- and underestimation do not cancel out
Z = float(ndtri(0.975))  # of a 95% interval


class Events(NamedTuple):
    """Predicted probabilities of an event, and whether it occurred.

    The event: for two classes, the second class is true; for more, the most probable class is true.
    """

    predicted: Floats
    happened: Flags

    @classmethod
    def of(cls, predictions: Predictions) -> Events:
        """The events of some predictions."""
        if len(predictions.classes) == 2:
            return cls(predictions.positive, predictions.y == 1)
        return cls(predictions.proba.max(axis=1), predictions.correct)


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability curve: groups of rows in the order of their predicted probability, without empty groups.

    Parameters
    ----------
    predicted : array of shape (n_groups,)
        Mean predicted probability of each group.
    observed : array of shape (n_groups,)
        Observed frequency in each group.
    low, high : array of shape (n_groups,)
        95% interval of the frequency.
    count : array of shape (n_groups,)
        Number of rows.

    See Also
    --------
    reliability : Compute the curve from predictions.
    bayesvm.inspection.ReliabilityDisplay : Plot the curve.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, reliability
    >>> predicted = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> reliability(predicted, n_bins=2).observed
    array([0., 1.])
    """

    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    count: Numbers


def reliability(predictions: Predictions, n_bins: int = N_GROUPS) -> Reliability:
    """Compare predicted probabilities with observed frequencies, in groups of equally many rows (or equal weight).

    For two classes, this is the probability of the second class; for more, that of the most probable class. Equal
    probabilities stay in one group. The intervals are Wilson intervals, for ``(Σ w)² / Σ w²`` rows if rows have
    weights.

    Parameters
    ----------
    predictions : Predictions
        Predicted probabilities and true classes.
    n_bins : int, default=15
        Maximal number of groups.

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
    metrics : Compute the ``calibration_error``, one number for all groups.
    bayesvm.inspection.ReliabilityDisplay : Plot the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.evaluation import Predictions, reliability
    >>> p = np.random.default_rng(0).random(10_000)
    >>> y = np.random.default_rng(1).random(10_000) < p  # calibrated
    >>> found = reliability(Predictions.of([False, True], y, np.column_stack([1 - p, p])))
    >>> bool(np.abs(found.predicted - found.observed).max() < 0.05)
    True
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins!r}")
    predictions = predictions.counted()
    events, weight = Events.of(predictions), predictions.weight_or_ones
    group = grouped(events.predicted, weight, n_bins)
    count = np.bincount(group, minlength=n_bins)
    total, squares, predicted, happened = (
        np.bincount(group, values, n_bins)[count > 0]
        for values in (weight, weight * weight, weight * events.predicted, weight * events.happened)
    )
    observed = np.clip(happened / total, 0.0, 1.0)
    low, high = wilson(observed, total**2 / squares)
    return Reliability(predicted / total, observed, low, high, count[count > 0])


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """The 95% Wilson interval of a share: ``(share + z²/2n ± z √(share(1-share)/n + z²/4n²)) / (1 + z²/n)``."""
    middle = share + Z**2 / (2 * n)
    half = Z * np.sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2)
    low, high = (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)  # rounding may exceed shares of 0 and 1


def grouped(predicted: Floats, weight: Floats, n_groups: int) -> Numbers:
    """The index of the group of each row: groups have equal weight, and equal values are in the same group.

    The middle of its weight decides the group of a value. If equal values were split, the order of the rows would
    change the result.
    """
    order = np.argsort(predicted)
    ranked = predicted[order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1.0))
    each = np.add.reduceat(weight[order], begins)
    middle = np.cumsum(each) - each / 2
    numbers = np.minimum((n_groups * middle / each.sum()).astype(np.intp), n_groups - 1)
    group = np.empty_like(order)
    group[order] = np.repeat(numbers, np.diff(begins, append=len(order)))
    return group


class CalibrationError:
    """Mean difference between predicted probability and observed frequency over groups of rows, corrected for chance.

    If a group has the calibration error δ, the difference d between its mean prediction and its frequency is δ plus
    noise of standard deviation σ, and the mean of |d| is larger than |δ|. So the usual estimate, the mean of |d| over
    the groups, is above zero even for perfectly calibrated probabilities (Kumar, Liang, Ma 2019; Roelofs et al. 2022).
    Here one half of the rows of a group estimates the sign of the error, and the other half its size; the mean over all
    splits is, for normal d,

        |d| (2Φ(|d|/σ) - 1) - 2σ φ(d/σ),

    with the standard deviation that the predicted probabilities p imply, ``σ² = Σ w² p(1-p) / (Σ w)²``. In expectation,
    this is zero if δ is zero, |δ| if σ is small, and in between too small rather than too large. There are up to 15
    groups of equal numbers of rows, computed once. The mean over the groups is at least zero.
    """

    def __init__(self, predictions: Predictions) -> None:
        predicted, happened = Events.of(predictions)
        self._n_groups = int(np.clip(predictions.n_rows // LEAST_ROWS, LEAST_GROUPS, N_GROUPS))
        self._group = grouped(predicted, predictions.weight_or_ones, self._n_groups)
        self._gap = predicted - happened
        self._noise = predicted * (1 - predicted)

    def __call__(self, weight: Floats, squared: Floats) -> float:
        """The error for given weights of the rows; ``squared`` replaces w² in σ²."""
        # Both are multiplied by the weight of the group, so that a group without drawn rows contributes nothing.
        off = np.abs(self._sums(weight * self._gap))
        sigma = np.sqrt(self._sums(squared * self._noise))
        # Beyond 40 deviations, chance is negligible; with probabilities of 0 and 1, there is none.
        away = off / np.maximum(sigma, off / 40 + np.finfo(np.float64).tiny)
        each = off * (2 * ndtr(away) - 1) - 2 * sigma * np.exp(-0.5 * away**2) / np.sqrt(2 * np.pi)
        return max(0.0, float(each.sum() / weight.sum()))

    def _sums(self, values: Floats) -> Floats:
        """Sums over the rows of each group."""
        return np.bincount(self._group, values, self._n_groups).astype(np.float64)
