"""Rows and groups left out, against sites removed from P and h, and against fits that never saw them (D10, D24)."""

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.cavities import (
    SMALLEST_SHARE,
    Cavities,
    LeftOut,
    block_cavities,
    effective_rows,
    without_group,
)
from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block, LatentFunction, Marginals, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.statistics import Sites
from bayesvm.core.workspace import Workspace
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Linear, Matern
from tests import oracles

rng = np.random.default_rng(0)
N, D, M = 40, 3, 7
ROWS, CODES = rng.standard_normal((N, D)), rng.integers(0, 3, N)
OMEGA = rng.uniform(0, 3, N)
OMEGA[::7] = 0.0
KERNEL, POINTS = RBF(1.5, 2.0), rng.standard_normal((M, D))
FEATURES = InducingFeatures.build(KERNEL, POINTS)
HEAD, OFFSETS = OneVsRest((0.3, 0.3, 0.4)), (0.4, -0.3, 0.0)
EXACT = LIKELIHOODS["exact"]


def a_posterior(seed, width=M):
    A = np.random.default_rng(seed).standard_normal((width, width))
    return Gaussian.from_natural(NaturalParameters(np.eye(width) + A @ A.T, 2 * A[0]))


BEFORE = [a_posterior(seed) for seed in range(3)]


class Dense:
    """Sites at ``BEFORE``, the posteriors that they make with the prior, and both without some rows."""

    def __init__(self, weight):
        phi, residual = oracles.features(KERNEL, POINTS, ROWS)
        self.phi, self.residual, self.sites, self.natural, self.prior_means = phi, residual, [], [], []
        omega = np.ones(N) if weight is None else weight
        for number, (offset, q) in enumerate(zip(OFFSETS, BEFORE, strict=True)):
            prior_mean = np.full(N, offset)
            m, t, r = oracles.marginals(phi, residual, prior_mean, q.mean, q.covariance)
            local = EXACT.update(m, t + r, np.where(number == CODES, 1.0, -1.0))
            w, gamma = omega * local.precision, omega * (local.linear - local.precision * prior_mean)
            self.sites.append((w, gamma))
            self.prior_means.append(prior_mean)
            self.natural.append(NaturalParameters(np.eye(M) + (phi.T * w) @ phi, phi.T @ gamma))

    def without(self, number, rows):
        """Mean and variance of one function at these rows, with all their sites taken out of P and h."""
        w, gamma = self.sites[number]
        P, h = self.natural[number].precision.copy(), self.natural[number].linear.copy()
        for i in rows:
            P -= w[i] * np.outer(self.phi[i], self.phi[i])
            h -= gamma[i] * self.phi[i]
        S = np.linalg.inv(P)
        mean = self.prior_means[number][rows] + self.phi[rows] @ S @ h
        return mean, np.diag(self.phi[rows] @ S @ self.phi[rows].T) + self.residual[rows]

    @property
    def posteriors(self):
        return [Gaussian.from_natural(natural) for natural in self.natural]


def views(dense, n_rows=0):
    """The functions before and after the sites were taken in, as blocks see them."""
    return {
        name: View.of(
            FEATURES,
            [LatentFunction(k, c, q) for k, (c, q) in enumerate(zip(OFFSETS, posteriors, strict=True))],
            n_rows,
            np.float64,
        )[0]
        for name, posteriors in (("before", BEFORE), ("final", dense.posteriors))
    }


# ---- one row ----


@pytest.mark.parametrize("weight", [None, OMEGA], ids=["no weights", "weights"])
@pytest.mark.parametrize("n_rows", [0, 10_000], ids=["dense", "diagonal"])
def test_a_row_left_out_is_its_site_removed(weight, n_rows):
    dense = Dense(weight)
    parts = slice(25), slice(25, N)
    blocks = [Block(ROWS[part], CODES[part], None if weight is None else weight[part]) for part in parts]
    found = block_cavities(blocks, Workspace(), **views(dense, n_rows), head=HEAD, likelihood=EXACT)
    for number in range(3):
        expected = np.array([dense.without(number, [i]) for i in range(N)])[:, :, 0]
        np.testing.assert_allclose(found.mean[:, number], expected[:, 0], atol=1e-6)
        np.testing.assert_allclose(found.variance[:, number], expected[:, 1], atol=1e-6)
    np.testing.assert_array_equal(found.y, CODES)
    np.testing.assert_array_equal(found.weight, np.ones(N) if weight is None else weight)


