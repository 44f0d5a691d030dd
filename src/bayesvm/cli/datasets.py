"""``bayesvm datasets``: example tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesvm.cli import console, options
from bayesvm.data.tables.writing import writing_table
from bayesvm.datasets.catalogue import CATALOGUE, CatalogueEntry, entry_of, missing_as_null

LARGE = 100.0  # megabytes from which a download is announced

datasets = typer.Typer(no_args_is_help=True)


@datasets.callback()
def about() -> None:
    """Example tables: synthetic, from scikit-learn, from the paper, and two with millions of rows.

    Examples:

        bayesvm datasets list

        bayesvm datasets fetch people
    """


@datasets.command("list")
def show(json: options.Json = False) -> None:
    """List the tables: rows, columns, classes, target, size of the download, and origin.

    Examples:

        bayesvm datasets list

        bayesvm datasets list --json
    """
    if json:
        console.as_json({"datasets": [_as_json(entry) for entry in CATALOGUE.values()]})
        return
    header = ["name", "rows", "columns", "classes", "target", "download", "origin"]
    console.table("", header, map(_as_row, CATALOGUE.values()), words={"name", "target", "download", "origin"})


@datasets.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="One of `bayesvm datasets list`.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .parquet, .arrow or .csv file; default: NAME.parquet.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Number of rows; default: all, or 5,000 of a synthetic table. Fewer than all are sampled at random."
        ),
    ] = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Write a table to a file.

    For synthetic tables, another seed gives new rows of the same kind, for example to predict.

    Examples:

        bayesvm datasets fetch people --out people.csv

        bayesvm datasets fetch people --rows 1000 --seed 1 --out more_people.csv
    """
    entry = entry_of(name)
    path = Path(f"{name}.parquet") if out is None else out
    options.require_writable(path)
    if entry.megabytes is not None and entry.megabytes >= LARGE and not quiet:
        console.errors.print(f"{name}: a download of {_download(entry)}, unless there is a local copy")
    written = 0
    with writing_table(path) as append:
        for part in entry.parts(rows, seed):
            append(missing_as_null(part))
            written += len(part[entry.target])
    if not quiet:
        console.say(f"{written:,} rows, {entry.n_columns} columns and the target {entry.target}")
        console.next_commands(path, ["fit", str(path), "--target", entry.target])


def _as_row(entry: CatalogueEntry) -> list[str]:
    n_rows = "any" if entry.synthetic else f"{entry.n_rows:,}"
    sizes = [n_rows, f"{entry.n_columns}", f"{entry.n_classes}"]
    return [entry.name, *sizes, entry.target, _download(entry), entry.origin]


def _as_json(entry: CatalogueEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "rows": None if entry.synthetic else entry.n_rows,
        "columns": entry.n_columns,
        "classes": entry.n_classes,
        "target": entry.target,
        "origin": entry.origin,
        "download_megabytes": entry.megabytes,
    }


def _download(entry: CatalogueEntry) -> str:
    """The size of the download."""
    if entry.megabytes is None:
        return "none"
    return f"{entry.megabytes:,.0f} MB" if entry.megabytes >= 1 else f"{entry.megabytes:.2g} MB"
