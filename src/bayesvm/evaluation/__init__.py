"""How good predicted probabilities are. Knows no estimator: probabilities and labels are enough."""

from bayesvm.evaluation.calibration import Reliability, reliability
from bayesvm.evaluation.coverage import DoubtHistogram, RiskCoverage, risk_coverage
from bayesvm.evaluation.metrics import Metric, metrics
from bayesvm.evaluation.predictions import Predictions

__all__ = [
    "DoubtHistogram",
    "Metric",
    "Predictions",
    "Reliability",
    "RiskCoverage",
    "metrics",
    "reliability",
    "risk_coverage",
]
