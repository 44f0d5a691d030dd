"""Evaluation: what is gained by leaving the most doubtful rows to somebody else."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.rows import Floats

COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5)  # that tables tell of
POINTS_SHOWN = 500  # of a curve: more than a plot shows
N_BINS = 2**16  # a power of two, so that a doubt falls into its bin without rounding
SUM_ROUNDING = 1e-9  # of sums of many doubts, relative


class RiskCoverage(NamedTuple):
    """If only the least doubtful rows are answered: their share, the error among them, and the error that was stated.

    Parameters
    ----------
    coverage : array of shape (n_points,)
        Share of the rows that are answered, rising to 1; at most 500 points.
    risk : array of shape (n_points,)
        The error among them.
    stated : array of shape (n_points,)
        The mean of their doubts, which is the error that the probabilities state.
    area : float
        The mean risk over all coverages: the area under the whole curve.

    See Also
    --------
    risk_coverage : Makes it of predictions.
    bayesvm.inspection.RiskCoverageDisplay : Draws it.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, risk_coverage
    >>> said = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> risk_coverage(said).risk.round(2)
    array([0.  , 0.  , 0.  , 0.25])
    """

    coverage: Floats
    risk: Floats
    stated: Floats
    area: float

    def at(self, share: float) -> tuple[float, float, float]:
        """Coverage, risk and stated risk where at least that share of the rows is answered.

        Rows of equal doubt are answered together, so the coverage may be larger.

        Parameters
        ----------
        share : float
            From 0 to 1.

        Returns
        -------
        coverage, risk, stated : float
            Of the nearest point that answers enough rows.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a share is between 0 and 1; got {share!r}")
        point = np.searchsorted(self.coverage, share)
        return float(self.coverage[point]), float(self.risk[point]), float(self.stated[point])


def risk_coverage(predictions: Predictions) -> RiskCoverage:
    """The error among the rows that are kept if the most doubtful ones are left out, for every number of kept rows.

    Rows of equal doubt are kept or left out together. Shares are of the weight, if rows have weights.

    Parameters
    ----------
    predictions : Predictions
        Stated probabilities, and what was true.

    Returns
    -------
    RiskCoverage
        The curve.

    See Also
    --------
    DoubtHistogram : The doubt up to which to answer, for a wanted error and unknown classes.
    bayesvm.inspection.RiskCoverageDisplay : Draws the curve.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, risk_coverage
    >>> said = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> coverage, risk, stated = risk_coverage(said).at(0.75)
    >>> print(coverage, risk, round(stated, 3))  # without the most doubtful row, no error
    0.75 0.0 0.2
    """
    predictions = predictions.counted()
    doubt, weight = predictions.doubt, predictions.weight_or_ones
    order = np.argsort(doubt)
    ends = np.flatnonzero(np.diff(doubt[order], append=2.0))  # the last row of each doubt
    kept, wrong, stated = (
        np.cumsum(values[order])[ends] for values in (weight, weight * ~predictions.correct, weight * doubt)
    )
    coverage, risk = kept / kept[-1], wrong / kept
    area = float(risk @ np.diff(coverage, prepend=0.0))
    shown = np.unique(np.searchsorted(coverage, np.arange(1, POINTS_SHOWN + 1) / POINTS_SHOWN))
    return RiskCoverage(coverage[shown], risk[shown], (stated / kept)[shown], area)


class DoubtHistogram:
    """How many rows have which doubt, in the memory of 65,536 bins, whatever the number of rows.

    Of calibrated probabilities, it finds the greatest doubt to accept if a share of the answers may be wrong.

    See Also
    --------
    risk_coverage : For rows whose classes are known.

    Examples
    --------
    >>> from bayesvm.evaluation import DoubtHistogram
    >>> histogram = DoubtHistogram()
    >>> histogram.add([0.01, 0.02, 0.4])  # 1 - predict_proba(X).max(axis=1), block by block
    >>> 0.02 < histogram.threshold(0.05) < 0.4  # answer where the doubt is at most that
    True
    """

    def __init__(self) -> None:
        self._weights = np.zeros(N_BINS)
        self._sums = np.zeros(N_BINS)

    def add(self, doubt: Any, weight: Any = None) -> None:
        """Count some rows.

        Parameters
        ----------
        doubt : array-like of shape (n_rows,)
            Numbers between 0 and 1.
        weight : array-like of shape (n_rows,) or None
            Of the rows; None for ones.
        """
        doubt = np.asarray(doubt, np.float64)
        if not ((doubt >= 0) & (doubt <= 1)).all():  # a NaN is not
            row = int(np.argmin((doubt >= 0) & (doubt <= 1)))
            raise ValueError(f"a doubt is a number between 0 and 1; row {row} has {doubt[row]:g}")
        weight = np.ones(len(doubt)) if weight is None else np.asarray(weight, np.float64)
        bins = np.minimum((doubt * N_BINS).astype(np.intp), N_BINS - 1)
        self._weights += np.bincount(bins, weight, N_BINS)
        self._sums += np.bincount(bins, weight * doubt, N_BINS)

    def threshold(self, rate: float) -> float:
        """The greatest t for which the mean doubt of the rows with doubt <= t is at most ``rate``.

        The rows of a bin, which is 1/65,536 wide, are kept or left out together.

        Parameters
        ----------
        rate : float
            Of errors among the rows that are answered.

        Returns
        -------
        float
            The t; -1 if no row may be kept, or there is none, and 1 if all may be.
        """
        too_much = np.cumsum(self._sums) > rate * np.cumsum(self._weights) * (1 + SUM_ROUNDING)
        occupied = np.flatnonzero(self._weights)
        left_out = occupied[too_much[occupied]]
        if len(left_out) == len(occupied):
            return -1.0
        return float(np.nextafter(left_out[0] / N_BINS, 0)) if len(left_out) else 1.0
