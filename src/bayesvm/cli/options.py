"""The command line: arguments and options that several commands share."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bayesvm.data.tables.files import Paths

Tables = Annotated[
    list[str],
    typer.Argument(
        help="Parquet, Arrow, CSV or LIBSVM files (CSV and LIBSVM also compressed), a folder or a pattern in quotes; "
        "`-` reads stdin.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A file that `bayesvm fit` or `model.save` wrote.", show_default=False)]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Column of the classes.", show_default=False, metavar="NAME")
]
Weight = Annotated[str | None, typer.Option("--weight", help="Column of row weights.", metavar="NAME")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Columns to learn from; default: all.", metavar="A,B")
]
Drop = Annotated[str | None, typer.Option("--drop", help="Columns to leave out.", metavar="A,B")]
Levels = Annotated[
    str | None,
    typer.Option("--levels", help="Columns whose numbers are names, such as postal codes.", metavar="A,B"),
]
Holdout = Annotated[
    float,
    typer.Option("--holdout", help="Share of the rows, at most 50,000, kept back to judge the model; 0 for none."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides all that is random.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Threads; default: all cores.", show_default=False)]
CopyTo = Annotated[
    Path | None,
    typer.Option("--copy-to", help="Folder for working copies of text files; default: the system's for such files."),
]
Format = Annotated[str, typer.Option("--format", help="Of stdin: csv, tsv, libsvm, parquet or arrow.")]


def names(text: str | None) -> list[str]:
    """Names with commas between them."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def source(tables: list[str], kind: str = "csv") -> Iterator[Paths]:
    """The files to read; stdin is kept in a temporary one, because rows are read more than once."""
    if tables != ["-"]:
        yield tables[0] if len(tables) == 1 else tables
        return
    with tempfile.TemporaryDirectory(prefix="bayesvm-") as folder:
        path = Path(folder) / f"stdin.{kind}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path
