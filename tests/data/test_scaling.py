"""Streaming moments against NumPy, and on columns that break naive sums."""

import numpy as np
import pytest

from bayesvm.core.statistics import Block
from bayesvm.data.scaling import ColumnMoments

rng = np.random.default_rng(0)


def moments(X, weight=None, cuts=5):
    parts = np.array_split(np.arange(len(X)), cuts)
    blocks = [Block(X[rows], np.ones(len(rows), int), None if weight is None else weight[rows]) for rows in parts]
    return ColumnMoments.of(blocks)


def test_blocks_together_are_the_whole():
    X, weight = rng.standard_normal((500, 3)) * [1, 10, 0.1] + 5, rng.random(500)
    scaler = moments(X, weight).scaler()
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(scaler.centre, mean)
    np.testing.assert_allclose(scaler.scale, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight)))


@pytest.mark.parametrize(("offset", "spread"), [(1e12, 1.0), (0.0, 1e-12), (0.0, 1e12), (-1e9, 1e-3), (0.0, 1e90)])
def test_large_offsets_and_tiny_spreads_survive(offset, spread):
    X = offset + spread * rng.standard_normal((1000, 1))
    scaled = moments(X).scaler()(X)
    assert abs(scaled.mean()) < 1e-2
    assert scaled.std() == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e12, -1e-300])
def test_a_constant_column_becomes_zero(value):
    scaler = moments(np.full((1000, 1), value)).scaler()
    assert scaler.scale[0] == 1.0
    np.testing.assert_allclose(scaler(np.full((3, 1), value)), 0, atol=1e-3)
