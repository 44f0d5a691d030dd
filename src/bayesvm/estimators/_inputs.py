"""Estimators: what ``fit`` may be given, and the source of blocks that it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from bayesvm.data.blocks import BlockSource, RowNumbers, rows_to_hold
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.labels import slices
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.tables import Table
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import require_few_classes
from bayesvm.estimators._dask import dask_rows
from bayesvm.estimators._tables import table_rows
from bayesvm.estimators._validation import coded, coded_as, row_weights, training_data


class TrainingRows(Protocol):
    """Checked rows whose classes are known."""

    @property
    def classes(self) -> np.ndarray: ...

    @property
    def totals(self) -> np.ndarray:
        """The weight of every class."""
        ...

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> BlockSource:
        """The rows as blocks, not scaled."""
        ...

    def given(self, numbers: RowNumbers) -> RowNumbers:
        """What rows of the source are called in the user's table."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that tell these rows apart from others."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory, those of weight zero left out."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray | None
    classes: np.ndarray
    totals: np.ndarray
    kept: np.ndarray | None = None  # of the rows given; all of them unless some have weight zero

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> MemorySource:
        to_hold = rows_to_hold(self.n_rows, self.n_features, rng)
        return MemorySource(self.X, self.codes, self.weight, ColumnScaler(), workers, rows_per_block, to_hold=to_hold)

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return numbers if self.kept is None else self.kept[numbers]

    def fingerprint(self) -> dict[str, Any]:
        shape = {"the number of rows": self.n_rows, "the number of columns": self.n_features}
        arrays = [self.X.data, self.X.indices, self.X.indptr] if hasattr(self.X, "indptr") else [self.X]
        weight = [] if self.weight is None else [self.weight]
        return shape | {"the checksum of the data": f"{_checksum([*arrays, self.codes, *weight]):08x}"}


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """What ``fit`` was given, checked."""
    if is_dask(X):
        return dask_rows(estimator, X, y, sample_weight)
    if isinstance(X, Table):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "a table has its labels and weights in it: open_table(…, target=…, weight=…), then fit(table)"
            )
        return table_rows(estimator, X)
    X, y = training_data(estimator, X, y)
    classes, codes = coded(estimator, y)
    return _array_rows(estimator, X, codes, classes, sample_weight)


def stream_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, *, first: bool) -> TrainingRows:
    """What ``partial_fit`` was given, checked; the classes are those that the estimator knows."""
    if is_dask(X) or isinstance(X, Table):
        raise TypeError(
            f"partial_fit takes rows in memory, part by part; fit learns from a {type(X).__name__} as a whole"
        )
    X, y = training_data(estimator, X, y, first=first)
    require_few_classes(estimator.classes_, len(y), "`classes`")
    codes = coded_as(estimator.classes_, y)
    weight = row_weights(sample_weight, estimator.class_weight, X, codes, estimator.classes_)
    return ArrayRows(X, codes, weight, estimator.classes_, class_totals(codes, weight, len(estimator.classes_)))


def _array_rows(estimator: Any, X: Any, codes: np.ndarray, classes: np.ndarray, sample_weight: Any) -> ArrayRows:
    weight = row_weights(sample_weight, estimator.class_weight, X, codes, classes)
    kept = None
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, codes, weight = X[kept], codes[kept], weight[kept]
    totals = class_totals(codes, weight, len(classes))
    if not totals.all():
        raise ValueError(
            f"all rows of class {classes[totals.argmin()]!r} have zero weight; leave them out of y instead"
        )
    return ArrayRows(X, codes, weight, classes, totals, kept)


def _checksum(arrays: Iterable[np.ndarray]) -> int:
    """CRC-32 of all values, some rows at a time."""
    found = 0
    for array in arrays:
        for part in slices(len(array)):
            found = crc32(np.ascontiguousarray(array[part]).tobytes(), found)
    return found


def class_totals(codes: np.ndarray, weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """The weight of every class, or the number of its rows."""
    totals = np.zeros(n_classes)
    for part in slices(len(codes)):
        totals += np.bincount(codes[part], None if weight is None else weight[part], minlength=n_classes)
    return totals
