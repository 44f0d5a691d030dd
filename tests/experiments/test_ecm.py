"""Expectation conditional maximisation against the dual of a support vector machine, quadrature and dense inverses."""

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesvm.datasets import waveform
from bayesvm.kernels import RBF
from tests import oracles

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")

from experiments.competitors.ecm import ECMClassifier

DATA = waveform(100, random_state=0)
X, y = DATA.X, np.where(DATA.y == DATA.y.max(), 1, -1)
RATE = 0.7
PRIORS = {"hinge": {}, "skewed_laplace": {"exponential_prior": True, "prior_rate": RATE}}
SLOPES = {"hinge": 1.0, "skewed_laplace": np.sqrt(1 + 2 * RATE)}
EXACT = {"tol": 1e-13, "max_iter": 20_000}


def dual_solution(K, y, slope, sweeps=5000):
    """max Σα - ½ αᵀ YKY α, 1 - slope ≤ α ≤ 1 + slope, by coordinate ascent; f and the gap to the primal loss."""
    alpha, f = np.ones(len(y)), K @ y
    for _ in range(sweeps):
        for i in range(len(y)):
            new = np.clip(alpha[i] + (1 - y[i] * f[i]) / K[i, i], 1 - slope, 1 + slope)
            f += (new - alpha[i]) * y[i] * K[i]
            alpha[i] = new
        primal = np.sum(1 - y * f + slope * np.abs(1 - y * f)) + 0.5 * alpha @ (y * f)
        gap = primal - (np.sum(alpha) - 0.5 * alpha @ (y * f))
        if gap < 1e-11:
            break
    return f, gap


@pytest.mark.slow
@pytest.mark.parametrize("length_scale", [3.5, 5.0])
@pytest.mark.parametrize("prior", PRIORS)
def test_mode_is_the_support_vector_machine_of_the_dual(prior, length_scale):
    model = ECMClassifier(length_scale, 2.0, **PRIORS[prior], **EXACT).fit(X, y)
    f, gap = dual_solution(RBF(length_scale, 2.0)(X, X), y, SLOPES[prior])
    assert gap < 1e-9
    np.testing.assert_allclose(model.f_, f, atol=1e-4)
    alpha = y * model._beta
    assert np.sum((alpha > 1 - SLOPES[prior] + 0.01) & (alpha < 1 + SLOPES[prior] - 0.01)) > 5  # rows on the margin
    assert prior != "hinge" or np.sum(np.abs(alpha) < 0.01) > 5  # and rows beyond it, which do not count


@pytest.mark.parametrize("a", [-2.0, -0.3, 0.5, 1.7])  # 1 - y f
def test_integral_over_the_prior_is_the_skewed_laplace_law_that_is_maximised(a):
    joint = lambda x: RATE * np.exp(-RATE * x - 0.5 * (a + x) ** 2 / x) / np.sqrt(2 * np.pi * x)
    slope = SLOPES["skewed_laplace"]
    assert np.log(integrate.quad(joint, 0, np.inf)[0]) == pytest.approx(np.log(RATE / slope) - a - slope * abs(a))
    precision = integrate.quad(lambda x: joint(x) / x, 0, np.inf)[0] / integrate.quad(joint, 0, np.inf)[0]
    assert precision == pytest.approx(slope / abs(a))  # the E-step


