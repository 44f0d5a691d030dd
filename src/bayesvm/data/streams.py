"""Data: rows that are read again in every pass, in the stripes that they would be cut into in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from bayesvm.core.arena import Arena
from bayesvm.core.statistics import Block
from bayesvm.data.blocks import RowNumbers, Work, stripe_rows
from bayesvm.data.far import FarSource
from bayesvm.data.labels import Coder
from bayesvm.data.memory import MemorySource
from bayesvm.data.read_ahead import read_ahead
from bayesvm.data.scaling import Scaler
from bayesvm.data.tables import Batch, Table
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class PositiveRows:
    """The rows of a table whose weight is not zero; the others count as if they were not there."""

    table: Table
    kept: RowNumbers

    def batches(self, n_rows: int) -> Iterator[Batch]:
        """All of them in order, ``n_rows`` at a time."""
        waiting: Batch | None = None
        for batch in self.table.batches(n_rows):
            weight = np.ones(0) if batch.weight is None else batch.weight  # which there is, or all rows would be kept
            waiting = _joined(waiting, _chosen(batch, np.flatnonzero(weight)))
            size = waiting.X.shape[0]
            if size >= n_rows:
                yield _chosen(waiting, slice(0, n_rows))
                waiting = _chosen(waiting, slice(n_rows, size))
        if waiting is not None and waiting.X.shape[0]:
            yield waiting

    def rows(self, numbers: RowNumbers) -> Batch:
        """Those with these numbers among them, in this order."""
        return self.table.rows(self.kept[numbers])


def _chosen(batch: Batch, rows: Any) -> Batch:
    return Batch(*(None if part is None else part[rows] for part in batch))


def _joined(first: Batch | None, second: Batch) -> Batch:
    if first is None:
        return second
    X, *others = zip(first, second, strict=True)
    together = sparse.vstack(X, format="csr") if hasattr(X[0], "tocsr") else np.concatenate(X)
    return Batch(together, *(np.concatenate(part) for part in others))


@dataclass(frozen=True)
class StreamSource(FarSource):
    """A table in files, read ahead while workers compute; sums have the bits that they would have in memory."""

    table: Table | PositiveRows
    coder: Coder

    def reduce(self, function: Work[Result]) -> Result:
        """The sum of ``function`` over the stripes, in the order of the rows."""

        def work(batch: Batch, arena: Arena) -> Result:
            part = replace(self.hand, **coded(batch, self.coder)._asdict(), numbered=None)
            return function(part.blocks(0, part.n_rows), arena)

        size = stripe_rows(self.n_rows, self.hand.rows_per_block)
        with closing(read_ahead(self.table.batches(size))) as batches:
            workers = self.hand.workers
            return reduce(iadd, workers.watched(workers.map(work, batches), size, self.n_rows))

    def fetch(self, numbers: RowNumbers) -> Block:
        """The rows with these numbers, in this order, not scaled."""
        return coded(self.table.rows(numbers), self.coder)


def coded(batch: Batch, coder: Coder) -> Block:
    """Rows as they were read, with the numbers of their classes."""
    if batch.y is None:
        raise ValueError("these rows have no labels")
    return Block(batch.X, *coder(batch.y, batch.weight))


def map_table(
    table: Table, function: Work[Result], scaler: Scaler, workers: Workers, rows_per_block: int
) -> Iterator[Result]:
    """The function of every stripe of a table without labels, in the order of the rows."""

    def work(batch: Batch, arena: Arena) -> Result:
        rows = batch.X.shape[0]
        part = MemorySource(batch.X, np.zeros(rows, np.int8), None, scaler, workers, rows_per_block)
        return function(part.blocks(0, rows), arena)

    with closing(read_ahead(table.batches(stripe_rows(table.n_rows, rows_per_block), labels=False))) as batches:
        yield from workers.map(work, batches)
