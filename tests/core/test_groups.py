"""Groups of rows left out: against sites removed from P and h, refits, and finite differences (D24, D34)."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayesvm.core.cavities import SMALLEST_SHARE, RowMarginals, without_group
from bayesvm.core.features import InducingFeatures
from bayesvm.core.groups import Grouping, group_cavities, group_loss_gradient, groups_left_out, removed
from bayesvm.core.heads import Binary
from bayesvm.core.latent import Block, LatentFunction, full
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform
from bayesvm.inference.learning_rates import AdaptiveRate
from bayesvm.inference.leaving_out import leave_groups_out, whole_groups
from bayesvm.inference.problem import Problem
from bayesvm.inference.training import Plan, train
from bayesvm.kernels import RBF
from tests import oracles

EXACT, WAVES = LIKELIHOODS["exact"], waveform(150, random_state=0)


def a_case(n_rows, n_weights, n_groups, seed=0):
    """Features, sites of two functions and groups, with all that follows from them."""
    rng = np.random.default_rng(seed)
    phi = 0.6 * rng.standard_normal((n_rows, n_weights))
    w, gamma = rng.uniform(0, 1, (n_rows, 2)), rng.standard_normal((n_rows, 2))
    w[::5] = gamma[::5] = 0.0  # rows of weight zero
    group = rng.integers(0, n_groups, n_rows) * 3 - 5  # any numbers
    return SimpleNamespace(
        w=w, gamma=gamma, group=group, phi=phi, residual=rng.uniform(0.1, 0.5, (n_rows, 2)), c=np.array([0.2, -0.3])
    )


def left_out(case, phi):
    """The functions that the sites make in these features, and each group left out of them."""
    functions, columns, spreads = [], [], []
    for k in range(2):
        w, gamma = case.w[:, k], case.gamma[:, k]
        natural = NaturalParameters(np.eye(phi.shape[1]) + (phi.T * w) @ phi, phi.T @ gamma)
        q = Gaussian.from_natural(natural)
        functions.append(LatentFunction(k, case.c[k], q))
        explained = np.einsum("ij,jk,ik->i", phi, q.covariance, phi)
        columns.append([w, gamma, case.c[k] + phi @ q.mean, explained, np.full(len(phi), case.c[k])])
        spreads.append(phi @ q.root)
    marginals = RowMarginals(*(np.column_stack(c) for c in zip(*columns, strict=True)), case.residual)
    grouping = Grouping.of(case.group)
    without = groups_left_out(marginals, lambda some: [spread[some] for spread in spreads], grouping)
    n_rows = len(phi)
    return functions, marginals, without, group_cavities(marginals, without, np.zeros(n_rows), np.ones(n_rows))


# ---- D24 ----


@pytest.mark.parametrize("size", [(40, 7, 40), (40, 7, 13), (40, 7, 3), (40, 50, 4)], ids=str)
def test_a_group_left_out_is_all_its_sites_removed(size):
    """Groups of fewer rows than weights and of more."""
    case = a_case(*size)
    functions, _, _, found = left_out(case, case.phi)
    for k, function in enumerate(functions):
        q = full(function)
        for group in np.unique(case.group):
            rows = np.flatnonzero(case.group == group)
            phi, w = case.phi[rows], case.w[rows, k]
            S = np.linalg.inv(q.natural.precision - (phi.T * w) @ phi)
            mean = case.c[k] + phi @ S @ (q.natural.linear - phi.T @ case.gamma[rows, k])
            np.testing.assert_allclose(found.mean[rows, k], mean, atol=1e-9)
            variance = np.diag(phi @ S @ phi.T) + case.residual[rows, k]
            np.testing.assert_allclose(found.variance[rows, k], variance, atol=1e-9)


def test_batches_have_every_row_once_whatever_their_memory(monkeypatch):
    group = np.random.default_rng(0).integers(0, 50, 300)
    for most in (4_000_000, 3_000):
        monkeypatch.setattr("bayesvm.core.groups.MOST_ENTRIES", most)
        grouping = Grouping.of(group, 10)
        assert grouping.n_groups == len(np.unique(group))
        rows = np.concatenate([batch.ravel() for batch in grouping.batches])
        assert sorted(rows[rows < 300]) == list(range(300))
        for batch in grouping.batches:
            for row in batch:
                assert len(set(group[row[row < 300]])) == 1


@pytest.mark.parametrize("wide", [2, 3], ids=["two weights", "three weights"])
def test_a_group_that_gave_more_than_all_of_the_precision_has_a_floor(wide):
    """The variance is that of the singular values; the mean stays finite."""
    rng = np.random.default_rng(1)
    B, w = rng.standard_normal((5, wide)), rng.uniform(0.1, 1, 5)
    centred, gamma = rng.standard_normal((2, 5))
    assert np.linalg.eigvalsh(np.eye(wide) - (B.T * w) @ B).min() < SMALLEST_SHARE
    found = removed(np.arange(5)[None], B[None], centred[None], w[None], gamma[None])
    _, explained = without_group(B, centred, w, gamma)
    np.testing.assert_allclose(found.explained[0], explained, rtol=1e-6)
    assert np.isfinite(found.mean).all()


def trained(X, y, weight=None):
    """Far closer to the optimum than users ask for, so that what is compared is the removal alone."""
    source = MemorySource(X, y, weight, ColumnScaler(), Workers(1), 512)
    features = InducingFeatures.build(RBF(4.0, 2.0), WAVES.X[:25])
    problem = Problem(features, Binary((0.5,)), EXACT, np.float64, float(len(y)))
    plan = Plan("batch", 1000, 1e-10, 512, AdaptiveRate())
    return problem, train(problem, source, plan, problem.start(), np.random.default_rng(0))


def test_groups_left_out_are_refits_without_them():
    """Three near-copies of every row leave together.

    The sites of other rows stay as they are while a refit moves them a little, so the two do not agree exactly: means
    were within .003 of the deviation of f on average, as for single rows. A row that leaves alone is still predicted by
    its copies.
    """
    times = 3
    rng = np.random.default_rng(0)
    X = np.repeat(WAVES.X, times, axis=0) + 0.05 * rng.standard_normal((150 * times, WAVES.X.shape[1]))
    y, group = np.repeat((WAVES.y == 1).astype(int), times), np.repeat(np.arange(150), times)
    problem, fit = trained(X, y)
    source = MemorySource(X, y, None, ColumnScaler(), Workers(1), 512)
    together, numbers = leave_groups_out(problem, source, fit, group)
    np.testing.assert_array_equal(numbers, np.arange(len(y)))
    alone = problem.cavities(source, fit.before, fit.functions)
    refits, rows = [], np.flatnonzero(np.isin(group, np.arange(0, 150, 6)))
    for which in np.arange(0, 150, 6):
        keep = group != which
        other, refit = trained(X[keep], y[keep])
        rest = [Block(X[~keep], y[~keep], None)]
        refits.append(other.view(refit.functions, 0)[0].moments(rest, Workspace()))
    mean, variance = (np.concatenate(column)[:, 0] for column in zip(*refits, strict=True))
    assert np.corrcoef(together.mean[rows, 0], mean)[0, 1] > 0.9999
    assert np.abs(together.mean[rows, 0] - mean).mean() < 0.01 * mean.std()
    assert np.abs(together.mean[rows, 0] - mean).mean() < 0.1 * np.abs(alone.mean[rows, 0] - mean).mean()
    np.testing.assert_allclose(together.variance[rows, 0], variance, rtol=0.1, atol=0.005)


def test_some_groups_are_chosen_whole():
    group = np.repeat(np.arange(40), np.arange(1, 41))
    chosen = whole_groups(group, 300, np.random.default_rng(0))
    assert 200 < len(chosen) <= 300
    for number in np.unique(group[chosen]):
        assert np.isin(np.flatnonzero(group == number), chosen).all()
    assert len(np.unique(group[whole_groups(group, 5, np.random.default_rng(0))])) == 2
    np.testing.assert_array_equal(whole_groups(group, 10_000, np.random.default_rng(0)), np.arange(len(group)))


# ---- D34 ----


class Curved:
    """A link whose loss bends in mean and variance."""

    def __init__(self, n_rows, seed=3):
        self.a, self.b = np.random.default_rng(seed).standard_normal((2, n_rows, 2))

    def loss(self, m, v, *_):
        return float(np.sum(self.a * np.sin(m) + self.b * v**2)), self.a * np.cos(m), 2 * self.b * v


class Recorded:
    """Features that are learned themselves, entry by entry, with a residual k - |phi|²."""

    def __init__(self, phi):
        self.phi, self.prior_variance = phi, None

    def pull(self, phi_bar, variance_bar):
        return phi_bar


@pytest.mark.parametrize("size", [(23, 6, 6), (30, 4, 3), (25, 12, 14)], ids=str)
def test_derivatives_by_the_features_against_finite_differences(size):
    case = a_case(*size)
    link = Curved(size[0])

    def loss(phi):
        *_, cavities = left_out(case, phi)
        return link.loss(cavities.mean, cavities.variance)[0]

    functions, marginals, without, cavities = left_out(case, case.phi)
    parts = [Recorded(case.phi[:9]), Recorded(case.phi[9:])]
    found = np.concatenate(list(group_loss_gradient(parts, marginals, without, cavities, functions, link)))
    truth = oracles.numerical_gradient(loss, case.phi, step=1e-5)
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-6)
