"""Report: what stands in the sections, as plain values for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesvm.evaluation import Predictions, formatting, metrics, risk_coverage
from bayesvm.evaluation.coverage import COVERAGES
from bayesvm.evaluation.formatting import decimal
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, Column
from bayesvm.workflow import Judged, TableModel
from bayesvm.workflow.describing import describe_kernel, describe_scaling

MOST_FILES = 5
MOST_COLUMNS = 200  # that are listed
MOST_VALUES = 6  # columns whose values a row is shown with
MOST_CLASSES = 20  # of a confusion table
MOST_PROBABILITIES = 3  # classes whose probabilities a row is shown with
EXTREME = 10  # rows at either end


def card(model: TableModel) -> list[tuple[str, str]]:
    """What the model is: names and sentences."""
    estimator, recipe, known = model.estimator, model.recipe, model.card
    rows: list[tuple[str, str]] = []
    if known.get("files"):
        rows.append(("learned from", formatting.listed(known["files"], MOST_FILES)))
    if known.get("n_rows"):
        held = (
            f"{known['n_train']:,} to learn from, {known['n_holdout']:,} held out" if known["n_holdout"] else "all used"
        )
        rows.append(("rows", f"{known['n_rows']:,} ({held})"))
    n_columns, n_features = len(recipe.groups), len(recipe.names)
    become = "" if n_columns == n_features else f", which become {n_features:,} features"
    left_out = f"; {len(recipe.left_out):,} left out" if recipe.left_out else ""
    rows.append(("columns", f"{n_columns:,} used{become}{left_out}"))
    if known.get("weight"):
        rows.append(("weights of rows", f"column {known['weight']}"))
    rows += _model(estimator)
    if known.get("seconds"):
        rows.append(("training took", formatting.duration(known["seconds"])))
    if known.get("seed") is not None:
        rows.append(("seed", str(known["seed"])))
    made = [f"bayesvm {known['version']}"] if known.get("version") else []
    made += [str(known["created"]).replace("T", " ").replace("+00:00", " UTC")] if known.get("created") else []
    return rows + ([("made with", ", ".join(made))] if made else [])


def _model(estimator: Any) -> list[tuple[str, str]]:
    rows = []
    if hasattr(estimator, "kernel_"):
        points = formatting.counted(len(estimator.inducing_points_), "inducing point")
        rows.append(("model", f"Bayesian support vector machine with {points}"))
        rows.append(("kernel", describe_kernel(estimator)))
    else:
        rows.append(("model", "linear Bayesian support vector machine: each feature has a weight"))
    rows.append(("scaling", describe_scaling(estimator)))
    updates = formatting.counted(int(estimator.n_iter_), "update")
    end = "until nothing more was to be gained" if estimator.converged_ else "then the budget was used up"
    return [*rows, ("fit", f"{updates}, {'then it was interrupted' if estimator.interrupted_ else end}")]


def _trials(estimator: Any) -> list[Any]:
    report = getattr(estimator, "tuning_report_", None)
    return [] if report is None else list(report.trials)


def classes(predictions: Predictions) -> list[dict[str, Any]]:
    """How many of the judged rows are of each class."""
    count = np.bincount(predictions.y, minlength=len(predictions.classes))
    return [
        {
            "label": formatting.shortened(label, 40),
            "count": f"{n:,}",
            "share": formatting.rough_percent(n / predictions.n_rows),
            "part": n / count.max(),
        }
        for label, n in zip(predictions.classes, count.tolist(), strict=True)
    ]


def columns(recipe: Recipe) -> dict[str, Any]:
    """Which columns are used, what they hold, and why others are not used."""
    used = [(column.name, _holds(column)) for column in recipe.columns]
    if recipe.numbered is not None:
        used = [("x1 to x" + str(recipe.numbered), "numbers, the features of a LIBSVM file")]
    return {
        "used": used[:MOST_COLUMNS],
        "more": len(used[MOST_COLUMNS:]),
        "left_out": list(recipe.left_out.items()),
    }


def _holds(column: Column) -> str:
    if isinstance(column, CategoryColumn):
        number, names = formatting.counted(len(column.categories), "category"), formatting.listed(column.categories, 8)
        return f"{number}: {names}" + ("; rare ones count as one" if column.rare else "")
    return "number" + (
        f", missing values are filled with {formatting.cell(column.fill)} and marked" if column.indicator else ""
    )


def quality(predictions: Predictions) -> dict[str, Any]:
    """The metrics, and what knowing no columns at all would give."""
    shown = [
        {"key": name, "name": formatting.METRIC_NAMES[name]}
        | {part: decimal(value) for part, value in metric._asdict().items()}
        for name, metric in metrics(predictions).items()
    ]
    used = predictions.counted()
    shares = np.bincount(used.y, used.weight_or_ones, len(used.classes)) / used.weight_or_ones.sum()
    there = shares[shares > 0]
    return {
        "metrics": shown,
        "usual": formatting.shortened(predictions.classes[shares.argmax()]),
        "usual_error": decimal(1 - shares.max()),
        "usual_log_loss": decimal(float(-there @ np.log(there)) + 0.0),
    }


def coverage(predictions: Predictions) -> list[tuple[str, str, str]]:
    """Share of the rows that are answered, error among them, and the error that was stated."""
    curve = risk_coverage(predictions)
    reached = dict.fromkeys(map(curve.at, COVERAGES))  # each once: rows of equal doubt go together
    return [
        (formatting.percent(share).replace("%", " %"), decimal(risk), decimal(stated))
        for share, risk, stated in reached
    ]


def confusion(predictions: Predictions) -> dict[str, Any] | None:
    """Rows by true and predicted class; of very many classes none."""
    predictions = predictions.counted()
    n_classes = len(predictions.classes)
    if n_classes > MOST_CLASSES:
        return None
    cells = np.bincount(n_classes * predictions.y + predictions.predicted, minlength=n_classes**2)
    table = cells.reshape(n_classes, n_classes)
    true, said, right = table.sum(axis=1), table.sum(axis=0), np.diag(table)

    def part(of: int, whole: int) -> str:
        return formatting.rough_percent(of / whole) if whole else "–"

    return {
        "labels": [formatting.shortened(label) for label in predictions.classes],
        "rows": [
            {
                "label": formatting.shortened(label),
                "cells": [
                    {"n": f"{n:,}", "right": i == j, "part": round(n / max(true[i], 1), 4)}
                    for j, n in enumerate(table[i].tolist())
                ],
                "recall": part(right[i], true[i]),
            }
            for i, label in enumerate(predictions.classes)
        ],
        "precision": [part(*pair) for pair in zip(right.tolist(), said.tolist(), strict=True)],
        "weighted": predictions.weight is not None and np.ptp(predictions.weight) > 0,
    }


def tuning(estimator: Any) -> dict[str, Any]:
    """What was tried, and what was said about it."""
    report = getattr(estimator, "tuning_report_", None)
    trials = [
        {
            "what": trial.what,
            "scale": trial.scale or "none",
            "kernel": trial.kernel,
            "rows": f"{trial.n_rows:,}",
            "points": f"{trial.n_inducing:,}",
            "loss": decimal(trial.loo),
            "seconds": f"{trial.seconds:.1f}",
        }
        for trial in _trials(estimator)
    ]
    prior = getattr(estimator, "prior_variance_", None)
    return {
        "trials": trials,
        "chosen": [] if report is None else list(report.chosen),
        "failed": 0 if report is None else report.failed,
        "linear": hasattr(estimator, "coef_"),
        "prior": f"{prior:.3g}" if isinstance(prior, float) else None,
        "loss": decimal(float(estimator.loo_log_loss_)),
    }


def rows(model: TableModel, judged: Judged, ranked: Sequence[str]) -> dict[str, Any] | None:
    """The least and the most certain rows, with the values of the columns that matter most."""
    n_rows = min(EXTREME, len(judged.sample) // 2)
    if n_rows == 0:
        return None
    said = judged.predictions.take(judged.sample)
    order = np.argsort(said.doubt, kind="stable")
    names = list(ranked)[:MOST_VALUES]
    texts = {column.name for column in model.recipe.columns if isinstance(column, CategoryColumn)}
    n_classes = len(said.classes)
    shown = [1] if n_classes == 2 else list(range(n_classes)) if n_classes <= MOST_PROBABILITIES else []

    def one(i: int, values: dict[str, list[Any]], place: int) -> dict[str, Any]:
        stated = said.proba[i, shown or [said.predicted[i]]]
        return {
            "number": str(judged.rows[i]),
            "true": formatting.shortened(said.classes[said.y[i]]),
            "predicted": formatting.shortened(said.classes[said.predicted[i]]),
            "right": bool(said.correct[i]),
            "proba": [formatting.probability(p) for p in stated.tolist()],
            "epistemic": "–" if said.epistemic is None else f"{said.epistemic[i]:.4f}",
            "values": [formatting.shortened(formatting.cell(values[name][place]), 40) for name in names],
        }

    def table(which: Any) -> list[dict[str, Any]]:
        values = model.recipe.decoded(judged.X[which])
        return [one(int(i), values, place) for place, i in enumerate(which)]

    return {
        "columns": [{"name": formatting.shortened(name, 24), "number": name not in texts} for name in names],
        "all_columns": len(names) == len(model.recipe.groups),
        "proba": [f"P({formatting.shortened(said.classes[k])})" for k in shown] or ["P(predicted)"],
        "least": table(order[::-1][:n_rows]),
        "most": table(order[:n_rows]),
    }
