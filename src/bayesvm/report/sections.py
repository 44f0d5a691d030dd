"""Report: what stands in the sections, as values that the templates format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesvm.evaluation import Predictions, formatting, metrics, risk_coverage
from bayesvm.evaluation.coverage import COVERAGES
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import CategoryColumn, Column, NumberColumn
from bayesvm.workflow import Judged, TableModel
from bayesvm.workflow.describing import SCALING_DESCRIPTIONS, describe_kernel, effects, members
from bayesvm.workflow.judging import EXTREME

MOST_LISTED = 5  # files or effects
MOST_COLUMNS = 200  # that are listed
VALUES_SHOWN = 6  # columns whose values a row is shown with
MOST_CLASSES = 20  # of a confusion table
MOST_PROBABILITIES = 3  # classes whose probabilities a row is shown with


def card(model: TableModel) -> list[tuple[str, str]]:
    """What the model is: names and sentences."""
    recipe, card = model.recipe, model.card
    rows: list[tuple[str, str]] = []
    if card.get("files"):
        rows.append(("learned from", formatting.listed(card["files"], MOST_LISTED)))
    if card.get("n_rows"):
        held = f"{card['n_train']:,} to learn from, {card['n_holdout']:,} held out" if card["n_holdout"] else "all used"
        if card.get("refitted"):
            held = f"all used; {card['n_holdout']:,} judged a model that had not learned from them"
        rows.append(("rows", f"{card['n_rows']:,} ({held})"))
    n_columns, n_features = len(recipe.groups), len(recipe.names)
    become = "" if n_columns == n_features else f", which become {n_features:,} features"
    left_out = f"; {len(recipe.left_out):,} left out" if recipe.left_out else ""
    rows.append(("columns", f"{n_columns:,} used{become}{left_out}"))
    if card.get("weight"):
        rows.append(("weights of rows", f"column {card['weight']}"))
    rows += _model(model)
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
    end = "until nothing more was to be gained" if estimator.converged_ else "then the budget was used up"
    return [*rows, ("fit", f"{updates}, {'then it was interrupted' if estimator.interrupted_ else end}")]


def classes(predictions: Predictions) -> list[tuple[Any, int]]:
    """The classes, and how many of the judged rows are of each."""
    count = np.bincount(predictions.y, minlength=len(predictions.classes))
    return list(zip(predictions.classes, count.tolist(), strict=True))


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
    if isinstance(column, DateColumn):
        return f"date or time, as {formatting.listed(column.parts, 8)}"
    if isinstance(column, CategoryColumn):
        number, names = formatting.counted(len(column.categories), "category"), formatting.listed(column.categories, 8)
        return f"{number}: {names}" + ("; rare ones count as one" if column.rare else "")
    return "number" + (
        f", missing values are filled with {formatting.cell(column.fill)} and marked" if column.indicator else ""
    )


def quality(predictions: Predictions) -> dict[str, Any]:
    """The metrics, and what knowing no columns at all would give."""
    used = predictions.counted()
    shares = np.bincount(used.y, used.weight_or_ones, len(used.classes)) / used.weight_or_ones.sum()
    there = shares[shares > 0]
    return {
        "metrics": metrics(predictions),
        "usual": predictions.classes[shares.argmax()],
        "usual_error": 1 - shares.max(),
        "usual_log_loss": float(-there @ np.log(there)) + 0.0,
    }


def coverage(predictions: Predictions) -> list[tuple[float, float, float]]:
    """Share of the rows that are answered, error among them, and the error that was stated."""
    return list(dict.fromkeys(map(risk_coverage(predictions).at, COVERAGES)))  # rows of equal doubt go together


def confusion(predictions: Predictions) -> dict[str, Any] | None:
    """Rows by true and predicted class; of very many classes none."""
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


def rows(model: TableModel, judged: Judged, ranked: Sequence[str]) -> dict[str, Any] | None:
    """The least and the most certain rows, with the values of the columns that matter most."""
    n_rows = min(EXTREME, len(judged.sample) // 2)
    if n_rows == 0:
        return None
    said = judged.predictions.take(judged.sample)
    order = np.argsort(said.doubt, kind="stable")
    names = list(ranked)[:VALUES_SHOWN]
    texts = {column.name for column in model.recipe.columns if not isinstance(column, NumberColumn)}
    n_classes = len(said.classes)
    shown = [1] if n_classes == 2 else list(range(n_classes)) if n_classes <= MOST_PROBABILITIES else []

    def table(which: Any) -> list[dict[str, Any]]:
        values = model.recipe.decoded(judged.X[which])
        return [
            {
                "number": judged.rows[i],
                "true": said.classes[said.y[i]],
                "predicted": said.classes[said.predicted[i]],
                "right": said.correct[i],
                "proba": said.proba[i, shown or [said.predicted[i]]].tolist(),
                "epistemic": np.nan if said.epistemic is None else said.epistemic[i],
                "values": [values[name][place] for name in names],
            }
            for place, i in enumerate(which)
        ]

    return {
        "columns": [{"name": name, "number": name not in texts} for name in names],
        "all_columns": len(names) == len(model.recipe.groups),
        "proba": [said.classes[k] for k in shown] or ["predicted"],
        "least": table(order[::-1][:n_rows]),
        "most": table(order[:n_rows]),
    }
