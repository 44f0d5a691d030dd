"""Data: what a source of rows offers. Inference knows rows only through this contract.

A source cuts its rows into *blocks*, which fit the processor's caches, and hands workers *stripes*: a few
blocks one after the other, so that a worker can use its memory again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import iadd
from typing import Protocol, TypeVar

import numpy as np

from bayesvm.core.arena import Arena
from bayesvm.core.statistics import Block

Result = TypeVar("Result")

MOST_BLOCKS_IN_STRIPE = 8
FEWEST_STRIPES = 16  # as long as there are blocks enough, so that threads have something to share


class BlockSource(Protocol):
    """A table seen as blocks of rows. All sources run the same functions over them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        ...

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights; the number of rows if there are none."""
        ...

    def map(self, function: Callable[[Iterable[Block], Arena], Result]) -> Iterator[Result]:
        """The function of every stripe, in the order of the rows; a block is valid until the next one.

        The arena is for the function's own arrays.
        """
        ...

    def subset(self, n_rows: int, rng: np.random.Generator) -> BlockSource:
        """A random choice of rows, each at most once, in random order."""
        ...

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[BlockSource]:
        """All rows once, in random order, in parts of ``size`` rows."""
        ...

    def head(self, n_rows: int) -> BlockSource:
        """The first rows, in the present order."""
        ...

    def gathered(self) -> Block:
        """All rows as one block; for subsets that are known to be small."""
        ...


def map_reduce(source: BlockSource, function: Callable[[Iterable[Block], Arena], Result]) -> Result:
    """The sum of ``function`` over the stripes, added up in their order."""
    return reduce(iadd, source.map(function))


def block_rows(n_weights: int, n_features: int) -> int:
    """Rows in a block: as many as keep its features near the processor's caches, fewer if rows are very wide."""
    near_caches = int(np.clip(2**19 // max(n_weights, 1), 2048, 8192))
    return int(np.clip(2**24 // max(n_features, 1), 16, near_caches))


def stripe_blocks(n_rows: int, rows_per_block: int) -> int:
    """Blocks in a stripe. It depends on the table alone, so that sums do not depend on the number of threads."""
    return int(np.clip(n_rows // (FEWEST_STRIPES * rows_per_block), 1, MOST_BLOCKS_IN_STRIPE))
