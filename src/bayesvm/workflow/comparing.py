"""Workflow: the Bayesian SVM and its alternatives, on the same rows and the same features."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

import numpy as np

from bayesvm.data.blocks import RowNumbers, random_rows
from bayesvm.data.tables import Batch, Table
from bayesvm.data.tables.csv_dialect import CsvOptions
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.evaluation import Metric, Predictions, RegressionPredictions, metrics, regression_peers
from bayesvm.evaluation.formatting import IN_UNITS
from bayesvm.evaluation.metrics import LARGER_IS_BETTER
from bayesvm.evaluation.peers import PEERS, evaluate_peer
from bayesvm.evaluation.regression_predictions import INTERVAL
from bayesvm.preparation import MixedTable, Recipe, encoded_table, prepared
from bayesvm.workflow.evaluated_rows import AnyPredictions, is_regression
from bayesvm.workflow.fitting import estimator_for, task_of
from bayesvm.workflow.splitting import groups_of, opened, require_share, split, with_codes, with_task

MOST_DENSE_VALUES = 2e8  # of sparse rows, which the peers need as dense arrays
NYSTROEM_POINTS = 300  # of Nystroem, if our model has no inducing points


@dataclass(frozen=True)
class Competitor:
    """A classifier or regressor with its metrics on the test rows and its cost."""

    name: str
    metrics: dict[str, Metric]
    seconds: float  # of training
    n_rows: int  # training rows


@dataclass(frozen=True)
class Comparison:
    """The competitors, ours first; the numbers of available training rows and of evaluation rows."""

    competitors: tuple[Competitor, ...]
    n_train: int
    n_test: int
    source: str  # description of the evaluation rows
    left_out: dict[str, str]

    @property
    def limited(self) -> dict[str, int]:
        """Competitors with fewer training rows than the others, with that number."""
        return {each.name: each.n_rows for each in self.competitors if each.n_rows < self.n_train}

    def best(self, metric: str) -> set[str]:
        """Names of the best by a metric; for coverage, the one nearest to the probability of the intervals.

        Calibration errors that do not differ significantly from zero are equally good.
        """
        found = {each.name: each.metrics[metric] for each in self.competitors}
        unclear = {name for name, each in found.items() if metric == "calibration_error" and each.may_be_zero}
        values = {name: 0.0 if name in unclear else each.value for name, each in found.items()}
        if metric in LARGER_IS_BETTER:
            values = {name: -value for name, value in values.items()}
        elif metric == "coverage":
            values = {name: abs(value - INTERVAL) for name, value in values.items()}
        rounded = {
            name: float(f"{value:.4g}") if metric in IN_UNITS else round(value, 4) for name, value in values.items()
        }
        return {name for name, value in rounded.items() if value == min(rounded.values())}


def compare_on(
    source: Paths,
    target: str | None = None,
    *,
    test: Paths | None = None,
    rows: int = 100_000,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    group: str | None = None,
    holdout: float = 0.2,
    task: str = "auto",
    estimator: Any = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
    begin: Callable[[str], None] = lambda _: None,
    **csv: Unpack[CsvOptions],
) -> Comparison:
    """Train our model and its peers on one part of a table, and evaluate them on the other part or on a test table.

    At most ``rows`` rows, a random sample, are used, because the peers hold them in memory. ``begin`` is called with
    the name of each before its training. The other parameters are those of ``fit_table``.
    """
    if test is None:
        require_share(holdout)
        if holdout == 0:
            raise ValueError("a comparison needs evaluation rows; set --holdout (holdout=) above 0, or --test (test=)")
    if rows < 10:
        raise ValueError(f"{rows} rows are too few to compare anything")
    task = task_of(estimator, task)
    opening: dict[str, Any] = {"copy_to": copy_to, "verbose": verbose, **csv}
    choice: dict[str, Any] = {"columns": columns, "drop": drop, "categories": categories, "keep": keep}
    table, names = opened(source, target, weight, group=group, **choice, **opening)
    with table:
        table, task = with_task(table, task)
        estimator = estimator_for(task, estimator, {"random_state": seed} | dict(parameters or {}))
        estimator.set_params(verbose=verbose)
        table, classes = with_codes(table, task)
        groups = groups_of(table, group)
        some = _some_rows(table.n_rows, rows, seed)
        learning = some
        if test is None:
            own = None if groups is None else np.unique(groups.numbers[some], return_inverse=True)[1]
            parts = split(np.unique(classes[some], return_inverse=True)[1], holdout, seed, own)
            learning, testing = (some[part] for part in parts if part is not None)
        recipe = table.subset(learning).learned() if isinstance(table, MixedTable) else None
        features = table if recipe is None else encoded_table(table, recipe)
        train = _in_memory(features.subset(learning))
        if test is None:
            held, name = (
                _in_memory(features.subset(testing)),
                f"held out: {len(testing) / len(some):.0%} of {names[0]}",
            )
        else:
            asked = recipe or Recipe((), numbered=table.n_features, zero_based=table.zero_based)
            text_labels = target in categories
            with prepared(test, asked, target, weight, text_labels=text_labels, **opening).labelled() as opened_test:
                other = opened_test.with_spelling(table.spelled)
                held = _in_memory(other.subset(_some_rows(other.n_rows, rows, seed)))
            name = find_files(test)[1][0].path.name
    found = tuple(_competitors(estimator, train, held, seed, begin))
    return Comparison(found, len(train.X), len(held.X), name, {} if recipe is None else recipe.left_out)


def _some_rows(n_rows: int, most: int, seed: int) -> RowNumbers:
    return np.arange(n_rows) if n_rows <= most else random_rows(n_rows, most, np.random.default_rng(seed))


def _in_memory(table: Table) -> Batch:
    rows = table.rows(np.arange(table.n_rows))
    if not table.sparse:
        return rows
    if table.n_rows * table.n_features > MOST_DENSE_VALUES:
        raise ValueError(
            f"{table.n_rows:,} rows of {table.n_features:,} features are too many for the peers, which need them "
            "dense; compare on fewer rows"
        )
    return rows._replace(X=rows.X.toarray())


def _competitors(
    estimator: Any, train: Batch, held: Batch, seed: int, begin: Callable[[str], None]
) -> Iterator[Competitor]:
    name = type(estimator).__name__
    begin(name)
    start = time.perf_counter()
    estimator.fit(train.X, train.y, sample_weight=train.weight)
    seconds = time.perf_counter() - start
    if estimator.interrupted_:
        raise KeyboardInterrupt
    yield Competitor(name, metrics(_said(estimator, held)), seconds, len(train.X))
    numbers = is_regression(estimator)
    train, held = (completed(estimator, part) for part in (train, held))
    n_points = len(getattr(estimator, "inducing_points_", range(NYSTROEM_POINTS)))
    for peer in (regression_peers.PEERS if numbers else PEERS).values():
        begin(peer.name)
        outcome = (regression_peers.evaluate_regression_peer if numbers else evaluate_peer)(
            peer,
            train.X,
            train.y,
            held.X,
            held.y,
            n_points=n_points,
            seed=seed,
            weight=train.weight,
            weight_test=held.weight,
        )
        yield Competitor(peer.name, metrics(outcome.predictions), outcome.seconds, outcome.n_rows)


def completed(estimator: Any, rows: Batch) -> Batch:
    """Rows for peers, most of which take no missing values: completed as by the fitted estimator."""
    completion = getattr(estimator, "completion_", None)
    return rows if completion is None else rows._replace(X=completion(rows.X))


def _said(estimator: Any, held: Batch) -> AnyPredictions:
    if is_regression(estimator):
        checks = estimator.predictive_checks(held.X, held.y)
        return RegressionPredictions.of(held.y, **checks, weight=held.weight)
    return Predictions.of(estimator.classes_, held.y, estimator.predict_proba(held.X), weight=held.weight)
