"""BayesianLinearSVC: coefficients in the units of X, priors of three shapes, width."""

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC
from bayesvm.datasets import twonorm
from bayesvm.inference.linear_model import _halves

DATA = twonorm(1500, random_state=0)
X, y = DATA.X[:, :6] * np.arange(1, 7) + 3, DATA.y


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("scale", ["standard", None])
def test_coefficients_are_in_the_units_of_the_data(covariance, scale):
    model = BayesianLinearSVC(covariance=covariance, scale=scale, max_iter=300).fit(X, y)
    mean, variance = model.latent_mean_and_variance(X)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], mean, atol=1e-8)
    without = BayesianLinearSVC(covariance=covariance, fit_intercept=False, scale=None, max_iter=300).fit(X, y)
    V = without.coef_covariance_ if covariance == "full" else np.diag(without.coef_covariance_)
    np.testing.assert_allclose(without.latent_mean_and_variance(X)[1], np.einsum("ij,jk,ik->i", X, V, X), rtol=1e-6)
    assert without.intercept_ == 0
    assert (variance > 0).all()


def test_number_vector_and_matrix_are_one_prior():
    how = {"tune": None, "tol": 1e-10, "max_iter": 300}
    fits = [BayesianLinearSVC(prior, **how).fit(X, y) for prior in (0.3, np.full(6, 0.3), 0.3 * np.eye(6))]
    for other in fits[1:]:
        np.testing.assert_allclose(other.predict_proba(X), fits[0].predict_proba(X), atol=1e-6)


def test_a_correlated_prior_matters_as_it_should():
    """A prior that allows only equal weights finds them."""
    prior = 0.99 * np.ones((6, 6)) + 0.01 * np.eye(6)
    coef = BayesianLinearSVC(prior, scale="standard").fit(X[:60], y[:60]).coef_[0] * X[:60].std(axis=0)
    free = BayesianLinearSVC(1.0, scale="standard").fit(X[:60], y[:60]).coef_[0] * X[:60].std(axis=0)
    assert coef.std() < 0.5 * free.std()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (-1.0, "prior_variance must be positive"),
        (np.ones(5), "5 entries, but X has 6 columns"),
        (np.ones((6, 5)), "symmetric 6×6 matrix"),
        (-np.eye(6), "positive definite"),
    ],
)
def test_senseless_priors_are_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        BayesianLinearSVC(prior).fit(X, y)


def test_too_many_columns_for_a_full_covariance():
    wide = np.random.default_rng(0).standard_normal((20, 5001))
    label = np.tile([0, 1], 10)
    with pytest.raises(ValueError, match="covariance='diagonal'"):
        BayesianLinearSVC().fit(wide, label)
    assert BayesianLinearSVC(covariance="diagonal").fit(wide, label).coef_.shape == (1, 5001)


def test_diagonal_covariance_is_fitted_over_all_rows_only():
    with pytest.raises(ValueError, match="use inference='auto' or 'batch'"):
        BayesianLinearSVC(covariance="diagonal", inference="stochastic").fit(X, y)


def test_stochastic_inference_finds_the_batch_optimum():
    batch = BayesianLinearSVC(inference="batch").fit(X, y)
    stochastic = BayesianLinearSVC(inference="stochastic", batch_size=100, random_state=0).fit(X, y)
    np.testing.assert_allclose(stochastic.predict_proba(X), batch.predict_proba(X), atol=5e-3)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("unit", [10.0, 1e-9, np.array([3.0, 0.02, 700.0, 1.0, 1e-5, 40.0])], ids=["10", "1e-9", "own"])
def test_probabilities_do_not_depend_on_units(covariance, unit):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 6))
    labels = rows[:, 0] + 0.7 * rng.standard_normal(40) > 0
    model, other = (BayesianLinearSVC(covariance=covariance, random_state=1) for _ in range(2))
    plain = model.fit(rows, labels).predict_proba(rows)
    np.testing.assert_allclose(other.fit(rows * unit, labels).predict_proba(rows * unit), plain, atol=1e-4)


def test_halves_of_a_mean_field_keep_equal_rows_together():
    values = np.repeat(np.random.default_rng(0).standard_normal(50), 3)
    shuffled = np.random.default_rng(1).permutation(150)
    half = _halves((values * (1 + 1e-16 * np.arange(150)))[shuffled])[np.argsort(shuffled)].reshape(50, 3)
    assert (half == half[:, :1]).all()
    assert half[:, 0].sum() == 25
