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
    """``log value ~ N(log median, deviation²)``, independently for each entry."""

    median: float
    deviation: float

    def __call__(self, logs: Array, n_features: int) -> tuple[float, Array]:
        beyond = logs - np.log(self.median)
        return 0.5 * float(beyond @ beyond) / self.deviation**2, beyond / self.deviation**2


@dataclass(frozen=True)
class SharedLogNormal:
    """The mean of the logarithms is normal around ``log median``, the entries are normal around their mean.

    Without a median it is a power of D: √D, where two independent standardised rows are at d² = 2 on average, or D for
    a distance that adds up absolute differences.
    """

    deviation: float = 1.0  # of the mean
    spread: float = 1.0  # of an entry around the mean
    median: float | None = None
    power: float = 0.5  # of D

    def __call__(self, logs: Array, n_features: int) -> tuple[float, Array]:
        mean = logs.mean()
        away = mean - (self.power * np.log(n_features) if self.median is None else np.log(self.median))
        apart = logs - mean
        value = 0.5 * (away / self.deviation) ** 2 + 0.5 * float(apart @ apart) / self.spread**2
        return float(value), away / self.deviation**2 / len(logs) + apart / self.spread**2


@dataclass(frozen=True)
class Parameter:
    """What a kernel class declares about a parameter that can be learned."""

    prior: Prior
    bounds: tuple[float, float]  # unless an object has others in ``<name>_bounds``
    per_feature: bool = False  # whether it may have one value per feature
    amplitude: bool = False  # whether the kernel is proportional to it, so that a weight in a sum can stand for it


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
