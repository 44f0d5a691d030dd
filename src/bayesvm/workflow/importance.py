"""Workflow: the importance of each column of a table for the predictions of a model (D40)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayesvm.workflow.evaluated_rows import EvaluatedRows
from bayesvm.workflow.model import TableModel
from bayesvm.workflow.probing import Floats, replaced, responses, some_rows, usual_rows

MOST_ROWS = 200  # rows whose columns are replaced
MOST_REPEATS = 10  # replacements per row
MOST_PREDICTED = 20_000  # rows in total, so that it takes seconds
MOST_NUMBERS = 2e7  # in total
MOST_TRIED = 200  # columns; if there are more, those that are likely to matter
LEAST_ROWS = 20


@dataclass(frozen=True)
class Importance:
    """Mean change of the predictions when a column takes the value of another row, largest first.

    The change of a row is the total variation distance ``½ Σ_k |p_k - p'_k|``: for two classes, the change of the
    probability of either. In regression, it is the absolute change of the prediction, in the units of the target.
    ``points`` is True if inducing points were used instead of rows.
    """

    names: tuple[str, ...]
    change: Floats
    n_rows: int
    points: bool


def importance(model: TableModel, evaluated: EvaluatedRows) -> Importance | None:
    """The importance of each column of the table; all features of a column are replaced together.

    None if there are neither rows nor inducing points. Rows and replacements are chosen at random.
    """
    usual = usual_rows(model, evaluated)
    groups = _likely(model, usual) if usual is not None else {}
    if usual is None or len(usual) < 2 or not groups:
        return None
    n_predicted = min(MOST_PREDICTED, MOST_NUMBERS / usual.shape[1])
    X = some_rows(usual, int(np.clip(n_predicted / len(groups), LEAST_ROWS, MOST_ROWS)))
    n_repeats = int(np.clip(n_predicted / (len(groups) * len(X)), 1, MOST_REPEATS))
    before = np.tile(responses(model, X), (n_repeats, 1))
    donors = _donors(len(X), n_repeats)
    change = []
    for features in groups.values():
        moved = replaced(np.tile(X, (n_repeats, 1)), features, X[donors][:, features])
        # D40, over some of the pairs of rows.
        distance = np.abs(responses(model, moved) - before).sum(axis=1).mean()
        change.append(float(distance if model.is_regression else distance / 2))
    order = np.argsort(-np.array(change), kind="stable")
    names = list(groups)
    return Importance(tuple(names[i] for i in order), np.array(change)[order], len(X), not len(evaluated.X))


def _donors(n_rows: int, n_repeats: int) -> npt.NDArray[np.intp]:
    """For each row, several numbers of other rows; each row is used equally often."""
    rng = np.random.default_rng(0)
    circle = rng.permutation(n_rows)
    place = np.argsort(circle)
    n_shifts = min(n_repeats, n_rows - 1)
    shifts = np.resize(1 + rng.choice(n_rows - 1, n_shifts, replace=False), n_repeats)
    return np.concatenate([circle[(place + shift) % n_rows] for shift in shifts])


def _likely(model: TableModel, X: npt.NDArray[np.float64]) -> dict[str, list[int]]:
    """The features of each column; if there are many columns, those with the largest relevance or weights."""
    groups = model.recipe.groups
    if len(groups) <= MOST_TRIED:
        return groups
    weight = np.nanvar(X, axis=0)
    each = getattr(model.estimator, "relevance_", None)
    if each is not None and len(each) == len(weight):
        weight = each
    elif hasattr(model.estimator, "coef_"):
        weight = weight * np.square(model.estimator.coef_).sum(axis=0)
    likely = sorted(groups, key=lambda name: -float(weight[groups[name]].sum()))
    return {name: groups[name] for name in likely[:MOST_TRIED]}
