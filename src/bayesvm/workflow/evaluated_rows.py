"""Workflow: predictions for rows that a model was not trained on, with some of these rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import RowNumbers, random_rows
from bayesvm.data.tables import Table
from bayesvm.estimators import BayesianSVR
from bayesvm.estimators.columns import n_features
from bayesvm.estimators.number_checks import left_out_checks
from bayesvm.estimators.tables import table_to_predict
from bayesvm.evaluation import Predictions, RegressionPredictions
from bayesvm.schema import array, either, nothing, record, satisfying, text

EXTREME = 10  # number of the most and of the least certain rows to keep,
MOST_KEPT = 400  # and of all rows to keep, the others being random
WIDEST_KEPT = 5_000  # features of a row; wider rows are not kept, since no report could show them

AnyPredictions = Predictions | RegressionPredictions

# In files: C classes, D features, R rows, S of them kept.
_KEPT = {
    "weight": either(nothing, array("f", "R", least=0.0)),
    "epistemic": either(nothing, array("f", "R")),
    "rows": array("iu", "S", least=0),
    "sample": satisfying(
        array("iu", "S", least=0), "numbers of rows", lambda found, sizes: found.max(initial=0) < max(sizes["R"], 1)
    ),
    "X": array("fiub", "S", "D", missing=True),
    "source": text,
}
_OF_CLASSES = {
    "y": satisfying(
        array("iu", "R", least=0), "numbers of classes", lambda found, sizes: found.max(initial=0) < sizes["C"]
    ),
    "proba": array("f", "R", "C", least=0.0),
    "aleatoric": either(nothing, array("f", "R")),
}
_OF_NUMBERS = {
    **dict.fromkeys(("y", "mean", "log_density"), array("f", "R")),
    **dict.fromkeys(("std", "below"), array("f", "R", least=0.0)),
}
EVALUATED_ROWS = either(record(_OF_CLASSES | _KEPT), record(_OF_NUMBERS | _KEPT))


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """Predictions for rows that the model was not trained on."""

    predictions: AnyPredictions
    sample: RowNumbers  # predictions whose rows are kept: the most and the least certain, and a random sample
    X: npt.NDArray[Any]  # these rows, as features
    rows: RowNumbers  # and their numbers in the table
    source: str  # description of the rows

    @classmethod
    def of(cls, estimator: Any, table: Table, source: str, numbers: RowNumbers | None = None) -> EvaluatedRows:
        """Predictions for a table with targets; ``numbers`` are the numbers of its rows in a larger table."""
        table = table_to_predict(estimator, table)
        return cls.with_rows(predictions_of(estimator, table), table, source, numbers)

    @classmethod
    def with_rows(
        cls, predictions: AnyPredictions, table: Table, source: str, numbers: RowNumbers | None = None
    ) -> EvaluatedRows:
        """Predictions for the rows of a table; the features of some rows are read."""
        if table.n_features > WIDEST_KEPT:
            return cls(predictions, *_no_rows(table.n_features), source)
        sample = _to_keep(predictions)
        X = table.rows(sample).X
        rows = sample if numbers is None else numbers[sample]
        return cls(predictions, sample, X.toarray() if table.sparse else X, rows, source)

    @classmethod
    def left_out(cls, estimator: Any) -> EvaluatedRows:
        """The leave-one-out predictions of a fit, without rows."""
        fitted = estimator.fitted_
        predictions: AnyPredictions
        if is_regression(estimator):
            predictions = RegressionPredictions(**left_out_checks(fitted), weight=fitted.left_out_weight)
        else:
            y = np.asarray(fitted.left_out_y)
            predictions = Predictions(estimator.classes_, y, estimator.loo_proba_, fitted.left_out_weight)
        return cls(predictions, *_no_rows(n_features(estimator)), "leave-one-out on the training rows")

    def state(self) -> dict[str, Any]:
        """Plain values for files; the classes are stored with the estimator."""
        rows = {name: getattr(self, name) for name in ("sample", "X", "rows", "source")}
        return {name: getattr(self.predictions, name) for name in self.predictions.columns()} | rows

    @classmethod
    def from_state(cls, state: dict[str, Any], classes: npt.NDArray[Any] | None) -> EvaluatedRows:
        """The inverse of ``state``; ``classes`` are those of the estimator, or None."""
        if (classes is None) == ("proba" in state):
            raise ValueError("the stored predictions are for another task than the model")
        predictions: AnyPredictions
        if classes is None:
            predictions = RegressionPredictions(**{name: state[name] for name in RegressionPredictions.columns()})
        else:
            predictions = Predictions(classes, **{name: state[name] for name in Predictions.columns()})
        return cls(predictions, state["sample"], state["X"], state["rows"], state["source"])


def is_regression(estimator: Any) -> bool:
    """Whether an estimator is a regressor."""
    return isinstance(estimator, BayesianSVR)


def predictions_of(estimator: Any, table: Table, classes: npt.NDArray[Any] | None = None) -> AnyPredictions:
    """The predictions of an estimator for a table with targets.

    ``classes`` that the estimator has not seen have probability zero; default: its own.
    """
    targets, weights = zip(*table.targets(), strict=True)
    y, weight = np.concatenate(targets), None if weights[0] is None else np.concatenate(weights)
    if is_regression(estimator):
        return RegressionPredictions.of(y, **estimator.predictive_checks(table, y), weight=weight)
    parts = list(estimator.predictions(table))
    said = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    classes = estimator.classes_ if classes is None else classes
    proba = np.zeros((table.n_rows, len(classes)))
    for number, label in enumerate(classes):
        if label in estimator.classes_:
            proba[:, number] = said[f"probability_{label}"]
    return Predictions.of(classes, y, proba, weight=weight, aleatoric=said["aleatoric"], epistemic=said["epistemic"])


def _no_rows(n_features: int) -> tuple[RowNumbers, npt.NDArray[Any], RowNumbers]:
    none = np.zeros(0, np.intp)
    return none, np.empty((0, n_features)), none


def _to_keep(predictions: AnyPredictions) -> RowNumbers:
    order = np.argsort(predictions.doubt, kind="stable")
    extreme = np.concatenate([order[:EXTREME], order[-EXTREME:]])
    n_rows = predictions.n_rows
    some = random_rows(n_rows, min(MOST_KEPT - len(extreme), n_rows), np.random.default_rng(0))
    return np.union1d(extreme, some)
