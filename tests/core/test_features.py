"""Feature maps with effects (D26) against dense sums of kernels, and features that rows hold against plain ones."""

import pickle

import numpy as np
import pytest

from bayesvm.core.cavities import RowMarginals, block_cavities, block_marginals
from bayesvm.core.features import Effect, HeldFeatures, InducingFeatures
from bayesvm.core.heads import OneVsRest
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Linear, Matern

rng = np.random.default_rng(0)
N, D = 40, 4
X, Y, OMEGA = rng.standard_normal((N, D)), rng.integers(0, 3, N), rng.uniform(0.2, 2, N)
KERNEL, POINTS = RBF(1.5, 2.0) + 0.3 * Linear(), rng.standard_normal((6, D))
ONE, PAIR = Matern(0.3, 4.0, nu=0.5), Matern(np.array([0.5, 2.0]), 1.5, nu=0.5)
COLUMNS = (2,), (3, 1)  # of a pair, in any order


def with_effects(points, points_of_one, points_of_pair):
    effects = zip(COLUMNS, (ONE, PAIR), (points_of_one, points_of_pair), strict=True)
    each = tuple(Effect(columns, InducingFeatures.build(kernel, Z)) for columns, kernel, Z in effects)
    return InducingFeatures.build(KERNEL, points, effects=each)


FEATURES = with_effects(POINTS, np.array([[-1.0], [0.0], [0.4]]), rng.standard_normal((5, 2)))
PLAIN = InducingFeatures.build(KERNEL, POINTS)
every_map = pytest.mark.parametrize("features", [PLAIN, FEATURES], ids=["plain", "effects"])


def dense_covariance(rows):
    return KERNEL(rows) + ONE(rows[:, COLUMNS[0]]) + PAIR(rows[:, COLUMNS[1]])


# ---- effects ----


def test_effects_add_their_weights():
    assert FEATURES.n_weights == 6 + 3 + 5
    phi, _ = FEATURES.prepared(None, np.float64)(X, Workspace())
    assert phi.shape == (N, 14)


def test_with_points_at_every_row_the_features_are_the_sum_of_the_kernels():
    """``phi phiᵀ = Σ K``, and nothing is left for the residual."""
    features = with_effects(X, X[:, COLUMNS[0]], X[:, COLUMNS[1]])
    phi, prior_variance = features.prepared(None, np.float64)(X, Workspace())
    np.testing.assert_allclose(phi @ phi.T, dense_covariance(X), atol=1e-6)
    np.testing.assert_allclose(prior_variance, np.diag(dense_covariance(X)))


def test_with_few_points_features_and_residual_have_the_prior_variance():
    """Each kernel is approximated by its own points, by ``k(x,Z) k(Z,Z)^-1 k(Z,x)``."""
    phi, prior_variance = FEATURES.prepared(None, np.float64)(X, Workspace())
    approximated = np.zeros((N, N))
    parts = [(KERNEL, POINTS, X)]
    parts += [(e.features.kernel, e.features.inducing_points, X[:, e.columns]) for e in FEATURES.effects]
    for kernel, Z, rows in parts:
        approximated += kernel(rows, Z) @ np.linalg.solve(kernel(Z), kernel(Z, rows))
    np.testing.assert_allclose(phi @ phi.T, approximated, atol=1e-6)
    residual = prior_variance - np.sum(phi**2, axis=1)
    assert residual.min() > -1e-9
    assert residual.max() > 0.5
    np.testing.assert_allclose(np.diag(phi @ phi.T) + residual, np.diag(dense_covariance(X)))


def test_the_prior_covariance_has_the_effects():
    np.testing.assert_allclose(FEATURES.covariance(X), dense_covariance(X), atol=1e-7)
    np.testing.assert_allclose(FEATURES.diagonal(X), np.diag(dense_covariance(X)))


def test_only_its_own_columns_move_an_effect():
    phi, _ = FEATURES.prepared(None, np.float64)(X, Workspace())
    elsewhere = X.copy()
    elsewhere[:, [0, 2]] += 1
    moved, _ = FEATURES.prepared(None, np.float64)(elsewhere, Workspace())
    changed = np.abs(moved - phi).max(axis=0) > 1e-9
    np.testing.assert_array_equal(changed, np.repeat([True, True, False], [6, 3, 5]))


