"""Data: rows that are streamed from files in every pass, in the same stripes as in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import TypeVar

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import Buckets, RowNumbers, Work, stripe_rows, taken
from bayesvm.data.bucket_files import BucketFiles
from bayesvm.data.memory import MemorySource, stacked
from bayesvm.data.read_ahead import read_ahead
from bayesvm.data.remote import RemoteSource
from bayesvm.data.scaling import ColumnMoments, ColumnScaler, Scaler
from bayesvm.data.tables import Batch, Table
from bayesvm.data.targets import TargetEncoder, encoded_block
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class StreamSource(RemoteSource):
    """A table in files, read ahead while workers compute; sums are bit-identical to those in memory."""

    table: Table
    encoder: TargetEncoder
    surveyed: ColumnMoments

    @classmethod
    def survey(
        cls,
        table: Table,
        encoder: TargetEncoder,
        total_weight: float,
        numbers: RowNumbers,
        workers: Workers,
        rows_per_block: int,
    ) -> StreamSource:
        """Read the rows to hold, given by increasing numbers, and the moments of the columns, in one pass."""
        size = stripe_rows(table.n_rows, rows_per_block, table.n_features)

        def work(numbered: tuple[int, Batch], _: Workspace) -> tuple[ColumnMoments, Block]:
            number, batch = numbered
            rows = encoded(batch, encoder)
            part = MemorySource(*rows, ColumnScaler(), workers, rows_per_block)
            begin, end = np.searchsorted(numbers, (number * size, (number + 1) * size))
            return ColumnMoments.of(part.blocks(0, part.n_rows)), taken(rows, numbers[begin:end] - number * size)

        moments: list[ColumnMoments] = []

        def held(batches: Iterator[Batch]) -> Iterator[Block]:
            for found, kept in workers.watched(workers.map(work, enumerate(batches)), size, table.n_rows):
                moments.append(found)
                yield kept

        with closing(read_ahead(table.batches(size))) as batches:
            rows = stacked(held(batches), len(numbers))
        sample = MemorySource(*rows, ColumnScaler(), workers, rows_per_block, numbered=numbers)
        return cls(table.n_rows, total_weight, sample, table, encoder, reduce(iadd, moments))

    def moments(self) -> ColumnMoments:
        return self.surveyed

    def reduce(self, function: Work[Result]) -> Result:
        def work(batch: Batch, workspace: Workspace) -> Result:
            part = replace(self.sample, **encoded(batch, self.encoder)._asdict(), numbered=None)
            return function(part.blocks(0, part.n_rows), workspace)

        size = stripe_rows(self.n_rows, self.sample.rows_per_block, self.n_features)
        with closing(read_ahead(self.table.batches(size))) as batches:
            workers = self.sample.workers
            return reduce(iadd, workers.watched(workers.map(work, batches), size, self.n_rows))

    def bucketed(self, bucket_of: Callable[[Array], RowNumbers], n_buckets: int) -> Buckets:
        if self.sample.n_rows == self.n_rows:
            return self.sample.bucketed(bucket_of, n_buckets)
        size, workers = stripe_rows(self.n_rows, self.sample.rows_per_block, self.n_features), self.sample.workers
        with closing(read_ahead(self.table.batches(size))) as batches:
            blocks = workers.watched((encoded(batch, self.encoder) for batch in batches), size, self.n_rows)
            return BucketFiles.of(blocks, bucket_of, n_buckets, self.scaler, workers, self.table.copy_to)

    def fetch(self, numbers: RowNumbers) -> Block:
        return encoded(self.table.rows(numbers), self.encoder)


def encoded(batch: Batch, encoder: TargetEncoder) -> Block:
    """The rows of a batch, with targets as numbers."""
    if batch.y is None:
        raise ValueError("these rows have no targets")
    return encoded_block(encoder, batch.X, batch.y, batch.weight)


def map_table(
    table: Table, function: Work[Result], scaler: Scaler, workers: Workers, rows_per_block: int
) -> Iterator[Result]:
    """Apply the function to every stripe of a table, in row order, without reading targets."""

    def work(batch: Batch, workspace: Workspace) -> Result:
        rows = batch.X.shape[0]
        part = MemorySource(batch.X, np.zeros(rows), None, scaler, workers, rows_per_block)
        return function(part.blocks(0, rows), workspace)

    size = stripe_rows(table.n_rows, rows_per_block, table.n_features)
    with closing(read_ahead(table.batches(size, targets=False))) as batches:
        yield from workers.map(work, batches)
