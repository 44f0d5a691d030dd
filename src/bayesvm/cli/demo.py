"""``bayesvm demo``: all steps from a table to a report, as typed commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bayesvm.cli import console, options
from bayesvm.datasets import people
from bayesvm.datasets.people import People
from bayesvm.evaluation import Predictions, metrics
from bayesvm.evaluation.formatting import METRIC_NAMES, metric_cell
from bayesvm.evaluation.peers import PEERS, evaluate_peer
from bayesvm.workflow import TableModel
from bayesvm.workflow.comparing import completed

NEW = (1_000, 20_000)  # minimum and maximum number of rows to predict; a tenth of the training rows in between
SHOWN = 4  # lines of the predictions


def demo(
    context: typer.Context,
    rows: Annotated[int, typer.Option(help="Number of training rows.")] = 200_000,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path("out/demo"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Run the full workflow on a synthetic table: fit, evaluate, predict, report, compare.

    The true probabilities of the table are known: in expectation, no model is better than them.

    Examples:

        bayesvm demo

        bayesvm demo --rows 20000 --out demo
    """
    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    table, new, model = out / "people.parquet", out / "new.parquet", out / "people.bayesvm"
    predictions, page = out / "predictions.csv", out / "report.html"

    n_new = int(np.clip(rows // 10, *NEW))

    def step(title: str, *words: str | Path) -> None:
        """Print and run a command."""
        typed = [part for word in words for part in (word.split() if isinstance(word, str) else [str(word)])]
        typed += ["--quiet"] if quiet and typed[0] != "datasets" else []
        console.say()
        console.say(f"# {title}")
        console.command(typed, "$ ")
        code = context.find_root().command.main(typed, standalone_mode=False)
        if code:
            raise typer.Exit(code)

    step(f"{rows:,} people: who earns much?", f"datasets fetch people --rows {rows} --seed {seed} --out", table)
    step("new rows to predict", f"datasets fetch people --rows {n_new} --seed {seed + 1} --out", new)
    step("train a model", "fit", table, "--target income --out", model)
    step("evaluate it", "evaluate", model, new)
    step(
        "predict, and abstain on uncertain rows",
        "predict",
        model,
        new,
        "--abstain 0.05 --keep id --out",
        predictions,
    )
    with predictions.open(encoding="utf-8") as lines:
        for _, line in zip(range(SHOWN), lines, strict=False):
            console.say(line.rstrip())
    step("write a report", "report", model, new, "--out", page)
    _compare_with_truth(TableModel.load(model), table, new, people(n_new, seed + 1), seed)
    console.say()
    console.say(f"{time.perf_counter() - began:.0f} seconds in total; open {page} in a browser")


def _compare_with_truth(model: TableModel, table: Path, new: Path, truth: People, seed: int) -> None:
    """Compare the model with the true probabilities and a peer."""
    classes = model.classes_
    limit = Predictions.of(classes, truth.income, np.column_stack([1 - truth.probability, truth.probability]))
    said = Predictions.of(classes, truth.income, model.predict_proba(new))
    target = model.card["target"]
    with model.table(table, target) as learned, model.table(new, target) as other:
        train, test = (completed(model.estimator, each.rows(np.arange(each.n_rows))) for each in (learned, other))
    peer = PEERS["Nystroem + logistic regression"]
    n_points = len(model.estimator.inducing_points_)
    outcome = evaluate_peer(peer, train.X, train.y, test.X, test.y, n_points=n_points, seed=seed)
    took = {"BayesianSVC": model.card["seconds"], peer.name: outcome.seconds}
    lines = {"true probabilities": limit, "BayesianSVC": said, peer.name: outcome.predictions}
    rows = []
    for name, each in lines.items():
        cells = [metric_cell(key, metric) for key, metric in metrics(each).items()]
        rows.append([name, *cells, f"{took[name]:.1f} s" if name in took else ""])
    console.say()
    console.table(
        f"on {len(truth.income):,} new rows",
        ["", *(METRIC_NAMES[name] for name in metrics(said, n_bootstrap=0)), "training"],
        rows,
    )
    console.say()
    console.say(
        "The table was drawn from the true probabilities. They are the best in expectation; on a finite number of "
        "rows, a model can be slightly better by chance."
    )
