"""Estimators: what one fit works with: threads, random numbers, progress, a clock, and a checkpoint."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from bayesvm.data.repetition import Repetition
from bayesvm.data.stopping import StopRequest
from bayesvm.data.workers import Workers, quiet_overflow
from bayesvm.estimators._checkpoints import Checkpoint
from bayesvm.estimators._held_out import Listeners
from bayesvm.inference.training_state import Clock
from bayesvm.progress import ProgressDisplay

NO_ROWS = Repetition(0, 0.0)  # known of them before they are there
Method = TypeVar("Method", bound=Callable[..., Any])

# The fits of this thread that Ctrl-C may ask to stop; none unless inside ``stop_on_interrupt``.
_UNDER_WAY: ContextVar[list[StopRequest] | None] = ContextVar("under way", default=None)


@dataclass(frozen=True)
class Session:
    """What one fit has from its beginning to its end."""

    workers: Workers
    rng: np.random.Generator
    audience: Listeners
    clock: Clock
    checkpoint: Checkpoint
    repetition: Repetition = NO_ROWS

    @property
    def display(self) -> ProgressDisplay:
        """What people see."""
        return self.audience.display


@contextmanager
def session(
    workers: Workers,
    seed: int,
    time_limit: float | None,
    audience: Listeners,
    checkpoint: Checkpoint,
) -> Iterator[Session]:
    """Threads and a clock, for the length of a ``with``."""
    clock = Clock(np.inf if time_limit is None else time.monotonic() + time_limit)
    workers.watch, workers.stop = audience.display.rows, clock.stop
    with workers, quiet_overflow(), _heard(clock.stop):
        yield Session(workers, np.random.default_rng(seed), audience, clock, checkpoint)


def all_or_nothing(fit: Method) -> Method:
    """A method after whose failure the estimator is what it was before: fitted as it was, or not at all."""

    @wraps(fit)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast("Method", careful)


@contextmanager
def stop_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end a fit early and keep its model, for the length of a ``with`` statement in the main thread.

    The first Ctrl-C ends the fit under way within seconds, with its last complete update: the model is usable, and
    ``interrupted_`` is true. The second one, or one where there is nothing to keep yet, raises ``KeyboardInterrupt``
    as usual. Where the process ignores Ctrl-C, as in the background of a shell, it stays ignored.

    Examples
    --------
    >>> import bayesvm
    >>> from bayesvm.datasets import waveform
    >>> data = waveform(500, random_state=0)
    >>> with bayesvm.stop_on_interrupt():
    ...     model = bayesvm.BayesianSVC(n_inducing=20, tune=None).fit(data.X, data.y)
    >>> model.interrupted_
    False
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    under_way: list[StopRequest] = []

    def ask(number: int, frame: Any) -> None:
        stop = under_way[-1] if under_way else StopRequest()
        if stop.made or not stop.heeded:
            before(number, frame)
            return
        with suppress(OSError):  # not by print, which may be what was interrupted
            os.write(2, b"bayesvm: stopping with the last complete update; Ctrl-C again stops at once\n")
        stop.make()

    token = _UNDER_WAY.set(under_way)
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _UNDER_WAY.reset(token)


@contextmanager
def _heard(stop: StopRequest) -> Iterator[None]:
    """Register this fit as the one that Ctrl-C stops."""
    under_way = _UNDER_WAY.get()
    if under_way is None:
        yield
        return
    under_way.append(stop)
    try:
        yield
    finally:
        under_way.remove(stop)
