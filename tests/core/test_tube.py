"""The density of a number given the marginal of f (D32): against quadrature, finite differences, other optimisers."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from bayesvm.core.tube import Tube, fit_tube
from tests import oracles

SHAPES = [(0.3, 0.7, 0.5), (1e-3, 2.0, 0.1), (1.0, 0.05, 0.01), (0.2, 0.02, 4.0), (0.5, 0.5, 1e-6), (0.5, 1e-3, 0.3)]
rng = np.random.default_rng(0)
M, V, Y, W = rng.normal(size=40), rng.uniform(0.01, 2.0, 40), 2 * rng.normal(size=40), rng.uniform(0.1, 2.0, 40)


def log_density(link, u, v):
    return link.log_density(np.zeros(1), np.array([v]), np.array([u]))[0]


@pytest.mark.parametrize(("epsilon", "scale", "v"), SHAPES)
def test_the_density_is_the_pseudo_likelihood_averaged_over_f(epsilon, scale, v):
    link = Tube(epsilon, scale)
    steep = [k * scale for k in (1, 5, 20)]
    for u in (-3.0, -0.5, 0.0, 0.2, 0.5, 1.3):
        kinks = [u - epsilon, u + epsilon, *(u - epsilon - k for k in steep), *(u + epsilon + k for k in steep)]
        expected = oracles.over_f(lambda f, y=u: oracles.tube(f, y, epsilon, scale), 0.0, v, kinks)
        if expected > 1e-200:
            assert np.exp(log_density(link, u, v)) == pytest.approx(expected, rel=1e-9)


def test_the_tails_stay_accurate_where_the_density_has_no_number():
    """Far outside, it falls like the loss: an exponential tail, whatever v is."""
    link = Tube(0.1, 0.01)
    found = [log_density(link, u, 0.01) for u in (50.0, 51.0)]
    assert np.diff(found) == pytest.approx([-2 / 0.01], rel=1e-9)
    assert np.isfinite(log_density(link, 1e6, 1e-12))


def test_the_factor_multiplies_the_variance():
    np.testing.assert_allclose(Tube(0.3, 0.4, 2.5).log_density(M, V, Y), Tube(0.3, 0.4).log_density(M, 2.5 * V, Y))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_sharpened_link_is_the_density_of_errors_that_are_smaller(factor):
    link = Tube(0.3, 0.4, 1.5)
    expected = link.log_density(factor * M, V, factor * Y) + np.log(factor)
    np.testing.assert_allclose(link.sharpened(factor).log_density(M, V, Y), expected, rtol=1e-10)


def test_the_variance_of_the_noise_is_that_of_its_density():
    link = Tube(0.4, 0.9)
    second = integrate.quad(lambda u: u**2 * oracles.tube(0.0, u, 0.4, 0.9), -40, 40, points=[-0.4, 0.4])[0]
    assert link.noise == pytest.approx(second, rel=1e-8)
    drawn = link.sample_noise((200_000,), np.random.default_rng(1))
    assert drawn.var() == pytest.approx(link.noise, rel=0.02)
    edges = [-1.0, -0.3, 0.2, 0.9]
    expected = link.distribution(np.array(edges), np.full(4, 1e-12))
    np.testing.assert_allclose([np.mean(drawn <= u) for u in edges], expected, atol=0.005)


@pytest.mark.parametrize("u", [-2.0, -0.4, 0.0, 0.3, 3.0])
def test_the_distribution_function_is_the_integral_of_the_density(u):
    link, v = Tube(0.3, 0.4, 1.7), np.array([0.5])
    expected = integrate.quad(lambda y: np.exp(log_density(link, y, v[0])), -40, u, points=[-1, 0, 1], limit=400)[0]
    assert link.distribution(np.array([u]), link.variance(v))[0] == pytest.approx(expected, abs=1e-9)


def test_the_loss_has_the_right_derivatives():
    link = Tube(0.3, 0.4, 1.7)
    loss, by_mean, by_variance = link.loss(M[:, None], V[:, None], Y, W)
    assert loss == pytest.approx(W @ link.row_losses(M[:, None], V[:, None], Y))
    of_mean = optimize.approx_fprime(M, lambda m: link.loss(m[:, None], V[:, None], Y, W)[0], 1e-7)
    of_variance = optimize.approx_fprime(V, lambda v: link.loss(M[:, None], v[:, None], Y, W)[0], 1e-7)
    np.testing.assert_allclose(by_mean[:, 0], of_mean, atol=1e-5)
    np.testing.assert_allclose(by_variance[:, 0], of_variance, atol=1e-5)
    np.testing.assert_allclose(-W * link.score(M, V, Y), by_mean[:, 0])


@pytest.mark.parametrize("with_factor", [False, True])
def test_the_fit_is_the_best_of_a_search_without_derivatives(with_factor):
    noise = 0.3 * stats.laplace.rvs(size=400, random_state=0)
    m, v = np.repeat(M, 10), 0.1 * np.repeat(V, 10)
    y = m + noise + np.sqrt(v) * np.random.default_rng(2).standard_normal(400)
    weight = np.repeat(W, 10)
    found = fit_tube(m, v, y, weight, with_factor=with_factor)

    def objective(parameters):
        log_scale, log_ratio, log_factor = (*parameters, 0.0)[:3]
        link = Tube(np.exp(log_scale + log_ratio), np.exp(log_scale), np.exp(log_factor))
        prior = ((log_ratio + 0.7) / 1.5) ** 2 + (log_factor / 0.5) ** 2
        return -weight @ link.log_density(m, v, y) + 0.5 * prior

    start = [np.log(0.5), -1.0, 0.0][: 2 + with_factor]
    best = optimize.minimize(
        objective, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 4000}
    )
    at = [np.log(found.scale), np.log(found.epsilon / found.scale), np.log(found.factor)][: 2 + with_factor]
    assert objective(at) <= best.fun + 1e-3


@pytest.mark.parametrize("law", [stats.laplace(0, 0.5), stats.norm(0, 0.5), stats.uniform(-1, 2)])
def test_noise_of_several_shapes_is_found(law):
    """The law itself has the lowest possible loss; a tube comes close."""
    y = law.rvs(4_000, random_state=3)
    link = fit_tube(np.zeros(4_000), np.full(4_000, 1e-4), y, np.ones(4_000), with_factor=False)
    fresh = law.rvs(4_000, random_state=4)
    loss = -link.log_density(np.zeros(4_000), np.full(4_000, 1e-4), fresh).mean()
    assert loss - law.entropy() < 0.06
    assert link.noise == pytest.approx(law.var(), rel=0.15)
