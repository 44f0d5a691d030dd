"""Marginals of f against dense formulas (D3, D4)."""

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.latent import Block, LatentFunction, Marginals, View, pull_marginals
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF
from tests import oracles

rng = np.random.default_rng(0)
N, D, M = 30, 3, 6
X, POINTS = rng.standard_normal((N, D)), rng.standard_normal((M, D))
KERNEL = RBF(1.5, 2.0)
FEATURES = InducingFeatures.build(KERNEL, POINTS)
OFFSETS = (0.4, -0.3, 1.0)

both_coordinates = pytest.mark.parametrize("n_rows", [0, 10_000], ids=["dense", "diagonal"])
one_or_more = pytest.mark.parametrize("n_functions", [1, 3], ids=["one function", "three functions"])


def some_functions(n_functions, width, seed):
    generator, found = np.random.default_rng(seed), []
    for number, offset in enumerate(OFFSETS[:n_functions]):
        A = generator.standard_normal((width, width))
        natural = NaturalParameters(np.eye(width) + A @ A.T, generator.standard_normal(width))
        found.append(LatentFunction(number, offset, Gaussian.from_natural(natural)))
    return found


def in_a_block(view, rows=X):
    """What a view says, copied, since its arrays are valid until the next function only."""
    return [at._replace(phi=at.phi.copy(), residual=at.residual.copy()) for at in view.marginals(rows, Workspace())]


@both_coordinates
@one_or_more
def test_marginals_are_those_of_dense_formulas(n_functions, n_rows):
    functions = some_functions(n_functions, M, 1)
    view, where = View.of(FEATURES, functions, n_rows, np.float64)
    phi, residual = oracles.features(KERNEL, POINTS, X)
    for function, basis, at in zip(functions, where, in_a_block(view), strict=True):
        q = function.posterior
        mean, explained, _ = oracles.marginals(phi, residual, function.offset, q.mean, q.covariance)
        np.testing.assert_allclose(at.mean, mean, atol=1e-6)
        np.testing.assert_allclose(at.explained, explained, atol=1e-6)
        np.testing.assert_allclose(at.residual, residual, atol=1e-6)
        np.testing.assert_allclose(at.variance, explained + residual, atol=1e-6)
        np.testing.assert_allclose(at.phi, phi if basis.basis is None else phi @ basis.basis, atol=1e-6)


def test_the_residual_is_zero_and_not_negative_at_inducing_points():
    """Up to jitter and rounding, which must not turn a variance below zero."""
    view, _ = View.of(FEATURES, some_functions(1, M, 1), 0, np.float64)
    (at,) = in_a_block(view, POINTS)
    assert (at.residual >= 0).all()
    np.testing.assert_allclose(at.residual, 0, atol=1e-8)


def test_a_linear_model_has_no_residual_and_a_mean_field_has_its_own_variances():
    root = np.array([0.5, 1.0, 2.0, 3.0])
    q = DiagonalGaussian(rng.standard_normal(4), rng.uniform(0.1, 1, 4))
    view, _ = View.of(LinearFeatures(root, intercept=True), [LatentFunction(0, 0.2, q)], N, np.float64)
    (at,) = in_a_block(view)
    phi = np.column_stack([X, np.ones(N)]) * root
    np.testing.assert_allclose(at.mean, 0.2 + phi @ q.mean)
    np.testing.assert_allclose(at.variance, phi**2 @ q.variance)


@one_or_more
def test_moments_are_those_of_all_blocks(n_functions):
    functions = some_functions(n_functions, M, 1)
    view, _ = View.of(FEATURES, functions, 0, np.float64)
    found = view.moments([Block(X[:11], np.zeros(11), None), Block(X[11:], np.zeros(19), None)], Workspace())
    phi, residual = oracles.features(KERNEL, POINTS, X)
    for number, function in enumerate(functions):
        q = function.posterior
        mean, explained, _ = oracles.marginals(phi, residual, function.offset, q.mean, q.covariance)
        np.testing.assert_allclose(found.mean[:, number], mean, atol=1e-6)
        np.testing.assert_allclose(found.variance[:, number], explained + residual, atol=1e-6)


@pytest.mark.parametrize("residual", [True, False], ids=["residual", "no residual"])
def test_the_adjoint_of_the_marginals_against_finite_differences(residual):
    (function,) = some_functions(1, M, 1)
    q, phi, prior_variance = function.posterior, rng.standard_normal((4, M)), np.full(4, 50.0)
    by_mean, by_explained, by_residual = rng.standard_normal((3, 4))

    def objective(phi):
        mean, explained, left = oracles.marginals(
            phi, prior_variance - np.sum(phi**2, axis=1), 0.0, q.mean, q.covariance
        )
        return by_mean @ mean + by_explained @ explained + residual * by_residual @ left

    at = Marginals(phi, 0.0, phi @ q.mean, np.zeros(4), np.zeros(4), spread=phi @ q.covariance)
    found = pull_marginals(q.mean, at, by_mean, by_explained, by_residual if residual else None)
    np.testing.assert_allclose(found, oracles.numerical_gradient(objective, phi), rtol=1e-6, atol=1e-6)


def test_a_function_is_trained_once_q_has_left_the_prior():
    prior, (function,) = Gaussian.prior(M), some_functions(1, M, 1)
    assert not LatentFunction(0, 0.0, prior, prior).trained
    assert LatentFunction(0, 0.0, prior, prior).at(function.posterior).trained
    assert function.trained
