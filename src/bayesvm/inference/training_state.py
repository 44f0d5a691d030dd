"""Inference: the state of training, from which it resumes with bit-identical results, and its deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesvm.core.latent import LatentFunction
from bayesvm.core.statistics import Statistics
from bayesvm.data.stopping import Stopped, StopRequest
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.stochastic import StochasticState


@dataclass
class Clock:
    """When to stop: after the update at a deadline (by ``time.monotonic``), or immediately on request."""

    deadline: float = np.inf
    stop: StopRequest = field(default_factory=StopRequest)

    def over(self) -> bool:
        """Whether the deadline has passed or a stop was requested."""
        return self.stop.made or time.monotonic() > self.deadline

    def require_time(self) -> None:
        """Abort the current step if the deadline has passed or a stop was requested."""
        if self.over():
            raise Stopped


@dataclass(frozen=True)
class Epoch:
    """The current epoch: the states, the number of minibatches, and mean and squared deviations of the ELBO estimates.

    Of earlier epochs, it has the best mean, and the number of epochs since then.
    """

    states: tuple[StochasticState, ...]
    done: int = 0
    mean: float = 0.0
    squares: float = 0.0
    best: float = -np.inf
    flat: int = 0

    @property
    def begun(self) -> bool:
        """Whether any of its minibatches is done."""
        return self.done > 0

    def after(self, states: Sequence[StochasticState]) -> Epoch:
        """The epoch after one more minibatch; updates the moments as in Welford 1962."""
        gap = float(sum(state.elbo for state in states)) - self.mean
        mean = self.mean + gap / (self.done + 1)
        squares = self.squares + gap * (gap - gap / (self.done + 1))
        return replace(self, states=tuple(states), done=self.done + 1, mean=mean, squares=squares)

    def ended(self, least_gain: float) -> Epoch:
        """The next epoch, which records whether this one rose beyond its noise; always true without a least gain."""
        noise = math.sqrt(self.squares) / self.done
        risen = self.mean > self.best + max(noise, least_gain)
        flat = 0 if risen or least_gain == 0 else self.flat + 1
        return Epoch(self.states, best=max(self.best, self.mean), flat=flat)


@dataclass(frozen=True)
class TrainingState:
    """The phase (``auto``: growing subsets, ``stochastic``: minibatches, ``batch``: all rows) and its progress.

    ``rng`` is the state of the generator at the start of the phase or epoch.
    """

    phase: str
    functions: tuple[LatentFunction, ...]
    contraction: tuple[float, ...]
    rng: Any
    subset_rows: int = 0
    states: tuple[AscentState, ...] = ()
    epoch: Epoch | None = None
    passes: tuple[tuple[Statistics, ...], ...] = ()  # sums of a mean field so far, by target
    rows: int = 0  # rows read so far
    trace: tuple[float, ...] = ()

    @classmethod
    def start(
        cls, phase: str, functions: Sequence[LatentFunction], contraction: Sequence[float], rng: np.random.Generator
    ) -> TrainingState:
        """The initial state."""
        return cls(phase, tuple(functions), tuple(contraction), rng.bit_generator.state)

    def for_all_rows(self, rng: np.random.Generator) -> TrainingState:
        """The last phase, starting from the current functions."""
        return replace(self, phase="batch", rng=rng.bit_generator.state, subset_rows=0)


class NoMemory:
    """Storage for the state of training, from which an interrupted run resumes; this one stores nothing."""

    def recall(self) -> TrainingState | None:
        """The state of an earlier run."""
        return None

    def keep(self, state: Callable[[], TrainingState], *, now: bool = False) -> None:
        """Store the current state; calls ``state`` only when it is time to store."""
