"""Workflow: from a table in files to an evaluated model: held-out rows or folds, a fit, and a refit on all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from sklearn.base import clone

from bayesvm.data.blocks import RowNumbers, random_rows
from bayesvm.data.tables import Table
from bayesvm.data.tables.csv_dialect import CsvOptions
from bayesvm.data.tables.files import Paths
from bayesvm.estimators import BayesianSVC, BayesianSVR
from bayesvm.estimators.leakage import Leak, checked_rows, leaks, report
from bayesvm.estimators.tables import table_to_predict
from bayesvm.evaluation import RegressionPredictions
from bayesvm.inference.linear_model import WIDEST_FULL_COVARIANCE
from bayesvm.preparation import MixedTable, Recipe, encoded_table
from bayesvm.preparation.learning import MOST_CATEGORIES
from bayesvm.warn import warn_user
from bayesvm.workflow.evaluated_rows import AnyPredictions, EvaluatedRows, is_regression, predictions_of
from bayesvm.workflow.model import TableModel
from bayesvm.workflow.row_checks import warn_of_single_rows
from bayesvm.workflow.splitting import (
    CLASSIFICATION,
    CROSS_VALIDATION,
    FOLDS,
    REGRESSION,
    Codes,
    Groups,
    checksums,
    folds,
    groups_of,
    opened,
    require_share,
    require_task,
    split,
    with_codes,
    with_task,
)

FEW_ROWS = 2_000  # of a table; smaller tables are evaluated by cross-validation
TOO_GOOD = 0.002  # error rate that is suspiciously low,
LEAST_EVALUATED = 200  # on at least this many rows
FEW_HELD_OUT = 2_000  # evaluated rows after Ctrl-C, because the user is waiting


def fit_table(
    source: Paths,
    target: str | None = None,
    *,
    weight: str | None = None,
    group: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    holdout: float = 0.2,
    refit: bool = True,
    task: str = "auto",
    estimator: Any = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
    **csv: Unpack[CsvOptions],
) -> TableModel:
    """Fit a model to a table in files, and evaluate it on held-out rows or by cross-validation; as ``bayesvm fit``.

    Parameters
    ----------
    source : path or list of paths
        A file, a folder, a pattern or a list of files: Parquet, Arrow, CSV or LIBSVM.
    target : str
        Name of the column to predict; LIBSVM files contain the target.
    weight : str, optional
        Name of a column of row weights.
    group : str, optional
        Name of a column; rows with the same value in it are held out and left out together. It is not a feature.
    columns : sequence of str, optional
        Names of the columns to use; default: all.
    drop : collection of str, optional
        Names of columns to leave out.
    categories : collection of str, optional
        Names of numeric columns to treat as categorical, such as postal codes; may include the target.
    keep : collection of str, optional
        Names of columns to use although they look like an index or an identifier.
    holdout : float, default=0.2
        Share of the rows, at most 50,000, to hold out for evaluation; 0 for none. Tables below 2,000 rows are evaluated
        by five-fold cross-validation instead.
    refit : bool, default=True
        Whether to refit on all rows after evaluation.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if the target is numeric and has fractions, more than 200 distinct values, or more than 20
        with fewer than five rows each or that fill a range, such as ages; otherwise classification. Whole numbers
        that start at 0 or 1 and have no gap count as codes of classes.
    estimator : BayesianSVC, BayesianLinearSVC or BayesianSVR, optional
        The estimator to clone and fit, which decides the task. Default: ``BayesianSVC(random_state=seed)``, or
        ``BayesianSVR`` for regression.
    parameters : dict, optional
        Parameters of the default estimator.
    seed : int, default=0
        Controls the randomness.
    checkpoint : path, optional
        File from which an interrupted fit resumes; the refit has a second one beside it.
    copy_to : path, optional
        Folder for the working copies of text files.
    verbose : int, default=0
        1 shows the progress.
    **csv
        ``sep``, ``decimal``, ``encoding``, ``missing`` and ``header`` of CSV files, as in ``open_table``. Default:
        detected.

    Returns
    -------
    TableModel
        The fitted estimator with its metrics and its history.

    Raises
    ------
    ValueError
        If a parameter, a column or a value of the table is invalid; the message says where, and what to do.

    See Also
    --------
    TableModel : The result.
    bayesvm.open_table : Open a table for ``fit`` of an estimator, without evaluation.

    Examples
    --------
    >>> from bayesvm.evaluation import metrics
    >>> from bayesvm.workflow import fit_table
    >>> model = fit_table("people.csv", target="income")  # doctest: +SKIP
    >>> print(metrics(model.holdout.predictions)["log_loss"])  # doctest: +SKIP
    >>> model.save("people.bayesvm")  # doctest: +SKIP
    """
    from bayesvm.workflow.baselines import about_the_data  # noqa: PLC0415  (predictions need no ensembles)

    began = time.perf_counter()
    require_share(holdout)
    task = task_of(estimator, task)
    table, names = opened(
        source,
        target,
        weight,
        group=group,
        columns=columns,
        drop=drop,
        categories=categories,
        keep=keep,
        copy_to=copy_to,
        verbose=verbose,
        **csv,
    )
    with table:
        table, task = with_task(table, task)
        estimator = estimator_for(task, estimator, {"random_state": seed} | dict(parameters or {}))
        estimator.set_params(verbose=verbose)
        table, classes = with_codes(table, task)
        groups = groups_of(table, group)
        warn_of_single_rows(table, None if task == REGRESSION else classes)
        _limit_covariance(estimator, table)
        evaluated, n_train, n_held, pairs = None, table.n_rows, 0, None
        if holdout and table.n_rows < FEW_ROWS:
            estimator.fit(table, groups=_labels(groups), checkpoint=checkpoint)
            if not estimator.interrupted_:
                evaluated, pairs = _cross_validated(estimator, table, classes, groups, seed, names)
            n_held = 0 if evaluated is None else evaluated.predictions.n_rows
            seconds = time.perf_counter() - began  # without the columns of other roles
            about = _about(estimator, table, pairs, seed)
        else:
            train, test = split(classes, holdout, seed, None if groups is None else groups.numbers)
            learned = table if train is None else table.subset(train)
            held = None if test is None else table.subset(test).in_memory()
            estimator.fit(learned, groups=_labels(groups, train), checkpoint=checkpoint, held_out=held)
            n_train = learned.n_rows
            if held is not None and test is not None:
                n_held = held.n_rows
                evaluated = _evaluated(estimator, held, test, names, table.n_rows, seed)
            seconds, about = time.perf_counter() - began, {}
            if not estimator.interrupted_:
                features = table_to_predict(estimator, learned)
                to_evaluate = None if held is None else table_to_predict(estimator, held)
                about = about_the_data(estimator.recipe_ or _numbered(table), features, to_evaluate, evaluated, seed)
            if refit and evaluated is not None and not estimator.interrupted_:
                again = _refitted(estimator, table, groups, checkpoint)
                n_train = n_train if again is estimator else table.n_rows
                estimator = again
        leaking = [] if estimator.interrupted_ else _leaks(estimator, table, evaluated)
        card = {
            "files": names[:100],
            "checksums": checksums(source)[:100],
            "target": target,
            "weight": weight,
            "group": group,
            "n_rows": table.n_rows,
            "n_train": n_train,
            "n_holdout": int(n_held),
            "refitted": n_train == table.n_rows and evaluated is not None,
            "seed": seed,
            "seconds": seconds,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": version("bayesvm"),
            "leaks": [[each.column, each.share] for each in leaking],
        } | about
        numbered = _numbered(table) if table.names is None else None
    return TableModel(estimator, card, evaluated, numbered)


def _labels(groups: Groups | None, rows: RowNumbers | None = None) -> Any:
    """The group labels of some rows, for the messages of a fit."""
    return None if groups is None else groups.take(rows).labels


def task_of(estimator: Any, task: str) -> str:
    """The requested task; an estimator decides it."""
    require_task(task)
    if estimator is None:
        return task
    own = REGRESSION if is_regression(estimator) else CLASSIFICATION
    if task not in {"auto", own}:
        raise ValueError(f"{type(estimator).__name__} is for {own}, not for {task}; pass another estimator or task")
    return own


def estimator_for(task: str, estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy of the estimator, or the default one of the task."""
    if estimator is not None:
        return clone(estimator)
    return (BayesianSVR if task == REGRESSION else BayesianSVC)(**parameters)


