"""Evaluation: predicted distributions of a numeric target, and the true values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from bayesvm.evaluation.calibration import wilson
from bayesvm.evaluation.predictions import Flags
from bayesvm.evaluation.rows import Floats, RowPredictions, checked_columns, per_row

INTERVAL = 0.9  # coverage of the intervals in metrics
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)  # listed in tables
LOG_NORMAL = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False)
class RegressionPredictions(RowPredictions):
    """Predicted distributions of a numeric target for rows with known values; ``of`` creates and checks them.

    Parameters
    ----------
    y : array of shape (n_rows,)
        The true values.
    mean, std : array of shape (n_rows,)
        Predicted means, and standard deviations of a new y.
    log_density : array of shape (n_rows,)
        Logarithm of the predicted density at y.
    below : array of shape (n_rows,)
        Predicted probability of a value below y; uniform between 0 and 1 if the distributions are calibrated.
    weight : array of shape (n_rows,) or None
        Weights of the rows; rows of weight zero are ignored.
    epistemic : array of shape (n_rows,) or None
        The variance that more data would reduce, from ``predict_uncertainty``.

    See Also
    --------
    metrics : Compute metrics of predictions.
    Predictions : The same for classification.

    Examples
    --------
    >>> from bayesvm.evaluation import RegressionPredictions, metrics
    >>> predicted = RegressionPredictions.of([1.0, 2.0, 4.0], mean=[1.5, 2.0, 3.0], std=[1.0, 1.0, 1.0])
    >>> metrics(predicted, n_bootstrap=0)["mae"].value
    0.5
    """

    y: Floats
    mean: Floats
    std: Floats
    log_density: Floats
    below: Floats
    weight: Floats | None = None
    epistemic: Floats | None = None

    @classmethod
    def of(
        cls,
        y: Any,
        mean: Any,
        std: Any,
        *,
        log_density: Any = None,
        below: Any = None,
        weight: Any = None,
        epistemic: Any = None,
    ) -> Self:
        """Create predictions for rows with known values, and check them.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            The true values.
        mean, std : array-like of shape (n_rows,)
            The results of ``predict(X, return_std=True)`` of a regressor.
        log_density, below : array-like of shape (n_rows,) or None
            Logarithm of the predicted density at y, and predicted probability of a value below y; by default, those of
            a normal distribution.
        weight : array-like of shape (n_rows,) or None
            Weights of the rows.
        epistemic : array-like of shape (n_rows,) or None
            The variance that more data would reduce.

        Returns
        -------
        RegressionPredictions
            The checked predictions, as arrays.

        Raises
        ------
        ValueError
            If there are no rows, lengths differ, or a number is out of range.
        """
        y = np.asarray(y, np.float64)
        if y.ndim != 1 or not len(y):
            raise ValueError(f"the true values must be a column of at least one row; got shape {y.shape}")
        n_rows = len(y)
        y, mean, std = (per_row(name, part, n_rows) for name, part in (("y", y), ("mean", mean), ("std", std)))
        if not (std > 0).all():
            row = int(np.argmin(std > 0))
            raise ValueError(f"standard deviations must be positive; row {row} has {std[row]:g}")
        standard = (y - mean) / std
        log_density = -0.5 * standard**2 - np.log(std) - LOG_NORMAL if log_density is None else log_density
        below = ndtr(standard) if below is None else below
        given = {"log_density": log_density, "below": below, "weight": weight, "epistemic": epistemic}
        checked = checked_columns(given, n_rows)
        outside = ~((checked["below"] >= 0) & (checked["below"] <= 1))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(f"below must be a probability; row {row} has {checked['below'][row]:g}")
        return cls(y, mean, std, **checked)

    @property
    def doubt(self) -> Floats:
        """The uncertainty of each prediction: its standard deviation."""
        return self.std

    def inside(self, coverage: float = INTERVAL) -> Flags:
        """Return whether each y is inside its central interval.

        Parameters
        ----------
        coverage : float
            Probability of the interval, between 0 and 1.

        Returns
        -------
        array of bool of shape (n_rows,)
            Whether y is inside.
        """
        is_inside: Flags = np.abs(2 * self.below - 1) <= coverage
        return is_inside


class IntervalCoverage(NamedTuple):
    """The share of true values in intervals of a given probability, with the 95% interval of that share.

    Parameters
    ----------
    predicted : float
        Probability of the intervals.
    observed : float
        Share of the values inside.
    low, high : float
        Wilson's interval for that share.

    See Also
    --------
    interval_coverage : Compute it from predictions.

    Examples
    --------
    >>> from bayesvm.evaluation import IntervalCoverage
    >>> IntervalCoverage(predicted=0.9, observed=0.89, low=0.85, high=0.92).observed
    0.89
    """

    predicted: float
    observed: float
    low: float
    high: float


def interval_coverage(predictions: RegressionPredictions, coverages: Any = COVERAGES) -> list[IntervalCoverage]:
    """Compare the probability of central intervals with the share of values inside.

    Parameters
    ----------
    predictions : RegressionPredictions
        Predicted distributions, and the true values.
    coverages : sequence of floats between 0 and 1
        Probabilities of central intervals.

    Returns
    -------
    list of IntervalCoverage
        One entry per probability.

    See Also
    --------
    reliability : The same for probabilities of classes.

    Examples
    --------
    >>> from bayesvm.evaluation import RegressionPredictions, interval_coverage
    >>> predicted = RegressionPredictions.of([1.0, 2.0, 4.0], mean=[1.5, 2.0, 3.0], std=[1.0, 1.0, 1.0])
    >>> [round(each.observed, 2) for each in interval_coverage(predicted, [0.5, 0.9])]
    [0.67, 1.0]
    """
    predictions = predictions.counted()
    weight = predictions.weight_or_ones
    shares = np.array([np.average(predictions.inside(predicted), weights=weight) for predicted in coverages])
    low, high = wilson(shares, np.full(len(shares), weight.sum() ** 2 / np.sum(weight**2)))
    rows = zip(coverages, shares.tolist(), low.tolist(), high.tolist(), strict=True)
    return [IntervalCoverage(*row) for row in rows]
