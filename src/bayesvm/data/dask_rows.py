"""Data: rows on a Dask cluster. Rows are aggregated where their partitions are stored; only sums are transferred.

Dask recomputes the user's collections in every pass. Call ``persist()`` on them first if they fit into the cluster's
memory; each task then runs on the worker that stores its partition. Workers keep no state between passes, so they can
join or leave at any time.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, TypeVar, cast

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.data.blocks import BucketRows, RowNumbers, Work, taken
from bayesvm.data.memory import stacked
from bayesvm.data.partitions import (
    BucketPass,
    PartitionColumns,
    PartitionSummary,
    Pass,
    added,
    chosen_rows,
    cut_up,
    done_to,
    encoded_targets,
    numbers_in_partition,
    summarised,
    summed,
)
from bayesvm.data.remote import RemoteSource
from bayesvm.data.scaling import Scaler
from bayesvm.data.targets import Summarise, SummaryType, TargetEncoder
from bayesvm.extras import optional

Result = TypeVar("Result")
FAN_IN = 8  # partial sums added in one task
BATCHES_PER_PARTITION = 4  # batches that collect pieces of the partitions
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}  # large matrices in the graph are intended


def is_dask(X: Any) -> bool:
    """Whether an object is a Dask collection, without importing Dask."""
    return any(kind.__module__.split(".")[0] in {"dask", "dask_expr"} for kind in type(X).__mro__)


@dataclass(frozen=True)
class DaskTable:
    """Matching partitions of X, y and sample weights; each is a delayed value, or ``None`` if not given."""

    parts: tuple[tuple[Any, Any, Any], ...]
    columns: PartitionColumns

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> DaskTable:
        """Build from arrays and data frames; repartitions y and weights to match X if all sizes are known."""
        columns = columns_of(X)
        X = one_column_chunk(X)
        vectors = [_cut_alike(name, given, X) for name, given in (("y", y), ("sample_weight", sample_weight))]
        return cls(tuple(zip(_delayed_parts(X), *vectors, strict=True)), columns)

    def survey(self, summarise: Summarise[SummaryType]) -> tuple[PartitionRows, SummaryType]:
        """The first pass: number the rows, summarise the targets and validate the values."""
        columns, summarise = _node(self.columns), _node(summarise)
        found: Sequence[PartitionSummary] = _computed(
            [_node(summarised)(columns, summarise, *part) for part in self.parts]
        )
        before = 0
        for number, part in enumerate(found):
            if part.problem is not None:
                row, complaint = part.problem
                place = "" if row is None else f", row {row} (row {before + row} of the table)"
                raise ValueError(f"partition {number}{place}{complaint}")
            before += part.n_rows
        if not before:
            raise ValueError("X has no rows: all its partitions are empty")
        rows, kept, targets, checksums, _ = zip(*found, strict=True)
        return PartitionRows(rows, kept, checksums), reduce(iadd, targets)


@dataclass(frozen=True)
class PartitionRows:
    """For each partition: the number of rows, the number with positive weight, and a checksum of all values."""

    given: tuple[int, ...]
    kept: tuple[int, ...]
    checksums: tuple[int, ...]


@dataclass(frozen=True)
class EncodedDaskTable:
    """A surveyed table with targets encoded as numbers. Rows of weight zero are left out."""

    table: DaskTable
    rows: PartitionRows
    encoder: TargetEncoder

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.rows.kept)

    def reduce(self, function: Work[Result], scaler: Scaler, rows_per_block: int) -> Result:
        """The sum of ``function`` over the partitions, in their order: one computation on the cluster."""
        work = _node(Pass(function, self.encoder, self.table.columns.dtype, scaler, rows_per_block))
        filled = zip(self.table.parts, self.rows.kept, strict=True)
        sums = [_node(summed)(work, *part) for part, n_rows in filled if n_rows]
        while len(sums) > 1:
            sums = [_node(added)(*sums[start : start + FAN_IN]) for start in range(0, len(sums), FAN_IN)]
        total: Result = _computed(sums)[0]
        return total

    def fetch(self, numbers: RowNumbers) -> Block:
        """The unscaled rows with these numbers, in this order; each partition sends only the rows selected from it."""
        encoder, dtype = _node(self.encoder), self.table.columns.dtype
        order, wanted = self._by_partition(numbers)
        found = _computed([_node(chosen_rows)(encoder, dtype, which, *part) for part, which in wanted])
        rows: Block = stacked(found, len(numbers))
        return rows if (np.diff(numbers) > 0).all() else taken(rows, np.argsort(order))

    def targets(self) -> Sequence[Array]:
        """The encoded targets of each partition."""
        encoder = _node(self.encoder)
        found: Sequence[Array] = _computed(
            [_node(encoded_targets)(encoder, y, weight) for _, y, weight in self.table.parts]
        )
        return found

    def given(self, numbers: RowNumbers) -> RowNumbers:
        """The numbers of these rows in the user's table, which includes rows of weight zero."""
        if self.rows.given == self.rows.kept:
            return numbers
        order, wanted = self._by_partition(numbers)
        found = _computed([_node(numbers_in_partition)(which, weight) for (_, _, weight), which in wanted])
        starts = np.cumsum([0, *self.rows.given])[self._partition_of(numbers[order])]
        names = np.empty_like(numbers)
        names[order] = starts + np.concatenate(found)
        return names

    def _partition_of(self, numbers: RowNumbers) -> RowNumbers:
        return np.searchsorted(np.cumsum(self.rows.kept), numbers, side="right")

    def _by_partition(self, numbers: RowNumbers) -> tuple[RowNumbers, list[tuple[tuple[Any, Any, Any], RowNumbers]]]:
        """The sort order of the numbers, and the partitions that contain them, with the row positions in each."""
        order = np.argsort(numbers, kind="stable")
        inside = np.split(numbers[order], np.searchsorted(numbers[order], np.cumsum(self.rows.kept)[:-1]))
        starts = np.cumsum([0, *self.rows.kept])
        wanted = zip(self.table.parts, inside, starts, strict=False)
        return order, [(part, which - start) for part, which, start in wanted if len(which)]


