"""Inducing points: distinct, from a bounded sample, the same for weights and for repetition."""

import numpy as np
import pytest

from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import inducing

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 3))


def source(rows, weight=None):
    return MemorySource(rows, np.ones(len(rows), np.int32), weight, ColumnScaler(), Workers(1), 100)


def pick(a_source, how, n, seed=0):
    return inducing.select(a_source, how, n, np.random.default_rng(seed))


@pytest.mark.parametrize("how", ["kmeans", "random"])
def test_points_are_distinct_and_as_many_as_asked(how):
    points = pick(source(np.repeat(X, 3, axis=0)), how, 40)
    assert points.shape == (40, 3)
    assert len(np.unique(points, axis=0)) == 40


@pytest.mark.parametrize("how", ["kmeans", "random"])
def test_weights_and_repetition_lead_to_the_same_points(how):
    times = rng.integers(1, 4, len(X))
    shuffled = rng.permutation(times.sum())
    weighted = pick(source(X, times.astype(float)), how, 20)
    repeated = pick(source(np.repeat(X, times, axis=0)[shuffled]), how, 20)
    np.testing.assert_allclose(weighted, repeated)


def test_kmeans_covers_the_data_better_than_chance():
    def coverage(points):
        return np.min(((X[:, None] - points) ** 2).sum(-1), axis=1).mean()

    assert coverage(pick(source(X), "kmeans", 30)) < 0.8 * coverage(pick(source(X), "random", 30))


def test_fewer_distinct_rows_than_points():
    few = np.repeat(X[:7], 20, axis=0)
    np.testing.assert_array_equal(pick(source(few), "kmeans", 50), np.unique(X[:7], axis=0))
    np.testing.assert_array_equal(inducing.every_row(source(few)), np.unique(X[:7], axis=0))


def test_only_a_bounded_sample_is_read(monkeypatch):
    monkeypatch.setattr(inducing, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(inducing, "SAMPLE_ROWS_PER_POINT", 2)
    points = pick(source(X), "random", 30)
    assert len(points) == 30
    assert {tuple(p) for p in points} <= {tuple(row) for row in X}
