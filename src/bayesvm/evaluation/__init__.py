"""Evaluation of predictions, independent of estimators: predictions and true values are enough."""

from bayesvm.evaluation.calibration import Reliability, reliability
from bayesvm.evaluation.coverage import DoubtHistogram, RiskCoverage, risk_coverage
from bayesvm.evaluation.metrics import Metric, metrics, paired_difference
from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.regression_predictions import IntervalCoverage, RegressionPredictions, interval_coverage
from bayesvm.evaluation.thresholds import Thresholds, cheapest_threshold, thresholds

__all__ = [
    "DoubtHistogram",
    "IntervalCoverage",
    "Metric",
    "Predictions",
    "RegressionPredictions",
    "Reliability",
    "RiskCoverage",
    "Thresholds",
    "cheapest_threshold",
    "interval_coverage",
    "metrics",
    "paired_difference",
    "reliability",
    "risk_coverage",
    "thresholds",
]
