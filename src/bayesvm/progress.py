"""Progress for people: a bar if rich is installed and a terminal is there, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayesvm.inference.training import Callback, Progress
from bayesvm.inference.tuning import HEADER, Trial


@contextmanager
def progress_display(verbose: float, callback: Callback | None) -> Iterator[Callback | None]:
    """What training should call after every update: the user's callback, a display, both or neither."""
    if not verbose:
        yield callback
        return
    with _display() as show:

        def both(progress: Progress) -> None:
            show(progress)
            if callback is not None:
                callback(progress)

        yield both


@contextmanager
def _display() -> Iterator[Callback]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield PlainLines()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description:>14}"),
        BarColumn(30),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("starting", total=None, text="")
        yield lambda progress: bar.update(task, description=progress.phase, text=describe(progress))


class PlainLines:
    """At most a line a second, and one at every change of phase."""

    def __init__(self) -> None:
        self.last = -1.0
        self.phase = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase != self.phase or now - self.last >= 1.0:
            print(f"bayesvm: {progress.phase:>14}  {describe(progress)}", file=sys.stderr, flush=True)
            self.last, self.phase = now, progress.phase


def describe(progress: Progress) -> str:
    """One line of figures."""
    left = "" if progress.remaining != progress.remaining else f"  to gain {progress.remaining:.1e} a row"
    return f"update {progress.update:3d}  {progress.passes:5.2f} passes  ELBO {progress.elbo:.6g}{left}"


def trial_display(verbose: float) -> Callable[[Trial], None] | None:
    """What tuning should call after every trial: the report's table, line by line, or nothing."""
    if not verbose:
        return None
    print(f"bayesvm: {HEADER}", file=sys.stderr, flush=True)
    return lambda trial: print(f"bayesvm: {trial}", file=sys.stderr, flush=True)