@dataclass(frozen=True)
class DaskSource(RemoteSource):
    """A table on a cluster. Sums do not depend on the number of workers, or on workers that join or leave."""

    table: EncodedDaskTable

    def reduce(self, function: Work[Result]) -> Result:
        with self.sample.workers.stop.elsewhere():
            return self.table.reduce(function, self.scaler, self.sample.rows_per_block)

    def bucketed(self, bucket_of: Callable[[Array], RowNumbers], n_buckets: int) -> DaskBuckets:
        return DaskBuckets(self, bucket_of)

    def fetch(self, numbers: RowNumbers) -> Block:
        return self.table.fetch(numbers)


@dataclass(frozen=True)
class DaskBuckets:
    """Rows by bucket on a cluster: partitions are split, and the pieces of a bucket are collected by its batch.

    A batch is an independent task; its result is available as soon as it is finished.
    """

    source: DaskSource
    bucket_of: Callable[[Array], RowNumbers]

    def map(self, function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]]) -> Iterator[Result]:
        table = self.source.table
        n_batches = min(len(groups), BATCHES_PER_PARTITION * len(table.table.parts))
        of_batch = [list(part) for part in np.array_split(np.arange(len(groups)), n_batches)]
        wanted = [[list(groups[number]) for number in numbers] for numbers in of_batch]
        cut = _node(BucketPass(table.encoder, table.table.columns.dtype, self.source.scaler, self.bucket_of, wanted))
        first = np.cumsum([0, *table.rows.kept])
        pieces = [
            _node(cut_up)(cut, int(start), *part)
            for part, start, n_rows in zip(table.table.parts, first, table.rows.kept, strict=False)
            if n_rows
        ]
        work = _node(function)
        results = [
            _node(done_to)(work, wanted[batch], *(piece[batch] for piece in pieces)) for batch in range(n_batches)
        ]
        with self.source.sample.workers.stop.elsewhere():
            for found in _computed_in_turn(results):
                yield from found


def is_frame(X: Any) -> bool:
    """Whether a Dask collection is a data frame."""
    return hasattr(type(X), "to_dask_array") and X.ndim == 2


def columns_of(X: Any) -> PartitionColumns:
    """The columns of X, without computing anything; all of them must be numeric."""
    _require_collection("X", X)
    if is_frame(X):
        names = tuple(X.columns)
        for name, kind in zip(names, X.dtypes, strict=True):
            if kind.kind not in "biuf":
                raise ValueError(
                    f"column {name!r} of X is not numeric: its type is {kind}. Encode such columns first, "
                    f"for example with sklearn.preprocessing.OneHotEncoder, or drop it: X.drop(columns=[{name!r}])"
                )
        return PartitionColumns(
            len(names), names, _float_type([f"{kind.kind}{getattr(kind, 'itemsize', 8)}" for kind in X.dtypes])
        )
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise ValueError(f"X must be two-dimensional with a known number of columns, got shape {X.shape}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must be numeric, got a Dask array of type {X.dtype}; convert it: X.astype(float)")
    return PartitionColumns(int(X.shape[1]), None, _float_type([X.dtype]))