def _numbered(table: Table) -> Recipe:
    """The recipe of LIBSVM files, whose features have numbers instead of names."""
    return Recipe((), numbered=table.n_features, zero_based=table.zero_based)


def _about(estimator: Any, table: Table, pairs: Pairs | None, seed: int) -> dict[str, Any]:
    """The part of the card about the rows of a small table: a profile, and simple models on the same folds."""
    from bayesvm.workflow.baselines import about_the_data, baselines, sample_rows  # noqa: PLC0415

    if estimator.interrupted_:
        return {}
    about = about_the_data(estimator.recipe_ or _numbered(table), table_to_predict(estimator, table), None, None, seed)
    if pairs is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # categories that a fold lacks are not reported
            rows = [tuple(sample_rows(part, seed) for part in parts) for parts in pairs.tables]
        if all(train is not None and test is not None for train, test in rows):
            about["baselines"] = baselines(cast(Any, rows), pairs.said, seed)
    return about


def _leaks(estimator: Any, table: Table, evaluated: EvaluatedRows | None) -> list[Leak]:
    """Warn about columns that alone explain the target, otherwise about a suspiciously low error."""
    if estimator.recipe_ is None:
        return []
    rows = checked_rows(table.n_rows)
    batch = table_to_predict(estimator, table).rows(rows)
    numbers = is_regression(estimator)
    found = leaks(batch.X, cast(Any, batch.y), estimator.recipe_, numbers=numbers)
    report(found, len(rows), table.n_rows, numbers=numbers)
    if found or evaluated is None or evaluated.predictions.n_rows < LEAST_EVALUATED:
        return found
    if isinstance(evaluated.predictions, RegressionPredictions):  # a target without noise may be learned exactly
        return found
    wrong = float(np.average(~evaluated.predictions.correct, weights=evaluated.predictions.weight))
    if wrong <= TOO_GOOD:
        warn_user(
            f"only {wrong:.2%} of {evaluated.predictions.n_rows:,} rows are misclassified, which is suspiciously low; "
            "check for target leakage and duplicate rows"
        )
    return found


