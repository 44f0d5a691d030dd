"""Data: the interface of a source of rows. Inference accesses rows only through this interface.

A source divides its rows into *blocks* that fit the processor's caches. Workers process *stripes*: a few consecutive
blocks, so that a worker can reuse its memory. Rows may be stored in files or on a cluster: they are aggregated where
they are stored, and only a random sample of bounded size is *held* in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import ColumnMoments, Scaler

Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=tuple[Any, Any, Any])
Work = Callable[[Iterable[Block], Workspace], Result]
RowNumbers = npt.NDArray[np.intp]

MOST_BLOCKS_IN_STRIPE = 8
STRIPE_ENTRIES = 2**22  # in a stripe of several blocks
FEWEST_STRIPES = 16  # if there are enough blocks, so that all threads have work
HELD_ENTRIES = 40_000_000  # of a table that subsets are drawn from: 160 MB in single precision
SUM_BITS = 32
SLICE = 2**20  # rows of a vector that are processed at a time, so that temporary arrays stay small
FEWEST_HELD = 32_768  # rows, regardless of their width


class BlockSource(Protocol):
    """A table as blocks of rows. All sources run the same functions on them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns of X."""

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights; the number of rows if there are none."""

    @property
    def scaler(self) -> Scaler:
        """The scaling that is applied to every block."""

    def scaled(self, scaler: Scaler) -> BlockSource:
        """The same rows, with this scaling in place of the present one."""

    def reduce(self, function: Work[Result]) -> Result:
        """The sum of ``function`` over the stripes, in an order that depends only on the table.

        A block is valid until the next one. The workspace is for arrays of the function.
        """

    def moments(self) -> ColumnMoments:
        """Means and standard deviations of the unscaled columns."""

    def subset(self, n_rows: int, rng: np.random.Generator) -> HeldRows:
        """A random sample of rows without replacement, in random order; limited to what memory can hold."""

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[HeldRows]:
        """Minibatches of ``size`` rows in random order, without replacement; limited to what memory can hold."""

    def held(self) -> HeldRows:
        """All rows in memory, in order; for tables that are known to be small."""

    def rows(self, numbers: RowNumbers) -> HeldRows:
        """The rows of the table with these increasing numbers, in memory."""

    def bucketed(self, bucket_of: Callable[[Array], RowNumbers], n_buckets: int) -> Buckets:
        """The rows, grouped by a function that maps scaled rows to buckets."""


class BucketRows(NamedTuple):
    """The scaled rows of a bucket and their numbers in the table."""

    bucket: int
    block: Block
    numbers: RowNumbers


class Buckets(Protocol):
    """Rows grouped into buckets, so that the rows of a bucket can be read together."""

    def map(self, function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]]) -> Iterator[Result]:
        """Apply the function to one group of buckets at a time, in order."""
        ...


class HeldRows(BlockSource, Protocol):
    """Rows in memory, which can be accessed individually."""

    @property
    def weights(self) -> Array | None:
        """The weights of the rows; None if all are one."""

    def scaled(self, scaler: Scaler) -> HeldRows:
        """The same rows, with this scaling in place of the present one."""

    @property
    def numbers(self) -> RowNumbers:
        """The numbers of these rows in the whole table."""

    def map(self, function: Work[Result]) -> Iterator[Result]:
        """Apply the function to every stripe, in row order."""

    def map_columns(self, function: Callable[[npt.NDArray[Any]], Result]) -> Iterator[Result]:
        """Apply the function to every unscaled column; the columns of a sparse table are passed as dense vectors."""

    def head(self, n_rows: int) -> HeldRows:
        """The first rows, in the current order."""

    def take(self, which: RowNumbers) -> HeldRows:
        """Select rows by position."""

    def weighted(self, weight: Array) -> HeldRows:
        """The same rows with other weights."""

    def gathered(self) -> Block:
        """All rows as one block."""


def taken(rows: Rows, which: Any) -> Rows:
    """Select rows of a block or a batch ``(X, y, weight)``, any part of which may be None."""
    make: Any = type(rows)
    chosen: Rows = make(*(None if part is None else part[which] for part in rows))
    return chosen


def at_most(source: BlockSource, n_rows: int, rng: np.random.Generator) -> HeldRows:
    """All rows in order if there are at most ``n_rows``, else a random sample of at most that size."""
    most = min(n_rows, most_held(source.n_features))
    return source.held() if source.n_rows <= most else source.subset(most, rng)


def rows_to_hold(n_rows: int, n_features: int, rng: np.random.Generator) -> RowNumbers | None:
    """A random sample of the rows of a large table, in increasing order; ``None`` if all rows can be held.

    It needs memory for the sample only, and does not depend on where the table is stored.
    """
    most = most_held(n_features)
    return None if n_rows <= most else random_rows(n_rows, most, rng)


def most_held(n_features: int) -> int:
    """The number of rows of a remote table that are held in memory."""
    return max(HELD_ENTRIES // max(n_features, 1), FEWEST_HELD)


def random_rows(n_rows: int, size: int, rng: np.random.Generator) -> RowNumbers:
    """``size`` distinct numbers below ``n_rows`` in increasing order, without an array of ``n_rows`` entries."""
    if 2 * size > n_rows:
        return np.sort(rng.permutation(n_rows)[:size])
    # On average, these draws have 1% more distinct numbers than ``size``; their set is a uniformly random set.
    draws = int(-n_rows * np.log1p(-min(1.01 * size / n_rows, 0.99))) + 10
    distinct = np.empty(0, np.intp)
    while len(distinct) < size:
        numbers = np.sort(rng.integers(0, n_rows, draws))
        distinct = numbers[np.diff(numbers, prepend=-1) > 0]
    return np.delete(distinct, rng.permutation(len(distinct))[size:])


def slices(n_rows: int) -> Iterator[slice]:
    """Slices that cover all rows of a vector."""
    return (slice(start, start + SLICE) for start in range(0, n_rows, SLICE))


def checksum(X: Any, *vectors: npt.NDArray[Any] | None) -> int:
    """CRC-32 of all values of ``X``, an array or a CSR matrix, and of vectors."""
    found = 0
    for array in [*((X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)), *vectors]:
        for part in slices(0 if array is None else len(array)):
            values = array[part]
            number = values.dtype.kind in "biuf"
            found = crc32(np.ascontiguousarray(values).data if number else repr(values.tolist()).encode(), found)
    return found


def rounded_sum(total: Any) -> Any:
    """Round sums to 32 bits, so that the order of summation does not matter; integers are unchanged."""
    mantissa, exponent = np.frexp(total)
    return np.ldexp(np.rint(np.ldexp(mantissa, SUM_BITS)), exponent - SUM_BITS)


def block_rows(n_weights: int, n_features: int) -> int:
    """The number of rows per block: features fit the processor's caches; fewer if rows are very wide."""
    near_caches = int(np.clip(2**19 // max(n_weights, 1), 2048, 8192))
    return int(np.clip(2**22 // max(n_features, 1), 16, near_caches))


def stripe_rows(n_rows: int, rows_per_block: int, n_features: int) -> int:
    """The number of rows per stripe. It depends only on the table, so sums do not depend on threads or files.

    Several stripes of a table in files are in memory at once, so stripes of wide rows have fewer blocks.
    """
    light = STRIPE_ENTRIES // (rows_per_block * max(n_features, 1))
    blocks = np.clip(min(n_rows // (FEWEST_STRIPES * rows_per_block), light), 1, MOST_BLOCKS_IN_STRIPE)
    return int(rows_per_block * blocks)
