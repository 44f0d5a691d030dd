"""Links against quadrature; calibration against a generic optimiser (D11)."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import log_softmax, ndtr, softmax

from bayesvm.core.links import (
    PLAIN_LINKS,
    Normalised,
    Probit,
    TwoProbits,
    fit_probit,
    fit_softmax,
    fit_two_probits,
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
def test_two_probits_are_the_expected_mean_of_probits(m, v):
    link = TwoProbits((1.5, 0.3), (-0.4, 0.8), 0.3)
    expected = expectation(lambda f: 0.7 * ndtr(1.5 * f - 0.4) + 0.3 * ndtr(0.3 * f + 0.8), m, v)
    np.testing.assert_allclose(ndtr(link.score(m, v)), expected, atol=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_equal_probits_are_one_however_far_away(share):
    m = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(TwoProbits((0.9, 0.9), (0.2, 0.2), share).score(m, 0.1), Probit(0.9, 0.2).score(m, 0.1))


@pytest.mark.parametrize(("m", "v"), MARGINALS)
def test_hinge_is_the_expected_normalised_pseudo_likelihood(m, v):
    def normalised(f):
        plus, minus = np.exp(-2 * max(0, 1 - f)), np.exp(-2 * max(0, 1 + f))
        return plus / (plus + minus)

    found = ndtr(PLAIN_LINKS["hinge"].score(np.array([m]), np.array([v])))
    np.testing.assert_allclose(found, expectation(normalised, m, v), atol=1e-3)


def test_paper_is_the_printed_formula():
    np.testing.assert_allclose(PLAIN_LINKS["paper"].score(2.0, 3.0), 0.5)


@pytest.mark.parametrize("link", [*PLAIN_LINKS.values(), TwoProbits((8.0, 0.2), (1.0, -3.0), 0.01)], ids=repr)
def test_scores_rise_with_the_mean_and_stay_finite(link):
    m = np.linspace(-50, 50, 300)
    score = link.score(m, np.full(300, 2.0))
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


def kinked_rows(n):
    """Marginals whose labels no single probit describes: one row in four is nearly a coin toss."""
    m, v, weight = 2 * rng.standard_normal(n), rng.random(n), rng.random(n) * 2
    p = 0.75 * ndtr(1.5 * m + 0.3) + 0.25 * ndtr(0.1 * m - 0.2)
    return m, v, np.where(rng.random(n) < p, 1.0, -1.0), weight


def test_refined_calibration_maximises_the_penalised_likelihood():
    m, v, sign, weight = kinked_rows(400)
    around = fit_probit(m, v, sign, weight)

    def loss(p):
        z = [
            sign * (a * m + b) / np.sqrt(1 + a**2 * v)
            for a, b in ((around.scale * np.exp(p[i]), around.bias + p[i + 1]) for i in (0, 2))
        ]
        share = 1 / (1 + np.exp(-p[4]))
        prior = 0.5 * np.sum((p[:4] / 0.5) ** 2) + 0.5 * p[4] ** 2
        return prior - weight @ np.log((1 - share) * ndtr(z[0]) + share * ndtr(z[1]))

    truth = min((optimize.minimize(loss, rng.normal(0, 0.4, 5), method="BFGS") for _ in range(5)), key=lambda o: o.fun)
    found = fit_two_probits(m, v, sign, weight, around)
    a, b = np.log(np.array(found.scale) / around.scale), np.array(found.bias) - around.bias
    at = np.array([a[0], b[0], a[1], b[1], np.log(found.share / (1 - found.share))])
    assert loss(at) == pytest.approx(truth.fun, abs=1e-3)


def test_two_probits_describe_what_one_cannot():
    m, v, sign, weight = kinked_rows(20_000)
    one = fit_probit(m, v, sign, weight)
    two = fit_two_probits(m, v, sign, weight, one)
    m, v, sign, _ = kinked_rows(20_000)
    losses = [-stats.norm.logcdf(sign * link.score(m, v)).mean() for link in (one, two)]
    assert losses[0] - losses[1] > 0.005


def test_exchanging_the_classes_exchanges_the_probabilities():
    m, v, sign, weight = kinked_rows(500)
    there = fit_two_probits(m, v, sign, weight, fit_probit(m, v, sign, weight))
    back = fit_two_probits(-m, v, -sign, weight, fit_probit(-m, v, -sign, weight))
    np.testing.assert_allclose(back.score(-m, v), -there.score(m, v), atol=1e-3)


def test_a_handful_of_rows_leaves_one_probit():
    m = np.array([-2.0, -1.0, 0.5, 1.5, -0.5])
    sign = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    one = fit_probit(m, np.ones(5), sign, np.ones(5))
    two = fit_two_probits(m, np.ones(5), sign, np.ones(5), one)
    np.testing.assert_allclose(ndtr(two.score(m, 1.0)), ndtr(one.score(m, 1.0)), atol=0.03)


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


def test_normalised_links_are_shares():
    m, v = rng.standard_normal((5, 3)), rng.random((5, 3))
    p = ndtr(PLAIN_LINKS["probit"].score(m, v))
    np.testing.assert_allclose(Normalised(Probit()).probabilities(m, v), p / p.sum(axis=1, keepdims=True))
