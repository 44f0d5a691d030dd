"""Progress for people: a bar if rich is installed and a terminal is there, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bayesvm.inference.training import Progress
from bayesvm.inference.tuning import HEADER, Trial

OFTEN = 1.0  # seconds between two lines about the same thing


class Display:
    """What is going on: shown to nobody here, and to people by those that inherit from it."""

    def __init__(self) -> None:
        self.name, self.began, self.last = "", 0.0, 0.0

    def phase(self, name: str) -> None:
        """The next thing begins."""
        if name != self.name:
            self.name = name
            self.show("")

    def update(self, progress: Progress) -> None:
        """One more update of the posterior."""
        new, self.name = progress.phase != self.name, progress.phase
        if new or time.monotonic() - self.last >= OFTEN:
            self.show(describe(progress))

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


def trial_display(verbose: float) -> Callable[[Trial], None] | None:
    """What tuning should call after every trial: the report's table, line by line, or nothing."""
    if not verbose:
        return None
    say(HEADER)
    return lambda trial: say(str(trial))
