"""Contract of every likelihood bound: D5, D7, D8."""

import inspect

import numpy as np
import pytest

from bayesvm.core import likelihoods
from bayesvm.core.likelihoods import LIKELIHOODS
from tests import oracles

GRID = [(m, v, y) for m in (-3.0, -0.9, 0.0, 0.7, 1.0, 2.5) for v in (1e-3, 0.2, 1.0, 9.0) for y in (-1.0, 1.0)]
m, v, y = np.array(GRID).T

every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)


def test_every_likelihood_in_the_package_is_under_contract():
    classes = {c for _, c in inspect.getmembers(likelihoods, inspect.isclass) if c.__name__.endswith("Hinge")}
    assert classes == {type(likelihood) for likelihood in LIKELIHOODS.values()}


@every_likelihood
def test_sites_are_derivatives_of_the_bound(likelihood):
    local = likelihood.update(m, v, y)
    h = 1e-5
    slope = (likelihood.update(m + h, v, y).bound - likelihood.update(m - h, v, y).bound) / (2 * h)
    hv = 1e-5 * v
    curvature = (likelihood.update(m, v + hv, y).bound - likelihood.update(m, v - hv, y).bound) / (2 * hv)
    np.testing.assert_allclose(local.precision, -2 * curvature, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(local.linear, slope + local.precision * m, rtol=1e-4, atol=1e-6)


@every_likelihood
def test_bound_is_below_the_expected_log_likelihood(likelihood):
    exact = np.array([oracles.expected_log_likelihood(*row) for row in GRID])
    assert (likelihood.update(m, v, y).bound <= exact + 1e-7).all()


def test_exact_hinge_is_the_expected_log_likelihood():
    exact = np.array([oracles.expected_log_likelihood(*row) for row in GRID])
    np.testing.assert_allclose(LIKELIHOODS["exact"].update(m, v, y).bound, exact, atol=1e-7)


@every_likelihood
@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e-20, 1e20])
def test_extreme_marginals_give_finite_sites(likelihood, variance):
    means = np.array([-1e8, -1.0, 0.0, 1.0, 1e8])
    local = likelihood.update(means, np.full(5, variance), np.ones(5))
    for values in (local.bound, local.precision, local.linear):
        assert np.isfinite(values).all()
    assert (local.precision >= 0).all()
    assert (local.bound <= 0).all()
