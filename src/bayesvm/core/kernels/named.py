"""Core: the named kernels, for a given number of scaled features."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import sqrt

from bayesvm.core.kernels.kernel import Kernel, Sum
from bayesvm.core.kernels.laplacian import Laplacian
from bayesvm.core.kernels.linear import Linear
from bayesvm.core.kernels.matern import Matern
from bayesvm.core.kernels.rational_quadratic import RationalQuadratic
from bayesvm.core.kernels.rbf import RBF
from bayesvm.core.kernels.stationary import LengthScaled

NAMED: dict[str, Callable[[int], Kernel]] = {
    "auto": lambda d: RBF(sqrt(d), 4.0),  # without tuning; tuning tries several kernels
    "rbf": lambda d: RBF(sqrt(d), 4.0),
    "matern12": lambda d: Matern(sqrt(d), 4.0, nu=0.5),
    "matern32": lambda d: Matern(sqrt(d), 4.0, nu=1.5),
    "matern52": lambda d: Matern(sqrt(d), 4.0, nu=2.5),
    "rational_quadratic": lambda d: RationalQuadratic(sqrt(d), 4.0),
    "laplacian": lambda d: Laplacian(float(d), 4.0),
    "linear": lambda d: Linear(4.0 / d, variance_bounds=(0.04 / d, 40.0 / d)),
}

BROAD = 7.0  # multiples of the typical distance between rows: nearly constant among the data, zero far from all of them
BROAD_VARIANCE = 4.0


def with_broad_component(kernel: LengthScaled, n_features: int) -> Sum:
    """A kernel plus a second one that is nearly constant among the data (D26).

    The second kernel acts like the bias of an SVM for rows beyond the reach of the first. Far from all data it
    vanishes, so f returns to its prior mean.
    """
    broad = RBF(BROAD * sqrt(n_features), length_scale_bounds="fixed", variance_bounds="fixed")
    weights = [float(kernel.variance), BROAD_VARIANCE]
    return Sum([copy.deepcopy(kernel).set_params(variance=1.0), broad], weights)
