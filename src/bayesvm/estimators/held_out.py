"""Estimators: held-out rows, whose log loss a fit reports with its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.latent import Block
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import Scaler
from bayesvm.data.tables import Table
from bayesvm.estimators.tables import table_to_predict
from bayesvm.estimators.validation import prediction_rows, require_whole_labels
from bayesvm.inference.calibrating import fitted_link, mean_loss
from bayesvm.inference.problem import Problem
from bayesvm.inference.training import Callback, Progress

MOST_ROWS = 2_000
MOST_VALUES = 10_000_000
SHARE = 0.05  # share of the time for evaluations


@dataclass
class HeldOut:
    """Held-out rows with encoded targets; when they were last evaluated, and how long that took."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    link: str
    last: float = -np.inf
    took: float = 0.0

    @classmethod
    def of(cls, estimator: Any, given: Any, encoded: Callable[[Any], np.ndarray]) -> HeldOut | None:
        """A random choice of the given rows, from ``(X, y)`` or a table."""
        if given is None:
            return None
        if isinstance(given, Table):
            table = table_to_predict(estimator, given)
            X, labels, weight = table.rows(_chosen(table.n_rows, table.n_features))
            y = encoded(np.asarray(labels))
        else:
            try:
                X, y = given
            except (TypeError, ValueError) as error:
                raise TypeError(f"held_out takes (X, y) or a table with labels; got {type(given).__name__}") from error
            require_whole_labels(y, "held_out")
            X, y, weight = prediction_rows(estimator, X), np.asarray(y), None
            if X.shape[0] != len(y):
                raise ValueError(f"held_out has {X.shape[0]} rows, but {len(y)} labels")
            y = encoded(y)
            rows = _chosen(len(y), X.shape[1])
            X, y = X[rows], y[rows]
        completion = getattr(estimator, "completion_", None)
        X = X if completion is None else completion(X)
        return cls(X, y, np.ones(len(y)) if weight is None else weight, estimator.link)

    def reported_to(self, callback: Callback, problem: Problem, scaler: Scaler) -> Callback:
        """Add the log loss to the progress that a callback receives, while this takes a small share of the time."""
        X = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        rows = Block(scaler(X), self.y, self.weight)

        def report(progress: Progress) -> None:
            began = time.monotonic()
            if progress.functions and self.took <= SHARE * (began - self.last):
                progress = replace(progress, held_out=self._log_loss(problem, rows, progress))
                self.last = time.monotonic()
                self.took = self.last - began
            callback(progress)

        return report

    def _log_loss(self, problem: Problem, rows: Block, progress: Progress) -> float:
        """Log loss of one half with a link fitted to the other; the link of the model is fitted after training."""
        view, _ = problem.view(progress.functions, len(rows.y), np.float64)
        predicted = Cavities(*view.moments([rows], Workspace()), rows.y, self.weight)
        first, second = (predicted.take(half) for half in (slice(0, None, 2), slice(1, None, 2)))
        if not len(second.y) or not (first.weight.any() and second.weight.any()):
            return np.nan
        return mean_loss(fitted_link(problem.head, self.link, first), second)


def _chosen(n_rows: int, n_features: int) -> np.ndarray:
    """A random choice of rows, because a table may be sorted."""
    size = min(n_rows, MOST_ROWS, max(100, MOST_VALUES // n_features))
    return np.random.default_rng(0).permutation(n_rows)[:size]
