"""The command line: output. Results go to stdout, everything else to stderr.

Names of columns, labels and files are untrusted and may contain control characters of the terminal, so all output
passes through ``visible``.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import shlex
import sys
import traceback
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import numpy as np
import typer
from rich.cells import cell_len
from rich.console import Console

PRINTED = "\n\u200c\u200d"  # in addition to printable characters: line breaks, and joiners of letters and emojis


def visible(text: str) -> str:
    r"""Escape all characters that a terminal would interpret or hide, except line breaks.

    >>> print(visible("\x1b[31mred\u202e \u00e9"))
    \x1b[31mred\u202e é
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable() or character in PRINTED or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()


class Terminal(Console):
    """Prints ``visible`` text, without interpreting markup such as :smile: or [red]."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*(visible(each) if isinstance(each, str) else each for each in objects), **how)


results = Terminal()
errors = Terminal(stderr=True)


def say(text: str = "") -> None:
    """Print a line of the result."""
    results.print(one_line(text))


def one_line(text: str) -> str:
    """``visible`` text without line breaks."""
    return visible(text).replace("\n", "\\n")


def complain(what: str, text: str, style: str) -> None:
    """Print an error or a warning; lines after the first are indented, so they cannot imitate another message."""
    errors.print(f"{what}: {text.rstrip()}".replace("\n", "\n  "), style=style)


def show_exception(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Replacement for ``sys.excepthook``."""
    errors.print("".join(traceback.format_exception(kind, error, where)), end="")


def table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] | None = None
) -> None:
    """Print a table: the first column or ``words`` left-aligned, numbers right-aligned. No line is cut or wrapped.

    Tables of rich are cut to the width of the window, or padded beyond it, which wraps every line of a wide table.
    """
    lines = [list(map(one_line, line)) for line in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if title:
        say(title)
    for number, line in enumerate(lines):
        cells = []
        for place, (text, width) in enumerate(zip(line, widths, strict=True)):
            pad = " " * (width - cell_len(text))
            is_left = place == 0 if words is None else header[place] in words
            cells.append(text + pad if is_left else pad + text)
        results.print("  ".join(cells).rstrip(), style=None if number else "bold")


def next_commands(path: Path, *commands: Sequence[str]) -> None:
    """Print the written file and suggested next commands."""
    say()
    say(f"written: {path}. Next:")
    for words in commands:
        command(words, "  ")


def command(words: Sequence[str], prompt: str) -> None:
    """Print a command, with the name of the program."""
    results.print(one_line(prompt + shlex.join(["bayesvm", *words])), style="bold cyan")


def as_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object to stdout."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    # Non-printable characters occur in strings only, where JSON has escapes.
    typer.echo("".join(json.dumps(each)[1:-1] if visible(each) != each else each for each in text))


class TerminalBytes(io.RawIOBase):
    """A stream for UTF-8 bytes that prints ``visible`` text."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        sys.stdout.write(visible(self._decode(bytes(content))))
        return len(content)


def binary_output() -> BinaryIO:
    """Stdout for a table: unchanged for files and programs, ``visible`` for a terminal."""
    return cast(BinaryIO, TerminalBytes()) if sys.stdout.isatty() else sys.stdout.buffer


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
