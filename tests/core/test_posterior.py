"""The Gaussian over weights: KL, steps, coordinates, the slope of the ELBO (D4, D6, D9, D12)."""

import numpy as np
import pytest

from bayesvm.core.posterior import DIAGONALISE_FROM, DiagonalGaussian, Gaussian, NaturalParameters

rng = np.random.default_rng(1)
M = 5


def random_natural():
    A = rng.standard_normal((M, 2 * M))
    return NaturalParameters(np.eye(M) + A @ A.T, 3 * rng.standard_normal(M))


def kl_to_standard_normal(mean, covariance):
    return 0.5 * (np.trace(covariance) + mean @ mean - len(mean) - np.linalg.slogdet(covariance)[1])


def test_moments_and_kl_from_natural_parameters():
    natural = random_natural()
    q = Gaussian.from_natural(natural)
    S = np.linalg.inv(natural.precision)
    np.testing.assert_allclose(q.covariance, S, atol=1e-12)
    np.testing.assert_allclose(q.mean, S @ natural.linear, atol=1e-12)
    prior = Gaussian.prior(M)
    np.testing.assert_allclose(q.divergence_from(prior), kl_to_standard_normal(S @ natural.linear, S))
    assert prior.divergence_from(prior) == pytest.approx(0.0, abs=1e-12)


def test_draws_have_the_covariance():
    q = Gaussian.from_natural(random_natural())
    np.testing.assert_allclose(q.spread(np.eye(M)).T @ q.spread(np.eye(M)), q.covariance, atol=1e-12)
    d = DiagonalGaussian(np.zeros(M), np.arange(1.0, M + 1))
    np.testing.assert_allclose(d.spread(np.eye(M)) ** 2, np.diag(d.variance))


def test_diagonal_family_agrees_with_the_full_one():
    mean, variance = rng.standard_normal(M), rng.random(M) + 0.1
    q = DiagonalGaussian(mean, variance)
    np.testing.assert_allclose(q.kl_from_prior(), kl_to_standard_normal(mean, np.diag(variance)))


@pytest.mark.parametrize("n_rows", [1, DIAGONALISE_FROM * M])
def test_coordinates_describe_the_same_posterior(n_rows):
    q = Gaussian.from_natural(random_natural())
    where = q.coordinates(n_rows)
    assert (where.basis is None) == (n_rows == 1)
    phi = rng.standard_normal((4, M))
    rotated = phi if where.basis is None else phi @ where.basis
    explained = (rotated**2) @ where.spread if where.spread.ndim == 1 else np.sum((rotated @ where.spread) ** 2, 1)
    np.testing.assert_allclose(rotated @ where.mean, phi @ q.mean)
    np.testing.assert_allclose(explained, np.einsum("ij,jk,ik->i", phi, q.covariance, phi))


def test_slope_is_the_derivative_of_the_elbo_along_a_step():
    """For conjugate sites the ELBO is minus KL(q || target) up to a constant, and the target is fixed."""
    target, q = random_natural(), Gaussian.from_natural(random_natural())
    T = Gaussian.from_natural(target)

    def elbo(rho):
        p = q.moved(target, rho)
        gap = p.mean - T.mean
        ratio = target.precision @ p.covariance
        return -0.5 * (np.trace(ratio) + gap @ target.precision @ gap - M - np.linalg.slogdet(ratio)[1])

    h = 1e-5
    np.testing.assert_allclose(q.slope_towards(target), (elbo(h) - elbo(-h)) / (2 * h), rtol=1e-6)
    assert T.slope_towards(target) == pytest.approx(0, abs=1e-12)


def test_divergence_between_two_posteriors():
    a, b = Gaussian.from_natural(random_natural()), Gaussian.from_natural(random_natural())
    P, S = b.natural.precision, a.covariance
    gap = a.mean - b.mean
    expected = 0.5 * (np.trace(P @ S) + gap @ P @ gap - M - np.linalg.slogdet(P @ S)[1])
    np.testing.assert_allclose(a.divergence_from(b), expected)
    near = b.moved(a.natural, 1e-4)
    np.testing.assert_allclose(near.divergence_from(b), 0.5 * 1e-8 * b.slope_towards(a.natural), rtol=1e-2)
