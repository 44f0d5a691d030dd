"""Data: rows that lie in memory (or in a memory map), cut into blocks without copying the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Block
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import RowNumbers, Work, random_rows, rounded_sum, stripe_rows
from bayesvm.data.scaling import ColumnMoments, ColumnScaler, Scaler
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class MemorySource:
    """Arrays, an optional choice of their rows, and the scaling that every block goes through.

    A sparse X becomes dense block by block, never as a whole. Of a very large table, subsets come from the rows
    ``to_hold`` as they would if it lay elsewhere.
    """

    X: Any  # an array, or a SciPy matrix in CSR format
    y: npt.NDArray[Any]
    weight: Array | None
    scaler: Scaler
    workers: Workers
    rows_per_block: int
    chosen: RowNumbers | None = None
    to_hold: RowNumbers | None = None
    numbered: RowNumbers | None = None  # what the rows are called in the table that they were taken from

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0]) if self.chosen is None else len(self.chosen)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def weights(self) -> Array | None:
        """Those of the rows; None if all are one."""
        return self.weight if self.weight is None or self.chosen is None else self.weight[self.chosen]

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights; the number of rows if there are none."""
        weights = self.weights
        return float(self.n_rows) if weights is None else float(rounded_sum(weights.sum()))

    @property
    def numbers(self) -> RowNumbers:
        """Which rows of the whole table these are."""
        here = np.arange(self.n_rows) if self.chosen is None else self.chosen
        return here if self.numbered is None else self.numbered[here]

    def scaled(self, scaler: Scaler) -> MemorySource:
        """The same rows, scaled anew from what they are in the table."""
        return replace(self, scaler=scaler)

    def reduce(self, function: Work[Result]) -> Result:
        """The sum of ``function`` over the stripes, in the order of the rows."""
        return reduce(iadd, self.map(function))

    def moments(self) -> ColumnMoments:
        """Means and deviations of the columns as they are in the table."""
        return self.scaled(ColumnScaler()).reduce(ColumnMoments.of)

    def map(self, function: Work[Result]) -> Iterator[Result]:
        """The function of every stripe of blocks, in the order of the rows."""
        size = stripe_rows(self.n_rows, self.rows_per_block, self.n_features)

        def work(start: int, workspace: Workspace) -> Result:
            return function(self.blocks(start, min(start + size, self.n_rows)), workspace)

        return self.workers.watched(self.workers.map(work, range(0, self.n_rows, size)), size, self.n_rows)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The rows from ``start`` to ``stop``, block by block, each valid until the next."""
        workspace = Workspace()
        for first in range(start, stop, self.rows_per_block):
            workspace.reset()
            self.workers.check()
            yield self._block(first, min(first + self.rows_per_block, stop), workspace)

    def subset(self, n_rows: int, rng: np.random.Generator) -> MemorySource:
        """A random choice of rows, in random order."""
        among = self.to_hold if self.chosen is None else self.chosen
        order = rng.permutation(self.n_rows if among is None else len(among))[:n_rows]
        return replace(self, chosen=order if among is None else among[order], to_hold=None)

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[MemorySource]:
        """All rows once, in random order; of a very large table a fresh random choice, as if it lay elsewhere."""
        among = self.chosen if self.to_hold is None else random_rows(self.n_rows, len(self.to_hold), rng)
        order = rng.permutation(self.n_rows if among is None else len(among))
        shuffled = order if among is None else among[order]
        for start in range(0, len(shuffled), size):
            yield replace(self, chosen=shuffled[start : start + size], to_hold=None)

    def held(self) -> MemorySource:
        """Itself."""
        return self

    def head(self, n_rows: int) -> MemorySource:
        """The first rows, in the present order."""
        return self.take(np.arange(min(n_rows, self.n_rows)))

    def take(self, which: RowNumbers) -> MemorySource:
        """Some of these rows, by their places among them."""
        return replace(self, chosen=which if self.chosen is None else self.chosen[which], to_hold=None)

    def weighted(self, weight: Array) -> MemorySource:
        """The same rows with other weights."""
        if self.chosen is None:
            return replace(self, weight=weight)
        spread = np.zeros(self.X.shape[0])
        spread[self.chosen] = weight
        return replace(self, weight=spread)

    def gathered(self) -> Block:
        """All rows as one block."""
        return self._block(0, self.n_rows, Workspace())

    def _block(self, start: int, stop: int, workspace: Workspace) -> Block:
        rows: Any = slice(start, stop) if self.chosen is None else self.chosen[start:stop]
        X = self.X[rows]
        return Block(
            self.scaler(X.toarray() if hasattr(X, "toarray") else X, workspace),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
        )
