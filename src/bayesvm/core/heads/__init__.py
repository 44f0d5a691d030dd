"""Core, heads: the kinds of prediction, one module each; ``contract.py`` defines their common interface."""

from bayesvm.core.heads.binary import Binary
from bayesvm.core.heads.classes import ClassHead
from bayesvm.core.heads.contract import Head, Link
from bayesvm.core.heads.one_vs_rest import OneVsRest
from bayesvm.core.heads.regression import Regression

__all__ = ["Binary", "ClassHead", "Head", "Link", "OneVsRest", "Regression"]
