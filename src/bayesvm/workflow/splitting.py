"""Workflow: open a table in files, and split its rows into training and held-out rows or folds, keeping groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import RowNumbers
from bayesvm.data.checks import MissingTargetError, is_number
from bayesvm.data.tables import Table
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.estimators.groups import column_labels, numbered, require_several
from bayesvm.estimators.labels import codes_of
from bayesvm.estimators.tables import (
    holds_a_quantity,
    label_counts,
    require_no_text_in_a_quantity,
    require_numbers,
    with_merged_spellings,
)
from bayesvm.preparation import mixed_table, open_table
from bayesvm.warn import ReadingNote, warn_user

MOST_HELD_OUT = 50_000  # rows, enough for a log loss to ± 0.004
FOLDS = 5
CHECKED_BYTES = 2**20  # of a file, used to recognise it
CROSS_VALIDATION = "fold cross-validation"  # in the source of predictions
FEW_NUMBERS = 20  # distinct numbers that may be class labels
MOST_TEXTS = 0.05  # texts among more numbers, as a share

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = ("auto", CLASSIFICATION, REGRESSION)

RowsType = TypeVar("RowsType", bound=Table)
Codes = npt.NDArray[np.intp]


def require_share(holdout: float) -> None:
    """Check the share of held-out rows."""
    if not 0 <= holdout < 1:
        raise ValueError(f"holdout must be a share of the rows, 0 or more and below 1; got {holdout}")


def opened(
    source: Paths,
    target: str | None,
    weight: str | None,
    *,
    group: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    **opening: Any,
) -> tuple[Table, list[str]]:
    """Open a table in files for a fit, which learns its recipe; also returns the names of the files."""
    kind, files = find_files(source)
    names = [file.path.name for file in files]
    if kind == "LIBSVM":
        if columns or drop or categories or keep or group:
            raise ValueError(f"{files[0]} is a LIBSVM file, whose features have no names: give no columns")
        return open_table(source, target, weight=weight, **opening), names
    if target is None:
        raise ValueError(f"no target column given for {files[0]}; set --target (target=)")
    choice: dict[str, Any] = {"columns": columns, "drop": drop, "categories": categories, "keep": keep}
    beside = [] if group is None else [group]
    return mixed_table(source, target, weight, **choice, beside=beside, quiet=True, **opening), names


def checksums(source: Paths) -> list[str]:
    """Size and checksum of the beginning of each file, to recognise the rows that a model was trained on."""
    found = []
    for file in find_files(source)[1]:
        with file.path.open("rb") as opened_file:
            found.append(f"{file.size}:{crc32(opened_file.read(CHECKED_BYTES)):08x}")
    return found


@dataclass(frozen=True)
class Groups:
    """The label and the number of the group that each row belongs to."""

    labels: npt.NDArray[Any]
    numbers: Codes
    names: list[Any]  # the labels by number

    def take(self, rows: RowNumbers | None) -> Groups:
        """Some of the rows."""
        return self if rows is None else Groups(self.labels[rows], self.numbers[rows], self.names)


def groups_of(table: Table, group: str | None) -> Groups | None:
    """The groups of all rows; None if there are none."""
    if group is None:
        return None
    labels = column_labels(table, group)
    names, numbers = numbered(labels)
    require_several(names)
    return Groups(labels, numbers, names)


def require_task(task: str) -> None:
    """Check the name of a task."""
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")


def with_task(table: RowsType, task: str) -> tuple[RowsType, str]:
    """The rows that have a target, and the task.

    "auto" is regression for a numeric target with fractions, with more distinct values than are accepted as classes, or
    with many whole numbers that fill a range; this is reported.
    """
    if task == CLASSIFICATION:
        return table, task
    try:
        is_quantity = holds_a_quantity(table)
    except MissingTargetError:
        table = table.labelled()
        is_quantity = holds_a_quantity(table)
    name = "the label" if table.target is None else f"the target {table.target!r}"
    if task == REGRESSION:
        y = next(iter(table.targets()))[0]
        if y.dtype.kind == "U":
            row = next((row for row, text in enumerate(y.tolist()) if not is_number(text)), 0)
            raise ValueError(
                f"{table.where(row)}: {name} is the text {str(y[row])!r}, but regression needs a numeric target. "
                "Leave out --task regression (task='regression') to predict classes, or correct the column"
            )
        return table, task
    if not is_quantity:
        require_no_text_in_a_quantity(table, name)
        return table, CLASSIFICATION
    warn_user(
        f"{name} looks like a regression target: BayesianSVR is fitted (--task classification treats its values as "
        "classes)",
        ReadingNote,
    )
    return table, REGRESSION


def with_codes(table: RowsType, task: str = CLASSIFICATION) -> tuple[RowsType, Codes]:
    """The rows that have a target, and the index of the class of each row, which needs less memory than text labels.

    In regression, all rows have the same index.
    """
    summary = require_numbers if task == REGRESSION else label_counts
    try:
        counts = summary(table)
    except MissingTargetError:
        table = table.labelled()
        counts = summary(table)
    if counts is None:
        return table, np.zeros(table.n_rows, np.intp)
    if (merged := with_merged_spellings(table, counts[0])) is not table:
        table, counts = merged, label_counts(merged)
    return table, np.concatenate([codes_of(counts[0].labels, y) for y, _ in table.targets()])


def split(
    classes: Codes, share: float, seed: int, groups: Codes | None = None
) -> tuple[RowNumbers | None, RowNumbers | None]:
    """Training rows and held-out rows, with the same share of each class; both None if no row is held out.

    With groups, whole groups are held out, and the shares of the classes are random.
    """
    if share == 0:
        return None, None
    share = min(share, MOST_HELD_OUT / len(classes))
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(classes), bool)
    if groups is not None:
        n_groups = int(groups.max()) + 1
        chosen = np.isin(groups, rng.permutation(n_groups)[: min(max(1, round(share * n_groups)), n_groups - 1)])
    else:
        for code in range(int(classes.max()) + 1):
            members = np.flatnonzero(classes == code)
            # Rounded up or down at random; never the only row of a class.
            size = min(int(share * len(members) + rng.random()), len(members) - 1)
            chosen[rng.choice(members, size, replace=False, shuffle=False)] = True
    if not chosen.any():
        what = "row" if groups is None else "group"
        n_all = len(classes) if groups is None else int(groups.max()) + 1
        raise ValueError(
            f"no {what} of {n_all} can be held out with a share of {share:g}; give a larger one, or 0 for none"
        )
    if (np.bincount(classes[~chosen], minlength=int(classes.max()) + 1) == 0).any():
        raise ValueError("all rows of a class are in the groups held out; set another --seed, or use no groups")
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def folds(classes: Codes, seed: int, groups: Codes | None = None) -> Iterator[tuple[RowNumbers, RowNumbers]]:
    """Training rows and evaluation rows, ``FOLDS`` times. The only row of a class is always a training row."""
    rng = np.random.default_rng(seed)
    fold = np.full(len(classes), -1)
    if groups is not None:
        fold = rng.permutation(int(groups.max()) + 1)[groups] % FOLDS
    else:
        start = 0
        for code in range(int(classes.max()) + 1):
            members = rng.permutation(np.flatnonzero(classes == code))
            if len(members) > 1:
                fold[members] = (start + np.arange(len(members))) % FOLDS
                start += len(members)
    for number in range(FOLDS):
        if (fold == number).any():
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
