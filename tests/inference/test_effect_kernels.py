"""Kernels of effects by the evidence of their cells (D27), against quadrature, closed forms and planted effects."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logit

from bayesvm.core.workspace import Workspace
from bayesvm.inference import effect_kernels
from bayesvm.inference.effect_kernels import LogOdds, Normal, effect_of, evidence
from bayesvm.inference.screening import Found, Residuals


def some_odds(n_rows, seed=0, effect=0.0, slope=1.0):
    rng = np.random.default_rng(seed)
    value = rng.standard_normal(n_rows)
    sign = np.where(rng.random(n_rows) < expit(value + effect), 1.0, -1.0)
    return LogOdds(value[:, None], sign[:, None], np.ones((n_rows, 1)), slope)


@pytest.mark.parametrize("variance", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_the_evidence_of_one_cell_is_its_integral(variance, weight):
    """Laplace's method, which is nearly exact where a cell has many rows."""
    odds = some_odds(60, effect=0.7)
    value, sign = odds.value[:, 0], odds.outcome[:, 0]

    def gain(e):
        return weight * np.sum(np.log(expit(sign * (value + e))) - np.log(expit(sign * value)))

    def density(e):
        return np.exp(gain(e)) * stats.norm.pdf(e, scale=np.sqrt(variance))

    truth = np.log(integrate.quad(density, -4, 6, points=[0.0, 0.5, 1.0])[0])
    found = evidence(np.array([[variance]]), np.zeros(60, np.intp), value, sign, np.full(60, weight))
    assert found == pytest.approx(truth, abs=0.03)


def test_independent_cells_add_up():
    odds, cells = some_odds(300), np.random.default_rng(1).integers(0, 3, 300)
    columns = odds.value[:, 0], odds.outcome[:, 0], np.linspace(0.5, 2.0, 300)
    together = evidence(np.diag([0.5, 1.0, 2.0]), cells, *columns)
    alone = [
        evidence(np.array([[variance]]), np.zeros(np.sum(cells == i), np.intp), *(c[cells == i] for c in columns))
        for i, variance in enumerate((0.5, 1.0, 2.0))
    ]
    assert together == pytest.approx(sum(alone), abs=0.05)


def test_odds_are_those_of_the_residuals():
    rng = np.random.default_rng(0)
    p, y, weight = rng.uniform(0.01, 0.99, (50, 2)), rng.random((50, 2)) < 0.5, rng.uniform(0.5, 2.0, (50, 1))
    residuals = Residuals(weight * (y - p), weight * p * (1 - p))
    odds = LogOdds.of(residuals, by_mean=-1.7 * residuals.difference)
    np.testing.assert_allclose(odds.value, logit(p), rtol=1e-6)
    np.testing.assert_array_equal(odds.outcome > 0, y)
    np.testing.assert_allclose(odds.weight, np.broadcast_to(weight, (50, 2)), rtol=1e-6)
    assert odds.slope == pytest.approx(1.7)


def test_rows_that_are_predicted_with_certainty_are_no_harm():
    residuals = Residuals(np.array([[0.0], [1.0], [-1e-300]]), np.zeros((3, 1)))
    odds = LogOdds.of(residuals, np.zeros((3, 1)))
    assert all(np.isfinite(part).all() for part in odds)


def test_a_larger_effect_has_a_larger_variance_and_a_rougher_one_a_shorter_length_scale():
    x = np.repeat(np.linspace(-1.5, 1.5, 40), 60)
    cells = np.repeat(np.arange(40), 60)
    found = Found((0,), 1, cells, 9.0, 0.3)

    def kernel(effect, slope=1.0):
        return effect_of(found, x[:, None], some_odds(len(x), 3, effect, slope)).features.kernel

    small, large = kernel(0.4 * np.sign(np.sin(9 * x))), kernel(4.0 * np.sign(np.sin(9 * x)))
    assert small.variance < large.variance
    assert kernel(2.0 * x).length_scale > kernel(2.0 * np.where(cells % 2, 1, -1)).length_scale
    # f that moves the log odds twice as fast needs a quarter of the variance
    assert kernel(2.0 * x, slope=2.0).variance == pytest.approx(kernel(2.0 * x).variance / 4)


def test_points_are_the_means_of_the_cells():
    rng = np.random.default_rng(0)
    X, cells = rng.standard_normal((400, 3)), rng.integers(0, 6, 400)
    effect = effect_of(Found((2, 0), 2, cells, 9.0, 0.3), X, some_odds(400))
    assert effect.columns == (2, 0)
    means = [X[cells == cell][:, [2, 0]].mean(axis=0) for cell in range(6)]
    np.testing.assert_allclose(effect.features.inducing_points, sorted(map(tuple, means)))
    phi, _ = effect.features.prepared(None, np.float64)(effect.of(X), Workspace())
    assert phi.shape == (400, effect.features.n_weights)


def test_there_is_a_limited_number_of_points_those_of_the_fullest_cells(monkeypatch):
    monkeypatch.setattr(effect_kernels, "POINTS", 2)
    X = np.repeat([[0.0], [1.0], [2.0], [3.0]], [5, 30, 2, 20], axis=0)
    effect = effect_of(Found((0,), 1, X[:, 0].astype(np.intp), 9.0, 0.3), X, some_odds(57))
    np.testing.assert_array_equal(effect.features.inducing_points, [[1.0], [3.0]])


def test_cells_that_scaling_makes_equal_share_a_point():
    X = np.repeat([[0.0], [0.0], [1.0]], 10, axis=0)
    effect = effect_of(Found((0,), 1, np.repeat([0, 1, 2], 10), 9.0, 0.3), X, some_odds(30))
    np.testing.assert_array_equal(effect.features.inducing_points, [[0.0], [1.0]])


def test_the_evidence_of_numbers_is_that_of_normal_data():
    """Rows y = f + e of their cell + noise: a ratio of normal densities, from dense matrices."""
    rng = np.random.default_rng(0)
    cells, slope = np.arange(40) % 3, 2.5
    covariance = np.array([[0.5, 0.2, 0.0], [0.2, 1.0, 0.3], [0.0, 0.3, 0.7]])
    precision = rng.uniform(0.2, 2.0, 40)
    y = rng.normal(size=40)
    residuals = Residuals((precision * y)[:, None], precision[:, None])
    found = Normal(residuals, slope).evidence(covariance, cells, np.ones(40, bool))
    member = np.eye(3)[cells]
    noise = np.diag(1 / precision)
    expected = stats.multivariate_normal(np.zeros(40), noise + member @ covariance @ member.T).logpdf(y)
    assert found == pytest.approx(expected - stats.multivariate_normal(np.zeros(40), noise).logpdf(y))
    assert Normal.of(residuals, slope * residuals.difference).slope == pytest.approx(slope)
