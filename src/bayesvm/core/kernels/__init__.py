"""Core: covariance functions. A stationary one is a class with one method; ``kernel.py`` has the contract of all."""

from bayesvm.core.kernels.constant import Constant
from bayesvm.core.kernels.kernel import Kernel, Sum
from bayesvm.core.kernels.linear import Linear
from bayesvm.core.kernels.matern import Matern
from bayesvm.core.kernels.named import NAMED, with_broad_component
from bayesvm.core.kernels.parameters import LogNormal, Parameter, SharedLogNormal, positive
from bayesvm.core.kernels.rational_quadratic import RationalQuadratic
from bayesvm.core.kernels.rbf import RBF
from bayesvm.core.kernels.stationary import Stationary

__all__ = ["NAMED", "RBF", "Constant", "Kernel", "Linear", "LogNormal", "Matern", "Parameter", "RationalQuadratic"]
__all__ += ["SharedLogNormal", "Stationary", "Sum", "positive", "with_broad_component"]
