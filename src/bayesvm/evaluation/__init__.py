"""Evaluation of predicted probabilities. Independent of estimators: needs only probabilities and labels."""

from bayesvm.evaluation.calibration import Reliability, reliability
from bayesvm.evaluation.coverage import DoubtHistogram, RiskCoverage, risk_coverage
from bayesvm.evaluation.metrics import Metric, metrics, paired_difference
from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.thresholds import Thresholds, cheapest_threshold, thresholds

__all__ = [
    "DoubtHistogram",
    "Metric",
    "Predictions",
    "Reliability",
    "RiskCoverage",
    "Thresholds",
    "cheapest_threshold",
    "metrics",
    "paired_difference",
    "reliability",
    "risk_coverage",
    "thresholds",
]
