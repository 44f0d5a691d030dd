"""Rows in memory: every row once, whatever the cut; weights and scaling go along."""

import numpy as np
import pytest
from scipy import sparse

from bayesvm.data import blocks
from bayesvm.data.blocks import random_rows
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.workers import Workers

rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 4))
y = rng.integers(0, 3, 1000)
weight = rng.random(1000)


def source(rows_per_block=64, **changes):
    arrays = {"X": X, "y": y, "weight": weight, "scaler": ColumnScaler()} | changes
    return MemorySource(**arrays, workers=Workers(1), rows_per_block=rows_per_block)


def copies(blocks, workspace):
    return [(block.X.copy(), block.y.copy(), block.weight.copy()) for block in blocks]


def all_rows(a_source):
    parts = [block for stripe in a_source.map(copies) for block in stripe]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@pytest.mark.parametrize("rows_per_block", [1, 7, 64, 5000])
def test_blocks_hold_every_row_in_order(rows_per_block):
    for found, given in zip(all_rows(source(rows_per_block)), (X, y, weight), strict=True):
        np.testing.assert_array_equal(found, given)


def test_minibatches_hold_every_row_once_in_another_order():
    batches = [all_rows(batch)[0] for batch in source().minibatches(300, np.random.default_rng(1))]
    assert [len(batch) for batch in batches] == [300, 300, 300, 100]
    rows = np.concatenate(batches)
    assert not np.array_equal(rows, X)
    np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(X[:, 0]))


def test_heads_of_a_shuffled_source_are_nested():
    shuffled = source().subset(1000, np.random.default_rng(2))
    small, large = all_rows(shuffled.head(50))[0], all_rows(shuffled.head(200))[0]
    np.testing.assert_array_equal(large[:50], small)
    assert shuffled.head(50).total_weight == pytest.approx(all_rows(shuffled.head(50))[2].sum())


def test_blocks_are_scaled_and_the_table_is_not():
    before = X.copy()
    scaler = source().reduce(ColumnMoments.of).scaler()
    scaled = all_rows(source(scaler=scaler))[0]
    np.testing.assert_allclose(np.average(scaled, axis=0, weights=weight), 0, atol=1e-7)
    np.testing.assert_allclose(np.average(scaled**2, axis=0, weights=weight), 1, atol=1e-6)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(scaler.inverse(scaled), X)


def test_sparse_rows_become_dense_block_by_block():
    matrix = sparse.csr_matrix(np.where(X > 0, X, 0))
    np.testing.assert_array_equal(all_rows(source(X=matrix))[0], matrix.toarray())
    np.testing.assert_array_equal(source(X=matrix).head(3).gathered().X, matrix[:3].toarray())


@pytest.mark.parametrize(("n_rows", "size"), [(10, 10), (10, 6), (10, 4), (10, 0), (1000, 1), (100_000, 40_000)])
def test_random_rows_are_distinct_and_as_many_as_requested(n_rows, size):
    found = random_rows(n_rows, size, np.random.default_rng(0))
    assert len(np.unique(found)) == len(found) == size
    assert size == 0 or 0 <= found.min() <= found.max() < n_rows


@pytest.mark.parametrize("size", [3, 7])
def test_random_rows_prefer_no_row(size):
    rng = np.random.default_rng(0)
    found = np.array([random_rows(10, size, rng) for _ in range(20_000)])
    np.testing.assert_allclose(np.bincount(found.ravel(), minlength=10) / 20_000, size / 10, atol=0.015)
    assert (np.diff(found, axis=1) > 0).all()
    pairs = {tuple(pair) for pair in found[:, :2].tolist()}
    assert len(pairs) > 5  # not always neighbours


def test_of_a_large_table_subsets_come_from_the_rows_to_hold(monkeypatch):
    monkeypatch.setattr(blocks, "HELD_ENTRIES", 0)
    monkeypatch.setattr(blocks, "FEWEST_HELD", 300)
    to_hold = blocks.rows_to_hold(1000, 4, np.random.default_rng(3))
    large = source(to_hold=to_hold)
    part = large.subset(1000, np.random.default_rng(4))
    assert sorted(part.numbers) == sorted(to_hold)
    np.testing.assert_array_equal(all_rows(part)[0], X[part.numbers])
    assert large.n_rows == 1000
    assert large.held() is large
