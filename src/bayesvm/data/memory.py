"""Data: rows that lie in memory (or in a memory map), cut into blocks without copying the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bayesvm.core.arena import Arena
from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Block
from bayesvm.data.blocks import stripe_blocks
from bayesvm.data.scaling import Scaler
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class MemorySource:
    """Arrays, an optional choice of their rows, and the scaling that every block goes through.

    A sparse X becomes dense block by block, never as a whole.
    """

    X: Any  # an array, or a SciPy matrix in CSR format
    y: npt.NDArray[Any]
    weight: Array | None
    scaler: Scaler
    workers: Workers
    rows_per_block: int
    chosen: npt.NDArray[np.intp] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0]) if self.chosen is None else len(self.chosen)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights; the number of rows if there are none."""
        if self.weight is None:
            return float(self.n_rows)
        return float(self.weight.sum() if self.chosen is None else self.weight[self.chosen].sum())

    def map(self, function: Callable[[Iterable[Block], Arena], Result]) -> Iterator[Result]:
        """The function of every stripe of blocks, in the order of the rows."""
        size = self.rows_per_block * stripe_blocks(self.n_rows, self.rows_per_block)

        def work(start: int, arena: Arena) -> Result:
            return function(self._stripe(start, min(start + size, self.n_rows)), arena)

        return self.workers.map(work, range(0, self.n_rows, size))

    def subset(self, n_rows: int, rng: np.random.Generator) -> MemorySource:
        """A random choice of rows, in random order."""
        order = rng.permutation(self.n_rows)[:n_rows]
        return replace(self, chosen=order if self.chosen is None else self.chosen[order])

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[MemorySource]:
        """All rows once, in random order."""
        shuffled = self.subset(self.n_rows, rng)
        for start in range(0, self.n_rows, size):
            yield replace(self, chosen=shuffled.chosen[start : start + size])  # type: ignore[index]

    def head(self, n_rows: int) -> MemorySource:
        """The first rows, in the present order."""
        return replace(self, chosen=np.arange(n_rows) if self.chosen is None else self.chosen[:n_rows])

    def gathered(self) -> Block:
        """All rows as one block."""
        return self._block(0, self.n_rows, Arena())

    def _stripe(self, start: int, stop: int) -> Iterator[Block]:
        arena = Arena()
        for first in range(start, stop, self.rows_per_block):
            arena.reset()
            yield self._block(first, min(first + self.rows_per_block, stop), arena)

    def _block(self, start: int, stop: int, arena: Arena) -> Block:
        rows: Any = slice(start, stop) if self.chosen is None else self.chosen[start:stop]
        X = self.X[rows]
        return Block(
            self.scaler(X.toarray() if hasattr(X, "toarray") else X, arena),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
        )
