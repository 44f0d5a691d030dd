"""How good predicted probabilities are. Knows no estimator: probabilities and labels are enough."""

from bayesvm.evaluation.calibration import Reliability, reliability
from bayesvm.evaluation.coverage import DoubtHistogram, RiskCoverage, risk_coverage
from bayesvm.evaluation.figures import Figure, figures
from bayesvm.evaluation.predictions import Predictions

__all__ = [
    "DoubtHistogram",
    "Figure",
    "Predictions",
    "Reliability",
    "RiskCoverage",
    "figures",
    "reliability",
    "risk_coverage",
]
