"""Links against quadrature; calibration against a generic optimiser; offsets against their definition (D11)."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import log_softmax, ndtr, softmax

from bayesvm.core.links import (
    PLAIN_LINKS,
    Normalised,
    Probit,
    Softmax,
    base_rate_offsets,
    fit_probit,
    fit_softmax,
)

rng = np.random.default_rng(0)
MARGINALS = [(-1.0, 0.3), (0.4, 2.0), (3.0, 10.0), (0.0, 1.0)]


def expectation(function, m, v):
    s = np.sqrt(v)
    density = stats.norm(m, s).pdf
    kinks = [k for k in (-1.0, 1.0) if abs(k - m) < 10 * s]
    return integrate.quad(lambda f: function(f) * density(f), m - 10 * s, m + 10 * s, points=kinks, limit=200)[0]


@pytest.mark.parametrize(("m", "v"), MARGINALS)
@pytest.mark.parametrize("link", [Probit(), Probit(0.7, -0.4)], ids=repr)
def test_probit_is_the_expected_probit(link, m, v):
    expected = expectation(lambda f: ndtr(link.scale * f + link.bias), m, v)
    np.testing.assert_allclose(ndtr(link.score(m, v)), expected, atol=1e-8)


@pytest.mark.parametrize(("m", "v"), MARGINALS)
def test_hinge_is_the_expected_normalised_pseudo_likelihood(m, v):
    def normalised(f):
        plus, minus = np.exp(-2 * max(0, 1 - f)), np.exp(-2 * max(0, 1 + f))
        return plus / (plus + minus)

    found = ndtr(PLAIN_LINKS["hinge"].score(np.array([m]), np.array([v])))
    np.testing.assert_allclose(found, expectation(normalised, m, v), atol=1e-3)


def test_paper_is_the_printed_formula():
    np.testing.assert_allclose(PLAIN_LINKS["paper"].score(2.0, 3.0), 0.5)


@pytest.mark.parametrize("name", PLAIN_LINKS)
def test_scores_rise_with_the_mean_and_stay_finite(name):
    m = np.linspace(-50, 50, 300)
    score = PLAIN_LINKS[name].score(m, np.full(300, 2.0))
    assert np.isfinite(score).all()
    assert (np.diff(score) >= 0).all()


def test_calibration_maximises_the_penalised_likelihood():
    m, v = 2 * rng.standard_normal(400), rng.random(400)
    sign = np.where(rng.random(400) < ndtr(0.5 * m + 0.3), 1.0, -1.0)
    weight = rng.random(400) * 2

    def loss(p):
        z = sign * (np.exp(p[0]) * m + p[1]) / np.sqrt(1 + np.exp(2 * p[0]) * v)
        return -weight @ stats.norm.logcdf(z) + 0.5 * p @ p

    truth = optimize.minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8}).x
    found = fit_probit(m, v, sign, weight)
    np.testing.assert_allclose([np.log(found.scale), found.bias], truth, atol=1e-3)


def test_joint_calibration_maximises_the_penalised_likelihood():
    m, v = rng.standard_normal((300, 3)), rng.random((300, 3))
    y = np.array([rng.choice(3, p=softmax(2 * row + [0.5, 0, -0.5])) for row in m])
    weight = rng.random(300) * 2

    def loss(p):
        logits = np.exp(p[0]) * m / np.sqrt(1 + v) + p[1:]
        return -weight @ log_softmax(logits, axis=1)[np.arange(300), y] + 0.5 * p @ p

    truth = optimize.minimize(loss, np.zeros(4), method="BFGS").x
    found = fit_softmax(m, v, y, weight)
    np.testing.assert_allclose([np.log(found.scale), *found.bias], truth, atol=1e-3)


def test_separable_rows_leave_the_calibration_finite():
    m = np.array([-3.0, -2.0, 2.0, 3.0])
    found = fit_probit(m, np.full(4, 0.1), np.sign(m), np.ones(4))
    assert 0.5 < found.scale < 20


@pytest.mark.parametrize("link", [None, Probit(1.8, -0.3)])
def test_far_away_the_probability_is_the_base_rate(link):
    (c,) = base_rate_offsets(np.array([0.04]), 4.0, link)
    assert ndtr((link or Probit()).score(c, 4.0)) == pytest.approx(0.04)


def test_far_away_the_probabilities_are_the_base_rates():
    link, rates = Softmax(2.0, (0.1, -0.4, 0.2, 0.0)), np.array([0.1, 0.2, 0.3, 0.4])
    c = np.array([base_rate_offsets(rates, 4.0, link)])
    np.testing.assert_allclose(softmax(link.logits(c, np.full((1, 4), 4.0)), axis=1)[0], rates)


def test_normalised_links_are_shares():
    m, v = rng.standard_normal((5, 3)), rng.random((5, 3))
    p = ndtr(PLAIN_LINKS["probit"].score(m, v))
    np.testing.assert_allclose(softmax(Normalised(Probit()).logits(m, v), axis=1), p / p.sum(axis=1, keepdims=True))
