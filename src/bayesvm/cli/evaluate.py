"""``bayesvm evaluate``: metrics of a model on a table with known targets."""

from __future__ import annotations

from typing import Any

from bayesvm.cli import console, options
from bayesvm.evaluation import Predictions, RegressionPredictions, interval_coverage, metrics, risk_coverage
from bayesvm.evaluation.coverage import COVERAGES
from bayesvm.evaluation.formatting import decimal as rounded
from bayesvm.evaluation.formatting import exact_percent, metric_rows, percent
from bayesvm.warn import warn_user
from bayesvm.workflow.model import MOST_EVALUATED
from bayesvm.workflow.splitting import checksums

MANY = 100_000  # rows from which the progress is reported


def evaluate(
    model: options.ModelFile,
    tables: options.Tables,
    target: options.Target = None,
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
    """Evaluate a model on a table with the true classes or values.

    For classification: error, Brier score, log loss, AUC and calibration error with bootstrap intervals, and the error
    that remains if the least certain rows are not predicted. For regression: RMSE, mean absolute error, R², mean log
    density, and the coverage of intervals.

    Examples:

        bayesvm evaluate income.bayesvm test.parquet

        bayesvm evaluate income.bayesvm "test/*.csv" --json
    """
    loaded = options.loaded(model, jobs)
    with options.source(tables, kind) as files:
        if seen := set(loaded.card.get("checksums", ())).intersection(checksums(files)):
            which = "the table" if len(seen) == 1 else f"{len(seen)} of the files"
            warn_user(
                f"the model was trained on {which}, so these metrics are too good; those of `bayesvm fit` are from "
                "rows that it was not trained on (`bayesvm inspect` shows them)"
            )
        wanted = target or loaded.card.get("target")
        csv = options.csv_options(sep, decimal, encoding, missing, no_header)
        opening: dict[str, Any] = {"copy_to": copy_to, "verbose": 0 if quiet else 1, **csv}
        opened: Any = files if wanted is None else loaded.table(files, wanted, **opening)
        n_rows = getattr(opened, "n_rows", 0)
        if n_rows > MANY and not quiet:
            console.errors.print(f"predicting {min(n_rows, MOST_EVALUATED):,} rows …")
        evaluated = loaded.evaluate(opened, target, options.name_of(tables), **opening)
    if evaluated.predictions.n_rows > MANY and not quiet:
        console.errors.print(f"intervals from resamples of {evaluated.predictions.n_rows:,} rows …")
    said, found = evaluated.predictions, metrics(evaluated.predictions)
    name, points, shown = _intervals(said) if isinstance(said, RegressionPredictions) else _risks(said)
    if json:
        sizes = {"source": evaluated.source, "n_rows": said.n_rows}
        console.as_json(sizes | {"metrics": found, name: points})
        return
    title = f"{evaluated.source}: {said.n_rows:,} rows"
    console.table(title, ["", "value", "95% interval"], metric_rows(found))
    console.say()
    console.table(*shown)


Shown = tuple[str, list[str], list[list[str]]]  # title, header and rows of a table


def _risks(said: Predictions) -> tuple[str, list[dict[str, float]], Shown]:
    """The error that remains if doubtful rows are not predicted, as JSON and as a table."""
    curve = risk_coverage(said)
    kept = list(dict.fromkeys(map(curve.at, COVERAGES)))  # each point once, since rows of equal doubt stay together
    points = [dict(zip(("coverage", "error", "expected_error"), row, strict=True)) for row in kept]
    rows = [[percent(share), rounded(risk), rounded(predicted)] for share, risk, predicted in kept]
    return (
        "risk_coverage",
        points,
        ("If only the most certain rows are predicted", ["share", "error", "expected"], rows),
    )


def _intervals(said: RegressionPredictions) -> tuple[str, list[dict[str, float]], Shown]:
    """Whether intervals contain as many rows as predicted, as JSON and as a table."""
    found = interval_coverage(said)
    rows = [
        [
            percent(each.predicted),
            exact_percent(each.observed),
            f"{exact_percent(each.low)} to {exact_percent(each.high)}",
        ]
        for each in found
    ]
    shown = ("Share of the rows inside central intervals", ["predicted", "observed", "95% interval"], rows)
    return "interval_coverage", [each._asdict() for each in found], shown
