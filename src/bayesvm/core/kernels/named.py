"""Core: kernels that have a name, for so many features on scaled inputs."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from bayesvm.core.kernels.kernel import Kernel
from bayesvm.core.kernels.linear import Linear
from bayesvm.core.kernels.matern import Matern
from bayesvm.core.kernels.rational_quadratic import RationalQuadratic
from bayesvm.core.kernels.rbf import RBF

NAMED: dict[str, Callable[[int], Kernel]] = {
    "auto": lambda d: RBF(sqrt(d), 4.0),  # unless there is tuning, which tries several
    "rbf": lambda d: RBF(sqrt(d), 4.0),
    "matern12": lambda d: Matern(sqrt(d), 4.0, nu=0.5),
    "matern32": lambda d: Matern(sqrt(d), 4.0, nu=1.5),
    "matern52": lambda d: Matern(sqrt(d), 4.0, nu=2.5),
    "rational_quadratic": lambda d: RationalQuadratic(sqrt(d), 4.0),
    "linear": lambda d: Linear(4.0 / d, variance_bounds=(0.04 / d, 40.0 / d)),
}
