"""The Gibbs sampler against quadrature, scipy's distributions, refits and a chain whose autocorrelation is known."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesvm.datasets import waveform
from bayesvm.kernels import RBF

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")

from experiments.competitors.dense import factor
from experiments.competitors.gibbs import (
    GibbsClassifier,
    draw_function,
    draw_scales,
    effective_sample_size,
    log_expected_likelihood,
)

DATA = waveform(60, random_state=0)
X, y = DATA.X, np.where(DATA.y == DATA.y.max(), 1, -1)
GRID = np.linspace(-12, 12, 801)


@pytest.mark.parametrize("away", [0.1, 1.0, 6.0])
def test_scales_are_generalised_inverse_gaussian(away):
    drawn = draw_scales(np.full(10_000, away), np.random.default_rng(0))
    assert stats.kstest(drawn, stats.geninvgauss(0.5, away, scale=away).cdf).pvalue > 0.01
    assert stats.kstest(1.1 * drawn, stats.geninvgauss(0.5, away, scale=away).cdf).pvalue < 0.01  # it can tell


@pytest.mark.parametrize("away", [1e-6, 0.1, 1.0, 1e3])
def test_inverse_scales_are_inverse_gaussian(away):
    rng = np.random.default_rng(0)
    inverse = 1 / draw_scales(np.full(50_000, away), rng)
    assert stats.kstest(inverse, stats.invgauss(1 / away).cdf).pvalue > 0.01  # mean 1/away, shape 1
    assert stats.ks_2samp(inverse, rng.wald(1 / away, 1.0, 50_000)).pvalue > 0.01


def test_scales_on_the_margin_are_chi_squared():
    drawn = draw_scales(np.zeros(20_000), np.random.default_rng(0))
    assert stats.kstest(drawn, stats.chi2(1).cdf).pvalue > 0.01
    assert np.isfinite(draw_scales(np.array([1e-300, 1e8]), np.random.default_rng(0))).all()


def test_functions_given_scales_have_the_conditional_mean_and_covariance():
    rng = np.random.default_rng(0)
    K, signs, scales = RBF(4.0, 2.0)(X[:5], X[:5]), y[:5], np.array([0.05, 0.5, 1.0, 2.0, 30.0])
    draws = np.array([draw_function(K, factor(K, 0.0), signs, scales, rng) for _ in range(20_000)])
    C = np.linalg.inv(np.linalg.inv(K) + np.diag(1 / scales))
    sd = np.sqrt(np.diag(C))
    np.testing.assert_allclose(
        (draws.mean(axis=0) - C @ (signs * (1 / scales + 1))) / sd, 0, atol=4.5 / np.sqrt(20_000)
    )
    np.testing.assert_allclose((np.cov(draws.T) - C) / np.outer(sd, sd), 0, atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("signs", [[1, -1], [1, 1]])
def test_two_rows_by_quadrature(signs):
    """The pseudo-posterior of two rows on a grid, without any latent scales."""
    signs, K, rng = np.array(signs), np.array([[3.0, 1.8], [1.8, 2.0]]), np.random.default_rng(1)
    f, root, draws = np.zeros(2), factor(K, 0.0), np.empty((20_000, 2))
    for t in range(len(draws)):
        f = draw_function(K, root, signs, draw_scales(np.abs(1 - signs * f), rng), rng)
        draws[t] = f
    both = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)
    prior = np.einsum("abi,ij,abj->ab", both, np.linalg.inv(K), both)
    density = np.exp(-0.5 * prior - 2 * np.maximum(0, 1 - signs * both).sum(axis=-1))
    density /= density.sum()
    mean = np.einsum("ab,abi->i", density, both)
    variance = np.einsum("ab,abi->i", density, (both - mean) ** 2)
    error = np.sqrt(variance / effective_sample_size(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * error)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.04)
    assert error.max() < 0.025


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(correlation):
    rng = np.random.default_rng(0)
    chain = np.empty((40_000, 8))
    chain[0] = rng.normal(size=8)
    for t in range(1, len(chain)):
        chain[t] = correlation * chain[t - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=8)
    expected = len(chain) * (1 - correlation) / (1 + correlation)
    assert np.median(effective_sample_size(chain)) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("m", "v"), [(0.3, 0.5), (-2.0, 4.0), (4.0, 0.2), (-30.0, 2.0)])
def test_expected_likelihood_by_quadrature(m, v):
    f = np.linspace(m - 14 * np.sqrt(v) - 8, m + 14 * np.sqrt(v) + 8, 2_000_001)
    for sign in (1, -1):
        integral = integrate.trapezoid(stats.norm(m, np.sqrt(v)).pdf(f) * np.exp(-2 * np.maximum(0, 1 - sign * f)), f)
        assert log_expected_likelihood(m, v, sign) == pytest.approx(np.log(integral), abs=1e-6)


@pytest.fixture(scope="module")
def sampler():
    return GibbsClassifier(4.0, 2.0, n_draws=8000, n_kept=1000, random_state=0).fit(X, y)


def test_predictions_at_training_rows_are_the_draws_themselves(sampler):
    """Two ways to the same moments: from the draws of f, and from the laws of f given the kept scales."""
    m, v = sampler.latent_mean_and_variance(X)
    assert np.abs(m - sampler.f_mean_).max() < 0.1
    np.testing.assert_allclose(v, sampler.f_variance_, rtol=0.15)
    p = sampler.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, stats.norm.cdf(sampler.draws_).mean(axis=0), atol=0.02)


@pytest.mark.slow
def test_leave_one_out_is_a_refit_without_the_row(sampler):
    found = sampler.leave_one_out()
    assert found.effective_draws.min() > 300
    inside = sampler.predict_proba(X)[:, 1]
    hardest = np.argsort(np.abs(found.probability - inside))[-4:]  # where leaving out matters most
    for i in hardest:
        keep = np.arange(60) != i
        refit = GibbsClassifier(4.0, 2.0, n_draws=5000, n_kept=500, random_state=1).fit(X[keep], y[keep])
        m, v = refit.latent_mean_and_variance(X[i : i + 1])
        assert found.mean[i] == pytest.approx(m[0], abs=0.08)
        assert found.variance[i] == pytest.approx(v[0], rel=0.1)
        assert found.probability[i] == pytest.approx(refit.predict_proba(X[i : i + 1])[0, 1], abs=0.02)
    assert np.abs(found.probability - inside)[hardest].min() > 0.05


def test_plain_weights_say_the_same_less_surely(sampler):
    """Weights 1/ℓ(y|f) of the draws of f, before f is integrated out of them."""
    found = sampler.leave_one_out()
    weight = np.exp(2 * np.maximum(0, 1 - y * sampler.draws_))
    weight /= weight.sum(axis=0)
    probability = np.sum(weight * stats.norm.cdf(sampler.draws_), axis=0)
    share = 1 / np.sum(weight**2, axis=0) / len(sampler.draws_)
    easy = share > 0.1
    assert easy.sum() > 30
    np.testing.assert_allclose(probability[easy], found.probability[easy], atol=0.04)
    assert share.min() < 0.1 * found.effective_draws.min() / 1000


def test_a_seed_is_a_chain():
    how = {"n_draws": 20, "burn_in": 5, "n_kept": 4}
    one, same, other = (GibbsClassifier(**how, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.draws_, same.draws_)
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert not np.allclose(one.draws_, other.draws_)
    assert one.draws_.shape == (20, 60)


def test_impossible_numbers_of_draws_are_refused():
    with pytest.raises(ValueError, match="n_kept between 1 and n_draws"):
        GibbsClassifier(n_draws=10, n_kept=20).fit(X, y)


@parametrize_with_checks([GibbsClassifier(n_draws=40, burn_in=10, n_kept=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
