"""Progress display: a bar in a terminal if rich is installed, otherwise plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan, log, nan
from typing import Any

from bayesvm.inference.session import NullDisplay
from bayesvm.inference.training import Progress
from bayesvm.inference.tuning_report import HEADER, Trial

OFTEN = 1.0  # seconds between two reported updates


class ProgressDisplay(NullDisplay):
    """Base class of progress displays; shows nothing itself."""

    often = OFTEN  # seconds between two reports of the rows of a pass

    def __init__(self) -> None:
        self.name, self.began, self.last, self.updated, self.held_out = "", 0.0, 0.0, 0.0, nan
        self.tuning = False
        self.course: list[tuple[float, float]] = []  # seconds and remaining gain per row of the last updates

    def phase(self, name: str) -> None:
        """Start the next phase."""
        if name != self.name:
            self.name = name
            self.show("")

    def update(self, progress: Progress) -> None:
        """Report an update of the posterior."""
        new, self.name = progress.phase != self.name, progress.phase
        now = time.monotonic()
        self.course = [] if new else self.course[-3:]
        self.course.append((now, progress.remaining))
        if not isnan(progress.held_out):
            self.held_out = progress.held_out
        if new or now - self.updated >= OFTEN:
            self.updated = now
            self.show(describe(progress, self.held_out, seconds_left(self.course, progress.tol)))

    def rows(self, done: int, n_rows: int) -> None:
        """Report the processed rows of a pass that takes a while."""
        now = time.monotonic()
        if done == 0:
            self.began = now
        elif now - self.began >= self.often and now - self.last >= self.often:
            rate = done / (now - self.began)
            left = (n_rows - done) / rate
            self.show(f"row {done:,} of {n_rows:,}, {rate / 1e6:.2f} million per second, {left:.0f} s left")

    def trial(self, trial: Trial) -> None:
        """Report a trial of tuning, as a line of the table of the report."""
        if not self.tuning:
            self.tuning = True
            self.line(HEADER)
        self.line(str(trial))

    def show(self, text: str) -> None:
        """Show the phase and a line about it."""
        self.last = time.monotonic()

    def line(self, text: str) -> None:
        """Print a line that stays on the screen."""


class PlainLines(ProgressDisplay):
    """Permanent lines: one per phase, at most one update per second, and the rows of long passes."""

    often = 5.0

    def show(self, text: str) -> None:
        super().show(text)
        self.line(f"{self.name:>18}  {text}".rstrip())

    def line(self, text: str) -> None:
        print(f"bayesvm: {text}", file=sys.stderr, flush=True)


class Bar(ProgressDisplay):
    """A single line of a terminal that is updated."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self.bar = bar
        self.row = bar.add_task("starting", total=None, text="")

    def show(self, text: str) -> None:
        super().show(text)
        self.bar.update(self.row, description=self.name, text=text)

    def line(self, text: str) -> None:
        self.bar.console.print(text, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def progress_display(verbose: float) -> Iterator[NullDisplay]:
    """The progress display for a value of ``verbose``."""
    if not verbose:
        yield NullDisplay()
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column
    except ImportError:
        yield PlainLines()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainLines()
        return
    text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"), text)
    with Progress(*columns, console=console, transient=True) as bar:
        yield Bar(bar)


def describe(progress: Progress, held_out: float = nan, seconds: float | None = None) -> str:
    """One line of numbers, most important first."""
    parts = [
        f"update {progress.update:3d}  {progress.passes:5.2f} passes  ELBO {progress.elbo:.6g}",
        "" if isnan(held_out) else f"held-out log loss {held_out:.4f}",
        "" if seconds is None else f"about {seconds:.0f} s left",
        "" if isnan(progress.remaining) else f"remaining gain {progress.remaining:.1e} per row",
    ]
    return "  ".join(filter(None, parts))


def seconds_left(course: Sequence[tuple[float, float]], tol: float) -> float | None:
    """Seconds until the remaining gain is ``tol``, if it keeps shrinking at the same rate; None if it grows."""
    if len(course) < 2 or tol <= 0:
        return None
    (began, first), (now, last) = course[0], course[-1]
    if not 0 < last < first:
        return None
    share = (last / first) ** (1 / (len(course) - 1))
    updates = max(0.0, log(tol / last) / log(share))
    return updates * (now - began) / (len(course) - 1)
