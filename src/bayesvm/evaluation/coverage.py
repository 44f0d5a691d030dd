"""Evaluation: error rate against coverage, if a model abstains from the most doubtful rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.rows import Floats

COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5)  # rows of tables
POINTS_SHOWN = 500  # of a curve: more than a plot can show
N_BINS = 2**16  # a power of two, so that finding the bin of a doubt involves no rounding
SUM_ROUNDING = 1e-9  # of sums of many doubts, relative


class RiskCoverage(NamedTuple):
    """The risk-coverage curve: the error rate if a model predicts only the least doubtful rows.

    Parameters
    ----------
    coverage : array of shape (n_points,)
        Share of the rows that are predicted, increasing to 1; at most 500 points.
    risk : array of shape (n_points,)
        Observed error rate of these rows.
    predicted : array of shape (n_points,)
        Mean doubt of these rows: the error rate that the probabilities predict.
    area : float
        Mean risk over all coverages: the area under the curve.

    See Also
    --------
    risk_coverage : Compute the curve from predictions.
    bayesvm.inspection.RiskCoverageDisplay : Plot the curve.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, risk_coverage
    >>> predicted = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> risk_coverage(predicted).risk.round(2)
    array([0.  , 0.  , 0.  , 0.25])
    """

    coverage: Floats
    risk: Floats
    predicted: Floats
    area: float

    def at(self, share: float) -> tuple[float, float, float]:
        """Return coverage, risk and predicted risk at a minimum coverage.

        Rows of equal doubt stay together, so the coverage may be larger.

        Parameters
        ----------
        share : float
            Minimum coverage, from 0 to 1.

        Returns
        -------
        coverage, risk, predicted_risk : float
            The point of the curve with the smallest sufficient coverage.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share must be between 0 and 1; got {share!r}")
        point = np.searchsorted(self.coverage, share)
        return float(self.coverage[point]), float(self.risk[point]), float(self.predicted[point])


def risk_coverage(predictions: Predictions) -> RiskCoverage:
    """Compute the error rate of the least doubtful rows, for every number of rows.

    Rows of equal doubt are kept or left out together. If rows have weights, shares are shares of the total weight.

    Parameters
    ----------
    predictions : Predictions
        Predicted probabilities and true classes.

    Returns
    -------
    RiskCoverage
        The curve.

    See Also
    --------
    DoubtHistogram : Find the largest doubt to accept for a target error rate, without true classes.
    bayesvm.inspection.RiskCoverageDisplay : Plot the curve.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, risk_coverage
    >>> predicted = Predictions.of([0, 1], [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    >>> coverage, risk, predicted_risk = risk_coverage(predicted).at(0.75)
    >>> print(coverage, risk, round(predicted_risk, 3))  # no error without the most doubtful row
    0.75 0.0 0.2
    """
    predictions = predictions.counted()
    doubt, weight = predictions.doubt, predictions.weight_or_ones
    order = np.argsort(doubt)
    ends = np.flatnonzero(np.diff(doubt[order], append=2.0))  # the last row of each doubt
    kept, wrong, predicted = (
        np.cumsum(values[order])[ends] for values in (weight, weight * ~predictions.correct, weight * doubt)
    )
    coverage, risk = kept / kept[-1], wrong / kept
    area = float(risk @ np.diff(coverage, prepend=0.0))
    shown = np.unique(np.searchsorted(coverage, np.arange(1, POINTS_SHOWN + 1) / POINTS_SHOWN))
    return RiskCoverage(coverage[shown], risk[shown], (predicted / kept)[shown], area)


class DoubtHistogram:
    """A histogram of doubts, with 65,536 bins for any number of rows.

    For calibrated probabilities, it finds the largest doubt to accept for a target error rate.

    See Also
    --------
    risk_coverage : For rows with known classes.

    Examples
    --------
    >>> from bayesvm.evaluation import DoubtHistogram
    >>> histogram = DoubtHistogram()
    >>> histogram.add([0.01, 0.02, 0.4])  # 1 - predict_proba(X).max(axis=1), block by block
    >>> 0.02 < histogram.threshold(0.05) < 0.4  # predict where the doubt is at most this threshold
    True
    """

    def __init__(self) -> None:
        self._weights = np.zeros(N_BINS)
        self._sums = np.zeros(N_BINS)

    def add(self, doubt: Any, weight: Any = None) -> None:
        """Add rows to the histogram.

        Parameters
        ----------
        doubt : array-like of shape (n_rows,)
            Doubts, between 0 and 1.
        weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        """
        doubt = np.asarray(doubt, np.float64)
        if not ((doubt >= 0) & (doubt <= 1)).all():  # also false for NaN
            row = int(np.argmin((doubt >= 0) & (doubt <= 1)))
            raise ValueError(f"doubt must be between 0 and 1; row {row} has {doubt[row]:g}")
        weight = np.ones(len(doubt)) if weight is None else np.asarray(weight, np.float64)
        bins = np.minimum((doubt * N_BINS).astype(np.intp), N_BINS - 1)
        self._weights += np.bincount(bins, weight, N_BINS)
        self._sums += np.bincount(bins, weight * doubt, N_BINS)

    def threshold(self, rate: float) -> float:
        """Return the largest t such that the mean doubt of the rows with doubt <= t is at most ``rate``.

        Rows of the same bin, of width 1/65,536, are kept or left out together.

        Parameters
        ----------
        rate : float
            Target error rate of the rows that are kept.

        Returns
        -------
        float
            The threshold t; -1 if no row can be kept, 1 if all rows can.
        """
        too_much = np.cumsum(self._sums) > rate * np.cumsum(self._weights) * (1 + SUM_ROUNDING)
        occupied = np.flatnonzero(self._weights)
        left_out = occupied[too_much[occupied]]
        if len(left_out) == len(occupied):
            return -1.0
        return float(np.nextafter(left_out[0] / N_BINS, 0)) if len(left_out) else 1.0
