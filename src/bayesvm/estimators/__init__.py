"""The only room that knows scikit-learn's API."""

from bayesvm.estimators._files import load
from bayesvm.estimators._session import stop_on_interrupt
from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.linear import BayesianLinearSVC

__all__ = ["BayesianLinearSVC", "BayesianSVC", "load", "stop_on_interrupt"]
