"""Rank-to-normal scaling against SciPy's ranks and scikit-learn; ties, weights, tails and the way back."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.preprocessing import QuantileTransformer

from bayesvm.core.workspace import Workspace
from bayesvm.data.memory import MemorySource
from bayesvm.data.quantiles import quantile_scaler
from bayesvm.data.scaling import LARGEST_SCALED, ColumnScaler
from bayesvm.data.workers import Workers

rng = np.random.default_rng(0)
SMALL, LARGE = 300, 20_000


def table(n_rows):
    """Columns of many shapes: smooth, heavy-tailed, bounded, discrete, with ties among smooth values, binary."""
    normal = rng.standard_normal(n_rows)
    return np.column_stack(
        [
            normal,
            np.exp(2 * normal),
            rng.standard_cauchy(n_rows),
            rng.random(n_rows),
            rng.poisson(30, n_rows),
            np.round(normal, 3),
            np.where(rng.random(n_rows) < 0.4, 0, np.exp(rng.standard_normal(n_rows))),
            rng.random(n_rows) < 0.1,
        ]
    )


def fitted(X, weight=None, workers=None):
    y = np.zeros(X.shape[0])
    return quantile_scaler(MemorySource(X, y, weight, ColumnScaler(), workers or Workers(1), 100))


def mid_ranks(X):
    return (rankdata(X, axis=0) - 0.5) / len(X)


def assert_near(scaler, other, rtol=1e-12):
    for name, value in vars(scaler).items():
        np.testing.assert_allclose(value, getattr(other, name), rtol=rtol, err_msg=name)


def test_a_small_table_gets_the_scores_of_its_ranks():
    X = table(SMALL)
    np.testing.assert_allclose(fitted(X)(X), norm.ppf(mid_ranks(X)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["chosen", "sparse", "chosen sparse", "sparse with entries in parts"])
def test_rows_of_any_kind_are_scaled_alike(kind):
    X, weight = table(SMALL), rng.integers(0, 4, SMALL).astype(float)
    which = np.arange(SMALL)
    given = X
    if "sparse" in kind:
        given = sparse.csr_matrix(X)
    if kind == "sparse with entries in parts":
        halves = np.repeat(given.data / 2, 2), np.repeat(given.indices, 2), 2 * given.indptr
        given = sparse.csr_matrix(halves, given.shape)
    source = MemorySource(given, np.zeros(SMALL), weight, ColumnScaler(), Workers(1), 100)
    if "chosen" in kind:
        which = rng.permutation(SMALL)[:200]
        source = source.take(which)
    assert_near(quantile_scaler(source), fitted(X[which], weight[which]))


def test_a_weight_is_so_many_equal_rows():
    X, weight = table(SMALL), rng.integers(0, 4, SMALL)
    weight[100:200] = 0
    repeated = np.repeat(X, weight, axis=0)
    assert_near(fitted(X, weight.astype(float)), fitted(repeated))


def test_a_weight_is_so_many_equal_rows_in_a_large_table_too():
    X, weight = table(LARGE), rng.integers(0, 4, LARGE)
    weighted = fitted(X, weight.astype(float))(X[:2000])
    repeated = fitted(np.repeat(X, weight, axis=0))(X[:2000])
    np.testing.assert_allclose(norm.cdf(weighted), norm.cdf(repeated), atol=0.002)


def test_ranks_of_a_large_table_are_accurate():
    X = table(LARGE)
    found, truth = norm.cdf(fitted(X)(X)), mid_ranks(X)
    error = np.abs(found - truth)
    assert error.max() < 0.002
    tail = np.minimum(truth, 1 - truth)
    assert (error / tail).max() < 0.1
    discrete = [4, 7]
    np.testing.assert_allclose(found[:, discrete], truth[:, discrete], rtol=1e-12)


def test_scores_beside_gaps_are_accurate():
    X = 10.0 ** rng.integers(0, 100, (LARGE, 1)) * (1 + 1e-3 * rng.standard_normal((LARGE, 1)))
    scaled = fitted(X)(X)
    np.testing.assert_allclose(scaled, norm.ppf(mid_ranks(X)), atol=0.04)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_heavy_value_and_its_neighbours_keep_their_places(sign):
    X = table(LARGE)[:, [6]]
    scaler = fitted(sign * X)
    zeros, smallest = np.mean(X == 0), X[X > 0].min()
    scores = sign * scaler(sign * np.array([[0.0], [smallest]]))[:, 0]
    np.testing.assert_allclose(norm.cdf(scores), [zeros / 2, zeros + 0.5 / LARGE], atol=1e-12)


def test_the_middle_is_that_of_scikit_learn():
    X = table(LARGE)[:, :6]
    theirs = QuantileTransformer(output_distribution="normal", subsample=None).fit_transform(X)
    ours = fitted(X)(X)
    middle = np.abs(theirs) < 2
    np.testing.assert_allclose(ours[middle], theirs[middle], atol=0.02)


@pytest.mark.parametrize("n_rows", [SMALL, LARGE])
def test_the_map_rises_strictly(n_rows):
    X = table(n_rows)
    scaler = fitted(X)
    grid = np.linspace(X.min(axis=0) * 1.5 - 1, X.max(axis=0) * 1.5, 20_000)
    assert (np.diff(scaler(grid), axis=0) > 0).all()


@pytest.mark.parametrize("scale", [1.0, 1e100, 1e-100])
@pytest.mark.parametrize("n_rows", [SMALL, LARGE])
def test_there_and_back(n_rows, scale):
    X = table(n_rows) * scale
    scaler = fitted(X)
    scores = np.concatenate([scaler(X), 20 * rng.standard_normal((1000, X.shape[1]))])
    np.testing.assert_allclose(scaler(scaler.inverse(scores)), scores, rtol=1e-9, atol=1e-9)
    rows = np.concatenate([X, 3 * X - scale])
    np.testing.assert_allclose(scaler.inverse(scaler(rows)), rows, rtol=1e-9, atol=1e-9 * scale)


def test_beyond_the_extremes_it_continues_linearly():
    X = table(SMALL)
    scaler = fitted(X)
    spread = np.ptp(X, axis=0)
    for end, sign in ((X.min(axis=0), -1), (X.max(axis=0), 1)):
        steps = np.diff(scaler(end + sign * np.arange(4)[:, None] * spread), axis=0)
        np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape))
        assert (sign * steps[0] > 0.5).all()  # a row that is a whole spread away is far


def test_the_outer_slope_does_not_hang_on_two_rows():
    smooth = np.sort(rng.random((SMALL, 1)), axis=0)
    close, tied = smooth.copy(), smooth.copy()
    close[0] = close[1] - 1e-9
    tied[:200] = tied[199] - 1e-9
    for X in (smooth, close, tied):
        below = fitted(X)(X[[0]] - [[0.1], [0.0]])
        assert 0.3 < below[1, 0] - below[0, 0] < 3  # a slope of 3 to 30; the two rows alone would give 1e7


def test_a_constant_column_is_only_centred():
    X = np.tile([0.0, 3.0, 1e12], (SMALL, 1))
    X[::2, 2] += 1e-4  # one unit in the last place
    scaler = fitted(X)
    rows = np.array([[0.0, 3.0, 1e12], [1.0, 2.0, 1e12 + 5]])
    np.testing.assert_allclose(scaler(rows), [[0, 0, 0], [1, -1, 5]], atol=1e-3)
    np.testing.assert_allclose(scaler.inverse(scaler(rows)), rows)


def test_a_binary_column_becomes_two_points_on_a_line():
    X = np.repeat([[0.0], [1.0]], [30, 10], axis=0)
    scaler = fitted(X)
    low, high = norm.ppf([15 / 40, 35 / 40])
    np.testing.assert_allclose(
        scaler(np.array([[-1.0], [0.0], [1.0], [2.0]]))[:, 0], [2 * low - high, low, high, 2 * high - low]
    )


def test_each_end_has_its_own_slope():
    X, far = np.array([[0.0], [1.0], [11.0]]), np.array([[-1.0], [1.0], [21.0]])
    score = norm.ppf(5 / 6)
    np.testing.assert_allclose(fitted(X)(far)[:, 0], [-2 * score, 0, 2 * score])


def test_single_precision_rows_are_scaled_in_double_precision():
    X = table(SMALL).astype(np.float32)
    single, double = fitted(X), fitted(X.astype(np.float64))
    assert_near(single, double)
    assert single(X).dtype == np.float64
    np.testing.assert_allclose(single(X), double(X.astype(np.float64)), rtol=1e-12)


def test_weights_of_any_size_give_finite_scores_that_rise():
    X = np.arange(200.0)[:, None]
    weight = np.tile([1e-30, 1.0, 1e-12, 1e6], 50)
    weight[:3] = weight[-3:] = 1e-30
    scores = fitted(X, weight)(X)[:, 0]
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()


def test_the_result_is_in_the_workspace():
    X, workspace = table(SMALL), Workspace()
    scaler = fitted(X)
    first = scaler(X, workspace)
    workspace.reset()
    assert np.shares_memory(first, scaler(X, workspace))


def test_threads_give_bit_identical_results():
    X = table(LARGE)
    scalers = []
    for n_threads in (1, 2):
        with Workers(n_threads) as workers:
            scalers.append(fitted(X, workers=workers))
    assert_near(*scalers, rtol=0)


@pytest.mark.parametrize("unit", [1e-60, 1e-300, 5e-324])
def test_no_row_is_scaled_beyond_reach(unit):
    X = unit * rng.integers(0, 5, (50, 1))
    scaler = fitted(X)
    np.testing.assert_allclose(scaler(np.array([[-1e100], [1e100]])), [[-LARGEST_SCALED], [LARGEST_SCALED]])
    assert np.abs(scaler(X)).max() < 5
