"""Workflow: simple models for comparison, trained and evaluated on the same rows as a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import random_rows
from bayesvm.data.tables import Batch, Table
from bayesvm.evaluation import Predictions, RegressionPredictions, metrics, paired_difference, regression_peers
from bayesvm.evaluation.peers import BASELINES, N_FOLDS, Peer, evaluate_peer
from bayesvm.preparation import Recipe
from bayesvm.warn import warn_user
from bayesvm.workflow.evaluated_rows import AnyPredictions, EvaluatedRows
from bayesvm.workflow.profile import profile

MOST_ROWS = 20_000  # of training for baselines
MOST_VALUES = 2e7  # rows × features × functions: training takes seconds
LEAST_SHARE = 0.05  # share of MOST_ROWS below which a comparison would be unfair and is omitted


def about_the_data(
    recipe: Recipe, learned: Table, held: Table | None, evaluated: EvaluatedRows | None, seed: int
) -> dict[str, Any]:
    """The part of the card that needs rows: a profile of the columns, and simple models for comparison.

    ``learned`` are the training rows, ``held`` the held-out rows, ``evaluated`` the predictions for these.
    """
    train = sample_rows(learned, seed)
    if train is None:
        return {}
    about: dict[str, Any] = {"profile": profile(recipe, train.X)}
    if held is not None and evaluated is not None and held.n_rows * held.n_features <= MOST_VALUES:
        test = _dense(held.rows(np.arange(held.n_rows)), sparse=held.sparse)
        about["baselines"] = baselines([(train, test)], evaluated.predictions, seed)
    return about


def sample_rows(table: Table, seed: int) -> Batch | None:
    """At most 20,000 rows of a table, dense; fewer of wide tables, and None of very wide ones."""
    most = min(MOST_ROWS, int(MOST_VALUES / max(1, table.n_features)), table.n_rows)
    if most < min(LEAST_SHARE * MOST_ROWS, table.n_rows):
        return None
    numbers = random_rows(table.n_rows, most, np.random.default_rng(seed))
    return _dense(table.rows(numbers), sparse=table.sparse)


def baselines(parts: Sequence[tuple[Batch, Batch]], ours: AnyPredictions, seed: int) -> list[dict[str, Any]] | None:
    """Metrics of a linear model and of boosting, for the card; for classes, error and log loss.

    ``parts`` are pairs of training rows and rows to predict: one pair for held-out rows, or one per fold. ``ours`` are
    the predictions of the model for the rows to predict, part after part. Differences are theirs minus ours, with 95%
    intervals. None if there are too few rows or too many values. Ctrl-C ends only the comparison.
    """
    numbers = isinstance(ours, RegressionPredictions)
    if isinstance(ours, RegressionPredictions):
        possible = all(train.X.size <= MOST_VALUES and len(train.X) >= N_FOLDS for train, _ in parts)
    else:
        possible = all(_can_compete(train, test, len(ours.classes)) for train, test in parts)
    if not possible:
        return None
    try:
        return [_competed(peer, parts, ours, seed) for peer in (regression_peers.BASELINES if numbers else BASELINES)]
    except KeyboardInterrupt:
        warn_user("interrupted while comparing with simple models and boosting: the report omits the comparison")
        return None


def _can_compete(train: Batch, test: Batch, n_classes: int) -> bool:
    """Whether training takes seconds, two classes have enough rows, and the rows to predict have no other class."""
    labels, counts = np.unique(np.asarray(train.y), return_counts=True)
    n_values = train.X.size * (n_classes if n_classes > 2 else 1)
    return (
        n_values <= MOST_VALUES
        and int((counts >= N_FOLDS).sum()) >= 2
        and bool(np.isin(np.asarray(test.y), labels).all())
    )


def _competed(peer: Peer, parts: Sequence[tuple[Batch, Batch]], ours: AnyPredictions, seed: int) -> dict[str, Any]:
    found: list[Any] = []
    n_rows = 0
    numbers = isinstance(ours, RegressionPredictions)
    for train, test in parts:
        # One thread: bit-identical results, and no waiting of OpenMP threads on a busy machine.
        with one_blas_thread(), threadpool_limits(1, "openmp"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            how = {"weight": train.weight, "weight_test": test.weight}
            trained = regression_peers.evaluate_regression_peer if numbers else evaluate_peer
            outcome = trained(peer, train.X, train.y, test.X, test.y, n_points=0, seed=seed, **how)
        found.append(
            outcome.predictions
            if isinstance(ours, RegressionPredictions)
            else _among(ours.classes, outcome.predictions)
        )
        n_rows = max(n_rows, outcome.n_rows)
    said = type(found[0]).joined(found)
    values = metrics(said, n_bootstrap=0)
    facts: dict[str, Any] = {"name": peer.name, "n_rows": n_rows}
    if numbers:
        facts |= {name: values[name].value for name in ("rmse", "r2")}
    for name, difference in paired_difference(said, ours).items():
        facts |= {name: values[name].value, f"{name}_difference": list(difference)}
    return facts


def _among(classes: Any, said: Predictions) -> Predictions:
    """Predictions with a column for each of these classes; classes without training rows have probability zero."""
    if len(said.classes) == len(classes):
        return said
    place = np.searchsorted(classes, said.classes)
    proba = np.zeros((said.n_rows, len(classes)))
    proba[:, place] = said.proba
    return replace(said, classes=classes, y=place[said.y], proba=proba)


def _dense(rows: Batch, *, sparse: bool) -> Batch:
    return rows._replace(X=rows.X.toarray()) if sparse else rows
