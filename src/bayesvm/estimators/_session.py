"""Estimators: what one fit works with: threads, random numbers, progress, a clock, and a checkpoint."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from bayesvm.data.repetition import Repetition
from bayesvm.data.workers import Workers, quiet_overflow
from bayesvm.estimators._checkpoints import Checkpoint
from bayesvm.estimators._held_out import Audience
from bayesvm.inference.places import Clock
from bayesvm.progress import Display

NO_ROWS = Repetition(0, 0.0)  # known of them before they are there
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Session:
    """What one fit has from its beginning to its end."""

    workers: Workers
    rng: np.random.Generator
    audience: Audience
    clock: Clock
    checkpoint: Checkpoint
    repetition: Repetition = NO_ROWS

    @property
    def display(self) -> Display:
        """What people see."""
        return self.audience.display


@contextmanager
def session(
    workers: Workers,
    seed: int,
    time_limit: float | None,
    audience: Audience,
    checkpoint: Checkpoint,
) -> Iterator[Session]:
    """Threads and a clock, for the length of a ``with``."""
    clock = Clock(np.inf if time_limit is None else time.monotonic() + time_limit)
    workers.watch = audience.display.rows
    with workers, quiet_overflow(), _stopped_by_interrupt(clock):
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
def _stopped_by_interrupt(clock: Clock) -> Iterator[None]:
    """The first Ctrl-C asks the clock to stop, the second stops at once; where nobody else listens for it."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if clock.asked:
            signal.default_int_handler(number, frame)
        clock.asked = True
        with suppress(OSError):  # not by print, which may be what was interrupted
            os.write(2, b"bayesvm: stopping after the update under way; Ctrl-C again stops at once\n")

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
