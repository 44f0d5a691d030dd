"""The only package that knows scikit-learn's API."""

from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.effects import ColumnEffect
from bayesvm.estimators.files import load
from bayesvm.estimators.interrupts import stop_on_interrupt
from bayesvm.estimators.linear import BayesianLinearSVC

__all__ = ["BayesianLinearSVC", "BayesianSVC", "ColumnEffect", "load", "stop_on_interrupt"]
