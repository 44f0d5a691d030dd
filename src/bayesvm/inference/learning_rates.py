"""Inference: step sizes for stochastic updates.

Each is ``init() -> state`` and ``next(state, gradient) -> (rho, state)``; the gradient is the natural one,
``(P̂ - P, ĥ - h)`` from a minibatch, flattened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesvm.core.linalg import Array


class LearningRate(Protocol):
    """A rule for ρ, with its own kind of state."""

    def init(self) -> Any: ...

    def next(self, state: Any, gradient: Array) -> tuple[float, Any]: ...


@dataclass(frozen=True)
class FixedRate:
    """A constant ρ."""

    rho: float

    def init(self) -> None:
        return None

    def next(self, state: None, gradient: Array) -> tuple[float, None]:
        return self.rho, None


@dataclass(frozen=True)
class RobbinsMonro:
    """``ρ_t = (t + delay)^-power``: the sum diverges, the sum of squares does not, for power in (½, 1]."""

    delay: float = 1.0
    power: float = 0.7

    def init(self) -> int:
        return 0

    def next(self, state: int, gradient: Array) -> tuple[float, int]:
        return (state + self.delay) ** -self.power, state + 1


@dataclass(frozen=True)
class RunningAverages:
    """Running averages of the gradient and of its squared length, over a window."""

    gradient: Array
    square: float
    window: float
    seen: int


@dataclass(frozen=True)
class AdaptiveRate:
    """Ranganath et al. 2013: ``ρ = |E g|² / E|g|²`` from running averages, whose window grows as ρ falls (D13).

    The averages start from ``warm_up`` gradients at the starting point, while q does not change.
    """

    warm_up: int = 10

    def init(self) -> RunningAverages | None:
        return None

    def next(self, state: RunningAverages | None, gradient: Array) -> tuple[float, RunningAverages]:
        square = float(gradient @ gradient)
        if state is None:
            return 0.0, RunningAverages(gradient, square, float(self.warm_up), 1)
        share = 1 / (state.seen + 1) if state.seen < self.warm_up else 1 / state.window
        mean = (1 - share) * state.gradient + share * gradient
        mean_square = (1 - share) * state.square + share * square
        if state.seen + 1 < self.warm_up:
            return 0.0, RunningAverages(mean, mean_square, state.window, state.seen + 1)
        rho = float(np.clip(mean @ mean / max(mean_square, 1e-300), 0.0, 1.0))
        return rho, RunningAverages(mean, mean_square, max(state.window * (1 - rho) + 1, 2.0), state.seen + 1)
