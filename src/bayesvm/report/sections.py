"""Report: the content of the sections, as values that the templates format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesvm.evaluation import (
    Predictions,
    RegressionPredictions,
    cheapest_threshold,
    formatting,
    metrics,
    risk_coverage,
    thresholds,
)
from bayesvm.evaluation.coverage import COVERAGES
from bayesvm.evaluation.formatting import column_label, shortened
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import CategoryColumn, Column, NumberColumn
from bayesvm.report.svg import small_bars
from bayesvm.workflow import EvaluatedRows, TableModel
from bayesvm.workflow.contributions import contributions, reference
from bayesvm.workflow.describing import SCALING_DESCRIPTIONS, describe_kernel, effects, members
from bayesvm.workflow.evaluated_rows import EXTREME
from bayesvm.workflow.probing import usual_rows
from bayesvm.workflow.profile import profile as profile_of
from bayesvm.workflow.splitting import FOLDS

MOST_LISTED = 5  # listed files or effects
MOST_COLUMNS = 200  # listed columns
VALUES_SHOWN = 5  # columns whose values are shown
MOST_CLASSES = 20  # of a confusion table
MOST_PROBABILITIES = 3  # classes whose probabilities are shown
LEAST_CONTRIBUTION = 0.0005  # smallest contribution to a probability that is shown
MOST_SHARES = 4  # categories whose share is shown
NOT_DESCRIBED = {"kind": "", "missing": np.nan, "distinct": 0, "names": [], "counts": []}
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
COST_RATIOS = (1, 2, 5, 10, 20, 50)  # cost of a false negative relative to a false positive
LIFT_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


def data_card(model: TableModel) -> list[tuple[str, str]]:
    """Facts about the training data, as pairs of name and text."""
    recipe, card = model.recipe, model.card
    rows: list[tuple[str, str]] = []
    if card.get("files"):
        rows.append(("training data", formatting.listed(card["files"], MOST_LISTED)))
    if card.get("n_rows"):
        held = f"{card['n_train']:,} for training, {card['n_holdout']:,} held out" if card["n_holdout"] else "all used"
        if card.get("refitted"):
            by = "models" if model.is_cross_validated else "a first model"
            held = f"all used; the metrics are those of {by} fitted without the {card['n_holdout']:,} evaluated rows"
        rows.append(("rows", f"{card['n_rows']:,} ({held})"))
    n_columns, n_features = len(recipe.groups), len(recipe.names)
    become = "" if n_columns == n_features else f", which become {n_features:,} features"
    left_out = f"; {len(recipe.left_out):,} left out" if recipe.left_out else ""
    rows.append(("columns", f"{n_columns:,} used{become}{left_out}"))
    if card.get("weight"):
        rows.append(("weights of rows", f"column {card['weight']}"))
    return rows


def trained_on(model: TableModel) -> str:
    """The number of rows behind the metrics and, if it differs, the number of rows behind the final model."""
    card = model.card
    n_train = card.get("n_train", 0)
    if model.is_cross_validated:
        about = "about " if card.get("group") else ""  # folds of whole groups differ in size
        return f"{about}{card['n_rows'] - card['n_rows'] // FOLDS:,} rows in each fold (the final model: {n_train:,})"
    if card.get("refitted"):
        return f"{card['n_rows'] - card['n_holdout']:,} rows (the final model: {n_train:,})"
    return f"{n_train:,} rows"


def model_card(model: TableModel) -> list[tuple[str, str]]:
    """Facts about the model, as pairs of name and text."""
    card, rows = model.card, _model(model)
    if card.get("seconds"):
        rows.append(("training took", formatting.duration(card["seconds"])))
    if card.get("seed") is not None:
        rows.append(("seed", str(card["seed"])))
    made = [f"bayesvm {card['version']}"] if card.get("version") else []
    made += [str(card["created"]).replace("T", " ").replace("+00:00", " UTC")] if card.get("created") else []
    return rows + ([("made with", ", ".join(made))] if made else [])


def _model(model: TableModel) -> list[tuple[str, str]]:
    estimator, rows, of_the_first = model.estimator, list[tuple[str, str]](), ""
    if together := members(estimator):
        rows.append(("model", f"committee of {len(together)} models, whose predictions are averaged"))
        of_the_first = "of the heaviest member: "
    elif hasattr(estimator, "kernel_"):
        points = formatting.counted(len(estimator.inducing_points_), "inducing point")
        rows.append(("model", f"Bayesian support vector machine with {points}"))
    else:
        rows.append(("model", "linear Bayesian support vector machine: each feature has a weight"))
    if hasattr(estimator, "kernel_"):
        rows.append(("kernel", of_the_first + describe_kernel(estimator)))
    if found := effects(model):
        names = formatting.listed([" × ".join(effect["columns"]) for effect in found], MOST_LISTED)
        rows.append(("effects", f"of {names}, added to the kernel of all columns"))
    rows.append(("scaling", of_the_first + SCALING_DESCRIPTIONS[estimator.scale_]))
    updates = formatting.counted(int(estimator.n_iter_), "update")
    end = "until convergence" if estimator.converged_ else "until the budget was used up"
    return [*rows, ("fit", f"{updates}, {'until it was interrupted' if estimator.interrupted_ else end}")]


def classes(predictions: Predictions) -> list[tuple[Any, int]]:
    """The classes, and the number of evaluated rows of each."""
    count = np.bincount(predictions.y, minlength=len(predictions.classes))
    return list(zip(predictions.classes, count.tolist(), strict=True))


def _holds(column: Column) -> str:
    if isinstance(column, CategoryColumn):
        return formatting.counted(len(column.categories), "category") + (", and rare ones" if column.rare else "")
    if isinstance(column, DateColumn):
        return f"date or time, as {formatting.listed(column.parts, 8)}"
    if column.marks_missing:
        return "number; a feature marks missing values, because the target depends on them"
    filled = f"; a missing one becomes {formatting.cell(column.fill)}, marked as such" if column.indicator else ""
    return f"number{filled}"


def profile(model: TableModel, evaluated: EvaluatedRows) -> dict[str, Any]:
    """Profiles of the columns, from training rows or rows kept with the predictions, and the columns left out."""
    facts, source = model.card.get("profile"), "training"
    if facts is None:
        facts, source = [], "evaluated"
        if (rows := usual_rows(model, evaluated)) is not None and len(evaluated.X):
            facts = profile_of(model.recipe, rows)
    by_name = {each["name"]: each for each in facts}
    holds = {column.name: _holds(column) for column in model.recipe.columns}
    columns = [{"label": column_label(name), "holds": holds.get(name, "number")} for name in model.recipe.groups]
    columns = columns[:MOST_COLUMNS]
    for column, name in zip(columns, model.recipe.groups, strict=False):
        each = by_name.get(name, NOT_DESCRIBED)
        column |= {"missing": each["missing"], "distinct": f"{each['distinct']:,}"}
        column |= {"histogram": small_bars(each["counts"]), "summary": _summary(each)}
        if each["kind"] == "0 or 1":
            column["holds"] = column["holds"].replace("number", each["kind"])
    return {
        "columns": columns,
        "described": bool(by_name),
        "source": source,
        "more": len(model.recipe.groups) - len(columns),
        "libsvm": model.recipe.numbered is not None,
        "left_out": [(column_label(name), why) for name, why in model.recipe.left_out.items()],
    }


def _rounded(value: float | str) -> str:
    """A number with four digits, or a date."""
    return value if isinstance(value, str) else formatting.cell(float(f"{value:.4g}"))


def _summary(column: dict[str, Any]) -> str:
    """A short summary of the values of a column."""
    if column["kind"] in {"number", "date"} and "quantiles" in column:
        low, _, median, _, high = map(_rounded, column["quantiles"])
        return f"median {median}, 98% from {low} to {high}"
    n_rows = sum(column["counts"])
    shares = [
        f"{shortened(name, 20)}: {formatting.rough_percent(count / n_rows)}"
        for name, count in zip(column["names"], column["counts"], strict=True)
    ]
    return formatting.listed(shares, MOST_SHARES)


def quality(model: TableModel, predictions: Predictions, *, given: bool) -> dict[str, Any]:
    """The metrics of the model, of a constant prediction, and of baseline classifiers on the same rows.

    Baselines are available for the held-out rows only, not for a table that is ``given``.
    """
    used = predictions.counted()
    shares = np.bincount(used.y, used.weight_or_ones, len(used.classes)) / used.weight_or_ones.sum()
    there = shares[shares > 0]
    return {
        "metrics": metrics(predictions),
        "usual": predictions.classes[shares.argmax()],
        "usual_error": 1 - shares.max(),
        "usual_log_loss": float(-there @ np.log(there)) + 0.0,
        "baselines": [] if given else model.card.get("baselines") or [],
    }


def decisions(predictions: Predictions) -> dict[str, Any] | None:
    """Precision and recall by threshold and by costs, and lift, for two classes; None if only one class occurs."""
    if len(predictions.classes) != 2:
        return None
    found = thresholds(predictions)
    if not 0 < found.base_rate < 1:
        return None

    def entry(i: int) -> dict[str, float]:
        names = ("flagged", "precision", "recall", "lift")
        return {name: float(getattr(found, name)[i]) for name in names}

    by_costs = []
    for ratio in COST_RATIOS:
        threshold = cheapest_threshold(1, ratio)
        cost = found.cost(1, ratio)
        i = found.at(threshold)
        by_costs.append(
            entry(i)
            | {"ratio": ratio, "threshold": threshold, "cost": 100 * float(cost[i])}
            | {"never": 100 * float(cost[0]), "always": 100 * float(cost[-1])}
        )
    return {
        "by_threshold": [entry(found.at(t)) | {"threshold": t} for t in THRESHOLDS],
        "by_costs": by_costs,
        "by_share": [entry(found.at_share(share)) for share in LIFT_SHARES],
    }


def coverage(predictions: Predictions) -> list[tuple[float, float, float]]:
    """Coverage, observed error rate and predicted error rate."""
    return list(dict.fromkeys(map(risk_coverage(predictions).at, COVERAGES)))  # rows of equal doubt go together


def confusion(predictions: Predictions) -> dict[str, Any] | None:
    """The confusion matrix; None for very many classes."""
    predictions = predictions.counted()
    n_classes = len(predictions.classes)
    if n_classes > MOST_CLASSES:
        return None
    cells = np.bincount(n_classes * predictions.y + predictions.predicted, minlength=n_classes**2)
    table = cells.reshape(n_classes, n_classes)
    return {
        "labels": predictions.classes,
        "rows": table.tolist(),
        "true": table.sum(axis=1).tolist(),
        "predicted": table.sum(axis=0).tolist(),
        "weighted": predictions.weight is not None and np.ptp(predictions.weight) > 0,
    }


def n_rows_shown(evaluated: EvaluatedRows) -> int:
    """Return how many single rows a report shows: equal numbers of the most and of the least certain rows.

    Parameters
    ----------
    evaluated : EvaluatedRows
        The predictions that the report is about.

    Returns
    -------
    int
        Number of rows, unless the report is written without single rows.

    See Also
    --------
    write_report : Write the report.

    Examples
    --------
    >>> from bayesvm.report import n_rows_shown
    >>> n_rows_shown(model.evaluate("test.csv"))  # doctest: +SKIP
    10
    """
    if isinstance(evaluated.predictions, RegressionPredictions):
        return 0
    return 2 * min(EXTREME, len(evaluated.sample) // 2)


def rows(model: TableModel, evaluated: EvaluatedRows, ranked: Sequence[str]) -> dict[str, Any] | None:
    """The least and the most certain rows, with the values and contributions of the most important columns."""
    n_rows = n_rows_shown(evaluated) // 2
    usual = usual_rows(model, evaluated)
    if n_rows == 0 or usual is None or isinstance(evaluated.predictions, RegressionPredictions):
        return None
    said = evaluated.predictions.take(evaluated.sample)
    order = np.argsort(said.doubt, kind="stable")
    names = list(ranked)[:VALUES_SHOWN]
    references = [reference(usual, model.recipe.groups[name]) for name in names]
    texts = {column.name for column in model.recipe.columns if not isinstance(column, NumberColumn)}
    n_classes = len(said.classes)
    shown = [1] if n_classes == 2 else list(range(n_classes)) if n_classes <= MOST_PROBABILITIES else []

    def table(which: Any) -> list[dict[str, Any]]:
        values = model.recipe.decoded(evaluated.X[which])
        # For two classes, contributions to the class whose probability is shown.
        towards = [1] * len(which) if n_classes == 2 else said.predicted[which].tolist()
        parts = contributions(model, evaluated.X[which], names, references, towards)
        return [
            {
                "number": evaluated.rows[i],
                "true": said.classes[said.y[i]],
                "predicted": said.classes[said.predicted[i]],
                "right": said.correct[i],
                "proba": said.proba[i, shown or [said.predicted[i]]].tolist(),
                "epistemic": np.nan if said.epistemic is None else said.epistemic[i],
                "cells": [
                    {
                        "value": values[name][place],
                    }
                    | _contribution(parts.value[place, j], parts.low[place, j], parts.high[place, j])
                    for j, name in enumerate(names)
                ],
            }
            for place, i in enumerate(which)
        ]

    usual_values = _decoded_references(model.recipe, names, references)
    return {
        "columns": [
            {"name": column_label(name), "number": name not in texts, "usual": value}
            for name, value in zip(names, usual_values, strict=True)
        ],
        "all_columns": len(names) == len(model.recipe.groups),
        "proba": [said.classes[k] for k in shown] or ["predicted"],
        "least": table(order[::-1][:n_rows]),
        "most": table(order[:n_rows]),
    }


def _contribution(value: float, low: float, high: float) -> dict[str, Any]:
    """A contribution in percentage points; None if it is negligible."""
    if max(abs(low), abs(high)) < LEAST_CONTRIBUTION:
        return {"contribution": None}
    value_text, low_text, high_text = map(formatting.signed_points, (value, low, high))
    sign = "up" if low > LEAST_CONTRIBUTION else "down" if high < -LEAST_CONTRIBUTION else ""
    return {"contribution": value_text, "interval": f"{low_text} to {high_text}", "sign": sign}


def _decoded_references(recipe: Recipe, names: Sequence[str], references: Sequence[Any]) -> list[Any]:
    """Reference values of some columns, as values of the table."""
    row = np.zeros((1, len(recipe.names)))
    for name, features in zip(names, references, strict=True):
        row[:, recipe.groups[name]] = features
    decoded = recipe.decoded(row)
    return [decoded[name][0] for name in names]
