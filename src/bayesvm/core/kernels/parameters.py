"""Core: priors (D19) and bounds of the learnable parameters of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bayesvm.core.linalg import Array

Bounds = tuple[float, float] | Literal["fixed"]
Prior = Callable[[Array, int], tuple[float, Array]]  # (logarithms, D) -> (-log density, its derivative)


@dataclass(frozen=True)
class LogNormal:
    """A prior for a parameter: ``log value ~ N(log median, deviation²)``, independently for each entry (D19).

    Parameters
    ----------
    median : float
        Median of the prior.
    deviation : float
        Standard deviation of the logarithm.

    See Also
    --------
    Parameter : Declares a parameter and its prior.
    SharedLogNormal : A prior for similar entries.

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
    """A prior for a parameter with one value per feature: logarithms are normal around their mean (D19).

    The mean of the logarithms is itself normal around ``log median``.

    Parameters
    ----------
    deviation : float
        Standard deviation of the mean of the logarithms.
    spread : float
        Standard deviation of the logarithm of an entry around that mean.
    median : float or None
        Median of the mean. None means a power of the number of features D.
    power : float
        This power: 1/2 for Euclidean distances, because with length-scales of √D two independent standardised rows
        have d² = 2 on average; 1 for sums of absolute differences.

    See Also
    --------
    LogNormal : A prior for independent entries.

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
    """The declaration of a learnable parameter in a kernel class.

    Parameters
    ----------
    prior : callable
        ``LogNormal``, ``SharedLogNormal``, or a function that takes the logarithms and the number of features and
        returns ``-log`` of a density and its derivative.
    bounds : (low, high)
        Bounds for tuning, unless an object overrides them in ``<name>_bounds``.
    per_feature : bool
        Whether the parameter may have one value per feature.
    amplitude : bool
        Whether the kernel is proportional to the parameter, so that a weight in a sum can replace it.

    See Also
    --------
    Stationary : The base class of distance-based kernels; subclasses may declare more parameters.

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
    """A learned parameter: its value (always a vector), its bounds, and its declaration in the class."""

    name: str
    value: Array
    bounds: tuple[float, float]
    declared: Parameter


def positive(name: str, value: Any) -> Any:
    """Return ``value`` if all its entries are positive and finite."""
    try:
        holds = bool(np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0))
    except TypeError:
        holds = False
    if not holds:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return value


def checked_bounds(name: str, bounds: Any) -> tuple[float, float] | None:
    """The bounds as numbers, or None for a fixed parameter."""
    if isinstance(bounds, str) and bounds == "fixed":
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0 < low < high:
        raise ValueError(f"{name}_bounds must be 'fixed' or two numbers 0 < low < high, got {bounds!r}")
    return low, high
