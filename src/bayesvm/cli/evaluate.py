"""``bayesvm evaluate``: how good a model is on rows whose classes are known."""

from __future__ import annotations

from typing import Any

from bayesvm.cli import console
from bayesvm.cli.options import CopyTo, Format, Jobs, Json, ModelFile, Quiet, Tables, Target, source
from bayesvm.evaluation import metrics, risk_coverage
from bayesvm.evaluation.coverage import COVERAGES
from bayesvm.workflow import TableModel
from bayesvm.workflow.model import MOST_JUDGED
from bayesvm.workflow.words import decimal, percent

MANY = 100_000  # rows that take long enough to say what is going on


def evaluate(
    model: ModelFile,
    tables: Tables,
    target: Target = None,
    jobs: Jobs = None,
    copy_to: CopyTo = None,
    kind: Format = "csv",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Judge a model on a table with the true classes.

    Error, Brier score, log loss, AUC and calibration error with bootstrap intervals; and the error that is left when
    the least certain rows are not predicted.

    Examples:

        bayesvm evaluate income.bayesvm test.parquet

        bayesvm evaluate income.bayesvm "test/*.csv" --json
    """
    loaded = TableModel.load(model)
    if jobs is not None:
        loaded.estimator.set_params(n_jobs=jobs)
    with source(tables, kind) as files:
        name = tables[0] if len(tables) == 1 else f"{tables[0]}, …"
        wanted = target or loaded.card.get("target")
        opening: dict[str, Any] = {"copy_to": copy_to, "verbose": 0 if quiet else 1}
        opened: Any = files if wanted is None else loaded.table(files, wanted, **opening)
        n_rows = getattr(opened, "n_rows", 0)
        if n_rows > MANY and not quiet:
            console.errors.print(f"predicting {min(n_rows, MOST_JUDGED):,} rows …")
        judged = loaded.judged(opened, target, name, **opening)
    if judged.predictions.n_rows > MANY and not quiet:
        console.errors.print(f"intervals from resamples of {judged.predictions.n_rows:,} rows …")
    found, curve = metrics(judged.predictions), risk_coverage(judged.predictions)
    kept = list(dict.fromkeys(map(curve.at, COVERAGES)))  # each once: rows of equal doubt go together
    if json:
        told = [dict(zip(("coverage", "error", "stated_error"), row, strict=True)) for row in kept]
        console.as_json(
            {"source": judged.source, "n_rows": judged.predictions.n_rows, "metrics": found, "risk_coverage": told}
        )
        return
    title = f"{judged.source}: {judged.predictions.n_rows:,} rows"
    console.table(title, ["", "value", "95 % interval"], console.metric_rows(found))
    console.say()
    rows = [[percent(share), decimal(risk), decimal(stated)] for share, risk, stated in kept]
    console.table("If only the most certain rows are predicted", ["share", "error", "expected"], rows)
