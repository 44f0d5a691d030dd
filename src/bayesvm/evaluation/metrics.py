"""Evaluation: metrics of predictions, with bootstrap intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesvm.evaluation.calibration import CalibrationError, Z, wilson
from bayesvm.evaluation.predictions import Flags, Predictions
from bayesvm.evaluation.regression_predictions import INTERVAL, RegressionPredictions
from bayesvm.evaluation.rows import Floats

LEAST_PROBABILITY = np.finfo(np.float64).eps  # replaces a probability of zero in the log loss, as in scikit-learn
# With 1,000 resamples, the ends of an interval hardly depend on the seed; with many rows, there is time for fewer.
RESAMPLES, FEWER_RESAMPLES = 1_000, 200
MOST_CELLS = 50_000  # rows × probabilities per row; resampling takes about two seconds
LARGER_IS_BETTER = {"auc", "r2", "log_density"}


Intervals = dict[str, tuple[float, float]]


class Metric(NamedTuple):
    """A metric with its 95% bootstrap interval, which shows the variation over samples of rows.

    Parameters
    ----------
    value : float
        The metric of the given rows.
    low, high : float
        The ends of the interval.

    See Also
    --------
    metrics : Compute metrics of predictions.

    Examples
    --------
    >>> from bayesvm.evaluation import Metric
    >>> error = Metric(value=0.12, low=0.1, high=0.15)
    >>> error.value
    0.12
    """

    value: float
    low: float
    high: float

    @property
    def may_be_zero(self) -> bool:
        """Whether the interval includes zero, as is common for a calibration error."""
        return self.low <= 0 < self.high


def metrics(
    predictions: Predictions | RegressionPredictions,
    *,
    n_bootstrap: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> dict[str, Metric]:
    """Compute metrics of predictions; smaller is better, except for the area under the curve.

    For classification:

    - ``error``: share of rows whose most probable class is not the true one.
    - ``brier``: mean squared difference between the probability of the second class and the outcome (0 or 1); for more
      than two classes, the sum over all of them.
    - ``log_loss``: mean of ``-log`` of the probability of the true class, in nats; a probability of zero counts as
      2.2e-16, as in scikit-learn.
    - ``auc``: area under the ROC curve; for more than two classes, the mean over the classes that occur, each against
      the rest. NaN if there is only one class.
    - ``calibration_error``: mean difference between predicted probability and observed frequency, corrected for chance;
      see ``bayesvm.evaluation.calibration.CalibrationError``.

    For regression:

    - ``rmse`` and ``mae``: root of the mean squared error, and mean absolute error, in the units of y.
    - ``r2``: coefficient of determination R², one minus the squared error relative to that of the mean of y; larger is
      better. NaN if all y are equal.
    - ``log_density``: mean logarithm of the predicted density at y, in nats; larger is better.
    - ``coverage``: share of y inside the central 90% intervals; best near 0.9.

    The intervals are quantiles over resamples of the rows, each row with its weight. If all predictions are correct, or
    all are wrong, all resamples agree, and the interval of the error is Wilson's; likewise for a coverage of 0 or 1.

    Parameters
    ----------
    predictions : Predictions or RegressionPredictions
        Predicted probabilities or distributions, and the true targets.
    n_bootstrap : int or None
        Number of resamples. With 0, the intervals are NaN. None means 1,000, or 200 for more than 50,000 rows (with
        more than two classes, rows times classes).
    random_state : int, numpy.random.Generator or None
        Controls the resamples; pass an int for reproducible results.

    Returns
    -------
    dict of Metric
        The metrics by name, in the order above.

    Raises
    ------
    ValueError
        If ``n_bootstrap`` is negative.

    See Also
    --------
    reliability : The groups behind the calibration error.
    risk_coverage : The error rate without doubtful rows.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, metrics
    >>> predicted = Predictions.of(["no", "yes"], ["yes", "no"], [[0.2, 0.8], [0.6, 0.4]])
    >>> round(metrics(predicted)["brier"].value, 3)
    0.1
    """
    if n_bootstrap is not None and n_bootstrap < 0:
        raise ValueError(f"n_bootstrap must not be negative; got {n_bootstrap!r}")
    predictions = predictions.counted()
    compute = (
        _RegressionMetrics(predictions)
        if isinstance(predictions, RegressionPredictions)
        else _ClassMetrics(predictions)
    )
    if n_bootstrap is None:
        n_bootstrap = RESAMPLES if compute.n_rows * compute.n_ranked <= MOST_CELLS else FEWER_RESAMPLES
    value = compute(np.ones(compute.n_rows))
    rng = np.random.default_rng(random_state)
    n = compute.n_rows
    drawn = [compute(np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)) for _ in range(n_bootstrap)]
    intervals = {name: _quantiles([one[name] for one in drawn]) for name in value}
    if n_bootstrap:
        intervals = compute.completed(intervals, value)
    names = [name for name in value if name != "calibration_error_at_most"]
    return {name: Metric(value[name], *intervals[name]) for name in names}


def paired_difference(
    theirs: Predictions | RegressionPredictions, ours: Predictions | RegressionPredictions
) -> dict[str, Metric]:
    """Compare the losses of two models on the same rows; positive if the first model is worse.

    For classification, error and log loss; for regression, the mean absolute error.

    The interval is that of the mean difference d per row, ``d ± 1.96 √(Σ w² (d_i - d)²) / Σ w``. It is narrower than
    the intervals of the two metrics suggest, because the same rows are hard for both.

    Parameters
    ----------
    theirs : Predictions
        Predictions of another model.
    ours : Predictions
        Predictions to compare with.

    Returns
    -------
    dict of Metric
        ``error`` and ``log_loss`` of ``theirs`` minus those of ``ours``; positive if ``theirs`` is worse.

    Raises
    ------
    ValueError
        If the rows are not the same.

    See Also
    --------
    metrics : Metrics of one set of predictions.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, paired_difference
    >>> ours = Predictions.of([0, 1], [0, 1], [[0.9, 0.1], [0.2, 0.8]])
    >>> theirs = Predictions.of([0, 1], [0, 1], [[0.4, 0.6], [0.2, 0.8]])
    >>> paired_difference(theirs, ours)["error"].value
    0.5
    """
    if not (np.array_equal(theirs.y, ours.y) and np.array_equal(theirs.weight_or_ones, ours.weight_or_ones)):
        raise ValueError("paired differences need predictions for the same rows, but labels or weights differ")
    weight = ours.weight_or_ones / ours.weight_or_ones.sum()
    found = {}
    before = _compared_losses(ours)
    for name, losses in _compared_losses(theirs).items():
        differences = losses - before[name]
        mean = float(weight @ differences)
        half = Z * float(np.sqrt(np.sum((weight * (differences - mean)) ** 2)))
        found[name] = Metric(mean, mean - half, mean + half)
    return found


def _compared_losses(predictions: Predictions | RegressionPredictions) -> dict[str, Floats]:
    """The losses of each row, by the names of their means."""
    if isinstance(predictions, RegressionPredictions):
        return {"mae": np.abs(predictions.y - predictions.mean)}
    error, _, log_loss = _losses(predictions)
    return {"error": error, "log_loss": log_loss}


class _ClassMetrics:
    """The metrics of bootstrap samples, given how often each row is drawn; the common parts are computed once."""

    def __init__(self, predictions: Predictions) -> None:
        self.n_rows = predictions.n_rows
        self._weight = predictions.weight_or_ones
        self._losses = _losses(predictions)
        self._calibration_error = CalibrationError(predictions)
        numbers = [1] if len(predictions.classes) == 2 else range(len(predictions.classes))
        self._ranked = [_Ranked(predictions.proba[:, k], predictions.y == k) for k in numbers]
        self.n_ranked = len(self._ranked)
        self._agree = bool(predictions.correct.all() or not predictions.correct.any())

    def __call__(self, times: Floats) -> dict[str, float]:
        """The metrics of one bootstrap sample, with two kinds of calibration error.

        A bootstrap sample contains the noise of its rows and that of the resampling. The first kind of calibration
        error subtracts both, since a row that is drawn twice is no more evidence than one that is drawn once: a lower
        bound. The second kind subtracts only the noise of real rows: an upper bound. The interval from the 2.5%
        quantile of the first to the 97.5% quantile of the second covers the true error in 92 to 100 of 100 cases, for
        60 to 10,000 rows of calibrated and uncalibrated probabilities.
        """
        weight = times * self._weight
        # Not with BLAS: in each sample, starting its threads would take longer than this sum.
        error, brier, log_loss = (np.einsum("ij,j->i", self._losses, weight) / weight.sum()).tolist()
        aucs = [area for ranked in self._ranked if not np.isnan(area := ranked.auc(weight))]
        return {
            "error": error,
            "brier": brier,
            "log_loss": log_loss,
            "auc": sum(aucs) / len(aucs) if aucs else np.nan,
            "calibration_error": self._calibration_error(weight, weight * weight),
            "calibration_error_at_most": self._calibration_error(weight, weight * self._weight),
        }

    def completed(self, intervals: Intervals, value: dict[str, float]) -> Intervals:
        """Replace one end of the interval by the other kind of calibration error, and insert Wilson's interval."""
        ends = (intervals["calibration_error"][0], intervals["calibration_error_at_most"][1])
        error = {"error": _wilson(value["error"], self._weight)} if self._agree else {}
        return intervals | {"calibration_error": ends} | error


