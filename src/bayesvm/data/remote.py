"""Data: the common base of remote sources, whose rows are in files or on a cluster; a sample is held in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.data.blocks import RowNumbers, Work, most_held, random_rows
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnMoments, ColumnScaler, Scaler

Result = TypeVar("Result")


@dataclass(frozen=True)
class RemoteSource(ABC):
    """Rows are aggregated where they are stored; subsets are drawn from ``sample``: all rows or a random sample."""

    n_rows: int
    total_weight: float
    sample: MemorySource

    @abstractmethod
    def reduce(self, function: Work[Result]) -> Result:
        """The sum of ``function`` over all rows."""

    @abstractmethod
    def fetch(self, numbers: RowNumbers) -> Block:
        """The unscaled rows with these numbers, in this order."""

    @property
    def n_features(self) -> int:
        return self.sample.n_features

    @property
    def scaler(self) -> Scaler:
        return self.sample.scaler

    def scaled(self, scaler: Scaler) -> Self:
        return replace(self, sample=self.sample.scaled(scaler))

    def moments(self) -> ColumnMoments:
        return self.scaled(ColumnScaler()).reduce(ColumnMoments.of)

    def subset(self, n_rows: int, rng: np.random.Generator) -> MemorySource:
        return self.sample.subset(n_rows, rng)

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[MemorySource]:
        """If memory cannot hold the table, draw a new random sample each time; the order in files does not matter."""
        if self.sample.n_rows == self.n_rows:
            yield from self.sample.minibatches(size, rng)
            return
        numbers = random_rows(self.n_rows, most_held(self.n_features), rng)
        yield from self.rows(numbers).minibatches(size, rng)

    def held(self) -> MemorySource:
        if self.sample.n_rows == self.n_rows:
            return self.sample
        return self.rows(np.arange(self.n_rows))

    def rows(self, numbers: RowNumbers) -> MemorySource:
        with self.sample.workers.stop.elsewhere():
            return replace(self.sample, **self.fetch(numbers)._asdict(), numbered=numbers)
