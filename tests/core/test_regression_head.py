"""The head for numbers: units, mixtures of members, quantiles, residuals for the screening of effects (D27, D32)."""

import numpy as np
import pytest
from scipy import integrate, stats

from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Regression
from bayesvm.core.heads.regression import LEAST_NOISE
from bayesvm.core.likelihoods import EpsilonInsensitive
from bayesvm.core.members import MemberMoments
from bayesvm.core.tube import Tube

HEAD = Regression(100.0, 5.0)
RNG = np.random.default_rng(0)
M, V = RNG.normal(size=(6, 1)), RNG.uniform(0.1, 1.0, (6, 1))
ALONE = [MemberMoments(M, V, Tube(0.3, 0.5, 1.2))]
TWO = [MemberMoments(M, V, Tube(0.3, 0.5), 0.3), MemberMoments(M + 1.5, 2 * V, Tube(0.01, 0.8), 0.7)]


def density(parts, row):
    def of(y):
        total = 0.0
        for part in parts:
            total += part.share * np.exp(
                -part.link.row_losses(part.mean[[row]], part.variance[[row]], np.array([y]))[0]
            )
        return total

    return of


@pytest.mark.parametrize("parts", [ALONE, TWO], ids=["one member", "two"])
def test_mean_variance_and_quantiles_are_those_of_the_density(parts):
    shares = [0.01, 0.25, 0.5, 0.9]
    quantiles = (HEAD.quantiles(shares)(parts) - 100) / 5
    for row in range(3):
        p, low, high = density(parts, row), M[row, 0] - 12, M[row, 0] + 14
        moment = lambda k, c=0.0, p=p, low=low, high=high: integrate.quad(
            lambda y: (y - c) ** k * p(y), low, high, limit=400
        )[0]
        assert moment(0) == pytest.approx(1, abs=1e-6)
        mean = moment(1)
        assert HEAD.mean(parts)[row] == pytest.approx(100 + 5 * mean, abs=1e-4)
        assert HEAD.variances(parts)["total"][row] == pytest.approx(25 * moment(2, mean), rel=1e-4)
        for q, share in zip(quantiles[row], shares, strict=True):
            assert integrate.quad(p, low, q, limit=400)[0] == pytest.approx(share, abs=1e-6)


def test_losses_of_a_committee_are_those_of_the_mean_density():
    y = RNG.normal(size=6)
    expected = [-np.log(density(TWO, row)(y[row])) for row in range(6)]
    np.testing.assert_allclose(HEAD.mixed_losses(TWO, y), expected)


def test_a_quantile_does_not_depend_on_the_rows_beside_it():
    together = HEAD.quantiles([0.1, 0.95])(TWO)
    for row in range(6):
        alone = [part._replace(mean=part.mean[[row]], variance=part.variance[[row]]) for part in TWO]
        np.testing.assert_array_equal(HEAD.quantiles([0.1, 0.95])(alone)[0], together[row])


def test_residuals_have_the_information_of_log_odds():
    y, weight = stats.laplace.rvs(size=3000, random_state=1), np.ones(3000)
    rows = Cavities(np.zeros((3000, 1)), np.full((3000, 1), 0.01), y, weight)
    R, W = HEAD.residuals(Tube(1e-3, 2.0), rows)
    assert W.mean() == pytest.approx(0.25)
    assert np.mean(R**2) == pytest.approx(0.25)
    assert abs(R.mean()) < 0.03
    shifted, _ = HEAD.residuals(Tube(1e-3, 2.0), rows._replace(y=y + 0.2))
    assert shifted.mean() == pytest.approx(0.5 * 0.2, rel=0.25)  # W · shift, in units in which slope 1 is information 1


def test_the_bound_follows_the_link_until_they_agree():
    likelihood = EpsilonInsensitive(0.25, 0.5)
    rows = Cavities(np.zeros((4, 1)), np.ones((4, 1)), np.array([0.1, -0.1, 0.2, 0.0]), np.ones(4))
    assert HEAD.likelihood_after(likelihood, Tube(0.26, 0.52), rows) is likelihood
    assert HEAD.likelihood_after(likelihood, Tube(0.1, 0.2), rows) == EpsilonInsensitive(0.1, 0.2)
    assert HEAD.likelihood_after(likelihood, Tube(0.4, 0.5), rows) == EpsilonInsensitive(0.4, 0.5)


def test_the_noise_of_the_bound_does_not_vanish_beside_large_errors():
    """Where points are too few, the variance of f explains the errors, and the link has next to no noise."""
    rows = Cavities(np.zeros((4, 1)), np.ones((4, 1)), np.array([1.0, -1.0, 2.0, 0.0]), np.array([1.0, 1.0, 1.0, 3.0]))
    found = HEAD.likelihood_after(EpsilonInsensitive(0.25, 0.5), Tube(1e-4, 1e-3), rows)
    assert found == EpsilonInsensitive(1e-4, pytest.approx(LEAST_NOISE * 2 * 4 / 6))


def test_what_is_no_number_is_refused():
    HEAD.require(np.zeros(3), None)
    for y, labels in ((np.zeros(3), np.arange(2)), (np.zeros(3, int), None), (np.array([np.nan]), None)):
        with pytest.raises(ValueError, match="numeric|numbers"):
            HEAD.require(y, labels)
    for units in ((np.nan, 1.0), (0.0, 0.0), (0.0, -1.0)):
        with pytest.raises(ValueError, match="centre"):
            Regression(*units)