class _RegressionMetrics:
    """The same for regression."""

    n_ranked = 1

    def __init__(self, predictions: RegressionPredictions) -> None:
        self.n_rows = predictions.n_rows
        self._weight = predictions.weight_or_ones
        self._shift = float(predictions.y.mean())  # so that squares of large numbers keep their digits
        residual, y = predictions.y - predictions.mean, predictions.y - self._shift
        rows = (residual**2, np.abs(residual), predictions.log_density, predictions.inside(INTERVAL), y, y**2)
        self._rows = np.stack(rows).astype(np.float64)

    def __call__(self, times: Floats) -> dict[str, float]:
        weight = times * self._weight
        square, mae, log_density, coverage, y, y2 = (np.einsum("ij,j->i", self._rows, weight) / weight.sum()).tolist()
        spread = y2 - y**2
        return {
            "rmse": float(np.sqrt(square)),
            "mae": mae,
            "r2": 1 - square / spread if spread > 0 else np.nan,
            "log_density": log_density,
            "coverage": coverage,
        }

    def completed(self, intervals: Intervals, value: dict[str, float]) -> Intervals:
        """Insert Wilson's interval where all resamples agree."""
        if 0 < value["coverage"] < 1:
            return intervals
        return intervals | {"coverage": _wilson(value["coverage"], self._weight)}


