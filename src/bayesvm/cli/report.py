"""``bayesvm report``: one HTML file about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesvm.cli import console, options
from bayesvm.evaluation.formatting import counted
from bayesvm.report import n_rows_shown, write_report


def report(
    model: options.ModelFile,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table with true classes or values for the evaluation; default: the rows held out of training.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The HTML file; default: the name of the model.", show_default=False),
    ] = None,
    target: options.Target = None,
    jobs: options.Jobs = None,
    copy_to: options.CopyTo = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    kind: options.Format = "csv",
    no_rows: Annotated[
        bool,
        typer.Option("--no-rows", metavar="", help="Leave single rows of the table out of the report."),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write an HTML report on a model: metrics, plots and the columns that matter.

    The report is one file that needs no network, is readable on a phone, and is small enough to send by e-mail. It
    shows the least and the most certain rows of the table with their values; `--no-rows` leaves them out.

    Examples:

        bayesvm report income.bayesvm

        bayesvm report income.bayesvm test.parquet --out income-on-test.html

        bayesvm report income.bayesvm --no-rows
    """
    path = out or model.with_suffix(".html")
    options.require_writable(path, tables or (), model)
    shown, evaluated = options.loaded(model, jobs), None
    if tables:
        with options.source(tables, kind) as files:
            csv = options.csv_options(sep, decimal, encoding, missing, no_header)
            name = options.name_of(tables)
            evaluated = shown.evaluate(files, target, name, copy_to=copy_to, verbose=0 if quiet else 1, **csv)
    write_report(shown, path, evaluated, show_rows=not no_rows)
    if not quiet:
        console.say(f"written: {path} ({path.stat().st_size / 1000:,.0f} kB)")
        if n_shown := 0 if no_rows else n_rows_shown(evaluated or shown.default_evaluation):
            console.say(f"it shows {counted(n_shown, 'row')} of the table; --no-rows leaves them out")
