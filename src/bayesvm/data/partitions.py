"""Data: one partition of a table on a cluster. These functions run where the partition lies, and change none of it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, Generic, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bayesvm.core.statistics import Block
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import RowNumbers, Work
from bayesvm.data.checks import require_labels, require_usable, require_weights, require_whole_text
from bayesvm.data.labels import Coder, LabelCounts
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import Scaler
from bayesvm.data.workers import Workers

Result = TypeVar("Result")


@dataclass(frozen=True)
class Layout:
    """What all partitions have in common: the columns, their names in a data frame, and the type of their values."""

    n_features: int
    names: tuple[Any, ...] | None
    dtype: np.dtype[Any]


class Seen(NamedTuple):
    """What a first look at a partition says; a problem is a row of the partition and what is wrong there."""

    rows: int
    kept: int  # rows whose weight is not zero
    counts: LabelCounts | None
    problem: tuple[int | None, str] | None
    checksum: int = 0  # of all values


@dataclass(frozen=True)
class Pass(Generic[Result]):
    """What a pass does with every partition. It holds the large matrices, and travels to a worker once."""

    function: Work[Result]
    coder: Coder
    dtype: np.dtype[Any]
    scaler: Scaler
    rows_per_block: int


def seen(layout: Layout, X: Any, y: Any, weight: Any) -> Seen:
    """The first look at a partition: are its values usable, which labels are there?"""
    lengths = {
        "X": X.shape[0],
        "y": None if y is None else len(y),
        "sample_weight": None if weight is None else len(weight),
    }
    told = ", ".join(f"{name} has {length}" for name, length in lengths.items() if length is not None)
    if len({length for length in lengths.values() if length is not None}) > 1:
        remedy = "Cut them alike: compute_chunk_sizes() and rechunk arrays, repartition data frames"
        return Seen(lengths["X"], 0, None, (None, f": the numbers of rows differ: {told}. {remedy}"))
    if X.shape[1] != layout.n_features:
        return Seen(
            X.shape[0], 0, None, (None, f": it has {X.shape[1]} columns, not the {layout.n_features} of the table")
        )
    rows: list[int] = []

    def locate(row: int) -> str:
        rows.append(row)
        return ""  # the caller knows how many rows there are before this partition

    try:
        features = _features(X, layout.dtype)
        require_usable(features, layout.names, locate)
        labels = None if y is None else _labels(y)
        if labels is not None:
            require_labels(_missing(y, labels), None, locate)
            require_whole_text(labels, None, locate)
            _require_classes(labels, locate)
        weights = None if weight is None else _weights(weight)
        if weights is not None:
            require_weights(weights, "sample_weight", locate)
    except ValueError as error:
        return Seen(X.shape[0], 0, None, (rows[0] if rows else None, str(error)))
    kept = X.shape[0] if weights is None else int(np.count_nonzero(weights))
    values = [features.data, features.indices] if hasattr(features, "indices") else [features]
    checksum = 0
    for array in (*values, np.zeros(0) if weights is None else weights):
        checksum = crc32(np.ascontiguousarray(array).tobytes(), checksum)
    if labels is not None:
        checksum = crc32(repr(labels.tolist()).encode(), checksum)
    counts = None if labels is None else LabelCounts.of(labels, weights)
    return Seen(X.shape[0], kept, counts, None, checksum)


def summed(work: Pass[Result], X: Any, y: Any, weight: Any) -> Result:
    """The function of all rows of a partition."""
    rows = _coded(work.coder, work.dtype, X, y, weight)
    source = MemorySource(*rows, work.scaler, Workers(1), work.rows_per_block)
    with one_blas_thread():
        return work.function(source.blocks(0, source.n_rows), Workspace())


def added(first: Result, *others: Result) -> Result:
    """The sum of some parts, which stay what they are: after a loss they may be needed again."""
    return reduce(iadd, others, deepcopy(first))


def chosen(coder: Coder, dtype: np.dtype[Any], which: RowNumbers, X: Any, y: Any, weight: Any) -> Block:
    """Some rows of a partition, by their places among those of positive weight."""
    rows = _coded(coder, dtype, X, y, weight)
    return Block(rows.X[which], rows.y[which], None if rows.weight is None else rows.weight[which])


def places(which: RowNumbers, weight: Any) -> RowNumbers:
    """Where in the partition those rows are that have such places among the rows of positive weight."""
    return np.flatnonzero(_weights(weight))[which]


def joined(blocks: Sequence[Block]) -> Block:
    """Blocks one after the other."""
    parts: list[Any] = [block.X for block in blocks]
    X: Any = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    weights = [block.weight for block in blocks if block.weight is not None]
    return Block(X, np.concatenate([block.y for block in blocks]), np.concatenate(weights) if weights else None)


def _coded(coder: Coder, dtype: np.dtype[Any], X: Any, y: Any, weight: Any) -> Block:
    """A partition as arrays, without the rows of weight zero."""
    X, y, weight = _features(X, dtype), _labels(y), None if weight is None else _weights(weight)
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, y, weight = X[kept], y[kept], weight[kept]
    return Block(X, *coder(y, weight))


def _features(X: Any, dtype: np.dtype[Any]) -> Any:
    """Always in the order of rows: sums of columns in another order would differ in their last bits."""
    if hasattr(X, "tocsr"):
        return X.tocsr().astype(dtype)
    return np.ascontiguousarray(X.to_numpy(dtype, na_value=np.nan) if hasattr(X, "to_numpy") else X, dtype)


def _labels(y: Any) -> npt.NDArray[Any]:
    return np.ravel(y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y))


def _weights(weight: Any) -> npt.NDArray[np.float64]:
    if hasattr(weight, "to_numpy"):
        weight = weight.to_numpy(np.float64, na_value=np.nan)
    return np.ravel(np.asarray(weight, np.float64))


def _missing(y: Any, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if hasattr(y, "isna"):
        return np.ravel(y.isna().to_numpy())
    if labels.dtype.kind == "O":
        nothing = (label is None or type(label).__name__ == "NAType" or label != label for label in labels)  # noqa: PLR0124
        return np.fromiter(nothing, bool, len(labels))
    return np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), bool)


def _require_classes(labels: npt.NDArray[Any], locate: Any) -> None:
    """No fractions: they are no classes, and all distinct ones of a large table would not fit into memory."""
    if labels.dtype.kind == "f" and (fractions := np.flatnonzero(labels % 1)).size:
        row = int(fractions[0])
        raise ValueError(
            f"{locate(row)}: y is {labels[row]:g}. Labels must be classes, and numbers with a fraction are none; "
            "for a threshold, give y > threshold"
        )
