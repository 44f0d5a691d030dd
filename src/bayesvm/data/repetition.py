"""Data: uneven weights, and rows that are exact copies of others (D10, D23).

Copies must be left out together. Otherwise a row is predicted from its own copy, and tuning would reward kernels that
memorise. Equal rows of a discrete table are not copies: they agree by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import effective_rows
from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, HeldRows, RowNumbers, at_most
from bayesvm.data.scaling import ColumnScaler

Hashes = npt.NDArray[np.uint64]

MOST_COMPARED = 131_072  # rows that are compared with each other to detect copies
MOST_DISTINCT = 1_000  # rows used to classify the columns; fewer if rows are wide
MOST_ENTRIES = 10_000_000  # of those rows
FEW_VALUES = 20  # of a discrete column, at most
SPLITS = 4  # of the columns into halves
COPIED_FROM = 100  # ratio of equal pairs to those expected by chance, unless columns are continuous
KEY, MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # odd constants of splitmix64


@dataclass(frozen=True)
class Repetition:
    """The effect of weights and copies on a table."""

    n_rows: int
    effective_rows: float  # number of distinct, equally weighted rows with the same information (D23)
    evenness: float = 1.0  # effective rows due to weights alone, as a share of the rows
    copied: float = 0.0  # the share of rows that are copies of others


def repetition(source: BlockSource) -> Repetition:
    """Whether a table has copies, and its effective number of rows; estimated from a random sample of large tables."""
    rows = at_most(source, MOST_COMPARED, np.random.default_rng(0))
    weight = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    evenness = effective_rows(weight) / rows.n_rows
    if not _has_copies(rows):
        return Repetition(source.n_rows, evenness * source.n_rows, evenness)
    group, count = _groups(source, rows)
    effective = effective_rows(weight, group) / rows.n_rows
    return Repetition(source.n_rows, effective * source.n_rows, evenness, 1 - float(np.mean(1 / count)))


def group_weights(source: BlockSource, rows: HeldRows) -> Array:
    """The total weight of each of these rows and all its copies in the source, in one pass."""
    return _groups(source, rows)[0]


def merged(rows: HeldRows) -> HeldRows:
    """Merge copies into one row with the sum of their weights."""
    _, first, place = np.unique(_hashes_of(rows), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return rows.take(first[order]).weighted(np.bincount(place, rows.weights)[order].astype(np.float64))


def _groups(source: BlockSource, rows: HeldRows) -> tuple[Array, Array]:
    """The total weight and the number of copies in the source of each of these rows, itself included."""
    distinct_hashes, place = np.unique(_hashes_of(rows), return_inverse=True)
    weight, count = source.scaled(ColumnScaler()).reduce(partial(_weight_of_each, distinct_hashes=distinct_hashes))
    return weight[place], count[place]


def _has_copies(rows: HeldRows) -> bool:
    hashes = _hashes_of(rows)
    _, first = np.unique(hashes, return_index=True)
    if len(first) == len(hashes):
        return False
    n_distinct = min(MOST_DISTINCT, max(MOST_ENTRIES // rows.n_features, 20))
    some = np.random.default_rng(0).permutation(first)[:n_distinct]
    columns = rows.scaled(ColumnScaler()).take(some).gathered().X
    return not _discrete(columns) and (_continuous(columns) or _pairs(hashes) > COPIED_FROM * _by_chance(rows))


def _discrete(distinct: Array) -> bool:
    """Whether no column has more than a few values."""
    return all(len(np.unique(column)) <= FEW_VALUES for column in distinct.T)


def _continuous(distinct: Array) -> bool:
    """Whether most of these distinct rows have a value in some column that no other row has."""
    alone = np.zeros(len(distinct), bool)
    for column in distinct.T:
        _, place, count = np.unique(column, return_inverse=True, return_counts=True)
        alone |= count[place] == 1
    return bool(alone.mean() > 0.5)


def _by_chance(rows: HeldRows) -> float:
    """The expected share of equal pairs if agreement in one half of the columns were independent of the other half."""
    rng, n_features = np.random.default_rng(0), rows.n_features
    splits = [np.array_split(rng.permutation(n_features), 2) for _ in range(SPLITS)]
    return max(_pairs(_hashes_of(rows, some)) * _pairs(_hashes_of(rows, others)) for some, others in splits)


def _pairs(hashes: Hashes) -> float:
    """The share of pairs that are equal."""
    _, count = np.unique(hashes, return_counts=True)
    return float(np.sum(count * (count - 1.0)) / (len(hashes) * (len(hashes) - 1.0)))


def _hashes_of(rows: HeldRows, columns: RowNumbers | None = None) -> Hashes:
    """Hashes of the rows with their targets, or of some columns only."""
    return np.concatenate(list(rows.scaled(ColumnScaler()).map(partial(_of_blocks, columns=columns))))


def _of_blocks(blocks: Iterable[Block], _: Workspace, *, columns: RowNumbers | None) -> Hashes:
    if columns is None:
        return np.concatenate([_hashes(block) for block in blocks])
    return np.concatenate([_hash(block.X[:, columns]) for block in blocks])


def _weight_of_each(blocks: Iterable[Block], _: Workspace, *, distinct_hashes: Hashes) -> Array:
    """Sums of weights, and numbers of rows."""
    total = np.zeros((2, len(distinct_hashes)))
    for block in blocks:
        hashes = _hashes(block)
        place = np.minimum(np.searchsorted(distinct_hashes, hashes), len(distinct_hashes) - 1)
        hit = distinct_hashes[place] == hashes
        count = np.bincount(place[hit], minlength=len(distinct_hashes))
        total[0] += count if block.weight is None else np.bincount(place[hit], block.weight[hit], len(distinct_hashes))
        total[1] += count
    return total


def _hashes(block: Block) -> Hashes:
    """A 64-bit hash of each row and its target; it depends only on the values."""
    return _hash(block.X) + _hash(block.y[:, None], 1)


def equal_rows(values: npt.NDArray[Any]) -> tuple[RowNumbers, RowNumbers]:
    """The first row of every set of equal rows, in increasing order, and the index of the set of each row."""
    _, first, kind = np.unique(_hash(values), return_index=True, return_inverse=True)
    rising = np.argsort(first)
    rank = np.empty_like(rising)
    rank[rising] = np.arange(len(rising))
    return first[rising], rank[kind]


def uniforms(values: npt.NDArray[Any], n: int) -> Array:
    """``n`` numbers in (0, 1) for each row, which depend only on its values."""
    bits = np.repeat(_hash(values)[:, None], n, axis=1)
    scattered = _mixed(bits + KEY * np.arange(1, n + 1, dtype=np.uint64), 5)
    return np.asarray(((scattered >> np.uint64(11)) + 0.5) * 2.0**-53)


def _hash(values: npt.NDArray[Any], first: int = 3) -> Hashes:
    doubles = np.add(values, 0.0, dtype=np.float64)  # -0 becomes 0
    return np.asarray(_mixed(doubles.view(np.uint64), first).sum(axis=1))


def _mixed(bits: Hashes, first: int) -> Hashes:
    """Mix every entry over 64 bits, differently in every column."""
    bits ^= bits >> np.uint64(32)  # numbers with few digits differ only in their highest bits
    bits *= KEY * np.arange(first, first + 2 * bits.shape[1], 2, dtype=np.uint64)
    bits ^= bits >> np.uint64(29)
    bits *= MIX
    bits ^= bits >> np.uint64(32)
    return bits
