"""Workflow: predictions for modified rows of features.

The report and ``bayesvm inspect`` use this module only to predict from features instead of tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.workflow.evaluated_rows import EXTREME, EvaluatedRows
from bayesvm.workflow.model import TableModel

Floats = npt.NDArray[np.float64]


def responses(model: TableModel, X: Any) -> Floats:
    """Predictions for rows of features: a column of probabilities per class, or one column of predicted values."""
    with without_warnings():
        if model.is_regression:
            return np.asarray(model.estimator.predict(X))[:, None]
        found: Floats = model.estimator.predict_proba(X)
    return found


def joint_draws(model: TableModel, X: Any, n_draws: int) -> Floats:
    """Joint posterior draws of the responses, of shape (draws, rows, columns); the same at each call.

    For regression, draws of the function without noise.
    """
    with without_warnings():
        if model.is_regression:
            return np.asarray(model.estimator.sample_latent(X, n_draws, 0))[..., None]
        found: Floats = model.estimator.sample_proba(X, n_draws, 0)
    return found


def usual_rows(model: TableModel, evaluated: EvaluatedRows) -> npt.NDArray[Any] | None:
    """Features of typical rows, kept with the predictions, or the inducing points; None if there are neither."""
    if not len(evaluated.X):
        points = getattr(model.estimator, "inducing_points_", None)
        return None if points is None else np.asarray(points)
    if len(evaluated.X) <= 4 * EXTREME:
        return evaluated.X
    # The most and the least certain rows are not typical.
    order = np.argsort(evaluated.predictions.doubt[evaluated.sample], kind="stable")
    return evaluated.X[np.sort(order[EXTREME:-EXTREME])]


def some_rows(X: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """All rows, or a random sample that is the same at each call."""
    if len(X) <= most:
        return X
    return np.asarray(X[np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))])


def replaced(X: npt.NDArray[Any], features: Sequence[int], values: Any) -> npt.NDArray[Any]:
    """A copy with other values of some features."""
    changed = np.array(X, dtype=np.result_type(X, np.asarray(values)))
    changed[:, features] = values
    return changed


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings about missing column names and the singular covariance of equal rows, harmless here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
