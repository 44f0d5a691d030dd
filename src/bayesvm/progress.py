"""Progress for people: a bar if rich is installed and a terminal is there, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import log, nan
from typing import Any

from bayesvm.inference.training import Progress
from bayesvm.inference.tuning import HEADER, Trial

OFTEN = 1.0  # seconds between two lines about the same thing


class Display:
    """What is going on: shown to nobody here, and to people by those that inherit from it."""

    def __init__(self) -> None:
        self.name, self.began, self.last, self.held_out = "", 0.0, 0.0, nan
        self.course: list[tuple[float, float]] = []  # of the last updates: seconds, gain left per row

    def phase(self, name: str) -> None:
        """The next thing begins."""
        if name != self.name:
            self.name = name
            self.show("")

    def update(self, progress: Progress) -> None:
        """One more update of the posterior."""
        new, self.name = progress.phase != self.name, progress.phase
        now = time.monotonic()
        self.course = [] if new else self.course[-3:]
        self.course.append((now, progress.remaining))
        if progress.held_out == progress.held_out:
            self.held_out = progress.held_out
        if new or now - self.last >= OFTEN:
            left = seconds_left(self.course, progress.tol)
            about = "" if left is None else f", about {left:.0f} s left"
            loss = "" if self.held_out != self.held_out else f"  held-out log loss {self.held_out:.4f}"
            self.show(f"{describe(progress)}{loss}{about}")

    def rows(self, done: int, n_rows: int) -> None:
        """So many rows of a pass are done; said only of passes that take a while."""
        now = time.monotonic()
        if done == 0:
            self.began = now
        elif now - self.began >= OFTEN and now - self.last >= OFTEN:
            rate = done / (now - self.began)
            left = (n_rows - done) / rate
            self.show(f"row {done:,} of {n_rows:,}, {rate / 1e6:.2f} million a second, {left:.0f} s left")

    def show(self, text: str) -> None:
        """The phase, and a line about it."""
        self.last = time.monotonic()


class Silence(Display):
    """Shows nothing, in no time."""

    def phase(self, name: str) -> None: ...

    def update(self, progress: Progress) -> None: ...

    def rows(self, done: int, n_rows: int) -> None: ...


class PlainLines(Display):
    """At most a line a second, and one at every change of phase."""

    def show(self, text: str) -> None:
        super().show(text)
        say(f"{self.name:>18}  {text}".rstrip())


class Bar(Display):
    """One line of a terminal that changes."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self.bar = bar
        self.task = bar.add_task("starting", total=None, text="")

    def show(self, text: str) -> None:
        super().show(text)
        self.bar.update(self.task, description=self.name, text=text)


@contextmanager
def progress_display(verbose: float) -> Iterator[Display]:
    """What a fit should tell about its progress."""
    if not verbose:
        yield Silence()
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield PlainLines()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description:>18}"),
        BarColumn(30),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=console) as bar:
        yield Bar(bar)


def say(text: str) -> None:
    """A line for whoever watches."""
    print(f"bayesvm: {text}", file=sys.stderr, flush=True)


def describe(progress: Progress) -> str:
    """One line of figures."""
    left = "" if progress.remaining != progress.remaining else f"  to gain {progress.remaining:.1e} a row"
    return f"update {progress.update:3d}  {progress.passes:5.2f} passes  ELBO {progress.elbo:.6g}{left}"


def seconds_left(course: Sequence[tuple[float, float]], tol: float) -> float | None:
    """Until the gain left is ``tol``, if it goes on shrinking by the same share in every update; None if it grows."""
    if len(course) < 2 or tol <= 0:
        return None
    (began, first), (now, last) = course[0], course[-1]
    if not 0 < last < first:
        return None
    share = (last / first) ** (1 / (len(course) - 1))
    updates = max(0.0, log(tol / last) / log(share))
    return updates * (now - began) / (len(course) - 1)


def trial_display(verbose: float) -> Callable[[Trial], None] | None:
    """What tuning should call after every trial: the report's table, line by line, or nothing."""
    if not verbose:
        return None
    say(HEADER)
    return lambda trial: say(str(trial))