def _wilson(share: float, weight: Floats) -> tuple[float, float]:
    n = np.array([weight.sum() ** 2 / np.sum(weight**2)])
    low, high = wilson(np.array([share]), n)
    return float(low[0]), float(high[0])


def _losses(predictions: Predictions) -> Floats:
    """Error, squared difference and -log probability of each row."""
    P, rows = predictions.proba, np.arange(predictions.n_rows)
    distances = P.copy()
    distances[rows, predictions.y] -= 1
    squares = distances[:, 1] ** 2 if len(predictions.classes) == 2 else np.sum(distances**2, axis=1)
    true = P[rows, predictions.y].clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.stack([(~predictions.correct).astype(np.float64), squares, -np.log(true)])


class _Ranked:
    """The ranks of the positive rows among the negative rows, by score, computed once."""

    def __init__(self, score: Floats, is_positive: Flags) -> None:
        negatives = np.flatnonzero(~is_positive)
        self._negatives = negatives[np.argsort(score[negatives])]
        self._positives = np.flatnonzero(is_positive)
        ranked, scores = score[self._negatives], score[self._positives]
        self._below, self._up_to = (np.searchsorted(ranked, scores, side) for side in ("left", "right"))

    def auc(self, weight: Floats) -> float:
        """Share of pairs of a positive and a negative row in which the positive row scores higher; ties count half."""
        passed = np.concatenate(([0.0], np.cumsum(weight[self._negatives])))
        positive = weight[self._positives]
        pairs = positive.sum() * passed[-1]
        won = np.sum(positive * (passed[self._below] + passed[self._up_to])) / 2
        return float(won / pairs) if pairs > 0 else np.nan


def _quantiles(values: list[float]) -> tuple[float, float]:
    """The 2.5% and 97.5% quantiles over the samples in which the metric exists."""
    finite = [value for value in values if not np.isnan(value)]
    if not finite:
        return np.nan, np.nan
    low, high = np.quantile(finite, (0.025, 0.975)).tolist()
    return low, high
