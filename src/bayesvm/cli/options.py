"""The command line: arguments and options shared by several commands."""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bayesvm.atomic import NO_ROOM, try_to_write
from bayesvm.data.tables.csv_dialect import CsvOptions
from bayesvm.data.tables.files import COMPRESSIONS, FORMATS, Paths, find_files
from bayesvm.workflow import TableModel

SUFFIXES = {*FORMATS, *(suffix for ends in COMPRESSIONS.values() for suffix in ends)}

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
    str | None,
    typer.Option(
        "--target", "-t", help="Column to predict: classes or a numeric target.", show_default=False, metavar="NAME"
    ),
]
Task = Annotated[
    str,
    typer.Option(
        "--task",
        help="classification, regression or auto; auto is regression if the target is numeric and has fractions, more "
        "distinct values than classes may have, or many whole numbers that fill a range, such as ages.",
    ),
]
Weight = Annotated[str | None, typer.Option("--weight", help="Column of row weights.", metavar="NAME")]
UsedColumns = Annotated[str | None, typer.Option("--columns", help="Columns to use; default: all.", metavar="A,B")]
Drop = Annotated[str | None, typer.Option("--drop", help="Columns to leave out.", metavar="A,B")]
Categories = Annotated[
    str | None,
    typer.Option(
        "--categories",
        help="Numeric columns to treat as categorical, such as postal codes; may include the target.",
        metavar="A,B",
    ),
]
Kept = Annotated[
    str | None,
    typer.Option("--keep", help="Columns to use although they look like an index or an identifier.", metavar="A,B"),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", help="Column of groups, such as patients; rows of a group are held out together.", metavar="NAME"
    ),
]
Holdout = Annotated[
    float,
    typer.Option(
        "--holdout",
        help="Share of the rows, at most 50,000, held out to evaluate the model; 0 for none. Tables below 2,000 rows "
        "are evaluated by cross-validation.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Do not show the progress.")]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Controls the randomness.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Threads; default: all cores.", show_default=False)
]
CopyTo = Annotated[
    Path | None,
    typer.Option(
        "--copy-to", help="Folder for working copies of text files; default: the temporary folder of the system."
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep", help="Separator of CSV files: a character, tab or space; default: detected.", show_default=False
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", help="Decimal mark of CSV files, . or ,; default: detected.", show_default=False),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of CSV files, such as cp1252; default: detected.", show_default=False),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="A text in CSV files that means a missing value, in addition to ?, NA, - and similar; may be repeated.",
        show_default=False,
        metavar="TEXT",
    ),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", metavar="", help="CSV files have no header: columns are c1, c2, ….")
]
KINDS = ("csv", "tsv", "libsvm", "parquet", "arrow")
Format = Annotated[str, typer.Option("--format", help="Format of stdin: csv, tsv, libsvm, parquet or arrow.")]


def names(text: str | None) -> list[str]:
    """Split names at commas; names that contain a comma are in double quotes."""
    found = [] if text is None else next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in found if name.strip()]


def csv_options(
    sep: str | None, decimal: str | None, encoding: str | None, missing: list[str] | None, no_header: bool
) -> CsvOptions:
    """The options for CSV files."""
    return CsvOptions(sep=sep, decimal=decimal, encoding=encoding, missing=missing or (), header=not no_header)


def loaded(path: Path, jobs: int | None) -> TableModel:
    """Load a model, and set its number of threads."""
    model = TableModel.load(path)
    if jobs is not None:
        model.estimator.set_params(n_jobs=jobs)
    return model


def name_of(tables: Sequence[str]) -> str:
    """A display name for several tables."""
    return tables[0] if len(tables) == 1 else f"{tables[0]}, …"


def model_file(tables: list[str]) -> Path:
    """The default file of a model, named after the table or its folder."""
    first = Path(tables[0]).expanduser()
    if tables == ["-"]:
        return Path("model.bayesvm")
    named = next(part for part in (first.name, first.parent.name, "model") if part and not set(part) & set("*?["))
    name = first.resolve().name if first.is_dir() else named
    while not first.is_dir() and Path(name).suffix.lower() in SUFFIXES:
        name = Path(name).stem
    return Path(f"{name or 'model'}.bayesvm")


def require_writable(path: Path, tables: Sequence[str] = (), model: Path | None = None, n_bytes: int = 0) -> None:
    """Raise an error before the work if a file cannot be written; ``n_bytes`` is its approximate size."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; set --out to a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first, or set another --out")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"permission denied: {path}; set another --out")
    try:
        try_to_write(path, n_bytes)
    except OSError as error:
        remedy = f"; about {n_bytes / 1e6:.0f} MB are needed: free some space, or" if error.errno in NO_ROOM else ";"
        raise OSError(error.errno, f"{error.strerror}{remedy} set another --out") from error
    if model is not None and path.resolve() == model.expanduser().resolve():
        raise ValueError(f"{path} is the model itself; set another --out")
    if tables and "-" not in tables:
        _, files = find_files(tables[0] if len(tables) == 1 else tables)
        if path.resolve() in {file.path.resolve() for file in files}:
            raise ValueError(f"{path} is a file of the table itself; set another --out")


@contextmanager
def source(tables: list[str], kind: str = "csv") -> Iterator[Paths]:
    """The files to read; stdin is copied to a temporary file, because rows are read more than once."""
    if "-" in tables and len(tables) > 1:
        raise typer.BadParameter("`-` reads stdin and must be the only table")
    if kind not in KINDS:
        raise typer.BadParameter(f"--format must be one of {', '.join(KINDS)}; got {kind!r}")
    if tables != ["-"]:
        yield tables[0] if len(tables) == 1 else tables
        return
    with tempfile.TemporaryDirectory(prefix="bayesvm-") as folder:
        path = Path(folder) / f"stdin.{kind}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path