def test_a_row_that_holds_all_the_information_does_not_divide_by_zero():
    """A variance so large that 1 - wt is negative, as happens far from convergence."""
    features = LinearFeatures(np.array([1e3]), intercept=False)
    function = LatentFunction(0, 0.0, DiagonalGaussian(np.zeros(1), np.ones(1)))
    view, _ = View.of(features, [function], 1, np.float64)
    block = Block(np.array([[1.0], [0.0]]), np.array([1, 0]), None)
    found = block_cavities([block], Workspace(), before=view, final=view, head=Binary((0.5,)), likelihood=EXACT)
    assert np.isfinite(found.mean).all()
    assert (found.variance >= 0).all()
    assert found.variance.max() <= 1e6 / SMALLEST_SHARE


# ---- groups ----


@pytest.mark.parametrize("precision", [0.3, 0.998, 0.9995, 1.7, 50.0])
def test_a_group_of_one_row_is_that_row_at_the_floor_too(precision):
    """At t = 1, wt is the precision; from .999 on the share is at its floor."""
    gamma, centred, spread = np.array([0.7]), np.array([0.4]), np.array([[0.6, 0.8]])
    mean, explained = without_group(spread, centred, np.array([precision]), gamma)
    share = max(1 - precision, SMALLEST_SHARE)
    np.testing.assert_allclose(mean, (centred - gamma) / share, rtol=1e-9)
    np.testing.assert_allclose(explained, 1 / share, rtol=1e-9)


def test_a_group_of_copies_is_one_row_of_their_weight():
    spread, w, gamma, centred = np.array([[0.6, 0.3]]), np.array([0.5]), np.array([0.7]), np.array([0.4])
    copies = without_group(np.repeat(spread, 3, axis=0), *(np.repeat(each, 3) for each in (centred, w, gamma)))
    for found, expected in zip(copies, without_group(spread, centred, 3 * w, 3 * gamma), strict=True):
        np.testing.assert_allclose(found, np.repeat(expected, 3))


