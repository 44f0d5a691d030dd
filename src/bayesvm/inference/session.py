"""Inference: the resources of one fit: threads, random numbers, listeners and a clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from bayesvm.core.features import Features
from bayesvm.core.heads import Head
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import LatentFunction
from bayesvm.core.likelihoods import Likelihood
from bayesvm.data.blocks import BlockSource, HeldRows, RowNumbers
from bayesvm.data.completion import MeanAndVariance, MomentsOf
from bayesvm.data.repetition import Repetition
from bayesvm.data.scaling import Scaler
from bayesvm.data.stopping import StopRequest
from bayesvm.data.workers import Workers, quiet_overflow
from bayesvm.inference.local import FittedLeaves, Start
from bayesvm.inference.problem import Problem
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Callback, Plan, Progress
from bayesvm.inference.training_state import Clock, NoMemory
from bayesvm.inference.tuning_report import Report, Trial

# The running fits of this thread that can be asked to stop; None if stop requests are not possible.
RUNNING: ContextVar[list[StopRequest] | None] = ContextVar("running", default=None)


class TrainingRows(Protocol):
    """Validated rows with numeric y."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> BlockSource:
        """The rows as unscaled blocks."""
        ...

    @property
    def groups(self) -> RowNumbers | None:
        """The group number of every row; None if there are no groups."""
        ...

    def given(self, numbers: RowNumbers) -> RowNumbers:
        """The numbers of these rows of the source in the user's table."""
        ...

    def changes(self, numbers: RowNumbers, moments: MomentsOf) -> list[MeanAndVariance] | None:
        """The changes of mean and variance of f at these rows by missing values (D33); None if no value is missing."""
        ...


class NullDisplay:
    """The progress display of a fit; this one shows nothing, at no cost."""

    def phase(self, name: str) -> None:
        """A new phase begins."""

    def update(self, progress: Progress) -> None:
        """The posterior was updated."""

    def rows(self, done: int, n_rows: int) -> None:
        """``done`` rows of a pass are processed."""

    def trial(self, trial: Trial) -> None:
        """Tuning completed a trial."""


class HeldOutRows(Protocol):
    """Held-out rows, whose loss is reported with the progress."""

    def reported_to(self, callback: Callback, problem: Problem, scaler: Scaler) -> Callback:
        """A callback that also receives their loss."""
        ...


@dataclass(frozen=True)
class Listeners:
    """The listeners that are notified of the progress of a fit."""

    display: NullDisplay = field(default_factory=NullDisplay)
    callback: Callback | None = None
    held_out: HeldOutRows | None = None

    def of(self, problem: Problem, scaler: Scaler) -> Callback:
        """The callback for training this problem, called after every update."""
        return self.notify if self.held_out is None else self.held_out.reported_to(self.notify, problem, scaler)

    def notify(self, progress: Progress) -> None:
        """Notify all listeners."""
        self.display.update(progress)
        if self.callback is not None:
            self.callback(progress)


@dataclass(frozen=True)
class Prepared:
    """The state before training: scaling, features, initial functions, and the report of tuning."""

    scale: str | None
    scaler: Scaler
    features: Features
    functions: tuple[LatentFunction, ...]
    report: Report | None = None
    chosen: Trial | None = None  # the trial that gave these features
    others: tuple[Prepared, ...] = ()  # further members of a committee
    weight: float | None = None  # in the committee; None if it is still to be determined
    gained: float = 0.0  # reduction of log loss with twice the points of tuning
    start: Start | None = None  # local models of an earlier fit
    likelihood: Likelihood | None = None  # the bound if its noise was learned; else that of the settings


class NoLeafMemory:
    """Storage for finished local models; this one stores nothing."""

    def recall(self) -> list[FittedLeaves]:
        """The local models that an earlier run finished."""
        return []

    def keep(self, finished: Sequence[FittedLeaves], *, now: bool = False) -> None:
        """Store all finished models, if it is time."""


class NoCheckpoint:
    """Storage for the progress of a fit, from which an interrupted run resumes; this one stores nothing."""

    def seed(self, drawn: int) -> int:
        """The seed of the original run; ``drawn`` if this is a new run."""
        return drawn

    def recall_prepared(self, n_features: int, n_functions: int) -> tuple[Prepared, Any] | None:
        """The prepared state and the state of the random generator after it, if it was stored."""
        return None

    def keep_prepared(self, prepared: Prepared, rng: Any) -> None:
        """Store both."""

    def training(self, name: str, plan: Plan, sizes: dict[str, int]) -> NoMemory:
        """Storage for a training run of this name, with sizes M (weights), K (functions) and R (rows)."""
        return NoMemory()

    def leaves(self, name: str, kernel: Kernel, n_functions: int) -> NoLeafMemory:
        """Storage for the local models of this name."""
        return NoLeafMemory()

    def freeze(self) -> None:
        """Store nothing more: what follows is not part of an uninterrupted fit."""


@dataclass(frozen=True)
class Session:
    """One fit: its settings, its head and its resources."""

    settings: Settings
    head: Head
    workers: Workers
    rng: np.random.Generator
    listeners: Listeners
    clock: Clock
    checkpoint: NoCheckpoint
    repetition: Repetition
    dtype: Any  # of the numbers in blocks
    groups: RowNumbers | None = None  # the group number of every row, if groups are left out together

    def groups_of(self, rows: HeldRows) -> RowNumbers | None:
        """The group numbers of these rows."""
        return None if self.groups is None else self.groups[rows.numbers]

    @property
    def display(self) -> NullDisplay:
        """The progress display."""
        return self.listeners.display

    def problem(self, features: Features, source: BlockSource, likelihood: Likelihood | None = None) -> Problem:
        """The problem of these features on the rows of a source."""
        likelihood = likelihood or self.settings.likelihood
        return Problem(features, self.head, likelihood, self.dtype, source.total_weight)

    def plan(self, source: BlockSource) -> Plan:
        """The plan for training on the rows of a source."""
        settings = self.settings
        size = min(source.n_rows, settings.batch_size)
        return Plan(settings.inference, settings.max_iter, settings.tol, size, settings.learning_rate, self.clock)


@contextmanager
def working(
    settings: Settings, listeners: Listeners, seed: int
) -> Iterator[tuple[Workers, np.random.Generator, Clock]]:
    """A session with threads, random numbers and a clock, within a ``with`` statement."""
    limit = np.inf if settings.time_limit is None else time.monotonic() + settings.time_limit
    clock, workers = Clock(limit), Workers(settings.n_jobs)
    workers.watch, workers.stop = listeners.display.rows, clock.stop
    with workers, quiet_overflow(), _running(clock.stop):
        yield workers, np.random.default_rng(seed), clock


@contextmanager
def _registered(stop: StopRequest, running: list[StopRequest]) -> Iterator[None]:
    running.append(stop)
    try:
        yield
    finally:
        running.remove(stop)


def _running(stop: StopRequest) -> AbstractContextManager[None]:
    """Register this fit for stop requests."""
    running = RUNNING.get()
    return nullcontext() if running is None else _registered(stop, running)
