"""Inference: the state of training, from which it can resume with bit-identical results, and when it has to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesvm.core.latent import LatentFunction
from bayesvm.core.statistics import Statistics
from bayesvm.data.stopping import StopRequest
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.stochastic import StochasticState


@dataclass
class Clock:
    """When to stop: after the update at a deadline on the clock of ``time.monotonic``, or as soon as somebody asks."""

    deadline: float = np.inf
    stop: StopRequest = field(default_factory=StopRequest)

    def over(self) -> bool:
        """Whether it is time."""
        return self.stop.made or time.monotonic() > self.deadline


@dataclass(frozen=True)
class Epoch:
    """Minibatches so far: the states, how many are done, and mean and squared deviations of their ELBO estimates.

    Of the epochs before, the best mean, and how many came after it without a rise.
    """

    states: tuple[StochasticState, ...]
    done: int = 0
    mean: float = 0.0
    squares: float = 0.0
    best: float = -np.inf
    flat: int = 0

    @property
    def begun(self) -> bool:
        """Whether some of its minibatches are done."""
        return self.done > 0

    def after(self, states: Sequence[StochasticState]) -> Epoch:
        """One minibatch later; the moments as in Welford 1962."""
        gap = float(sum(state.elbo for state in states)) - self.mean
        mean = self.mean + gap / (self.done + 1)
        squares = self.squares + gap * (gap - gap / (self.done + 1))
        return replace(self, states=tuple(states), done=self.done + 1, mean=mean, squares=squares)

    def ended(self, least_gain: float) -> Epoch:
        """The next one, which knows whether this one rose beyond its own noise; with no least gain, it always did."""
        noise = math.sqrt(self.squares) / self.done
        risen = self.mean > self.best + max(noise, least_gain)
        flat = 0 if risen or least_gain == 0 else self.flat + 1
        return Epoch(self.states, best=max(self.best, self.mean), flat=flat)


@dataclass(frozen=True)
class TrainingState:
    """Which phase (``auto``: growing subsets, ``stochastic``: minibatches, ``batch``: all rows), and how far in it.

    ``rng`` is the generator's state from which the phase, or its epoch, draws.
    """

    phase: str
    functions: tuple[LatentFunction, ...]
    contraction: tuple[float, ...]
    rng: Any
    subset_rows: int = 0
    states: tuple[AscentState, ...] = ()
    epoch: Epoch | None = None
    passes: tuple[tuple[Statistics, ...], ...] = ()  # of a mean field, the sums so far, target by target
    rows: int = 0  # read so far
    trace: tuple[float, ...] = ()

    @classmethod
    def start(
        cls, phase: str, functions: Sequence[LatentFunction], contraction: Sequence[float], rng: np.random.Generator
    ) -> TrainingState:
        """Nothing done yet."""
        return cls(phase, tuple(functions), tuple(contraction), rng.bit_generator.state)

    def for_all_rows(self, rng: np.random.Generator) -> TrainingState:
        """The last phase, from what was reached."""
        return replace(self, phase="batch", rng=rng.bit_generator.state, subset_rows=0)


class NoMemory:
    """Keeps the state of a training that may be killed; this one keeps nothing."""

    def recall(self) -> TrainingState | None:
        """The state that an earlier run reached."""
        return None

    def keep(self, state: Callable[[], TrainingState], *, now: bool = False) -> None:
        """The present state; asked for only when it is time to keep it."""
