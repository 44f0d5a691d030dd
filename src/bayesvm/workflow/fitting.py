"""Workflow: a table in files becomes a model, judged on rows that were held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesvm.data.blocks import RowNumbers, random_rows
from bayesvm.data.labels import Codes, codes_of
from bayesvm.data.tables import Table, open_table
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.estimators import BayesianSVC
from bayesvm.estimators._tables import label_counts
from bayesvm.estimators.linear import WIDEST_FULL_COVARIANCE
from bayesvm.preparation import Recipe, learn, open_files
from bayesvm.workflow.judging import Judged
from bayesvm.workflow.model import TableModel

MOST_HELD_OUT = 50_000  # rows, enough for a log loss to ± .004
FEW_HELD_OUT = 2_000  # of them judge a model that somebody is waiting for


def fit_table(
    source: Paths,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    holdout: float = 0.2,
    estimator: Any = None,
    seed: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
) -> TableModel:
    """Learn from a table in files: Parquet, Arrow, CSV or LIBSVM; text, gaps and all.

    Parameters
    ----------
    source : a file, a folder, a pattern or a list of files
    target : name of the column of labels; LIBSVM files hold them
    weight : name of a column of row weights
    columns, drop : names of the columns to learn from, or to leave out; default: all
    categories : names of columns whose numbers are names, such as postal codes; also of the target
    holdout : share of the rows, at most 50,000 of them, that are not learned from but judge the model; 0 for none
    estimator : a BayesianSVC or BayesianLinearSVC to fit; default: ``BayesianSVC(random_state=seed)``
    seed : decides which rows are held out, and all else that is random
    checkpoint : a file from which a fit that was killed goes on
    copy_to : a folder for the working copy of text files
    verbose : 1 shows progress
    """
    began = time.perf_counter()
    require_share(holdout)
    estimator = BayesianSVC(random_state=seed) if estimator is None else clone(estimator)
    estimator.set_params(verbose=verbose)
    opening: dict[str, Any] = {"copy_to": copy_to, "verbose": verbose}
    unprepared = opened(source, target, weight, columns, drop, categories, opening)
    with unprepared.labelled:
        train, test = split(unprepared.labelled, holdout, seed)
        recipe, table = unprepared.prepared(train, seed)
        learned = table if train is None else table.subset(train)
        held = None if test is None else table.subset(test).at_hand()
        _use_mean_field_if_wide(estimator, table)
        estimator.fit(learned, checkpoint=checkpoint, held_out=held)
        judged = None
        if held is not None and test is not None:
            judged = _judged(estimator, held, test, unprepared.names, table.n_rows, seed)
    card = {
        "files": unprepared.names[:100],
        "target": target,
        "weight": weight,
        "n_rows": table.n_rows,
        "n_train": learned.n_rows,
        "n_holdout": 0 if held is None else held.n_rows,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("bayesvm"),
    }
    return TableModel(estimator, recipe, card, judged)


def _judged(
    estimator: Any, held: Table, test: RowNumbers, names: Sequence[str], n_rows: int, seed: int
) -> Judged | None:
    """What the model says of the rows held out; Ctrl-C ends this only, since the model is there already."""
    try:
        if estimator.interrupted_ and held.n_rows > FEW_HELD_OUT:
            few = random_rows(held.n_rows, FEW_HELD_OUT, np.random.default_rng(seed))
            held, test = held.subset(few), test[few]
        share = f"{held.n_rows / n_rows:.0%} of {names[0]}" + (", …" if len(names) > 1 else "")
        return Judged.of(estimator, held, f"held out: {share} ({held.n_rows:,} rows)", test)
    except KeyboardInterrupt:
        warnings.warn("stopped before the held-out rows were judged: the model is kept without metrics", stacklevel=2)
        return None


def _use_mean_field_if_wide(estimator: Any, table: Table) -> None:
    """The linear model has a covariance matrix of all features, unless there are too many."""
    if getattr(estimator, "covariance", None) == "full" and table.n_features >= WIDEST_FULL_COVARIANCE:
        warnings.warn(
            f"{table.n_features:,} features are too many for their covariance matrix; only their variances are fitted "
            "(covariance='diagonal')",
            stacklevel=3,
        )
        estimator.set_params(covariance="diagonal")


def require_share(holdout: float) -> None:
    """Of rows that are held out."""
    if not 0 <= holdout < 1:
        raise ValueError(f"holdout is a share of the rows, from 0 to below 1; got {holdout}")


@dataclass(frozen=True)
class Unprepared:
    """A table in files of which only the labels can be read, until a recipe is learned from some of its rows.

    ``prepared`` takes their numbers (None: all) and a seed, and gives the recipe and all rows as its features.
    """

    labelled: Table
    names: list[str]  # of the files
    prepared: Callable[[RowNumbers | None, int], tuple[Recipe, Table]]


def opened(
    source: Paths,
    target: str | None,
    weight: str | None,
    columns: Sequence[str] | None,
    drop: Collection[str],
    categories: Collection[str],
    opening: dict[str, Any],
) -> Unprepared:
    """A table in files, to be split before anything is learned from it."""
    kind, files = find_files(source)
    names = [file.path.name for file in files]
    if kind == "LIBSVM":
        if columns or drop or categories:
            raise ValueError(f"{files[0]} is a LIBSVM file, whose features have no names: give no columns")
        table = open_table(source, target, weight=weight, **opening)
        recipe = Recipe((), numbered=table.n_features, zero_based=table.zero_based)
        return Unprepared(table, names, lambda *_: (recipe, table))
    if target is None:
        raise ValueError(f"which column of {files[0]} holds the classes? Name it as the target (--target)")
    found = open_files(source, exact=[target], texts=categories, columns=columns, drop=drop, weight=weight, **opening)
    special = [name for name in (target, weight) if name is not None]

    def learned(train: RowNumbers | None, seed: int) -> tuple[Recipe, Table]:
        rows = found if train is None else replace(found, rows=found.rows.subset(train))
        recipe = learn(rows, special, columns=columns, drop=drop, categories=categories, random_state=seed)
        return recipe, found.table(recipe, target, weight, text_labels=target in categories)

    found.require_columns([*special, *(columns or ()), *drop, *categories])
    labelled = found.table(Recipe(()), target, weight, text_labels=target in categories)
    return Unprepared(labelled, names, learned)


def split(table: Table, share: float, seed: int) -> tuple[RowNumbers | None, RowNumbers | None]:
    """Rows to learn from and rows held out, with the same share of each class; None and None: no row is held out."""
    if share == 0:
        return None, None
    codes = _codes(table)
    share = min(share, MOST_HELD_OUT / len(codes))
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(codes), bool)
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        # By chance up or down to a whole number, but never the only row.
        size = min(int(share * len(members) + rng.random()), len(members) - 1)
        chosen[rng.choice(members, size, replace=False, shuffle=False)] = True
    if not chosen.any():
        raise ValueError(
            f"no row of {len(codes)} can be held out with a share of {share:g}; give a larger one, or 0 for none"
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _codes(table: Table) -> Codes:
    """The number of every row's class, in a byte or a few; labels of text would take many."""
    counts, _ = label_counts(table)
    return np.concatenate([codes_of(counts.labels, y) for y, _ in table.labels()])
