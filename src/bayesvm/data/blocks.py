"""Data: what a source of rows offers. Inference knows rows only through this contract.

A source cuts its rows into *blocks*, which fit the processor's caches, and hands workers *stripes*: a few
blocks one after the other, so that a worker can use its memory again. Rows may be far away, in files or on a cluster:
then sums are made where they lie, and only a bounded random choice of rows is *held* in memory.
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
FEWEST_STRIPES = 16  # as long as there are blocks enough, so that threads have something to share
HELD_ENTRIES = 40_000_000  # of a table from which subsets are taken: 160 MB in single precision
SUM_BITS = 32
SLICE = 2**20  # rows of a vector that are looked at together, so that temporary arrays stay small
FEWEST_HELD = 32_768  # rows, however wide they are


class BlockSource(Protocol):
    """A table seen as blocks of rows. All sources run the same functions over them."""

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
        """What every block goes through."""

    def scaled(self, scaler: Scaler) -> BlockSource:
        """The same rows, scaled anew from what they are in the table."""

    def reduce(self, function: Work[Result]) -> Result:
        """The sum of ``function`` over the stripes, added up in an order that depends on the table alone.

        A block is valid until the next one. The workspace is for the function's own arrays.
        """

    def moments(self) -> ColumnMoments:
        """Means and deviations of the columns as they are in the table."""

    def subset(self, n_rows: int, rng: np.random.Generator) -> HeldRows:
        """A random choice of rows, each at most once, in random order; no more than can be held."""

    def minibatches(self, size: int, rng: np.random.Generator) -> Iterator[HeldRows]:
        """Rows in random order, each at most once, in parts of ``size``: all that there are, or that can be held."""

    def held(self) -> HeldRows:
        """All rows in memory, in their order; for tables that are known to be small."""

    def rows(self, numbers: RowNumbers) -> HeldRows:
        """The rows of the table with these rising numbers, in memory."""

    def bucketed(self, bucket_of: Callable[[Array], RowNumbers], n_buckets: int) -> Buckets:
        """The rows by the bucket that a function of scaled rows puts them into."""


class BucketRows(NamedTuple):
    """The rows of a bucket, scaled, and their numbers in the table."""

    bucket: int
    block: Block
    numbers: RowNumbers


class Buckets(Protocol):
    """Rows sorted into buckets, so that those of one bucket can be read together."""

    def map(self, function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]]) -> Iterator[Result]:
        """The function of the rows of some buckets at a time, in the order of the groups."""
        ...


class HeldRows(BlockSource, Protocol):
    """Rows that lie in memory, and so may be asked for one by one."""

    @property
    def weights(self) -> Array | None:
        """Those of the rows; None if all are one."""

    def scaled(self, scaler: Scaler) -> HeldRows:
        """The same rows, scaled anew from what they are in the table."""

    @property
    def numbers(self) -> RowNumbers:
        """Which rows of the whole table these are."""

    def map(self, function: Work[Result]) -> Iterator[Result]:
        """The function of every stripe, in the order of the rows."""

    def map_columns(self, function: Callable[[npt.NDArray[Any]], Result]) -> Iterator[Result]:
        """The function of every column as it is in the table; of a sparse one, column by column as a dense vector."""

    def head(self, n_rows: int) -> HeldRows:
        """The first rows, in the present order."""

    def take(self, which: RowNumbers) -> HeldRows:
        """Some of these rows, by their places among them."""

    def weighted(self, weight: Array) -> HeldRows:
        """The same rows with other weights."""

    def gathered(self) -> Block:
        """All rows as one block."""


def taken(rows: Rows, which: Any) -> Rows:
    """Some rows of a block or a batch: of ``(X, y, weight)``, each None if it is not there."""
    make: Any = type(rows)
    chosen: Rows = make(*(None if part is None else part[which] for part in rows))
    return chosen


def at_most(source: BlockSource, n_rows: int, rng: np.random.Generator) -> HeldRows:
    """All rows in their order if there are no more than that; else a random choice of so many, or as can be held."""
    most = min(n_rows, most_held(source.n_features))
    return source.held() if source.n_rows <= most else source.subset(most, rng)


def rows_to_hold(n_rows: int, n_features: int, rng: np.random.Generator) -> RowNumbers | None:
    """A random choice, in rising order, of the rows of a large table; ``None`` if all of them can be held.

    It takes memory for those rows only, and is the same wherever the table lies.
    """
    most = most_held(n_features)
    return None if n_rows <= most else random_rows(n_rows, most, rng)


def most_held(n_features: int) -> int:
    """How many rows of a table from elsewhere are held in memory."""
    return max(HELD_ENTRIES // max(n_features, 1), FEWEST_HELD)


def random_rows(n_rows: int, size: int, rng: np.random.Generator) -> RowNumbers:
    """``size`` of the numbers below ``n_rows``, in rising order, without an array of ``n_rows`` entries."""
    if 2 * size > n_rows:
        return np.sort(rng.permutation(n_rows)[:size])
    # So many draws have a hundredth more than ``size`` distinct numbers, on average; a set of them is a random set.
    draws = int(-n_rows * np.log1p(-min(1.01 * size / n_rows, 0.99))) + 10
    distinct = np.empty(0, np.intp)
    while len(distinct) < size:
        numbers = np.sort(rng.integers(0, n_rows, draws))
        distinct = numbers[np.diff(numbers, prepend=-1) > 0]
    return np.delete(distinct, rng.permutation(len(distinct))[size:])


def slices(n_rows: int) -> Iterator[slice]:
    """All rows of a vector, some at a time."""
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
    """Sums to 32 bits: those of the same weights in another order are then equal, too, and whole numbers stay."""
    mantissa, exponent = np.frexp(total)
    return np.ldexp(np.rint(np.ldexp(mantissa, SUM_BITS)), exponent - SUM_BITS)


def block_rows(n_weights: int, n_features: int) -> int:
    """Rows in a block: as many as keep its features near the processor's caches, fewer if rows are very wide."""
    near_caches = int(np.clip(2**19 // max(n_weights, 1), 2048, 8192))
    return int(np.clip(2**22 // max(n_features, 1), 16, near_caches))


def stripe_rows(n_rows: int, rows_per_block: int, n_features: int) -> int:
    """Rows in a stripe. It depends on the table alone, so that sums do not depend on threads or on files.

    Several stripes of a table in files are in memory at a time, so wide rows have fewer blocks in one.
    """
    light = STRIPE_ENTRIES // (rows_per_block * max(n_features, 1))
    blocks = np.clip(min(n_rows // (FEWEST_STRIPES * rows_per_block), light), 1, MOST_BLOCKS_IN_STRIPE)
    return int(rows_per_block * blocks)
