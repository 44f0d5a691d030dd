"""Workflow: the contribution of each column to the prediction of a single row (D40)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.workflow.model import TableModel
from bayesvm.workflow.probing import Floats, joint_draws, replaced, responses

DRAWS = 200  # posterior draws for an interval
BAND = (0.025, 0.975)


@dataclass(frozen=True)
class Contributions:
    """For rows and columns: the probability of a class minus its value with the column at its reference value.

    ``low`` to ``high`` is the 95% credible interval, from joint posterior draws of both probabilities. Contributions
    of interacting columns do not add up to the total.
    """

    value: Floats  # (rows, columns)
    low: Floats
    high: Floats


def reference(X: npt.NDArray[Any], features: Sequence[int]) -> npt.NDArray[Any]:
    """Typical values of the features of a column: the most frequent category, or the median."""
    complete = X[:, features]
    complete = complete[~np.isnan(complete).any(axis=1)]
    if not len(complete):
        return np.full(len(features), np.nan)
    if np.isin(complete, (0, 1)).all():
        settings, counts = np.unique(complete, axis=0, return_counts=True)
        return np.asarray(settings[counts.argmax()])
    # The second feature of a number marks missing values; typical values are not missing.
    present = (
        complete[complete[:, -1] == 0] if len(features) > 1 and np.isin(complete[:, -1], (0, 1)).all() else complete
    )
    return np.asarray(np.median(present if len(present) else complete, axis=0))


def contributions(
    model: TableModel, X: npt.NDArray[Any], names: Sequence[str], references: Sequence[Any], classes: Sequence[int]
) -> Contributions:
    """The contributions of named columns to the probability of a class, given by its index, for each row of X."""
    value, low, high = np.empty((3, len(X), len(names)))
    groups = model.recipe.groups
    for i, (row, target) in enumerate(zip(X, classes, strict=True)):
        left = [replaced(row[None], groups[name], usual) for name, usual in zip(names, references, strict=True)]
        asked = np.vstack([row[None], *left])
        p, draws = responses(model, asked)[:, target], joint_draws(model, asked, DRAWS)[..., target]
        value[i] = p[0] - p[1:]
        ends = np.quantile(draws[:, :1] - draws[:, 1:], BAND, axis=0)
        low[i], high[i] = np.minimum(ends[0], value[i]), np.maximum(ends[1], value[i])
        same = (asked[1:] == row).all(axis=1)  # already at its reference: exactly zero, without rounding errors
        value[i, same] = low[i, same] = high[i, same] = 0.0
    return Contributions(value, low, high)
