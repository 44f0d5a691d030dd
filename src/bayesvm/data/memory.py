"""Data: rows in memory (or in a memory map), split into blocks without copying the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BucketRows, RowNumbers, Rows, Work, random_rows, rounded_sum, stripe_rows
from bayesvm.data.scaling import ColumnMoments, ColumnScaler, Scaler
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class MemorySource:
    """Arrays, an optional selection of their rows, and the scaling that is applied to every block.

    A sparse X is converted to dense block by block, never as a whole. Subsets of a very large table are drawn from the
    rows ``to_hold``, exactly as for a remote table.
    """

    X: Any  # an array, or a SciPy matrix in CSR format
    y: npt.NDArray[Any]
    weight: Array | None
    scaler: Scaler
    workers: Workers
    rows_per_block: int
    chosen: RowNumbers | None = None
    to_hold: RowNumbers | None = None
    numbered: RowNumbers | None = None  # numbers of the rows in the table that they come from

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0]) if self.chosen is None else len(self.chosen)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def weights(self) -> Array | None:
        return self.weight if self.weight is None or self.chosen is None else self.weight[self.chosen]

    @property
    def total_weight(self) -> float:
        weights = self.weights
        return float(self.n_rows) if weights is None else float(rounded_sum(weights.sum()))

    @property
    def numbers(self) -> RowNumbers:
        here = np.arange(self.n_rows) if self.chosen is None else self.chosen
        return here if self.numbered is None else self.numbered[here]

    def scaled(self, scaler: Scaler) -> MemorySource:
        return replace(self, scaler=scaler)

    def reduce(self, function: Work[Result]) -> Result:
        return reduce(iadd, self.map(function))

    def moments(self) -> ColumnMoments:
        return self.scaled(ColumnScaler()).reduce(ColumnMoments.of)

    def map(self, function: Work[Result]) -> Iterator[Result]:
        size = stripe_rows(self.n_rows, self.rows_per_block, self.n_features)

        def work(start: int, workspace: Workspace) -> Result:
            return function(self.blocks(start, min(start + size, self.n_rows)), workspace)

        return self.workers.watched(self.workers.map(work, range(0, self.n_rows, size)), size, self.n_rows)

    def map_columns(self, function: Callable[[npt.NDArray[Any]], Result]) -> Iterator[Result]:
        rows: Any = slice(None) if self.chosen is None else self.chosen
        by_column: Any = None
        if hasattr(self.X, "tocsc"):
            by_column = self.X[rows].tocsc()
            by_column.sum_duplicates()

        def work(number: int, _: Workspace) -> Result:
            self.workers.check()
            if by_column is None:
                return function(self.X[rows, number])
            column = np.zeros(self.n_rows, by_column.dtype)
            entries = slice(*by_column.indptr[number : number + 2])
            column[by_column.indices[entries]] = by_column.data[entries]
            return function(column)

        return self.workers.map(work, range(self.n_features))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The rows from ``start`` to ``stop`` as blocks; each is valid until the next."""
        workspace = Workspace()
        for first in range(start, stop, self.rows_per_block):
            workspace.reset()
            self.workers.check()
            yield self._block(first, min(first + self.rows_per_block, stop), workspace)

    def subset(self, n_rows: int, rng: np.random.Generator) -> MemorySource:
        among = self.to_hold if self.chosen is None else self.chosen
        order = rng.permutation(self.n_rows if among is None else len(among))[:n_rows]
        return replace(self, chosen=order if among is None else among[order], to_hold=None)

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[MemorySource]:
        """All rows once, in random order; for a very large table a new random sample, as for a remote table."""
        among = self.chosen if self.to_hold is None else random_rows(self.n_rows, len(self.to_hold), rng)
        order = rng.permutation(self.n_rows if among is None else len(among))
        shuffled = order if among is None else among[order]
        for start in range(0, len(shuffled), size):
            yield replace(self, chosen=shuffled[start : start + size], to_hold=None)

    def held(self) -> MemorySource:
        return self

    def head(self, n_rows: int) -> MemorySource:
        return self.take(np.arange(min(n_rows, self.n_rows)))

    def take(self, which: RowNumbers) -> MemorySource:
        return replace(self, chosen=which if self.chosen is None else self.chosen[which], to_hold=None)

    def rows(self, numbers: RowNumbers) -> MemorySource:
        return self.take(numbers)

    def weighted(self, weight: Array) -> MemorySource:
        if self.chosen is None:
            return replace(self, weight=weight)
        spread = np.zeros(self.X.shape[0])
        spread[self.chosen] = weight
        return replace(self, weight=spread)

    def gathered(self) -> Block:
        return self._block(0, self.n_rows, Workspace())

    def bucketed(self, bucket_of: Callable[[Array], RowNumbers], n_buckets: int) -> MemoryBuckets:
        def numbers(blocks: Iterable[Block], _: Workspace) -> RowNumbers:
            return np.concatenate([bucket_of(block.X) for block in blocks])

        bucket = np.concatenate(list(self.map(numbers)))
        order = np.argsort(bucket, kind="stable")
        return MemoryBuckets(self, np.split(order, np.cumsum(np.bincount(bucket, minlength=n_buckets))[:-1]))

    def _block(self, start: int, stop: int, workspace: Workspace) -> Block:
        rows: Any = slice(start, stop) if self.chosen is None else self.chosen[start:stop]
        X = self.X[rows]
        return Block(
            self.scaler(X.toarray() if hasattr(X, "toarray") else X, workspace),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
        )


@dataclass(frozen=True)
class MemoryBuckets:
    """The rows of a source by bucket."""

    source: MemorySource
    rows: Sequence[RowNumbers]

    def map(self, function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]]) -> Iterator[Result]:
        source = self.source

        def work(group: Sequence[int], _: Workspace) -> Result:
            source.workers.check()
            parts = [source.take(self.rows[bucket]) for bucket in group]
            return function(
                [BucketRows(b, part.gathered(), part.numbers) for b, part in zip(group, parts, strict=True)]
            )

        return source.workers.map(work, groups)


def stacked(parts: Iterable[Rows], n_rows: int) -> Rows:
    """Concatenate blocks or batches with ``n_rows`` rows in total; copies dense rows once."""
    matrices: list[Any] = []
    vectors: list[tuple[Any, Any]] = []
    X: Any = None
    make: Any = None
    filled = 0
    for part in parts:
        some, y, weight = part
        if sparse.issparse(some):
            matrices.append(some)
        else:
            X = np.empty((n_rows, some.shape[1]), some.dtype) if X is None else X
            X[filled : filled + len(some)] = some
            filled += len(some)
        vectors.append((y, weight))
        make = type(part)
    ys, weights = (None if each[0] is None else np.concatenate(each) for each in zip(*vectors, strict=True))
    rows: Rows = make(sparse.vstack(matrices, format="csr") if X is None else X, ys, weights)
    return rows
