"""Diagonal covariance: against a generic optimiser on the naive objective (D14)."""

import numpy as np
import pytest
from scipy import optimize

from bayesvm import BayesianLinearSVC
from bayesvm.core.likelihoods import LIKELIHOODS, noisy
from bayesvm.datasets import twonorm

DATA = twonorm(300, random_state=0)
X, y = DATA.X[:, :4], DATA.y.astype(float)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("bound", LIKELIHOODS)
def test_mean_field_optimum(bound, noise):
    likelihood = noisy(bound, noise)

    def minus_elbo(parameters):
        mean, log_s = parameters[:4], parameters[4:]
        variance = np.exp(2 * log_s)
        total = likelihood.update(X @ mean, X**2 @ variance, y).bound.sum()
        return -total + 0.5 * np.sum(variance / 0.5 + mean**2 / 0.5 - 1 - np.log(variance / 0.5))

    truth = optimize.minimize(minus_elbo, np.zeros(8), method="BFGS", options={"gtol": 1e-4})
    how = {"fit_intercept": False, "covariance": "diagonal", "scale": None, "tol": 1e-9, "max_iter": 500}
    model = BayesianLinearSVC(prior_variance=0.5, bound=bound, noise=noise, **how).fit(X, y)
    np.testing.assert_allclose(model.elbo_, -truth.fun, rtol=1e-6)
    np.testing.assert_allclose(model.coef_[0], truth.x[:4], atol=1e-3)
    np.testing.assert_allclose(model.coef_covariance_, np.exp(2 * truth.x[4:]), rtol=1e-2)


def test_many_correlated_columns_still_converge():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((400, 1))
    wide = common + 0.3 * rng.standard_normal((400, 5001))
    label = np.sign(common[:, 0] + 0.2 * rng.standard_normal(400))
    model = BayesianLinearSVC(covariance="diagonal", max_iter=300, tol=1e-4).fit(wide, label)
    assert model.converged_
    assert model.score(wide, label) > 0.85


def test_rows_left_out_are_predicted_by_the_other_half():
    """A mean field has no cavities; its out-of-sample figures must come from rows that a fit did not see."""
    noise = np.random.default_rng(0).standard_normal((200, 300))
    label = np.random.default_rng(1).choice([-1, 1], 200)
    model = BayesianLinearSVC(covariance="diagonal", max_iter=300, random_state=0).fit(noise, label)
    assert model.score(noise, label) > 0.9  # it fits pure noise,
    assert model.loo_log_loss_ > 0.65  # and knows that it learned nothing
