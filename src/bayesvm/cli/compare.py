"""``bayesvm compare``: the model and its alternatives on the same rows."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesvm.cli import console, options
from bayesvm.evaluation.formatting import METRIC_NAMES, metric_cell
from bayesvm.workflow.comparing import Comparison, compare_on


def compare(
    tables: options.Tables,
    target: options.Target = None,
    task: options.Task = "auto",
    test: Annotated[
        str | None,
        typer.Option(help="Evaluation table, instead of held-out rows.", metavar="TABLE"),
    ] = None,
    rows: Annotated[int, typer.Option(help="Maximum number of rows, sampled at random.")] = 100_000,
    weight: options.Weight = None,
    columns: options.UsedColumns = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    keep: options.Kept = None,
    group: options.Group = None,
    holdout: options.Holdout = 0.2,
    seed: options.Seed = 0,
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
    """Train other models on the same rows and columns, and evaluate all on the same held-out rows.

    The other models are scikit-learn's: a support vector machine with Platt scaling, logistic regression on Nystroem
    features, and gradient boosting; for regression SVR, gradient boosting and linear regression, each with a normal
    distribution whose standard deviation is that of its cross-validated residuals.

    Examples:

        bayesvm compare people.csv --target income

        bayesvm compare train.parquet --test test.parquet --target late --rows 20000
    """

    def begin(name: str) -> None:
        if not quiet:
            console.errors.print(f"training {name} …")

    with options.source(tables, kind) as files:
        found = compare_on(
            files,
            target,
            test=test,
            rows=rows,
            weight=weight,
            columns=options.names(columns) or None,
            drop=options.names(drop),
            categories=options.names(categories),
            keep=options.names(keep),
            group=group,
            holdout=holdout,
            task=task,
            parameters={"n_jobs": jobs},
            seed=seed,
            copy_to=copy_to,
            begin=begin,
            **options.csv_options(sep, decimal, encoding, missing, no_header),
        )
    if json:
        console.as_json(vars(found) | {"competitors": [vars(each) for each in found.competitors]})
    else:
        _print_result(found)


def _print_result(found: Comparison) -> None:
    """Print one line per model; the best value of a column has a star."""
    lines = []
    for each in found.competitors:
        stars = {name: "*" if each.name in found.best(name) else " " for name in each.metrics}
        values = [f"{metric_cell(name, metric)}{stars[name]}" for name, metric in each.metrics.items()]
        lines.append([each.name, *values, f"{each.seconds:.1f} s", f"{each.n_rows:,}"])
    header = ["", *(f"{METRIC_NAMES[name]} " for name in found.competitors[0].metrics), "training", "rows"]
    console.table(f"{found.source}: {found.n_test:,} rows; {found.n_train:,} training rows", header, lines)
    console.say()
    console.say("* best in the column")
    for name, n_rows in found.limited.items():
        console.say(f"{name} was trained on only {n_rows:,} rows, because all rows would take too long")
