"""Core: what is known of a kernel's learnable parameters before any data are seen: priors (D19) and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bayesvm.core.linalg import Array

Bounds = tuple[float, float] | Literal["fixed"]
Prior = Callable[[Array, int], tuple[float, Array]]  # of logarithms and D: -log density, and its derivative


@dataclass(frozen=True)
class LogNormal:
    """A prior of a parameter: ``log value ~ N(log median, deviation²)``, independently for each entry (D19).

    Parameters
    ----------
    median : float
        Half of the prior lies below it.
    deviation : float
        Standard deviation of the logarithm.

    See Also
    --------
    Parameter : Where a prior is declared.
    SharedLogNormal : For entries that are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.kernels import LogNormal
    >>> penalty, slope = LogNormal(median=1.0, deviation=2.0)(np.array([1.0]), n_features=3)
    >>> penalty, slope
    (0.125, array([0.25]))
    """

    median: float
    deviation: float

    def __call__(self, logs: Array, n_features: int) -> tuple[float, Array]:
        beyond = logs - np.log(self.median)
        return 0.5 * float(beyond @ beyond) / self.deviation**2, beyond / self.deviation**2


@dataclass(frozen=True)
class SharedLogNormal:
    """A prior of a parameter with one value per feature: entries are normal around their mean, in logarithms (D19).

    The mean of the logarithms is normal around ``log median``.

    Parameters
    ----------
    deviation : float
        Standard deviation of the mean of the logarithms.
    spread : float
        Standard deviation of the logarithm of an entry around that mean.
    median : float or None
        Of the mean; None for a power of the number of features D.
    power : float
        That power: 1/2 for Euclidean distances, because two independent standardised rows are at d² = 2 on average
        where length-scales are √D; 1 for sums of absolute differences.

    See Also
    --------
    LogNormal : For entries that are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.kernels import SharedLogNormal
    >>> penalty, slope = SharedLogNormal()(np.log([2.0, 2.0, 2.0, 2.0]), n_features=4)  # all √D
    >>> float(penalty)
    0.0
    """

    deviation: float = 1.0
    spread: float = 1.0
    median: float | None = None
    power: float = 0.5

    def __call__(self, logs: Array, n_features: int) -> tuple[float, Array]:
        mean = logs.mean()
        away = mean - (self.power * np.log(n_features) if self.median is None else np.log(self.median))
        apart = logs - mean
        value = 0.5 * (away / self.deviation) ** 2 + 0.5 * float(apart @ apart) / self.spread**2
        return float(value), away / self.deviation**2 / len(logs) + apart / self.spread**2


@dataclass(frozen=True)
class Parameter:
    """What a kernel class declares about a parameter that can be learned.

    Parameters
    ----------
    prior : callable
        ``LogNormal``, ``SharedLogNormal``, or a function of the logarithms and the number of features that returns
        ``-log`` of a density and its derivative.
    bounds : (low, high)
        Within which tuning may change it, unless an object has others in ``<name>_bounds``.
    per_feature : bool
        Whether it may have one value per feature.
    amplitude : bool
        Whether the kernel is proportional to it, so that a weight in a sum can stand for it.

    See Also
    --------
    Stationary : The base class of kernels of distances, whose subclasses may declare more parameters.

    Examples
    --------
    >>> from bayesvm.kernels import LogNormal, Parameter, Stationary
    >>> class Powered(Stationary):
    ...     parameters = Stationary.parameters | {"power": Parameter(LogNormal(1.0, 1.0), bounds=(0.1, 10.0))}
    >>> sorted(Powered.parameters)
    ['length_scale', 'power', 'variance']
    """

    prior: Prior
    bounds: tuple[float, float]
    per_feature: bool = False
    amplitude: bool = False


LENGTH_SCALE = Parameter(SharedLogNormal(spread=2.0), (1e-2, 1e4), per_feature=True)
VARIANCE = Parameter(LogNormal(4.0, 1.5), (1e-2, 1e2), amplitude=True)


@dataclass(frozen=True)
class Learned:
    """A parameter that is learned: its value, always as a vector, its bounds, and what its class declares."""

    name: str
    value: Array
    bounds: tuple[float, float]
    declared: Parameter


def positive(name: str, value: Any) -> Any:
    """``value`` itself, if it is finite and above zero throughout."""
    try:
        holds = bool(np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0))
    except TypeError:
        holds = False
    if not holds:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return value


def checked_bounds(name: str, bounds: Any) -> tuple[float, float] | None:
    """The bounds as numbers, or None for a parameter that is fixed."""
    if isinstance(bounds, str) and bounds == "fixed":
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0 < low < high:
        raise ValueError(f"{name}_bounds must be 'fixed' or two numbers 0 < low < high, got {bounds!r}")
    return low, high
