"""Estimators in the style of scikit-learn; the only package that knows its API."""

from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.effects import ColumnEffect
from bayesvm.estimators.files import load
from bayesvm.estimators.interrupts import stop_on_interrupt
from bayesvm.estimators.linear import BayesianLinearSVC
from bayesvm.estimators.one_class import BayesianOneClassSVM
from bayesvm.estimators.regressor import BayesianSVR

__all__ = [
    "BayesianLinearSVC",
    "BayesianOneClassSVM",
    "BayesianSVC",
    "BayesianSVR",
    "ColumnEffect",
    "load",
    "stop_on_interrupt",
]
