"""Data: one partition of a table on a cluster. These functions run where it is stored and do not modify it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BucketRows, RowNumbers, Work, checksum, taken
from bayesvm.data.checks import require_in_range, require_targets, require_weights, require_whole_text
from bayesvm.data.memory import MemorySource, stacked
from bayesvm.data.scaling import Scaler
from bayesvm.data.targets import Summarise, Summary, TargetEncoder, Targets, encoded_block
from bayesvm.data.workers import Workers

Result = TypeVar("Result")
ROWS_AT_ONCE = 8_192


@dataclass(frozen=True)
class PartitionColumns:
    """The columns of all partitions: their number, their names in a data frame, and the type of their values."""

    n_features: int
    names: tuple[Any, ...] | None
    dtype: np.dtype[Any]


class PartitionSummary(NamedTuple):
    """The result of the first pass over a partition; a problem is a row of the partition with an error message."""

    n_rows: int
    n_kept: int = 0  # rows of nonzero weight
    targets: Any = None  # the result of the caller's function
    checksum: int = 0
    problem: tuple[int | None, str] | None = None


@dataclass(frozen=True)
class Pass(Generic[Result]):
    """The work of a pass on every partition. It holds the large matrices and is sent to each worker once."""

    function: Work[Result]
    encoder: TargetEncoder
    dtype: np.dtype[Any]
    scaler: Scaler
    rows_per_block: int


def summarised(
    columns: PartitionColumns, summarise: Summarise[Summary], X: Any, y: Any, weight: Any
) -> PartitionSummary:
    """Validate the values of a partition and summarise its targets."""
    rows: list[int] = []

    def locate(row: int) -> str:
        rows.append(row)
        return ""  # only the caller knows the number of rows before this partition

    try:
        _require_shape(columns, X, y, weight)
        features, targets = _features(X, columns.dtype), _vector(y)
        weights = None if weight is None else _weights(weight)
        require_in_range(features, columns.names, locate)
        require_targets(_missing(y, targets), None, locate)
        require_whole_text(targets, None, locate)
        if weights is not None:
            require_weights(weights, "sample_weight", locate)
        summary = summarise(targets, weights, locate)
    except ValueError as error:
        return PartitionSummary(X.shape[0], problem=(rows[0] if rows else None, str(error)))
    n_kept = X.shape[0] if weights is None else int(np.count_nonzero(weights))
    return PartitionSummary(X.shape[0], n_kept, summary, checksum(features, targets, weights))


def _require_shape(columns: PartitionColumns, X: Any, y: Any, weight: Any) -> None:
    given = {"X": X.shape[0], "y": len(y)} | ({} if weight is None else {"sample_weight": len(weight)})
    if len(set(given.values())) > 1:
        counted = ", ".join(f"{name} has {length}" for name, length in given.items())
        remedy = "Partition them alike: compute_chunk_sizes() and rechunk() for arrays, repartition() for data frames"
        raise ValueError(f": different numbers of rows: {counted}. {remedy}")
    if X.shape[1] != columns.n_features:
        raise ValueError(f": the partition has {X.shape[1]} columns, but the table has {columns.n_features}")


def summed(work: Pass[Result], X: Any, y: Any, weight: Any) -> Result:
    """Apply the function to all rows of a partition."""
    rows = _encoded(work.encoder, work.dtype, X, y, weight)
    source = MemorySource(*rows, work.scaler, Workers(1), work.rows_per_block)
    with one_blas_thread():
        return work.function(source.blocks(0, source.n_rows), Workspace())


def added(first: Result, *others: Result) -> Result:
    """The sum of the parts, which are not modified: they may be needed again after a worker is lost."""
    return reduce(iadd, others, deepcopy(first))


def chosen_rows(encoder: TargetEncoder, dtype: np.dtype[Any], which: RowNumbers, X: Any, y: Any, weight: Any) -> Block:
    """Select rows of a partition by their numbers among the rows of positive weight."""
    return taken(_encoded(encoder, dtype, X, y, weight), which)


@dataclass(frozen=True)
class BucketPass:
    """How to split a partition into one piece per batch; a batch is a list of groups of buckets."""

    encoder: TargetEncoder
    dtype: np.dtype[Any]
    scaler: Scaler
    bucket_of: Callable[[Array], RowNumbers]
    batches: Sequence[Sequence[Sequence[int]]]


Piece = dict[int, tuple[Block, RowNumbers]]  # scaled rows and their numbers, by bucket
EMPTY = -1  # the number of a bucket without rows, which every piece has


def cut_up(work: BucketPass, first: int, X: Any, y: Any, weight: Any) -> list[Piece]:
    """Split the rows of a partition by batch and bucket; ``first`` is the number of its first row."""
    rows = _encoded(work.encoder, work.dtype, X, y, weight)
    source = MemorySource(*rows, work.scaler, Workers(1), ROWS_AT_ONCE)
    with one_blas_thread():
        scaled = [np.array(block.X) for block in source.blocks(0, source.n_rows)]
        bucket = np.concatenate([work.bucket_of(part) for part in scaled])
    block = Block(np.concatenate(scaled), rows.y, rows.weight)
    order = np.argsort(bucket, kind="stable")
    present, begin = np.unique(bucket[order], return_index=True)
    mine = dict(zip(present.tolist(), np.split(order, begin[1:]), strict=True)) | {EMPTY: order[:0]}
    return [
        {b: (taken(block, mine[b]), first + mine[b]) for group in [*batch, [EMPTY]] for b in group if b in mine}
        for batch in work.batches
    ]


def done_to(
    function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]], *pieces: Piece
) -> list[Result]:
    """Apply the function to every group of buckets; their rows come from several partitions, in order."""
    nothing = next(piece[EMPTY] for piece in pieces)

    def rows(bucket: int) -> BucketRows:
        parts = [piece[bucket] for piece in pieces if bucket in piece] or [nothing]
        blocks = [block for block, _ in parts]
        joined: Block = stacked(blocks, sum(len(block.y) for block in blocks))
        return BucketRows(bucket, joined, np.concatenate([numbers for _, numbers in parts]))

    return [function([rows(bucket) for bucket in group]) for group in groups]


def numbers_in_partition(which: RowNumbers, weight: Any) -> RowNumbers:
    """Convert row numbers among the rows of positive weight to row numbers in the partition."""
    return np.flatnonzero(_weights(weight))[which]


def encoded_targets(encoder: TargetEncoder, y: Any, weight: Any) -> Array:
    """The encoded targets of the rows of positive weight."""
    weights = None if weight is None else _weights(weight)
    found = np.asarray(encoder(_vector(y), weights)[0])
    return found if weights is None else found[weights != 0]


def _encoded(encoder: TargetEncoder, dtype: np.dtype[Any], X: Any, y: Any, weight: Any) -> Block:
    """A partition as arrays, without the rows of weight zero."""
    rows = Block(_features(X, dtype), _vector(y), None if weight is None else _weights(weight))
    if rows.weight is not None and not rows.weight.all():
        rows = taken(rows, np.flatnonzero(rows.weight))
    return encoded_block(encoder, rows.X, rows.y, rows.weight)


def _features(X: Any, dtype: np.dtype[Any]) -> Any:
    """The features, always row-major: column sums in another memory order would differ in their last bits."""
    if hasattr(X, "tocsr"):
        return X.tocsr().astype(dtype)
    return np.ascontiguousarray(X.to_numpy(dtype, na_value=np.nan) if hasattr(X, "to_numpy") else X, dtype)


def _vector(y: Any) -> Targets:
    return np.ravel(y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y))


def _weights(weight: Any) -> npt.NDArray[np.float64]:
    if hasattr(weight, "to_numpy"):
        weight = weight.to_numpy(np.float64, na_value=np.nan)
    return np.ravel(np.asarray(weight, np.float64))


def _missing(y: Any, targets: Targets) -> npt.NDArray[np.bool_]:
    if hasattr(y, "isna"):
        return np.ravel(y.isna().to_numpy())
    if targets.dtype.kind == "O":
        nothing = (each is None or type(each).__name__ == "NAType" or each != each for each in targets)  # noqa: PLR0124
        return np.fromiter(nothing, bool, len(targets))
    return np.isnan(targets) if targets.dtype.kind == "f" else np.zeros(len(targets), bool)
