"""``bayesvm predict``: predictions for new rows, with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bayesvm.cli import console, options
from bayesvm.workflow.predicting import Watch, no_progress, predict_table


def predict(
    model: options.ModelFile,
    tables: options.Tables,
    out: Annotated[
        str, typer.Option("--out", "-o", help="A .parquet, .arrow or .csv file; `-` writes CSV to stdout.")
    ] = "-",
    abstain: Annotated[
        float | None,
        typer.Option(
            help="Make no prediction for the least certain rows, so that the others have at most this expected error."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Regression: probability of the intervals (0.9 if not given). Classification: also write `set`, "
            "classes separated by |, which contain the true class with this probability."
        ),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns to copy beside the predictions, such as an id.", metavar="A,B")
    ] = None,
    uncertainty: Annotated[bool, typer.Option(metavar="", help="Include uncertainty columns.")] = True,
    jobs: options.Jobs = None,
    copy_to: options.CopyTo = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    kind: options.Format = "csv",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Predict classes and probabilities, or values and intervals, with uncertainty.

    `epistemic` is the part of the uncertainty (in nats) that more data would reduce, `aleatoric` the part that remains;
    `lower` and `upper` are a 95% interval for the probability of the second of two classes. For regression, the columns
    are `prediction`, `std`, its parts as variances, and `lower` and `upper`, an interval that contains the value with
    probability `--coverage`. Row order is preserved.

    Examples:

        bayesvm predict income.bayesvm new.csv --out predictions.parquet --keep id

        cat new.csv | bayesvm predict income.bayesvm - --abstain 0.05 > predictions.csv
    """
    if json and out == "-":
        raise typer.BadParameter("--json writes to stdout: give the predictions a file with --out")
    predictor = options.loaded(model, jobs)
    csv = options.csv_options(sep, decimal, encoding, missing, no_header)
    opening: dict[str, Any] = {"copy_to": copy_to, "verbose": 0 if quiet else 1, **csv}
    with (
        options.source(tables, kind) as files,
        predictor.table(files, keep=options.names(keep), **opening) as table,
        rows_bar(quiet=quiet) as watch,
    ):
        done = predict_table(
            predictor,
            table,
            console.binary_output() if out == "-" else out,
            abstain=abstain,
            uncertainty=uncertainty,
            coverage=coverage,
            keep=options.names(keep),
            watch=watch,
        )
    if json:
        console.as_json(vars(done) | {"out": out})
    elif not quiet:
        n_open = done.n_rows - done.n_kept
        predicted = (
            " predicted" if abstain is None else f", {n_open:,} ({n_open / done.n_rows:.1%}) without a prediction"
        )
        expected = (
            ""
            if not done.n_kept or predictor.is_regression
            else f"; expected error of the predictions {done.expected_error:.4f}"
        )
        where = "" if out == "-" else f": {out}"
        console.errors.print(f"{done.n_rows:,} rows{predicted}{expected}{where}")


@contextmanager
def rows_bar(*, quiet: bool) -> Iterator[Watch]:
    """A bar on a terminal for the pass over rows."""
    if quiet or not console.errors.is_terminal:
        yield no_progress
        return
    columns = (TextColumn("predicting"), BarColumn(30), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console.errors, transient=True) as bar:
        row = bar.add_task("predicting", total=None)
        yield lambda done, n_rows: bar.update(row, completed=done, total=n_rows)
