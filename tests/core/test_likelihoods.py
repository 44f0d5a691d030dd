"""Contract of every likelihood bound: D5, D7, D8, D22, D31."""

import importlib
import inspect
import pkgutil
import types

import numpy as np
import pytest
from scipy.special import ndtr

from bayesvm.core import likelihoods
from bayesvm.core.likelihoods import LIKELIHOODS, EpsilonInsensitive, noisy
from tests import oracles

GRID = [(m, v, y) for m in (-3.0, -0.9, 0.0, 0.7, 1.0, 2.5) for v in (1e-3, 0.2, 1.0, 9.0) for y in (-1.0, 1.0)]
m, v, y = np.array(GRID).T

HINGES = {f"{name}, noise {noise}": noisy(name, noise) for name in LIKELIHOODS for noise in (0.0, 1.0)}
EVERY = HINGES | {"tube": EpsilonInsensitive(0.4, 0.7), "tube, noise": EpsilonInsensitive(0.01, 2.0, 0.3)}
every_likelihood = pytest.mark.parametrize("likelihood", EVERY.values(), ids=EVERY)


def likelihoods_in(modules):
    """What can be a likelihood: classes that make sites, whatever they are called; not the protocol."""
    found = {c for module in modules for _, c in inspect.getmembers(module, inspect.isclass)}
    return {c for c in found if callable(getattr(c, "update", None)) and not getattr(c, "_is_protocol", False)}


def modules():
    names = [info.name for info in pkgutil.iter_modules(likelihoods.__path__)]
    return [importlib.import_module(f"{likelihoods.__name__}.{name}") for name in names]


def test_every_likelihood_in_the_package_is_under_contract():
    assert likelihoods_in(modules()) == {type(likelihood) for likelihood in EVERY.values()}


def test_a_likelihood_that_nobody_tests_would_be_seen():
    module = types.ModuleType("epsilon_insensitive")

    class Tube:
        def update(self, m, v, y):
            raise NotImplementedError

    module.Tube = Tube
    assert likelihoods_in([*modules(), module]) - likelihoods_in(modules()) == {Tube}


@every_likelihood
def test_sites_are_derivatives_of_the_bound(likelihood):
    local = likelihood.update(m, v, y)
    h = 1e-5
    slope = (likelihood.update(m + h, v, y).bound - likelihood.update(m - h, v, y).bound) / (2 * h)
    hv = 1e-5 * v
    curvature = (likelihood.update(m, v + hv, y).bound - likelihood.update(m, v - hv, y).bound) / (2 * hv)
    np.testing.assert_allclose(local.precision, -2 * curvature, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(local.linear, slope + local.precision * m, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("likelihood", HINGES.values(), ids=HINGES)
def test_bound_is_below_the_expected_log_likelihood(likelihood):
    exact = np.array([oracles.expected_log_likelihood(mean, var + likelihood.noise, sign) for mean, var, sign in GRID])
    assert (likelihood.update(m, v, y).bound <= exact + 1e-7).all()


def test_exact_hinge_is_the_expected_log_likelihood():
    exact = np.array([oracles.expected_log_likelihood(*row) for row in GRID])
    np.testing.assert_allclose(LIKELIHOODS["exact"].update(m, v, y).bound, exact, atol=1e-7)


@pytest.mark.parametrize("likelihood", [EpsilonInsensitive(0.4, 0.7), EpsilonInsensitive(1e-3, 0.05)])
def test_the_bound_of_a_tube_is_the_expected_log_density(likelihood):
    e, s = likelihood.epsilon, likelihood.scale
    for mean, var, number in GRID:
        expected = oracles.over_f(lambda f, y=number: oracles.log_tube(f, y, e, s), mean, var, (number - e, number + e))
        found = likelihood.update(np.array([mean]), np.array([var]), np.array([number])).bound[0]
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.slow
def test_noise_is_integrated_out_before_f():
    """By quadrature over f of the expectation over the noise, itself by quadrature."""
    noise = 0.7
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for mean, var, sign in GRID[1::7]:
        inner = [oracles.expected_log_likelihood(mean + np.sqrt(var) * node, noise, sign) for node in nodes]
        found = noisy("exact", noise).update(np.array([mean]), np.array([var]), np.array([sign])).bound[0]
        assert found == pytest.approx(np.dot(weights, inner) / weights.sum(), abs=1e-6)


def risk_minimiser(p, noise):
    """Of many rows with a share p of the positive class, by search over a fine grid of f that is known."""
    f = np.linspace(-4, 4, 8001)
    hinge, known = noisy("exact", noise), np.zeros_like(f)
    loss = -p * hinge.update(f, known, np.ones_like(f)).bound
    loss -= (1 - p) * hinge.update(f, known, -np.ones_like(f)).bound
    return f[loss.argmin()]


def test_with_noise_every_probability_has_its_own_f():
    shares = np.array([0.05, 0.2, 0.4, 0.45, 0.55, 0.6, 0.8, 0.95])
    plain = [risk_minimiser(p, 0.0) for p in shares]
    np.testing.assert_allclose(plain, np.sign(shares - 0.5), atol=1e-3)  # the kinks, and nothing else
    for noise in (0.3, 1.0):
        best = np.array([risk_minimiser(p, noise) for p in shares])
        assert (np.diff(best) > 0.05).all()
        s = np.sqrt(noise)
        np.testing.assert_allclose(shares * ndtr((1 - best) / s), (1 - shares) * ndtr((1 + best) / s), atol=1e-3)


@every_likelihood
@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e-20, 1e20])
def test_extreme_marginals_give_finite_sites(likelihood, variance):
    means = np.array([-1e8, -1.0, 0.0, 1.0, 1e8])
    local = likelihood.update(means, np.full(5, variance), np.ones(5))
    for values in (local.bound, local.precision, local.linear):
        assert np.isfinite(values).all()
    assert (local.precision >= 0).all()
    assert (local.bound <= 0).all()
