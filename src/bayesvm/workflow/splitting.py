"""Workflow: a table in files, opened and split into training and held-out rows before anything is learned from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesvm.data.blocks import RowNumbers
from bayesvm.data.tables import Table, open_table
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.estimators.labels import codes_of
from bayesvm.estimators.tables import label_counts
from bayesvm.preparation import Recipe, learn, open_files

MOST_HELD_OUT = 50_000  # rows, enough for a log loss to ± .004


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
    counts, _ = label_counts(table)
    # The number of every row's class takes a byte or a few; labels of text would take many.
    codes = np.concatenate([codes_of(counts.labels, y) for y, _ in table.targets()])
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
