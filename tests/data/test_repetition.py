"""Copies and weights: which equal rows count as copies, what they weigh together, and what uneven rows are worth."""

from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from bayesvm.core.cavities import effective_rows
from bayesvm.data import blocks
from bayesvm.data.memory import MemorySource
from bayesvm.data.repetition import group_weights, merged, repetition
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers

rng = np.random.default_rng(0)
N = 400
SMOOTH = rng.normal(size=(N, 3))
LABELS = rng.integers(0, 2, N)
TIMES = rng.integers(1, 5, N)


def source(X, y=LABELS, weight=None, scaler=None):
    return MemorySource(X, y.astype(np.int8), weight, scaler or ColumnScaler(), Workers(1), 64)


def repeated(X, y=LABELS, times=TIMES):
    order = np.random.default_rng(1).permutation(times.sum())
    return source(np.repeat(X, times, 0)[order], np.repeat(y, times)[order])


def test_a_table_without_weights_and_copies_is_what_it_is():
    found = repetition(source(SMOOTH))
    assert (found.n_rows, found.effective_rows, found.evenness, found.copied) == (N, N, 1.0, 0.0)


def test_copies_of_continuous_rows_are_found_and_count_once():
    found = repetition(repeated(SMOOTH))
    assert found.copied == pytest.approx(1 - N / TIMES.sum())
    assert found.effective_rows == pytest.approx(TIMES.sum() ** 2 / np.sum(TIMES**2))
    assert found.evenness == 1  # of the weights


PETALS = load_iris(return_X_y=True)[0][:, 2:]
COARSE = np.round(5 * rng.normal(size=(N, 6)))


@pytest.mark.parametrize(
    ("columns", "copies"),
    [
        (SMOOTH[:, :1], True),
        (rng.poisson(0.3, (N, 3)) * SMOOTH, True),  # mostly zeros
        (COARSE, True),  # values repeat, but rows do not
        (rng.integers(0, 20, (N, 1)), False),
        (rng.integers(0, 40, (N, 1)), False),
        (rng.integers(0, 30, (N, 2)), False),
        (rng.integers(0, 2, (N, 12)), False),
        (np.column_stack([COARSE[:, 0], 2 * COARSE[:, 0]]), False),  # one says what the other says
    ],
    ids=["continuous", "zeros", "rounded", "codes", "counts", "two counts", "flags", "twins"],
)
def test_equal_rows_are_copies_where_chance_does_not_make_them(columns, copies):
    assert bool(repetition(repeated(columns.astype(float))).copied) == copies


def test_rounded_measurements_are_no_copies():
    assert len(np.unique(PETALS, axis=0)) < 0.7 * len(PETALS)
    assert not repetition(source(PETALS, np.repeat([0, 1, 2], 50))).copied


def test_equal_inputs_with_another_label_are_no_copies():
    X = np.vstack([SMOOTH, SMOOTH])
    assert not repetition(source(X, np.concatenate([LABELS, 1 - LABELS]))).copied


def test_values_that_differ_in_a_few_bits_are_distinguished_and_signed_zeros_are_not():
    grid = np.stack(np.meshgrid(np.arange(64.0), np.arange(64.0) / 4), -1).reshape(-1, 2)
    labels = np.zeros(len(grid), int)
    assert len(np.unique(group_weights(source(grid, labels), source(grid, labels)))) == 1
    zeros = source(np.array([[0.0], [-0.0], [5e-324], [1.0]]), np.zeros(4, int))
    assert group_weights(zeros, zeros).tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_group_weights_are_those_of_a_dictionary(weighted):
    table = repeated(SMOOTH)
    weight = np.random.default_rng(2).integers(1, 9, table.n_rows).astype(float) if weighted else None
    table = source(table.X, table.y, weight, ColumnScaler(np.ones(3), np.full(3, 2.0)))
    counted = Counter()
    keys = [(*row, label) for row, label in zip(table.X.tolist(), table.y.tolist(), strict=True)]
    for key, w in zip(keys, np.ones(table.n_rows) if weight is None else weight, strict=True):
        counted[key] += w
    part = table.subset(100, np.random.default_rng(3))
    assert group_weights(table, part).tolist() == [counted[keys[i]] for i in part.numbers]
    alone = merged(table)
    assert alone.n_rows == len(counted)
    assert alone.total_weight == table.total_weight
    block = alone.scaled(ColumnScaler()).gathered()
    assert {(*row, int(y)): w for row, y, w in zip(block.X.tolist(), block.y, block.weight, strict=True)} == counted


def test_sparse_rows_are_as_dense_ones():
    table = repeated(SMOOTH * (SMOOTH > 0))
    assert repetition(source(sparse.csr_array(table.X), table.y)) == repetition(source(table.X, table.y))


def test_copies_of_a_table_that_is_not_compared_as_a_whole(monkeypatch):
    monkeypatch.setattr("bayesvm.data.repetition.MOST_COMPARED", 300)
    monkeypatch.setattr(blocks, "HELD_ENTRIES", 900)
    found = repetition(repeated(SMOOTH))
    assert found.copied == pytest.approx(1 - N / TIMES.sum(), abs=0.05)
    assert found.effective_rows == pytest.approx(TIMES.sum() ** 2 / np.sum(TIMES**2), rel=0.1)


def test_effective_rows_have_closed_forms():
    assert effective_rows(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_rows(np.array([1.0, 0.0, 0.0])) == pytest.approx(1)
    weight = np.repeat([2.0, 1.0], [10, 30])
    assert effective_rows(weight) == pytest.approx(50**2 / 70)
    assert effective_rows(np.ones(6), np.repeat([2.0, 4.0], [2, 4])) == pytest.approx(36 / 20)


def test_a_weighted_mean_varies_as_one_of_so_many_equal_rows():
    weight = np.exp(rng.normal(size=60))
    means = rng.normal(size=(40_000, 60)) @ weight / weight.sum()
    assert 1 / means.var() == pytest.approx(effective_rows(weight), rel=0.05)


def test_rows_with_other_real_targets_are_no_copies():
    """Targets are numbers: 0.25 and 0.75 are as different as classes are, and -0 is 0."""
    y = np.concatenate([np.full(N, 0.25), np.full(N, 0.75), np.full(N, 0.25)])
    rows = MemorySource(np.tile(SMOOTH, (3, 1)), y, None, ColumnScaler(), Workers(1), 64)
    np.testing.assert_array_equal(group_weights(rows, rows), np.repeat([2.0, 1.0, 2.0], N))
    assert merged(rows).n_rows == 2 * N
    zeros = MemorySource(np.tile(SMOOTH, (2, 1)), np.repeat([0.0, -0.0], N), None, ColumnScaler(), Workers(1), 64)
    assert merged(zeros).n_rows == N