def test_a_basis_turns_the_features_of_effects_too():
    basis = np.linalg.qr(rng.standard_normal((14, 14)))[0]
    phi, _ = FEATURES.prepared(None, np.float64)(X, Workspace())
    turned, _ = FEATURES.prepared(basis, np.float64)(X, Workspace())
    np.testing.assert_allclose(turned, phi @ basis, atol=1e-10)


@pytest.mark.parametrize("kernel", [RBF(1.5, 2.0), RBF(50.0, 100.0)], ids=["no offset", "an offset"])
def test_effects_survive_single_precision(kernel):
    """A kernel that is nearly constant is split into an offset and the rest; effects are not."""
    features = InducingFeatures.build(kernel, POINTS, np.float32, FEATURES.effects)
    double, _ = features.prepared(None, np.float64)(X, Workspace())
    single, _ = features.prepared(None, np.float32)(X.astype(np.float32), Workspace())
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=2e-3)


def test_an_effect_with_another_kernel_keeps_columns_and_points():
    effect = FEATURES.effects[1].with_kernel(Matern(7.0, 3.0, nu=0.5))
    assert effect.columns == COLUMNS[1]
    assert effect.features.kernel == Matern(7.0, 3.0, nu=0.5)
    np.testing.assert_array_equal(effect.features.inducing_points, FEATURES.effects[1].features.inducing_points)


# ---- held features ----


def held(features, dtype=np.float64):
    record = features.recorder(dtype)(X)
    return np.column_stack([record.phi, record.prior_variance.astype(dtype)])


def functions(width, seed):
    roots = np.random.default_rng(seed).standard_normal((3, width, width))
    posteriors = [Gaussian.from_natural(NaturalParameters(np.eye(width) + A @ A.T, A[0])) for A in roots]
    return [LatentFunction(k, 0.1 * k, q) for k, q in enumerate(posteriors)]


@every_map
@pytest.mark.parametrize("n_rows", [0, 10_000], ids=["dense", "diagonal"])
@pytest.mark.parametrize("how_many", [1, 3], ids=["one function", "three functions"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-3)], ids=["double", "single"])
def test_rows_that_hold_their_features_have_the_same_marginals(features, n_rows, how_many, dtype, tolerance):
    some = functions(features.n_weights, 1)[:how_many]
    plain, kept = (View.of(each, some, n_rows, dtype)[0] for each in (features, HeldFeatures(features.n_weights)))
    expected = plain.marginals(X, Workspace())
    for one, other in zip(expected, kept.marginals(held(features, dtype), Workspace()), strict=True):
        for name in ("mean", "explained", "residual"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=tolerance, atol=tolerance)


@every_map
def test_what_rows_keep_of_a_fit_is_what_its_cavities_need(features):
    """``RowMarginals`` of stripes, joined, against the cavities of plain features."""
    head = {"head": OneVsRest((0.3, 0.3, 0.4)), "likelihood": LIKELIHOODS["exact"]}

    def views(each):
        return {
            name: View.of(each, functions(features.n_weights, seed), 0, np.float64)[0]
            for name, seed in (("before", 1), ("final", 2))
        }

    expected = block_cavities([Block(X, Y, OMEGA)], Workspace(), **views(features), **head)
    rows, parts = held(features), (slice(0, 13), slice(13, N))
    found = RowMarginals.joined(
        block_marginals(
            [Block(rows[part], Y[part], OMEGA[part])], Workspace(), **views(HeldFeatures(features.n_weights)), **head
        )
        for part in parts
    )
    cavities = found.cavities(Y, OMEGA)
    np.testing.assert_allclose(cavities.mean, expected.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(cavities.variance, expected.variance, rtol=1e-8, atol=1e-8)
    some = slice(20, 25)
    for number, left in enumerate(found.left_out(some, rows[some, : features.n_weights])):
        np.testing.assert_allclose(left.mean, expected.mean[some, number], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(left.variance, expected.variance[some, number], rtol=1e-8, atol=1e-8)


@every_map
def test_features_survive_pickling(features):
    prepared = pickle.loads(pickle.dumps(features.prepared(None, np.float32)))  # noqa: S301
    expected, _ = features.prepared(None, np.float32)(X, Workspace())
    np.testing.assert_array_equal(prepared(X, Workspace())[0], expected)
