"""Plots of fitted models and their predictions, in the style of the displays of scikit-learn: ``bayesvm[plots]``."""

from bayesvm.inspection.decision_boundary import DecisionBoundaryDisplay
from bayesvm.inspection.effects import EffectDisplay
from bayesvm.inspection.elbo_trace import ElboTraceDisplay
from bayesvm.inspection.partial_dependence import PartialDependenceDisplay
from bayesvm.inspection.probability_histogram import ProbabilityHistogramDisplay
from bayesvm.inspection.relevance import RelevanceDisplay
from bayesvm.inspection.reliability import ReliabilityDisplay
from bayesvm.inspection.risk_coverage import RiskCoverageDisplay
from bayesvm.inspection.tuning_path import TuningPathDisplay
from bayesvm.inspection.uncertainty import UncertaintyDisplay

__all__ = [
    "DecisionBoundaryDisplay",
    "EffectDisplay",
    "ElboTraceDisplay",
    "PartialDependenceDisplay",
    "ProbabilityHistogramDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "TuningPathDisplay",
    "UncertaintyDisplay",
]