def _limit_covariance(estimator: Any, table: Table) -> None:
    """Use variances instead of a covariance matrix in a linear model with very many features."""
    if getattr(estimator, "covariance", None) != "full":
        return
    width = table.n_features
    if isinstance(table, MixedTable) and width * (MOST_CATEGORIES + 1) >= WIDEST_FULL_COVARIANCE:
        width = len(table.learned().names)
    if width >= WIDEST_FULL_COVARIANCE:
        warn_user(
            f"{width:,} features are too many for their covariance matrix; only their variances are fitted "
            "(covariance='diagonal')"
        )
        estimator.set_params(covariance="diagonal")


def _refitted(estimator: Any, table: Table, groups: Groups | None, checkpoint: str | PathLike[str] | None) -> Any:
    """Refit on all rows, with the features of the evaluated model."""
    again = clone(estimator)
    beside = None if checkpoint is None else Path(f"{checkpoint}.refit")
    recipe = estimator.recipe_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* of the rows are exact copies")  # the first fit has said it
        again.fit(table if recipe is None else encoded_table(table, recipe), groups=_labels(groups), checkpoint=beside)
    if again.interrupted_:
        warn_user("interrupted while refitting on all rows: the model fitted to the training rows is kept")
        return estimator
    return again


def _evaluated(
    estimator: Any, held: Table, test: RowNumbers, names: Sequence[str], n_rows: int, seed: int
) -> EvaluatedRows | None:
    """Predictions for the held-out rows. Ctrl-C ends only the evaluation, since the model exists already."""
    try:
        if estimator.interrupted_ and held.n_rows > FEW_HELD_OUT:
            few = random_rows(held.n_rows, FEW_HELD_OUT, np.random.default_rng(seed))
            held, test = held.subset(few), test[few]
        share = f"{held.n_rows / n_rows:.0%} of {_named(names)}"
        return EvaluatedRows.of(estimator, held, f"held out: {share} ({held.n_rows:,} rows)", test)
    except KeyboardInterrupt:
        warn_user("interrupted before the held-out rows were evaluated: the model is kept without metrics")
        return None


@dataclass(frozen=True)
class Pairs:
    """For each fold: features to train on and to predict, and the predictions for the latter."""

    tables: list[tuple[Table, Table]]
    said: AnyPredictions


def _cross_validated(
    estimator: Any, table: Table, classes: Codes, groups: Groups | None, seed: int, names: Sequence[str]
) -> tuple[EvaluatedRows | None, Pairs | None]:
    """Predictions for each fifth of the rows by a model fitted to the others; None if interrupted."""
    found: list[AnyPredictions] = []
    tests, tables = [], []
    for train, test in folds(classes, seed, None if groups is None else groups.numbers):
        if groups is not None and len(np.unique(groups.numbers[train])) < 2:
            raise ValueError(
                f"cross-validation needs at least three groups, but there are {len(groups.names)}; give --holdout 0 "
                "(holdout=0), or no groups"
            )
        if len(np.unique(classes[train])) <= classes.max():
            raise ValueError("all rows of a class are in the groups of one fold; set --holdout 0, or use no groups")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # already reported by the fit to all rows
            fold = clone(estimator).fit(table.subset(train), groups=_labels(groups, train))
            if fold.interrupted_:
                break
            tables.append((table_to_predict(fold, table.subset(train)), table_to_predict(fold, table.subset(test))))
            found.append(predictions_of(fold, tables[-1][1], getattr(estimator, "classes_", None)))
        tests.append(test)
    else:
        return _together(estimator, table, found, tests, names), Pairs(tables, type(found[0]).joined(cast(Any, found)))
    warn_user("interrupted during cross-validation: the model is kept without metrics")
    return None, None


def _together(
    estimator: Any, table: Table, found: list[AnyPredictions], tests: list[RowNumbers], names: Sequence[str]
) -> EvaluatedRows:
    """The predictions of all folds, in the order of the rows."""
    numbers = np.concatenate(tests)
    order = np.argsort(numbers)
    numbers = numbers[order]
    said = type(found[0]).joined(cast(Any, found)).take(order)
    rows = table if len(numbers) == table.n_rows else table.subset(numbers)
    source = f"{FOLDS}-{CROSS_VALIDATION} of {_named(names)} ({len(numbers):,} rows)"
    return EvaluatedRows.with_rows(said, table_to_predict(estimator, rows), source, numbers)


def _named(names: Sequence[str]) -> str:
    return names[0] + (", …" if len(names) > 1 else "")
