"""``bayesvm compare``: our model beside what one would otherwise use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bayesvm.cli import console
from bayesvm.cli.options import (
    Categories,
    Columns,
    CopyTo,
    Drop,
    Format,
    Holdout,
    Jobs,
    Json,
    Quiet,
    Seed,
    Tables,
    Target,
    Weight,
    names,
    source,
)
from bayesvm.estimators import BayesianSVC
from bayesvm.workflow.words import METRICS, decimal

if TYPE_CHECKING:
    from bayesvm.workflow.comparing import Comparison


def compare(
    tables: Tables,
    target: Target = None,
    test: Annotated[
        str | None,
        typer.Option(help="A table to judge by, instead of rows that are held out.", metavar="TABLE"),
    ] = None,
    rows: Annotated[int, typer.Option(help="Use at most so many rows, a random choice of all.")] = 100_000,
    weight: Weight = None,
    columns: Columns = None,
    drop: Drop = None,
    categories: Categories = None,
    holdout: Holdout = 0.2,
    seed: Seed = 0,
    jobs: Jobs = None,
    copy_to: CopyTo = None,
    kind: Format = "csv",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train other classifiers on the same rows and columns, and judge all on the same other rows.

    The others: a support vector machine with Platt's probabilities, Nystroem's features with logistic regression, and
    gradient boosting, all of scikit-learn.

    Examples:

        bayesvm compare people.csv --target income

        bayesvm compare train.parquet --test test.parquet --target late --rows 20000
    """
    from bayesvm.workflow.comparing import compare_on  # noqa: PLC0415  (it loads much that other commands need not)

    def begin(name: str) -> None:
        if not quiet:
            console.errors.print(f"training {name} …")

    with source(tables, kind) as files:
        found = compare_on(
            files,
            target,
            test=test,
            rows=rows,
            weight=weight,
            columns=names(columns) or None,
            drop=names(drop),
            categories=names(categories),
            holdout=holdout,
            estimator=BayesianSVC(random_state=seed, n_jobs=jobs),
            seed=seed,
            copy_to=copy_to,
            begin=begin,
        )
    if json:
        told = [vars(each) for each in found.competitors]
        sizes = {"n_train": found.n_train, "n_test": found.n_test}
        console.as_json({"source": found.source, **sizes, "left_out": found.left_out, "competitors": told})
    else:
        _tell(found)


def _tell(found: Comparison) -> None:
    """One line for each; the best of a column has a star."""
    lines = []
    for each in found.competitors:
        line = [each.name]
        for name, metric in each.metrics.items():
            star = "*" if each.name in found.best(name) else " "
            line.append(f"{decimal(metric.value)}{star}")
        lines.append([*line, f"{each.seconds:.1f} s", f"{each.n_rows:,}"])
    heads = [f"{name} " for name in METRICS.values()]
    console.table(
        f"{found.source}: {found.n_test:,} rows; {found.n_train:,} to train with",
        ["", *heads, "training", "rows"],
        lines,
    )
    console.say()
    console.say("* the best of its column")
    for name, n_rows in found.limited.items():
        console.say(f"{name} was given {n_rows:,} rows only: with all of them it would take too long")
