"""The density of a number given the marginal of f (D32): against quadrature, finite differences, other optimisers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from bayesvm.core.tube import Tube, VaryingTube, fit_tube, fit_varying_tube
from tests import oracles

SHAPES = [(0.3, 0.7, 0.5), (1e-3, 2.0, 0.1), (1.0, 0.05, 0.01), (0.2, 0.02, 4.0), (0.5, 0.5, 1e-6), (0.5, 1e-3, 0.3)]
rng = np.random.default_rng(0)
M, V, Y, W = rng.normal(size=40), rng.uniform(0.01, 2.0, 40), 2 * rng.normal(size=40), rng.uniform(0.1, 2.0, 40)

VARYING = VaryingTube(0.3, 0.4, 1.7, (0.5, -0.2, 0.3), means=(0.1, 0.8), ends=(-1.5, 1.5), log_variances=(-0.5, 0.6))


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
    link, one = Tube(0.4, 0.9), np.zeros(1)
    second = integrate.quad(lambda u: u**2 * oracles.tube(0.0, u, 0.4, 0.9), -40, 40, points=[-0.4, 0.4])[0]
    assert link.noise(one, one + 1) == pytest.approx(second, rel=1e-8)
    drawn = link.sample_noise(one, one, 200_000, np.random.default_rng(1))
    assert drawn.var() == pytest.approx(second, rel=0.02)
    edges = np.array([-1.0, -0.3, 0.2, 0.9])
    expected = link.distribution(np.zeros(4), np.full(4, 1e-12), edges)
    np.testing.assert_allclose([np.mean(drawn <= u) for u in edges], expected, atol=0.005)


@pytest.mark.parametrize("u", [-2.0, -0.4, 0.0, 0.3, 3.0])
@pytest.mark.parametrize("link", [Tube(0.3, 0.4, 1.7), VARYING], ids=["tube", "varying"])
def test_the_distribution_function_is_the_integral_of_the_density(link, u):
    v = np.array([0.5])
    expected = integrate.quad(lambda y: np.exp(log_density(link, y, v[0])), -60, u, points=[-1, 0, 1], limit=400)[0]
    assert link.distribution(np.zeros(1), v, np.array([u]))[0] == pytest.approx(expected, abs=1e-8)


def test_a_tube_that_does_not_vary_is_a_tube():
    plain = VaryingTube(0.3, 0.4, 1.7, means=(0.2, 0.7), ends=(-1.0, 1.0), log_variances=(-1.0, 0.5))
    np.testing.assert_array_equal(plain.log_density(M, V, Y), Tube(0.3, 0.4, 1.7).log_density(M, V, Y))


def test_every_row_of_a_varying_tube_has_a_tube_of_its_own():
    for i in range(5):
        z = (np.clip(M[i], -1.5, 1.5) - 0.1) / 0.8
        u = np.clip((np.log(V[i]) + 0.5) / 0.6, -3, 3)
        size = np.exp(0.5 * z - 0.2 * z**2 + 0.3 * u)
        own = Tube(0.3 * size, 0.4 * size, 1.7)
        row = slice(i, i + 1)
        np.testing.assert_allclose(VARYING.log_density(M[row], V[row], Y[row]), own.log_density(M[row], V[row], Y[row]))
        np.testing.assert_allclose(VARYING.noise(M[row], V[row]), own.noise(M[row], V[row]))


def test_noise_that_grows_is_found():
    rng = np.random.default_rng(5)
    m, v = rng.normal(size=5_000), rng.uniform(0.01, 0.02, 5_000)
    y = m + 0.3 * np.exp(0.6 * m) * rng.standard_normal(5_000)
    link = fit_varying_tube(m, v, y, np.ones(5_000), fit_tube(m, v, y, np.ones(5_000)))
    at = np.array([-1.5, 0.0, 1.5])
    total = link.noise(at, np.full(3, 0.015)) + link.variance(np.full(3, 0.015))
    np.testing.assert_allclose(np.sqrt(total), 0.3 * np.exp(0.6 * at), rtol=0.3)


def test_the_loss_has_the_right_derivatives():
    link = Tube(0.3, 0.4, 1.7)
    loss, by_mean, by_variance = link.loss(M[:, None], V[:, None], Y, W)
    assert loss == pytest.approx(W @ link.row_losses(M[:, None], V[:, None], Y))
    of_mean = optimize.approx_fprime(M, lambda m: link.loss(m[:, None], V[:, None], Y, W)[0], 1e-7)
    of_variance = optimize.approx_fprime(V, lambda v: link.loss(M[:, None], v[:, None], Y, W)[0], 1e-7)
    np.testing.assert_allclose(by_mean[:, 0], of_mean, atol=1e-5)
    np.testing.assert_allclose(by_variance[:, 0], of_variance, atol=1e-5)
    np.testing.assert_allclose(-W * link.score(M, V, Y), by_mean[:, 0])


def rows_with_noise():
    m, v = np.repeat(M, 10), 0.1 * np.repeat(V, 10)
    noise = 0.3 * stats.laplace.rvs(size=400, random_state=0)
    return m, v, m + noise + np.sqrt(v) * np.random.default_rng(2).standard_normal(400), np.repeat(W, 10)


def test_the_fit_is_the_best_of_a_search_without_derivatives():
    m, v, y, weight = rows_with_noise()

    def objective(parameters):
        link = Tube(np.exp(sum(parameters)), np.exp(parameters[0]))
        return -weight @ link.log_density(m, v, y) + 0.5 * ((parameters[1] + 0.7) / 1.5) ** 2

    best = optimize.minimize(objective, [np.log(0.5), -1.0], method="Nelder-Mead")
    found = fit_tube(m, v, y, weight)
    assert objective([np.log(found.scale), np.log(found.epsilon / found.scale)]) <= best.fun + 1e-3


def test_the_fit_of_a_varying_tube_is_where_its_objective_is_flat():
    m, v, y, weight = rows_with_noise()
    found = fit_varying_tube(m, v, y, weight, fit_tube(m, v, y, weight))

    def objective(parameters):
        log_scale, log_ratio, log_factor, *growth = parameters
        link = replace(
            found,
            epsilon=np.exp(log_scale + log_ratio),
            scale=np.exp(log_scale),
            factor=np.exp(log_factor),
            growth=tuple(growth),
        )
        prior = ((log_ratio + 0.7) / 1.5) ** 2 + (log_factor / 0.5) ** 2 + sum((g / 0.5) ** 2 for g in growth)
        return -weight @ link.log_density(m, v, y) + 0.5 * prior

    at = [np.log(found.scale), np.log(found.epsilon / found.scale), np.log(found.factor), *found.growth]
    slope = optimize.approx_fprime(np.array(at), objective, 1e-6)
    assert np.abs(slope).max() < 0.05, slope
    np.testing.assert_allclose(found.basis(m, v)[:, 0], np.clip((m - np.average(m, weights=weight)) / m.std(), *(
        (np.quantile(m, [0.005, 0.995]) - np.average(m, weights=weight)) / m.std())))  # fmt: skip


@pytest.mark.parametrize("law", [stats.laplace(0, 0.5), stats.norm(0, 0.5), stats.uniform(-1, 2)])
def test_noise_of_several_shapes_is_found(law):
    """The law itself has the lowest possible loss; a tube comes close."""
    y = law.rvs(4_000, random_state=3)
    link = fit_tube(np.zeros(4_000), np.full(4_000, 1e-4), y, np.ones(4_000))
    fresh = law.rvs(4_000, random_state=4)
    loss = -link.log_density(np.zeros(4_000), np.full(4_000, 1e-4), fresh).mean()
    assert loss - law.entropy() < 0.06
    assert link.noise(np.zeros(1), np.zeros(1)) == pytest.approx(law.var(), rel=0.15)
