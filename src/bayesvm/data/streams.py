"""Data: rows that are read again in every pass, in the stripes that they would be cut into in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import TypeVar

import numpy as np

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
class StreamSource(FarSource):
    """A table in files, read ahead while workers compute; sums have the bits that they would have in memory."""

    table: Table
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
