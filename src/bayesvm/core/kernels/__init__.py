"""Core: covariance functions. A stationary kernel needs one method; ``kernel.py`` defines the common interface."""

from bayesvm.core.kernels.constant import Constant
from bayesvm.core.kernels.kernel import Kernel, Sum
from bayesvm.core.kernels.laplacian import Laplacian
from bayesvm.core.kernels.linear import Linear
from bayesvm.core.kernels.matern import Matern
from bayesvm.core.kernels.named import NAMED, with_broad_component
from bayesvm.core.kernels.parameters import LogNormal, Parameter, SharedLogNormal, positive
from bayesvm.core.kernels.rational_quadratic import RationalQuadratic
from bayesvm.core.kernels.rbf import RBF
from bayesvm.core.kernels.stationary import LengthScaled, Stationary

__all__ = ["NAMED", "RBF", "Constant", "Kernel", "Laplacian", "LengthScaled", "Linear", "LogNormal", "Matern"]
__all__ += [
    "Parameter",
    "RationalQuadratic",
    "SharedLogNormal",
    "Stationary",
    "Sum",
    "positive",
    "with_broad_component",
]
