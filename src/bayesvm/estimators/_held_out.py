"""Estimators: rows that a fit does not learn from, whose log loss its progress tells."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesvm.core.arena import Arena
from bayesvm.core.leave_one_out import Cavities
from bayesvm.core.statistics import Block, View
from bayesvm.data.scaling import Scaler
from bayesvm.data.tables import Table
from bayesvm.estimators._calibration import fitted_link, mean_log_loss
from bayesvm.estimators._tables import table_to_predict
from bayesvm.estimators._validation import coded_as, prediction_rows
from bayesvm.inference.objective import Model
from bayesvm.inference.training import Callback, Progress
from bayesvm.progress import Display

MOST_ROWS = 2_000
SHARE = 0.05  # of the time, which judging may take


@dataclass
class HeldOut:
    """Some rows and the numbers of their classes; when they were judged last, and how long that took."""

    X: np.ndarray
    codes: np.ndarray
    link: str
    last: float = -np.inf
    took: float = 0.0

    @classmethod
    def of(cls, estimator: Any, given: Any) -> HeldOut | None:
        """The rows that were given, as ``(X, y)`` or as a table, or the first of many."""
        if given is None:
            return None
        if isinstance(given, Table):
            table = table_to_predict(estimator, given)
            X, y, _ = table.rows(np.arange(min(MOST_ROWS, table.n_rows)))
        else:
            X, y = given
            if len(y) != X.shape[0]:
                raise ValueError(f"held_out has {X.shape[0]} rows, but {len(y)} labels")
            X, y = prediction_rows(estimator, X)[:MOST_ROWS], np.asarray(y)[:MOST_ROWS]
        codes = coded_as(estimator.classes_, np.asarray(y))
        return cls(X.toarray() if hasattr(X, "toarray") else X, codes, estimator.link)

    def heard_by(self, callback: Callback, model: Model, scaler: Scaler) -> Callback:
        """A callback that hears of their log loss, too, as long as it takes a small part of the time."""
        rows = Block(scaler(self.X), self.codes, None)

        def hear(progress: Progress) -> None:
            began = time.monotonic()
            if progress.machines and self.took <= SHARE * (began - self.last):
                progress = replace(progress, held_out=self._log_loss(model, rows, progress))
                self.last = time.monotonic()
                self.took = self.last - began
            callback(progress)

        return hear

    def _log_loss(self, model: Model, rows: Block, progress: Progress) -> float:
        """With a link fitted to these very rows: the model's own is made when training is over."""
        view, _ = View.of(model.features, progress.machines, len(rows.y), model.dtype)
        seen = Cavities(*view.moments([rows], Arena()), rows.y, np.ones(len(rows.y)))
        return mean_log_loss(fitted_link(self.link, seen), seen)


@dataclass(frozen=True)
class Audience:
    """Who hears of a fit: people, and a function that they gave."""

    display: Display
    callback: Callback | None = None
    held_out: HeldOut | None = None

    def of(self, model: Model, scaler: Scaler) -> Callback:
        """What a training of that model should call after every update."""
        return self.tell if self.held_out is None else self.held_out.heard_by(self.tell, model, scaler)

    def tell(self, progress: Progress) -> None:
        """Tell all of them."""
        self.display.update(progress)
        if self.callback is not None:
            self.callback(progress)