def one_column_chunk(X: Any) -> Any:
    """The same collection with whole rows in every chunk."""
    return X if is_frame(X) or X.numblocks[1] == 1 else X.rechunk({1: -1})


def _float_type(kinds: Sequence[Any]) -> np.dtype[Any]:
    """Single precision if scikit-learn would use it for these column types, else double."""
    common = np.result_type(*map(np.dtype, kinds)) if kinds else np.dtype(np.float64)
    return common if common == np.float32 else np.dtype(np.float64)


def _cut_alike(name: str, given: Any, X: Any) -> list[Any]:
    """The parts of a vector that match those of X."""
    if given is None:
        return [None] * X.npartitions
    sizes = _sizes(X)
    if is_dask(given):
        _require_collection(name, given)
    elif sizes is None:
        raise ValueError(
            f"{name} is in memory, but the partition sizes of X are unknown, so it cannot be split to match; "
            f"pass {name} as a Dask collection, or an X with known chunks: "
            "X.compute_chunk_sizes(), X.to_dask_array(lengths=True)"
        )
    else:
        values = np.asarray(given)
        cuts = (sizes, *values.shape[1:]) if len(values) == sum(sizes) else -1
        given = optional("dask.array", "dask").from_array(values, cuts)
    width = 1 if given.ndim == 1 else len(given.columns) if is_frame(given) else given.shape[1]
    if given.ndim > 2 or width != 1:
        raise ValueError(f"{name} must have one column, got {width}")
    own = _sizes(given)
    if own is not None and sizes is not None:
        if sum(own) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows, but {name} has {sum(own)}; give one value per row")
        given = given.rechunk((sizes, *given.chunks[1:]))
    elif given.npartitions != X.npartitions:
        raise ValueError(
            f"X has {X.npartitions} partitions, but {name} has {given.npartitions}, and their sizes are unknown, so "
            "they cannot be matched; call compute_chunk_sizes() on both arrays, or repartition the data frames alike"
        )
    return _delayed_parts(given)


def _require_collection(name: str, given: Any) -> None:
    if not hasattr(type(given), "chunks") and not hasattr(type(given), "to_dask_array"):
        raise TypeError(
            f"{name} is a Dask {type(given).__name__}; it must be a Dask array or data frame, "
            "for example from dask.array.from_delayed or Bag.to_dataframe"
        )


def _sizes(given: Any) -> tuple[int, ...] | None:
    """The chunk sizes of an array along its rows, if known."""
    has_sizes = hasattr(type(given), "chunks") and not np.isnan(given.chunks[0]).any()
    return tuple(given.chunks[0]) if has_sizes else None


def _delayed_parts(given: Any) -> list[Any]:
    # Optimised separately, a frame with few columns may fuse partitions that the other frames keep separate.
    parts = given.to_delayed(optimize_graph=False)
    return list(parts.ravel() if isinstance(parts, np.ndarray) else parts)


def _node(value: Any) -> Any:
    """A value or a function as one node of a graph, so that workers can transfer it to each other."""
    return optional("dask", "dask").delayed(value, traverse=False, pure=False)


def _computed(values: Sequence[Any]) -> Sequence[Any]:
    """Run one computation on the current Dask scheduler."""
    with _quiet():
        found: Sequence[Any] = optional("dask", "dask").compute(*values)
    return found


def _computed_in_turn(values: Sequence[Any]) -> Iterator[Any]:
    """Run one computation and yield its results in order; on a cluster, each as soon as it is there."""
    client = getattr(optional("dask.base", "dask").get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "compute"):
        yield from _computed(values)
        return
    with _quiet():
        futures = deque(client.compute(list(values)))
    while futures:
        yield futures.popleft().result()


def _quiet() -> AbstractContextManager[Any]:
    """Suppress Dask's warning about large graphs, which is possible only after distributed is imported."""
    return cast(
        "AbstractContextManager[Any]",
        optional("dask", "dask").config.set(QUIET if "distributed" in sys.modules else {}),
    )
