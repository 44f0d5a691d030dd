"""Estimators: groups of rows, given as a label of any type per row (D24)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesvm.data.blocks import RowNumbers
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.tables import Table
from bayesvm.estimators._inputs import ArrayRows
from bayesvm.warn import warn_user


def grouped(rows: Any, groups: Any, X: Any) -> Any:
    """Checked rows with the index of their group; for a table, ``groups`` may be the name of a column."""
    labels, given = _labels(groups, X), rows.given(np.arange(rows.n_rows))
    if len(labels) <= given[-1]:
        raise ValueError(f"groups has {len(labels):,} labels for {int(given[-1]) + 1:,} rows; give one label per row")
    missing = np.flatnonzero(are_missing(labels))
    if len(missing):
        raise ValueError(
            f"groups has no label for row {missing[0]} ({len(missing):,} rows in total); give a row that belongs to no "
            "group a label of its own"
        )
    names, numbers = np.unique(labels[given], return_inverse=True)
    if len(names) == 1:
        raise ValueError(
            f"all rows are in one group, {names.tolist()[0]!r}, so no rows remain when it is left out; give at least "
            "two groups, or no groups"
        )
    if isinstance(rows, ArrayRows):
        _warn_of_single_groups(rows, numbers)
    return replace(rows, groups=numbers)


def are_missing(labels: np.ndarray) -> np.ndarray:
    """Which labels are None or NaN."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return np.array([label is None or label != label for label in labels.tolist()])  # noqa: PLR0124  (NaN)


def without_column(X: Any, groups: Any) -> Any:
    """A table without the column that names its groups."""
    if isinstance(X, Table) and isinstance(groups, str) and X.names is not None and groups in X.names:
        return X.with_features(tuple(name for name in X.names if name != groups))
    return X


def _labels(groups: Any, X: Any) -> np.ndarray:
    if isinstance(X, Table) and isinstance(groups, str):
        parts = [batch.column(groups).to_numpy(zero_copy_only=False) for batch in X.columns([groups])]
        return np.concatenate(parts)
    labels = np.asarray(groups.compute() if is_dask(groups) else groups)
    if labels.ndim != 1:
        raise ValueError(f"groups must have one label per row; got an array of shape {labels.shape}")
    return labels


def _warn_of_single_groups(rows: ArrayRows, numbers: RowNumbers) -> None:
    """Warn about classes in one group only: they are unknown when that group is left out."""
    for code, name in enumerate(rows.classes.tolist()):
        if len(np.unique(numbers[rows.y == code])) == 1:
            warn_user(
                f"class {name!r} occurs in one group only: without that group there are no rows of the class, so "
                "leave-one-group-out estimates do not assess it"
            )
