"""The command line: what people see. Results go to stdout, all else to stderr."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bayesvm.evaluation import Figure
from bayesvm.workflow.predicting import Watch, unwatched
from bayesvm.workflow.words import FIGURES, decimal

# Names of columns may have anything in them, such as :smile: or [red].
results = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def say(text: str = "") -> None:
    """A line of the result."""
    results.print(text)


def table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] | None = None
) -> None:
    """Columns of text: the first one or ``words`` to the left, numbers to the right. No line is cut or wrapped."""
    lines = [list(header), *map(list, rows)]
    left = [number == 0 if words is None else name in words for number, name in enumerate(header)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if title:
        say(title)
    for number, line in enumerate(lines):
        gaps = [" " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)]
        cells = [text + gap if is_left else gap + text for text, gap, is_left in zip(line, gaps, left, strict=True)]
        results.print("  ".join(cells).rstrip(), style=None if number else "bold")


def next_commands(path: Path, *commands: Sequence[str]) -> None:
    """What was written, and what to type now."""
    say(f"\nwritten: {path}. Next:")
    for words in commands:
        command(words, "  ")


def command(words: Sequence[str], prompt: str) -> None:
    """What one could type, after the name of the program."""
    results.print(prompt + shlex.join(["bayesvm", *words]), style="bold cyan")


def figure_rows(figures: Mapping[str, Figure]) -> list[list[str]]:
    """Name, value and interval."""
    return [[FIGURES[name], decimal(f.value), f"{decimal(f.low)} to {decimal(f.high)}"] for name, f in figures.items()]


def as_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def rows_bar(what: str, *, quiet: bool) -> Iterator[Watch]:
    """A bar on a terminal for a pass over rows."""
    if quiet or not errors.is_terminal:
        yield unwatched
        return
    columns = (TextColumn(what), BarColumn(30), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, n_rows: bar.update(task, completed=done, total=n_rows)
