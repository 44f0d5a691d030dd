"""Inference: what one fit works with from its beginning to its end: threads, random numbers, listeners, a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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
from bayesvm.core.linalg import Array
from bayesvm.data.blocks import BlockSource, HeldRows, RowNumbers
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

# The fits of this thread that may be asked to stop; None where nobody would ask.
RUNNING: ContextVar[list[StopRequest] | None] = ContextVar("running", default=None)


class TrainingRows(Protocol):
    """Checked rows, whose y are numbers."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> BlockSource:
        """The rows as blocks, not scaled."""
        ...

    @property
    def groups(self) -> RowNumbers | None:
        """The number of every row's group; None where each row is on its own."""
        ...

    def given(self, numbers: RowNumbers) -> RowNumbers:
        """What rows of the source are called in the user's table."""
        ...

    def spread(self, numbers: RowNumbers, means: Callable[[Array], Sequence[Array]]) -> list[Array] | None:
        """How far means at these rows vary with the values that are missing there (D33); None if none is missing."""
        ...


class NullDisplay:
    """Where people see how far a fit is; this one shows nothing, in no time."""

    def phase(self, name: str) -> None:
        """The next thing begins."""

    def update(self, progress: Progress) -> None:
        """One more update of the posterior."""

    def rows(self, done: int, n_rows: int) -> None:
        """So many rows of a pass are done."""

    def trial(self, trial: Trial) -> None:
        """One more trial of tuning."""


class HeldOutRows(Protocol):
    """Rows that are not learned from, whose loss is part of the progress."""

    def reported_to(self, callback: Callback, problem: Problem, scaler: Scaler) -> Callback:
        """A callback that is notified of their loss, too."""
        ...


@dataclass(frozen=True)
class Listeners:
    """Who is notified of a fit's progress."""

    display: NullDisplay = field(default_factory=NullDisplay)
    callback: Callback | None = None
    held_out: HeldOutRows | None = None

    def of(self, problem: Problem, scaler: Scaler) -> Callback:
        """What a training of that problem should call after every update."""
        return self.notify if self.held_out is None else self.held_out.reported_to(self.notify, problem, scaler)

    def notify(self, progress: Progress) -> None:
        """Notify all of them."""
        self.display.update(progress)
        if self.callback is not None:
            self.callback(progress)


@dataclass(frozen=True)
class Prepared:
    """What is known before training: scaling, features, the functions to start from, and what tuning tried."""

    scale: str | None
    scaler: Scaler
    features: Features
    functions: tuple[LatentFunction, ...]
    report: Report | None = None
    chosen: Trial | None = None  # the trial that these features come from
    others: tuple[Prepared, ...] = ()  # further members of a committee
    weight: float | None = None  # in the committee; None where it is to be found
    gained: float = 0.0  # log loss by which twice the points of tuning were better
    start: Start | None = None  # local models of an earlier fit
    likelihood: Likelihood | None = None  # the bound, where its noise was learned; else that of the settings


class NoLeafMemory:
    """Keeps local models that are finished; this one keeps nothing."""

    def recall(self) -> list[FittedLeaves]:
        """The first ones, as far as an earlier run came."""
        return []

    def keep(self, finished: Sequence[FittedLeaves], *, now: bool = False) -> None:
        """All that are finished, if it is time."""


class NoCheckpoint:
    """Keeps what a fit has reached, for a run that may be killed; this one keeps nothing."""

    def seed(self, drawn: int) -> int:
        """The seed of the run that began, which may be the one that was drawn now."""
        return drawn

    def recall_prepared(self, n_features: int, n_functions: int) -> tuple[Prepared, Any] | None:
        """What was prepared, and the state of the random generator after that, if it was reached."""
        return None

    def keep_prepared(self, prepared: Prepared, rng: Any) -> None:
        """Keep both."""

    def training(self, name: str, plan: Plan, sizes: dict[str, int]) -> NoMemory:
        """A memory for a training of that name, with so many weights M, functions K and rows R."""
        return NoMemory()

    def leaves(self, name: str, kernel: Kernel, n_functions: int) -> NoLeafMemory:
        """A memory for the local models of that name."""
        return NoLeafMemory()

    def freeze(self) -> None:
        """Keep nothing more: what follows is no part of the whole fit."""


@dataclass(frozen=True)
class Session:
    """One fit: what was asked for, what is predicted, and what works on it."""

    settings: Settings
    head: Head
    workers: Workers
    rng: np.random.Generator
    listeners: Listeners
    clock: Clock
    checkpoint: NoCheckpoint
    repetition: Repetition
    dtype: Any  # of numbers in blocks
    groups: RowNumbers | None = None  # the number of every row's group, if groups leave together

    def groups_of(self, rows: HeldRows) -> RowNumbers | None:
        """The numbers of the groups of some rows."""
        return None if self.groups is None else self.groups[rows.numbers]

    @property
    def display(self) -> NullDisplay:
        """What people see."""
        return self.listeners.display

    def problem(self, features: Features, source: BlockSource, likelihood: Likelihood | None = None) -> Problem:
        """These features as a problem over the rows of a source."""
        likelihood = likelihood or self.settings.likelihood
        return Problem(features, self.head, likelihood, self.dtype, source.total_weight)

    def plan(self, source: BlockSource) -> Plan:
        """How to train on the rows of a source."""
        settings = self.settings
        size = min(source.n_rows, settings.batch_size)
        return Plan(settings.inference, settings.max_iter, settings.tol, size, settings.learning_rate, self.clock)


@contextmanager
def working(
    settings: Settings, listeners: Listeners, seed: int
) -> Iterator[tuple[Workers, np.random.Generator, Clock]]:
    """Threads, random numbers and a clock, for the length of a ``with``."""
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
    """Register this fit as one that may be asked to stop."""
    running = RUNNING.get()
    return nullcontext() if running is None else _registered(stop, running)
