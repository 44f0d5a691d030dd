"""The command line: what people see. Results go to stdout, all else to stderr.

Names of columns, labels and files come from elsewhere. A terminal obeys control characters in them, so that all that is
printed goes through ``visible``.
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

PRINTED = "\n\u200c\u200d"  # beside what is printable: ends of lines, and what joins or parts letters and emojis


def visible(text: str) -> str:
    r"""With escapes in place of all that a terminal would obey or hide, line breaks excepted.

    >>> print(visible("\x1b[31mred\u202e \u00e9"))
    \x1b[31mred\u202e é
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable() or character in PRINTED or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()


class Terminal(Console):
    """Prints text as ``visible`` shows it, and takes nothing in it for markup, such as :smile: or [red]."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*(visible(each) if isinstance(each, str) else each for each in objects), **how)


results = Terminal()
errors = Terminal(stderr=True)


def say(text: str = "") -> None:
    """A line of the result."""
    results.print(one_line(text))


def one_line(text: str) -> str:
    """``visible`` text that cannot pass for another line."""
    return visible(text).replace("\n", "\\n")


def complain(what: str, text: str, style: str) -> None:
    """Print an error or a warning; lines after the first are indented and cannot pass for another message."""
    errors.print(f"{what}: {text.rstrip()}".replace("\n", "\n  "), style=style)


def show_exception(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """In the place of ``sys.excepthook``."""
    errors.print("".join(traceback.format_exception(kind, error, where)), end="")


def table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] | None = None
) -> None:
    """Columns of text: the first one or ``words`` to the left, numbers to the right. No line is cut or wrapped.

    rich's own tables are cut to the window, or padded beyond it, which every line of a long table would wrap.
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
    """What was written, and what to type now."""
    say()
    say(f"written: {path}. Next:")
    for words in commands:
        command(words, "  ")


def command(words: Sequence[str], prompt: str) -> None:
    """What one could type, after the name of the program."""
    results.print(one_line(prompt + shlex.join(["bayesvm", *words])), style="bold cyan")


def as_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    # What is not printable stands in strings only, where JSON has escapes of its own.
    typer.echo("".join(json.dumps(each)[1:-1] if visible(each) != each else each for each in text))


class TerminalBytes(io.RawIOBase):
    """Where UTF-8 is written for people to read."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        sys.stdout.write(visible(self._decode(bytes(content))))
        return len(content)


def binary_output() -> BinaryIO:
    """Stdout for a table: to files and programs as it is, to a terminal as ``visible`` shows it."""
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