@pytest.mark.parametrize("prior", PRIORS)
def test_no_step_away_from_the_mode_raises_the_posterior_by_quadrature(prior):
    rows = np.r_[:12]
    model = ECMClassifier(4.0, 2.0, **PRIORS[prior], **EXACT).fit(X[rows], y[rows])
    inverse = np.linalg.inv(RBF(4.0, 2.0)(X[rows], X[rows]))
    rate = RATE if prior != "hinge" else 0.0

    def log_posterior(f):
        a = 1 - y[rows] * f
        joint = lambda t, a: 2 * np.exp(-rate * t * t - 0.5 * (a / t + t) ** 2) / np.sqrt(2 * np.pi)  # λ = t²
        likelihood = [integrate.quad(joint, 0, np.inf, (a_i,), epsabs=1e-13, limit=200)[0] for a_i in a]
        return np.sum(np.log(likelihood)) - 0.5 * f @ inverse @ f

    best = log_posterior(model.f_)
    rng = np.random.default_rng(0)
    for step in rng.normal(scale=0.03, size=(15, 12)):
        assert log_posterior(model.f_ + step) < best


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("length_scale", "variance"), [(0.5, 1.0), (5.0, 1.0), (50.0, 1000.0)])
def test_objective_never_falls(prior, length_scale, variance):
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)  # equal rows: a singular kernel matrix
    model = ECMClassifier(length_scale, variance, **PRIORS[prior], tol=0.0, max_iter=150).fit(twice, labels)
    assert model.n_iter_ == len(model.objective_) == 150 or model.objective_[-1] <= model.objective_[-2]
    assert np.diff(model.objective_).min() > -1e-10 * abs(model.objective_[-1])
    assert np.isfinite(model.f_).all()


@pytest.mark.parametrize("prior", PRIORS)
def test_objective_is_the_log_posterior(prior):
    model = ECMClassifier(3.0, 2.0, **PRIORS[prior], max_iter=3, tol=0.0).fit(X, y)
    a = 1 - y * model.f_
    prior_term = 0.5 * model.f_ @ np.linalg.solve(RBF(3.0, 2.0)(X, X), model.f_)
    expected = -np.sum(a + SLOPES[prior] * np.abs(a)) - prior_term
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-9)


def test_prediction_is_the_papers_with_its_inverses():
    new = waveform(20, random_state=1).X
    model = ECMClassifier(4.0, 2.0, max_iter=4, tol=0.0).fit(X, y)
    kernel = lambda a, b: 2.0 * np.exp(-0.5 * np.sum((a - b) ** 2) / 16.0)
    K, k_new = oracles.kernel_matrix(kernel, X, X), oracles.kernel_matrix(kernel, new, X)
    f = ECMClassifier(4.0, 2.0, max_iter=3, tol=0.0).fit(X, y).f_
    scales = np.abs(1 - y * f)
    A = np.linalg.inv(K + np.diag(scales))
    m, v = k_new @ A @ (y * (1 + scales)), 2.0 - np.diag(k_new @ A @ k_new.T)
    found = model.latent_mean_and_variance(new)
    np.testing.assert_allclose(found, (m, v), rtol=1e-6)
    C = np.linalg.inv(np.linalg.inv(K) + np.diag(1 / scales))
    np.testing.assert_allclose(model.f_, C @ (y * (1 / scales + 1)), rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], norm.cdf(m / np.sqrt(1 + v)), rtol=1e-6)
    model.set_params(link="paper")
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], norm.cdf(m / (1 + v)), rtol=1e-6)


def test_a_spent_budget_is_a_warning_and_the_labels_may_be_words():
    words = np.where(y > 0, "yes", "no")
    with pytest.warns(ConvergenceWarning, match="2 iterations"):
        model = clone(ECMClassifier(max_iter=2)).fit(X, words)
    assert model.n_iter_ == 2
    assert list(model.classes_) == ["no", "yes"]
    assert model.predict_proba(X[:7]).shape == (7, 2)
    assert model.score(X, words) > 0.8


def test_unsupported_uses_raise_errors():
    with pytest.raises(ValueError, match="Only binary"):
        ECMClassifier().fit(X, np.arange(100) % 3)
    with pytest.raises(ValueError, match="link must be"):
        ECMClassifier(link="logit").fit(X, y)
    with pytest.raises(ValueError, match="prior_rate positive"):
        ECMClassifier(prior_rate=0.0).fit(X, y)


@parametrize_with_checks([ECMClassifier(), ECMClassifier(exponential_prior=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