def test_a_group_that_gave_more_than_all_of_the_precision_has_the_floor_for_eigenvalue():
    """By the eigenvalues of I - TW, of which some are negative here."""
    spread, w, gamma, centred = rng.standard_normal((5, 3)), rng.uniform(0.1, 1, 5), *rng.standard_normal((2, 5))
    T = spread @ spread.T
    values, vectors = np.linalg.eig(np.eye(5) - T * w)
    assert values.min() < 0 < values.max()
    inverse = (vectors / np.maximum(values, SMALLEST_SHARE) @ np.linalg.inv(vectors)).real
    mean, explained = without_group(spread, centred, w, gamma)
    np.testing.assert_allclose(mean, inverse @ (centred - T @ gamma), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(explained, np.diag(inverse @ T), rtol=1e-6, atol=1e-6)


# ---- the adjoint ----


def test_derivatives_by_the_marginals_against_finite_differences():
    """Sites held; of rows that are free, at the floor, and of no weight."""
    n = 12
    t = rng.uniform(0.2, 2.0, n)
    w = np.array([0.0, 0.3, 0.6, 0.9, 0.99, 0.9989, 0.9992, 1.5, 2.0, 0.5, 0.2, 0.0]) / t
    gamma, m, r, by_mean, by_variance = rng.standard_normal((5, n))
    c = rng.standard_normal(n)

    def left_out(m, t, r):
        at = Marginals(np.zeros((n, 1)), c, m, t, r, 0.3)
        return LeftOut.of(Sites(at, np.zeros(n), w, gamma), at)

    def objective(m, t, r):
        found = left_out(m, t, r)
        return by_mean @ found.mean + by_variance @ found.variance

    pulled = left_out(m, t, r).pull(by_mean, by_variance)
    for i, given in enumerate((m, t, r)):

        def moved(x, i=i):
            return objective(*(x if j == i else other for j, other in enumerate((m, t, r))))

        truth = oracles.numerical_gradient(moved, given, step=1e-7)
        np.testing.assert_allclose(pulled[i], truth, rtol=1e-4, atol=1e-5 * np.abs(truth).max())


# ---- what is known of the rows ----


def test_effective_rows_count_rows_of_equal_weight_and_groups_as_one():
    assert effective_rows(np.full(30, 0.2)) == pytest.approx(30)
    weight = np.repeat([1.0, 0.0], 10)
    assert effective_rows(weight) == pytest.approx(10)
    # Ten rows, each given three times: as much as ten rows.
    assert effective_rows(np.ones(30), np.full(30, 3.0)) == pytest.approx(10)
    # The variance of a weighted mean of independent rows is that of a plain mean of as many rows.
    draws = rng.standard_normal((20_000, N))
    assert 1 / np.var(draws @ OMEGA / OMEGA.sum()) == pytest.approx(effective_rows(OMEGA), rel=0.05)


def test_cavities_are_taken_and_joined_row_by_row():
    whole = Cavities(*rng.standard_normal((2, N, 2)), CODES, OMEGA, np.full(N, 2.0))
    again = Cavities.joined([whole.take(slice(0, 9)), whole.take(slice(9, N))])
    for one, other in zip(whole[:4], again[:4], strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.group_weight is None
    assert whole.effective_weight.sum() == pytest.approx(effective_rows(OMEGA, np.full(N, 2.0)))
    np.testing.assert_allclose(whole.effective_weight / whole.effective_weight.sum(), OMEGA / OMEGA.sum())


# ---- whole fits ----

WAVES = waveform(150, random_state=0)
X, y = WAVES.X, WAVES.y
HOW = {"tune": None, "scale": None, "inference": "batch", "tol": 1e-9, "max_iter": 1000}
MODELS = {
    "rbf": lambda bound: BayesianSVC(RBF(5.0, 2.0), inducing=X[:25], bound=bound, **HOW),
    "matern": lambda bound: BayesianSVC(Matern(5.0, 2.0), inducing=X[:25], bound=bound, **HOW),
    "sum": lambda bound: BayesianSVC(RBF(5.0) + 0.05 * Linear(), inducing=X[:25], bound=bound, **HOW),
    "linear": lambda bound: BayesianLinearSVC(0.1, bound=bound, **HOW),
}


def refits(make, rows, weight=None):
    found = []
    for i in rows:
        w = np.ones(len(y)) if weight is None else weight.copy()
        w[i] = 0
        keep = w > 0
        m, v = make().fit(X[keep], y[keep], sample_weight=w[keep]).latent_mean_and_variance(X[i : i + 1])
        found.append((m[0], v[0]))
    return np.array(found).T


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("bound", "correlation"), [("exact", 0.999), ("augmented", 0.99)])
def test_cavities_are_refits_without_the_row(name, bound, correlation):
    make = lambda: MODELS[name](bound)
    model, rows = make().fit(X, y), np.arange(0, 150, 6)
    m, v = refits(make, rows)
    inside, _ = model.latent_mean_and_variance(X[rows])
    (left_out,) = model.fitted_.left_out
    found = left_out.mean[rows, 0]
    assert np.corrcoef(found, m)[0, 1] > correlation
    # The augmented bound is known to be too optimistic here, if less so than looking at the training rows.
    assert np.abs(found - m).mean() < {"exact": 0.3, "augmented": 0.8}[bound] * np.abs(inside - m).mean()
    if bound == "exact":
        np.testing.assert_allclose(left_out.variance[rows, 0], v, rtol=0.25, atol=0.02)


def test_a_row_leaves_with_all_its_weight_and_with_its_copies():
    times = np.random.default_rng(0).integers(1, 4, len(y))
    make = lambda: MODELS["rbf"]("exact")
    model, rows = make().fit(X, y, sample_weight=times), np.arange(0, 150, 10)
    m, v = refits(make, rows, times.astype(float))
    (left_out,) = model.fitted_.left_out
    assert np.corrcoef(left_out.mean[rows, 0], m)[0, 1] > 0.999
    np.testing.assert_allclose(left_out.variance[rows, 0], v, rtol=0.25, atol=0.02)
    with pytest.warns(UserWarning, match="exact copies"):
        (repeated,) = make().fit(np.repeat(X, times, 0), np.repeat(y, times)).fitted_.left_out
    np.testing.assert_allclose(repeated.mean, np.repeat(left_out.mean, times, 0), atol=1e-5)
    np.testing.assert_allclose(repeated.variance, np.repeat(left_out.variance, times, 0), atol=1e-5)
    assert (repeated.weight == 1).all()
