"""Sums over rows against loops; special cases that must coincide; blocks must not matter (D3-D6, D9, D18)."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.heads import OneVsRest
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.statistics import block_gradient, block_statistics, block_transfer
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Linear, Matern
from tests import oracles

rng = np.random.default_rng(2)
N, D, M = 40, 3, 6
X, codes, omega = rng.standard_normal((N, D)), rng.integers(0, 3, N), rng.random(N) * 2
y = np.where(codes == 1, 1.0, -1.0)
Z = rng.standard_normal((M, D))
A = rng.standard_normal((M, M))
Q = Gaussian.from_natural(NaturalParameters(np.eye(M) + A @ A.T, rng.standard_normal(M)))
FEATURES = InducingFeatures.build(RBF(1.5, 2.0), Z)
C = 0.4
ONE = [LatentFunction(1, C, Q)]
PRIOR = Gaussian.prior(M)
HEAD = OneVsRest((0.3, 0.4, 0.3))  # whose second function sees the rows of class 1 as +1

every_bound = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
both_coordinates = pytest.mark.parametrize("n_rows", [1, 10_000], ids=["dense", "diagonal"])


def sums(view, likelihood, cuts=(), weight=omega):
    edges = [0, *cuts, N]
    blocks = [Block(X[a:b], codes[a:b], weight[a:b]) for a, b in pairwise(edges)]
    return block_statistics(blocks, Workspace(), view=view, head=HEAD, likelihood=likelihood).each[0]


@every_bound
@both_coordinates
def test_elbo_and_target_against_loops(likelihood, n_rows):
    view, (where,) = View.of(FEATURES, ONE, n_rows, np.float64)
    found = sums(view, likelihood)
    K = RBF(1.5, 2.0)(Z)
    L = np.linalg.cholesky(K + 2e-10 * np.eye(M))
    bound = lambda m, v, label: float(likelihood.update(np.array([C + m]), np.array([v]), np.array([label])).bound[0])
    naive = oracles.elbo(
        bound, L @ L.T, RBF(1.5, 2.0)(X, Z), np.full(N, 2.0), y, L @ Q.mean, L @ Q.covariance @ L.T, omega
    )
    np.testing.assert_allclose(found.bound - Q.divergence_from(PRIOR), naive, rtol=1e-6)
    phi = np.linalg.solve(L, RBF(1.5, 2.0)(Z, X)).T
    m = C + phi @ Q.mean
    v = np.einsum("ij,jk,ik->i", phi, Q.covariance, phi) + 2.0 - np.sum(phi**2, 1)
    local = likelihood.update(m, v, y)
    target = found.target(where, 1.0, PRIOR.natural)
    np.testing.assert_allclose(
        target.precision, np.eye(M) + (phi * (omega * local.precision)[:, None]).T @ phi, atol=1e-6
    )
    np.testing.assert_allclose(target.linear, phi.T @ (omega * (local.linear - local.precision * C)), atol=1e-6)


@every_bound
@both_coordinates
def test_how_rows_are_cut_into_blocks_does_not_matter(likelihood, n_rows):
    view, _ = View.of(FEATURES, ONE, n_rows, np.float64)
    whole, cut = sums(view, likelihood), sums(view, likelihood, cuts=(1, 7, 30))
    for name in ("bound", "curvature", "linear", "weight"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


@every_bound
def test_a_weight_of_two_is_the_row_twice(likelihood):
    view, _ = View.of(FEATURES, ONE, 1, np.float64)
    times = rng.integers(0, 3, N)
    weighted = sums(view, likelihood, weight=times.astype(float))
    repeated = block_statistics(
        [Block(np.repeat(X, times, 0), np.repeat(codes, times), None)],
        Workspace(),
        view=view,
        head=HEAD,
        likelihood=likelihood,
    ).each[0]
    for name in ("bound", "curvature", "linear", "weight"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-10, atol=1e-10)


@every_bound
def test_mean_field_gradient_against_finite_differences(likelihood):
    features = LinearFeatures(np.array([0.5, 1.0, 2.0, 3.0]), intercept=True)
    mean, deviation = rng.standard_normal(4), rng.random(4) + 0.3

    def gradient_sums(q):
        view, _ = View.of(features, [LatentFunction(1, 0.0, q)], N, np.float64)
        return block_gradient([Block(X, codes, omega)], Workspace(), view=view, head=HEAD, likelihood=likelihood).each[
            0
        ]

    def elbo(parameters):
        q = DiagonalGaussian(parameters[:4], parameters[4:] ** 2)
        return gradient_sums(q).bound - q.kl_from_prior()

    found = gradient_sums(DiagonalGaussian(mean, deviation**2))
    gradient = np.concatenate([found.linear - mean, 1 / deviation - deviation * (1 + found.curvature)])
    np.testing.assert_allclose(
        gradient, oracles.numerical_gradient(elbo, np.concatenate([mean, deviation])), rtol=1e-5, atol=1e-5
    )


@every_bound
@both_coordinates
def test_functions_that_share_features_do_not_disturb_each_other(likelihood, n_rows):
    other = Gaussian.from_natural(NaturalParameters(2 * np.eye(M), rng.standard_normal(M)))
    functions = [LatentFunction(0, -0.3, other), *ONE, LatentFunction(2, 0.0, PRIOR)]
    view, where = View.of(FEATURES, functions, n_rows, np.float64)
    blocks = [Block(X[:25], codes[:25], omega[:25]), Block(X[25:], codes[25:], omega[25:])]
    together = block_statistics(blocks, Workspace(), view=view, head=HEAD, likelihood=likelihood)
    for function, at, found in zip(functions, where, together.each, strict=True):
        alone, (there,) = View.of(FEATURES, [function], n_rows, np.float64)
        expected = block_statistics(blocks, Workspace(), view=alone, head=HEAD, likelihood=likelihood).each[0]
        np.testing.assert_allclose(found.bound, expected.bound)
        for a, b in zip(
            vars(found.target(at, 1.0, PRIOR.natural)).values(),
            vars(expected.target(there, 1.0, PRIOR.natural)).values(),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, atol=1e-10)


OTHER = InducingFeatures.build(Matern([0.7, 1.5, 3.0], 0.5), rng.standard_normal((9, D)))


def transferred(functions, likelihood, features, offsets, n_rows=1, cuts=(15,), weight=omega):
    view, _ = View.of(FEATURES, functions, n_rows, np.float64)
    parts = [slice(a, b) for a, b in pairwise([0, *cuts, N])]
    blocks = [Block(X[part], codes[part], None if weight is None else weight[part]) for part in parts]
    return block_transfer(
        blocks,
        Workspace(),
        view=view,
        head=HEAD,
        likelihood=likelihood,
        features=features.prepared(None, np.float64),
        width=features.n_weights,
        offsets=offsets,
    ).each


@every_bound
def test_at_the_optimum_the_sites_of_the_rows_make_the_same_posterior_again(likelihood):
    """The start that they give is the optimum, and no pass is lost by moving."""
    view = lambda q: View.of(FEATURES, [LatentFunction(1, C, q)], 1, np.float64)
    q = PRIOR
    for _ in range(300):
        at, (where,) = view(q)
        q = q.moved(sums(at, likelihood).target(where, 1.0, PRIOR.natural), 0.5)
    (found,) = transferred([LatentFunction(1, C, q)], likelihood, FEATURES, [C])
    assert found.weight == pytest.approx(omega.sum())
    np.testing.assert_allclose(np.eye(M) + found.curvature, q.natural.precision, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.linear, q.natural.linear, rtol=1e-6, atol=1e-6)


@every_bound
@both_coordinates
@pytest.mark.parametrize("weight", [omega, None], ids=["weights", "no weights"])
def test_sites_moved_to_other_features_and_prior_means_against_loops(likelihood, n_rows, weight):
    other_q = Gaussian.from_natural(NaturalParameters(2 * np.eye(M), rng.standard_normal(M)))
    functions, offsets = [LatentFunction(0, -0.3, other_q), *ONE, LatentFunction(2, 0.0, PRIOR)], (1.5, -0.7, 0.2)
    found = transferred(functions, likelihood, OTHER, offsets, n_rows, weight=weight)
    old = np.linalg.solve(np.linalg.cholesky(FEATURES.kernel(Z)), FEATURES.kernel(Z, X)).T
    points = OTHER.inducing_points
    new = np.linalg.solve(np.linalg.cholesky(OTHER.kernel(points)), OTHER.kernel(points, X)).T
    for function, offset, each in zip(functions, offsets, found, strict=True):
        q, curvature, linear = function.posterior, np.zeros((9, 9)), np.zeros(9)
        for i in range(N):
            m = function.offset + old[i] @ q.mean
            v = old[i] @ q.covariance @ old[i] + 2.0 - old[i] @ old[i]
            site = likelihood.update(m, v, 1.0 if codes[i] == function.target else -1.0)
            row_weight = 1.0 if weight is None else weight[i]
            curvature += row_weight * site.precision * np.outer(new[i], new[i])
            linear += row_weight * (site.linear - site.precision * offset) * new[i]
        np.testing.assert_allclose(each.curvature, curvature, atol=1e-6)
        np.testing.assert_allclose(each.linear, linear, atol=1e-6)
        assert each.weight == pytest.approx(N if weight is None else omega.sum())


def test_linear_kernel_with_spanning_points_is_the_linear_model():
    """Any D points that span the space make k(x,z) = xᵀz exact; the two posteriors must then agree."""
    fixed = {"tune": None, "scale": None, "inference": "batch", "tol": 1e-12, "max_iter": 500}
    kernel = BayesianSVC(kernel=Linear(0.7), inducing=np.eye(D), **fixed).fit(X, y)
    linear = BayesianLinearSVC(prior_variance=0.7, fit_intercept=False, **fixed).fit(X, y)
    for a, b in zip(kernel.latent_mean_and_variance(X), linear.latent_mean_and_variance(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_features_of_a_flat_kernel_keep_their_digits_in_single_precision():
    generator = np.random.default_rng(3)
    rows, Z = generator.standard_normal((300, 4)), generator.standard_normal((40, 4))
    features = InducingFeatures.build(RBF(12.0, 9.0), Z, np.float32)
    assert features.offset == 9.0
    truth, _ = features.prepared(None, np.float64)(rows, Workspace())
    errors = {
        offset: np.abs(replace(features, offset=offset).prepared(None, np.float32)(rows, Workspace())[0] - truth).max()
        for offset in (0.0, 9.0)
    }
    assert errors[9.0] < 0.05 * errors[0.0]
