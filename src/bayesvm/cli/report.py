"""``bayesvm report``: one HTML file about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesvm.cli import console
from bayesvm.cli.options import CopyTo, Format, Jobs, ModelFile, Quiet, Target, require_writable, source
from bayesvm.report import write_report
from bayesvm.workflow import TableModel


def report(
    model: ModelFile,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table with the true classes to judge the model on; default: the rows held out of training.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The HTML file; default: the model's name.", show_default=False),
    ] = None,
    target: Target = None,
    jobs: Jobs = None,
    copy_to: CopyTo = None,
    kind: Format = "csv",
    quiet: Quiet = False,
) -> None:
    """Write what a model is, how good it is and what it has learned, as one HTML file.

    It needs no network, can be read on a phone, and is light enough to mail.

    Examples:

        bayesvm report income.bayesvm

        bayesvm report income.bayesvm test.parquet --out income-on-test.html
    """
    path = out or model.with_suffix(".html")
    require_writable(path, tables or (), model)
    loaded = TableModel.load(model)
    if jobs is not None:
        loaded.estimator.set_params(n_jobs=jobs)
    judged = None
    if tables:
        with source(tables, kind) as files:
            name = tables[0] if len(tables) == 1 else f"{tables[0]}, …"
            judged = loaded.judged(files, target, name, copy_to=copy_to, verbose=0 if quiet else 1)
    write_report(loaded, path, judged)
    if not quiet:
        console.say(f"written: {path} ({path.stat().st_size / 1000:,.0f} kB)")
