"""Estimators: groups of rows, given as a label of any type per row (D24)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _num_samples

from bayesvm.data.blocks import RowNumbers, checksum
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.tables import Table
from bayesvm.estimators._dask import DaskRows
from bayesvm.estimators._inputs import ArrayRows
from bayesvm.estimators.tables import TableRows
from bayesvm.warn import warn_user

Labels = npt.NDArray[Any]
FEW_GROUPS = 30  # for precise estimates


def grouped(rows: Any, groups: Any, X: Any) -> Any:
    """Checked rows with the index of their group; for a table, ``groups`` may be the name of a column."""
    n_given = sum(rows.table.rows.given) if isinstance(rows, DaskRows) else _num_rows(X)
    numbers = group_numbers(groups, X, rows.given(np.arange(rows.n_rows)), n_given)
    warn_of_single_groups(rows, numbers)
    return replace(rows, groups=numbers)


def group_numbers(groups: Any, X: Any, used: RowNumbers, n_given: int) -> RowNumbers:
    """The index of the group of every row that is used, of the rows given."""
    labels = _labels(groups, X)
    if len(labels) != n_given:
        raise ValueError(f"groups has {len(labels):,} labels, but X has {n_given:,} rows; give one label per row")
    names, numbers = numbered(labels[used])
    require_several(names)
    if len(names) < FEW_GROUPS:
        warn_user(
            f"there are only {len(names)} groups, and leave-one-out counts groups, not rows: estimates, intervals and "
            f"prediction sets for new groups are imprecise with fewer than about {FEW_GROUPS}",
        )
    return numbers


def fingerprint(rows: Any) -> dict[str, Any]:
    """Plain values that identify the groups of some rows."""
    groups = rows.groups
    return {} if groups is None else {"the checksum of the groups": f"{checksum(groups.astype(np.int64)):08x}"}


def numbered(labels: Labels) -> tuple[list[Any], RowNumbers]:
    """The distinct labels, in sorted order, and the index of each row's label.

    Labels of several types are sorted by type first: numbers, text, others.
    """
    if labels.dtype.kind != "O":
        names, numbers = np.unique(labels, return_inverse=True)
        return names.tolist(), numbers
    found: dict[Any, int] = {}
    try:
        first = np.fromiter((found.setdefault(label, len(found)) for label in labels.tolist()), np.intp, len(labels))
    except TypeError as error:
        row = next(row for row, label in enumerate(labels.tolist()) if not _is_hashable(label))
        raise ValueError(
            f"groups has {labels[row]!r} for row {row}, which cannot be a label; give numbers, text or dates"
        ) from error
    order = sorted(found, key=_sort_key)
    place = np.empty(len(order), np.intp)
    place[[found[name] for name in order]] = np.arange(len(order))
    return order, place[first]


def require_several(names: list[Any]) -> None:
    """Require at least two groups."""
    if len(names) == 1:
        raise ValueError(
            f"all rows are in one group, {names[0]!r}, so no rows remain when it is left out; give at least "
            "two groups, or no groups"
        )


def without_column(X: Any, groups: Any) -> Any:
    """A table without the column that names its groups."""
    if isinstance(X, Table) and isinstance(groups, str) and X.names is not None and groups in X.names:
        return X.with_features(tuple(name for name in X.names if name != groups))
    return X


def column_labels(table: Table, name: str) -> Labels:
    """The labels in a column of a table, none of them missing."""
    labels: Labels = np.concatenate(
        [batch.column(name).to_numpy(zero_copy_only=False) for batch in table.columns([name])]
    )
    _require_labels(labels, lambda row: f"{table.where(row)}, column {name!r}")
    return labels


def _num_rows(X: Any) -> int:
    return X.n_rows if isinstance(X, Table) else int(_num_samples(X))


def _labels(groups: Any, X: Any) -> Labels:
    """The labels of all rows given, none of them missing."""
    if isinstance(groups, str | bytes):
        if not isinstance(X, Table):
            raise ValueError(  # noqa: TRY004  (as for other groups)
                f"groups={groups!r} names a column, which only a table of open_table has; give one label per row, "
                f"such as the column itself, X[{groups!r}]"
            )
        return column_labels(X, str(groups))
    if is_dask(groups):
        groups = groups.compute()
    # In an array of a list that mixes text with other types, all labels would be text, even None.
    labels = np.asarray(groups) if hasattr(groups, "dtype") or hasattr(groups, "__array__") else _of_list(groups)
    if labels.ndim != 1:
        raise ValueError(f"groups must have one label per row; got an array of shape {labels.shape}")
    _require_labels(labels, lambda row: f"row {row}")
    return labels


def _of_list(groups: Any) -> Labels:
    plain = list(groups)
    if len({type(label) for label in plain}) <= 1:
        return np.asarray(plain)
    labels = np.empty(len(plain), object)
    for row, label in enumerate(plain):
        labels[row] = label
    return labels


def _require_labels(labels: Labels, where: Callable[[int], str]) -> None:
    """Require a label for every row; the error names the first row without one."""
    unlabelled = np.flatnonzero(are_missing(labels))
    if len(unlabelled):
        raise ValueError(
            f"groups has no label for {where(int(unlabelled[0]))} ({len(unlabelled):,} rows in total); give a row that "
            "belongs to no group a label of its own"
        )


def are_missing(labels: Labels) -> npt.NDArray[np.bool_]:
    """Which labels are None, NaN, or the missing value of another library."""
    if labels.dtype.kind in "fc":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind != "O":
        return np.zeros(labels.shape, bool)
    return np.array([_is_missing(label) for label in labels.tolist()], bool)


def _is_missing(label: Any) -> bool:
    if label is None:
        return True
    if isinstance(label, str):
        return False
    try:
        return bool(label != label)  # noqa: PLR0124  (NaN and NaT differ from themselves)
    except (TypeError, ValueError):
        return type(label).__name__ == "NAType"  # pandas.NA has no truth value


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _sort_key(label: Any) -> tuple[int, str, Any]:
    if isinstance(label, Number | np.bool_) and not isinstance(label, complex):
        return 0, "", label
    if isinstance(label, str):
        return 1, "", label
    return 2, type(label).__name__, str(label)


def warn_of_single_groups(rows: Any, numbers: RowNumbers) -> None:
    """Warn about classes in one group only: they are unknown when that group is left out."""
    classes = rows.classes
    if not len(classes):
        return
    # A class is in one group only if the smallest and the largest number of its groups are the same.
    least, most = np.full(len(classes), len(numbers)), np.full(len(classes), -1)
    first = 0
    for codes in _codes(rows):
        part = numbers[first : first + len(codes)]
        np.minimum.at(least, codes, part)
        np.maximum.at(most, codes, part)
        first += len(codes)
    alone = [repr(name) for name in classes[least == most].tolist()]
    if alone:
        more = f" (and {len(alone) - 1} more)" * (len(alone) > 1)
        warn_user(
            f"class {alone[0]}{more} occurs in one group only: without that group there are no rows of the class, so "
            "leave-one-group-out estimates do not assess it"
        )


def _codes(rows: Any) -> Iterator[npt.NDArray[Any]]:
    """The class indices of all rows used, some rows at a time."""
    if isinstance(rows, ArrayRows):
        yield rows.y
    elif isinstance(rows, TableRows):
        table = rows.table if rows.kept is None else rows.table.subset(rows.kept)
        for y, weight in table.targets():
            yield rows.encoder(y, weight)[0]
    else:
        yield from rows.table.targets()
