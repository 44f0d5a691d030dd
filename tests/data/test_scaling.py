"""Streaming moments against NumPy, and on columns that break naive sums."""

import numpy as np
import pytest

from bayesvm.core.statistics import Block
from bayesvm.data.scaling import LARGEST_SCALED, ColumnMoments

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


def test_a_common_scale_keeps_the_columns_in_proportion():
    X = rng.standard_normal((500, 3)) * [1, 10, 0] + [5, -3, 7]
    scaler = moments(X).common_scaler()
    np.testing.assert_allclose(scaler.centre, X.mean(axis=0))
    np.testing.assert_allclose(scaler.scale, np.sqrt(X.var(axis=0).mean()))


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.1, 1e12]])
def test_a_table_that_does_not_vary_has_the_common_scale_one(values):
    np.testing.assert_array_equal(moments(np.tile(values, (1000, 1))).common_scaler().scale, 1)


def test_rows_of_weight_zero_do_not_count_though_they_fill_whole_blocks():
    X, weight = rng.standard_normal((500, 2)), np.repeat([0.0, 0.0, 1.0, 0.0, 2.0], 100)
    scaler, expected = moments(X, weight).scaler(), moments(X[weight > 0], weight[weight > 0], cuts=1).scaler()
    np.testing.assert_allclose(scaler.centre, expected.centre)
    np.testing.assert_allclose(scaler.scale, expected.scale)


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e-200, 1e-160, 1e-100, 1e95])
@pytest.mark.parametrize("name", ["scaler", "common_scaler"])
def test_units_do_not_matter(unit, name):
    X = rng.standard_normal((200, 2)) * [1, 3] + 5
    scaled = getattr(moments(X * unit), name)()(X * unit)
    np.testing.assert_allclose(scaled, getattr(moments(X), name)()(X), rtol=1e-6, atol=1e-6)


def test_no_row_is_scaled_beyond_reach():
    X = rng.standard_normal((200, 2)) * [1e-60, 1e-300]
    scaled = moments(X).scaler()(np.array([[1e100, 1e100], [-1e100, 0.0]]))
    np.testing.assert_allclose(scaled, [[LARGEST_SCALED, LARGEST_SCALED], [-LARGEST_SCALED, 0.0]], atol=1)
