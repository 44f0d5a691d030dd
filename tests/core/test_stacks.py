"""Models side by side against models one by one: dense formulas, and the way that single models are trained (D30)."""

from itertools import pairwise

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import LatentFunction
from bayesvm.core.likelihoods import LIKELIHOODS, noisy
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.stacks import Posteriors, Stack, StackProblem, ascended, inverted, padded
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import coordinate_ascent
from bayesvm.inference.problem import Problem, evaluate
from bayesvm.kernels import RBF
from tests import oracles

KERNEL, EXACT = RBF(0.8, 4.0), noisy("exact", 1.0)
TWO, THREE = Binary((0.5,)), OneVsRest((0.3, 0.3, 0.4))
SIZES = ((60, 9), (45, 12), (80, 4))  # rows and points of each model

every_head = pytest.mark.parametrize("head", [TWO, THREE], ids=["two classes", "three classes"])
every_bound = pytest.mark.parametrize(
    "likelihood", [*LIKELIHOODS.values(), EXACT], ids=[*LIKELIHOODS, "exact, with noise"]
)
both_precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32])


class Alone:
    """One model of one function by dense formulas in double precision; rows have any prior mean."""

    def __init__(self, phi, residual, prior_mean, target, weight, likelihood, prior=None):
        self.phi, self.residual, self.prior_mean = phi, residual, prior_mean
        self.target, self.weight, self.likelihood = target, weight, likelihood
        self.prior = prior or Gaussian.prior(phi.shape[1])

    def evaluated(self, q):
        """The ELBO at q, and where q wants to go."""
        phi, weight = self.phi, self.weight
        mean, explained, _ = oracles.marginals(phi, self.residual, self.prior_mean, q.mean, q.covariance)
        site = self.likelihood.update(mean, explained + self.residual, self.target)
        w = weight * site.precision
        precision, linear = self.prior.natural.precision.copy(), self.prior.natural.linear.copy()
        for row, a, b in zip(phi, w, weight * site.linear - w * self.prior_mean, strict=True):
            precision += a * np.outer(row, row)
            linear += b * row
        prior, gap = self.prior, q.mean - self.prior.mean
        log_dets = np.linalg.slogdet(q.natural.precision)[1] - np.linalg.slogdet(prior.natural.precision)[1]
        trace = np.trace(prior.natural.precision @ q.covariance)
        kl = 0.5 * (trace + gap @ prior.natural.precision @ gap - len(gap) + log_dets)
        return weight @ site.bound - kl, NaturalParameters(precision, linear)

    def trained(self, steps=80):
        """The highest ELBO and its q; a step that lowers the ELBO is halved."""
        q, rho = self.prior, 1.0
        elbo, target = self.evaluated(q)
        for _ in range(steps):
            there = q.moved(target, rho)
            found = self.evaluated(there)
            if found[0] >= elbo:
                q, (elbo, target), rho = there, found, min(1.0, 1.3 * rho)
            else:
                rho /= 2
        return elbo, q, q.moved(target, 1.0)


class Model:
    """Rows, weights and points, with a prior mean that is a function of the rows, or constant."""

    def __init__(self, seed, head, n_rows, n_points, constant=None):
        generator = np.random.default_rng(seed)
        self.head, self.constant, self.X = head, constant, generator.uniform(-2, 2, (n_rows, 2))
        self.y = generator.integers(0, head.n_classes, n_rows)
        clear = generator.random(n_rows) < 0.7  # the others are noise
        self.y[clear] = ((self.X[clear, 0] * self.X[clear, 1] > 0) * (head.n_classes - 1)).astype(int)
        self.weight, self.points = generator.uniform(0.3, 2, n_rows), generator.uniform(-2, 2, (n_points, 2))

    def arrays(self):
        phi, residual = oracles.features(KERNEL, self.points, self.X)
        columns = [0.8 * np.sin(self.X[:, 0] + target) - 0.2 for target in range(self.head.n_functions)]
        prior_mean = np.column_stack(columns)
        if self.constant is not None:
            prior_mean[:] = self.constant
        return phi, residual, prior_mean, self.y, self.weight

    def alone(self, likelihood, number, prior=None):
        """One function by dense formulas."""
        phi, residual, prior_mean, y, weight = self.arrays()
        return Alone(phi, residual, prior_mean[:, number], self.head.target(y, number), weight, likelihood, prior)


def models(head, constant=None):
    return [Model(seed, head, *size, constant) for seed, size in enumerate(SIZES)]


def stacked(models, dtype=np.float64, most_rows=80, widest=12):
    phis, *others = zip(*(model.arrays() for model in models), strict=True)
    wide = [np.pad(phi, ((0, 0), (0, widest - phi.shape[1]))).astype(dtype) for phi in phis]
    return Stack(padded(wide, most_rows), *(padded(column, most_rows) for column in others))


def some_posteriors(n_models, width, seed=0, spread=1.0):
    generator = np.random.default_rng(seed)
    roots = spread * generator.standard_normal((n_models, width, width))
    return Posteriors.of(
        np.eye(width) + roots @ np.swapaxes(roots, 1, 2), 3 * generator.standard_normal((n_models, width))
    )


def single(q, i, width):
    """One of the posteriors as single models have it, without the weights that fill it up."""
    return Gaussian.from_natural(NaturalParameters(q.precision[i, :width, :width], q.linear[i, :width]))


def with_padding_at_the_prior(q):
    """The weights of features that are zero everywhere stay as they were before any data."""
    precision, linear = q.precision.copy(), q.linear.copy()
    for i, (_, width) in enumerate(SIZES):
        precision[i, width:], precision[i, :, width:], linear[i, width:] = 0, 0, 0
        np.fill_diagonal(precision[i, width:, width:], 1)
    return Posteriors.of(precision, linear)


# ---- posteriors ----


@pytest.mark.parametrize("width", [1, 6, 41, 100])
@pytest.mark.parametrize("spread", [0.3, 10.0], ids=["near the prior", "far from it"])
def test_posteriors_are_those_of_double_precision(width, spread):
    """The mean has more digits than the root, which is in single precision."""
    q = some_posteriors(3, width, spread=spread)
    assert q.root.dtype == np.float32
    for i in range(3):
        P, h = q.precision[i], q.linear[i]
        S, mu = np.linalg.inv(P), np.linalg.solve(P, h)
        found = q.root[i].astype(float)
        scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
        np.testing.assert_allclose(found @ found.T / scale, S / scale, atol=1e-5 * np.sqrt(np.linalg.cond(P)))
        assert np.linalg.norm(q.mean[i] - mu) < 1e-9 * np.linalg.cond(P) ** 0.5 * np.linalg.norm(mu)
        kl = 0.5 * (np.trace(S) + mu @ mu - width + np.linalg.slogdet(P)[1])
        assert q.divergence_from_standard()[i] == pytest.approx(kl, rel=1e-5, abs=1e-5)
        assert np.abs(np.tril(found, -1)).max() < 1e-12 * np.abs(found).max()  # predictions use the upper triangle


@pytest.mark.parametrize("size", [1, 2, 40, 41, 97, 163])
@both_precisions
def test_triangular_matrices_are_inverted_by_halves(size, dtype):
    generator = np.random.default_rng(size)
    A = generator.standard_normal((4, size, size)) / np.sqrt(size)
    lower = np.linalg.cholesky(np.eye(size) + A @ np.swapaxes(A, 1, 2)).astype(dtype)
    before, found = lower.copy(), inverted(lower)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.linalg.inv(lower.astype(float)), atol=1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(np.triu(found, 1), 0)
    np.testing.assert_array_equal(lower, before)


def test_the_prior_is_standard_normal():
    prior, q = Posteriors.prior(2, 5), Posteriors.of(np.tile(np.eye(5), (2, 1, 1)), np.zeros((2, 5)))
    for one, other in zip(prior, q, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_model_moves_by_its_own_step():
    q, target = some_posteriors(3, 6), some_posteriors(3, 6, seed=1)
    rho = np.array([0.0, 0.3, 1.0])
    moved = q.moved((target.precision, target.linear), rho)
    for i, step in enumerate(rho):
        alone = single(q, i, 6).moved(NaturalParameters(target.precision[i], target.linear[i]), step)
        np.testing.assert_allclose(moved.mean[i], alone.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moved.root[i] @ moved.root[i].T, alone.covariance, atol=1e-6)
        kl = alone.divergence_from(Gaussian.prior(6))
        assert moved.divergence_from_standard()[i] == pytest.approx(kl, rel=1e-5)


def test_divergences_are_those_of_normal_distributions():
    q, prior = some_posteriors(3, 12), some_posteriors(3, 12, seed=1)
    expected = [single(q, i, 12).divergence_from(single(prior, i, 12)) for i in range(3)]
    np.testing.assert_allclose(q.divergence_from(prior), expected, rtol=1e-5)
    np.testing.assert_allclose(q.divergence_from(q), 0, atol=1e-5)
    np.testing.assert_allclose(q.divergence_from(Posteriors.prior(3, 12)), q.divergence_from_standard(), rtol=1e-6)


def test_some_of_the_models_may_be_taken_more_than_once():
    q, stack = some_posteriors(3, 12), stacked(models(TWO))
    for one, other in zip(q.take([2, 0, 2]), q, strict=True):
        np.testing.assert_array_equal(one, other[[2, 0, 2]])
    taken = stack.take([1, 1])
    assert (taken.n_models, stack.n_models) == (2, 3)
    np.testing.assert_array_equal(taken.y, stack.y[[1, 1]])
    np.testing.assert_array_equal(taken.total_weight, stack.total_weight[[1, 1]])


# ---- one pass ----


@every_head
@both_precisions
def test_marginals_are_those_of_each_model_alone(head, dtype):
    given = models(head)
    stack, q = stacked(given, dtype), some_posteriors(3, 12)
    close = 1e-5 if dtype == np.float64 else 1e-4
    for number in range(head.n_functions):
        mean, explained = stack.marginals(q, number)
        for i, (model, (n_rows, width)) in enumerate(zip(given, SIZES, strict=True)):
            phi, residual, prior_mean, _, _ = model.arrays()
            S = np.linalg.inv(q.precision[i])[:width, :width]
            m, t, _ = oracles.marginals(phi, residual, prior_mean[:, number], q.mean[i, :width], S)
            np.testing.assert_allclose(mean[i, :n_rows], m, atol=close)
            np.testing.assert_allclose(explained[i, :n_rows], t, atol=close)


@every_head
@every_bound
@pytest.mark.parametrize("standard", [True, False], ids=["standard normal prior", "a prior of its own"])
def test_a_pass_finds_what_a_pass_over_each_model_finds(head, likelihood, standard):
    given, q = models(head), with_padding_at_the_prior(some_posteriors(3, 12))
    prior = None if standard else with_padding_at_the_prior(some_posteriors(3, 12, seed=1, spread=0.5))
    stack = stacked(given)
    assert stack.total_weight == pytest.approx([model.weight.sum() for model in given])
    for number in range(head.n_functions):
        problem = StackProblem(stack, head, likelihood, number, prior)
        found, again = problem.evaluated(q), problem.take([2, 1]).evaluated(q.take([2, 1]))
        np.testing.assert_allclose(again.elbo, found.elbo[[2, 1]], rtol=1e-9)
        for i, (model, (n_rows, width)) in enumerate(zip(given, SIZES, strict=True)):
            before = Gaussian.prior(width) if standard else single(prior, i, width)
            elbo, target = model.alone(likelihood, number, before).evaluated(single(q, i, width))
            assert found.elbo[i] == pytest.approx(elbo, rel=1e-5)
            precision, linear = found.target
            np.testing.assert_allclose(precision[i, :width, :width], target.precision, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(linear[i, :width], target.linear, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(found.precision[i, n_rows:], 0)
            np.testing.assert_array_equal(found.linear[i, n_rows:], 0)


@both_precisions
def test_natural_parameters_are_sums_over_rows(dtype):
    generator = np.random.default_rng(0)
    phi = generator.standard_normal((2, 30, 5)).astype(dtype)
    w, gamma = generator.uniform(0, 3, (2, 30)), generator.standard_normal((2, 30))
    nothing = np.zeros((2, 30))
    stack = Stack(phi, nothing, nothing[:, :, None], nothing.astype(int), nothing)
    precision, linear = StackProblem(stack, TWO, EXACT, 0).natural(w, gamma)
    assert precision.dtype == linear.dtype == np.float64
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-4}
    for i in range(2):
        np.testing.assert_allclose(
            precision[i], np.eye(5) + sum(a * np.outer(row, row) for a, row in zip(w[i], phi[i], strict=True)), **close
        )
        np.testing.assert_allclose(linear[i], sum(a * row for a, row in zip(gamma[i], phi[i], strict=True)), **close)


@every_head
def test_rows_without_weight_and_features_that_are_zero_change_nothing(head):
    given = models(head)
    small, large = stacked(given), stacked(given, most_rows=131, widest=31)
    narrow = with_padding_at_the_prior(some_posteriors(3, 12))
    wide = Posteriors.prior(3, 31)
    precision, linear = wide.precision.copy(), wide.linear.copy()
    precision[:, :12, :12], linear[:, :12] = narrow.precision, narrow.linear
    wide = Posteriors.of(precision, linear)
    np.testing.assert_allclose(wide.divergence_from_standard(), narrow.divergence_from_standard(), rtol=1e-6)
    for number in range(head.n_functions):
        one, other = (StackProblem(stack, head, EXACT, number) for stack in (small, large))
        a, b = one.evaluated(narrow), other.evaluated(wide)
        np.testing.assert_allclose(b.elbo, a.elbo, rtol=1e-6)
        np.testing.assert_allclose(b.target[0][:, :12, :12], a.target[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(b.target[0][:, 12:], np.tile(np.eye(31)[12:], (3, 1, 1)))
        a, b = (ascended(p, Posteriors.prior(3, width), 100, 1e-7) for p, width in ((one, 12), (other, 31)))
        np.testing.assert_allclose(b.at.elbo, a.at.elbo, rtol=1e-5)
        np.testing.assert_allclose(b.best.mean[:, :12], a.best.mean, atol=2e-3)
        np.testing.assert_array_equal(b.best.mean[:, 12:], 0)


def test_other_weights_are_those_of_the_same_rows():
    stack = stacked(models(TWO))
    q, kept = with_padding_at_the_prior(some_posteriors(3, 12)), stack.weight.copy()
    kept[0, 5:20] = 0
    found = StackProblem(stack.weighted(kept), TWO, EXACT, 0).evaluated(q)
    rest = np.delete(np.arange(60), np.arange(5, 20))
    alone = Stack(*(getattr(stack, name)[:1][:, rest] for name in ("phi", "residual", "prior_mean", "y", "weight")))
    expected = StackProblem(alone, TWO, EXACT, 0).evaluated(q.take([0]))
    assert found.elbo[0] == pytest.approx(expected.elbo[0], rel=1e-9)
    np.testing.assert_allclose(found.target[0][0], expected.target[0][0], rtol=1e-9, atol=1e-9)


# ---- coordinate ascent ----


@every_head
@every_bound
def test_a_constant_prior_mean_is_the_offset_of_single_models(head, likelihood):
    """Pass and training against those of ``inference``, with the same features and prior mean."""
    given, q = models(head, constant=0.6), with_padding_at_the_prior(some_posteriors(3, 12))
    stack = stacked(given)
    for number in range(head.n_functions):
        problem = StackProblem(stack, head, likelihood, number)
        found, end = problem.evaluated(q), ascended(problem, Posteriors.prior(3, 12), 300, 1e-6)
        for i, (model, (_, width)) in enumerate(zip(given, SIZES, strict=True)):
            source = MemorySource(model.X, model.y, model.weight, ColumnScaler(), Workers(1), 17)
            features, total = InducingFeatures.build(KERNEL, model.points), source.total_weight
            alone, prior = Problem(features, head, likelihood, np.float64, total), Gaussian.prior(width)
            (at,) = evaluate(alone, source, [LatentFunction(number, 0.6, single(q, i, width), prior)])
            assert found.elbo[i] == pytest.approx(at.elbo, rel=1e-5)
            np.testing.assert_allclose(found.target[0][i, :width, :width], at.target.precision, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(found.target[1][i, :width], at.target.linear, rtol=1e-4, atol=1e-4)
            states = coordinate_ascent.init(alone, source, [LatentFunction(number, 0.6, prior, prior)], [0.9])
            for _ in range(80):
                states = coordinate_ascent.step(alone, source, states)
            assert end.at.elbo[i] == pytest.approx(states[0].best.elbo, abs=1e-4 * total)
            np.testing.assert_allclose(end.best.mean[i, :width], states[0].best.posterior.mean, atol=0.05)


@every_head
@every_bound
@both_precisions
def test_training_ends_where_that_of_single_models_ends(head, likelihood, dtype):
    given = models(head)
    stack = stacked(given, dtype)
    for number in range(head.n_functions):
        end = ascended(StackProblem(stack, head, likelihood, number), Posteriors.prior(3, 12), 300, 1e-6)
        for i, (model, (_, width)) in enumerate(zip(given, SIZES, strict=True)):
            elbo, q, _ = model.alone(likelihood, number).trained()
            assert end.at.elbo[i] == pytest.approx(elbo, abs=1e-4 * model.weight.sum())
            np.testing.assert_allclose(end.best.mean[i, :width], q.mean, atol=0.05)


def test_training_from_a_prior_of_its_own_ends_where_that_of_single_models_ends():
    given = models(TWO)
    prior = with_padding_at_the_prior(some_posteriors(3, 12, seed=1, spread=0.5))
    end = ascended(StackProblem(stacked(given), TWO, EXACT, 0, prior), prior, 300, 1e-6)
    for i, (model, (_, width)) in enumerate(zip(given, SIZES, strict=True)):
        elbo, q, _ = model.alone(EXACT, 0, single(prior, i, width)).trained()
        assert end.at.elbo[i] == pytest.approx(elbo, abs=1e-4 * model.weight.sum())
        np.testing.assert_allclose(end.best.mean[i, :width], q.mean, atol=0.05)


@every_bound
def test_what_may_be_left_to_gain_is_not_exceeded(likelihood):
    """Nats per unit of weight, against single models that are trained to the end."""
    given = models(TWO)
    stack = stacked(given)
    best = np.array([model.alone(likelihood, 0).trained()[0] for model in given])
    passes = []
    for enough in (1e-1, 1e-2, 1e-3):
        problem = Counted(StackProblem(stack, TWO, likelihood, 0))
        end = ascended(problem, Posteriors.prior(3, 12), 300, enough)
        assert end.converged.all()
        assert (best - end.at.elbo <= enough * stack.total_weight).all()
        passes.append(problem.models)
    assert passes == sorted(passes)
    assert passes[0] < passes[-1]


class Counted:
    """Counts the models that passes are made over."""

    def __init__(self, problem, log=None):
        self.problem, self.log = problem, [] if log is None else log

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def take(self, which):
        return Counted(self.problem.take(which), self.log)

    def evaluated(self, q):
        self.log.append(len(q.mean))
        return self.problem.evaluated(q)

    @property
    def models(self):
        return sum(self.log)


def test_models_that_are_done_are_left_out_of_further_passes():
    """A model without rows is done after one step, and one of many rows is not."""
    stack = stacked(models(TWO))
    weight = stack.weight.copy()
    weight[1] = 0
    problem = Counted(StackProblem(stack.weighted(weight), TWO, EXACT, 0))
    end = ascended(problem, Posteriors.prior(3, 12), 100, 1e-6)
    assert problem.log[:3] == [3, 3, 2]
    assert problem.log == sorted(problem.log, reverse=True)
    assert end.converged.all()
    np.testing.assert_array_equal(end.best.mean[1], 0)
    assert end.at.elbo[1] == pytest.approx(0, abs=1e-6)


def steep_stack():
    """Large prior variances and hardly any points too many: here full steps overshoot."""
    stack = stacked(models(TWO))
    return Stack(10 * stack.phi, 0 * stack.residual, stack.prior_mean, stack.y, stack.weight)


@every_bound
def test_no_step_lowers_the_elbo(likelihood):
    problem, start = StackProblem(steep_stack(), TWO, likelihood, 0), Posteriors.prior(3, 12)
    reached = np.array([ascended(problem, start, updates, 0.0).at.elbo for updates in range(25)])
    for before, after in pairwise(reached):
        assert (after >= before - 1e-9 * np.abs(before)).all()
    np.testing.assert_array_equal(reached[0], problem.evaluated(start).elbo)
    assert (reached[-1] > reached[0] + 10).all()


def test_a_step_that_overshoots_is_halved():
    problem, q = StackProblem(steep_stack(), TWO, LIKELIHOODS["exact"], 0), Posteriors.prior(3, 12)
    elbos = []
    for _ in range(25):  # full steps, whatever they do
        at = problem.evaluated(q)
        elbos.append(at.elbo)
        q = Posteriors.of(*at.target)
    lowered = (np.diff(elbos, axis=0) < -1e-3).any(axis=0)
    assert lowered.any()
    end = ascended(problem, Posteriors.prior(3, 12), 25, 0.0)
    assert (end.at.elbo >= np.max(elbos, axis=0) - 1e-2)[lowered].all()


def test_what_is_returned_belongs_together():
    """Also of models that stopped at different times."""
    stack = stacked(models(TWO))
    problem = StackProblem(stack, TWO, EXACT, 0)
    for updates, converged in ((0, False), (1, False), (3, None), (100, True)):
        end = ascended(problem, Posteriors.prior(3, 12), updates, 1e-4)
        again = problem.evaluated(end.best)
        np.testing.assert_allclose(end.at.elbo, again.elbo, rtol=1e-9)
        np.testing.assert_allclose(end.at.precision, again.precision, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(end.at.target[1], again.target[1], rtol=1e-6, atol=1e-6)
        assert converged is None or (end.converged == converged).all()
        settled = end.settled()
        precision, linear = problem.natural(end.at.precision, end.at.linear)
        np.testing.assert_allclose(settled.precision, precision, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(settled.mean, np.linalg.solve(precision, linear[:, :, None])[:, :, 0], atol=1e-6)


def test_the_start_is_not_written_to():
    start = some_posteriors(3, 12)
    before = [part.copy() for part in start]
    ascended(StackProblem(stacked(models(TWO)), TWO, EXACT, 0), start, 5, 0.0)
    for one, other in zip(start, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_training_goes_on_from_where_it_was():
    problem = StackProblem(stacked(models(TWO)), TWO, EXACT, 0)
    end = ascended(problem, Posteriors.prior(3, 12), 100, 1e-5)
    counted = Counted(problem)
    again = ascended(counted, end.best, 100, 1e-5)
    assert counted.log == [3, 3]
    np.testing.assert_allclose(again.at.elbo, end.at.elbo, atol=1e-3)


@every_head
@both_precisions
def test_models_side_by_side_are_models_alone(head, dtype):
    stack = stacked(models(head), dtype)
    for number in range(head.n_functions):
        problem = StackProblem(stack, head, EXACT, number)
        together = ascended(problem, Posteriors.prior(3, 12), 100, 1e-5)
        for i in range(3):
            alone = ascended(problem.take([i]), Posteriors.prior(1, 12), 100, 1e-5)
            np.testing.assert_allclose(alone.at.elbo[0], together.at.elbo[i], rtol=1e-5)
            np.testing.assert_allclose(alone.best.mean[0], together.best.mean[i], atol=1e-3)
            np.testing.assert_allclose(alone.best.root[0], together.best.root[i], atol=1e-3)


def test_arrays_are_filled_up_with_zeros():
    parts = [np.ones((2, 3), np.float32), np.full((4, 3), 2, np.float32)]
    found = padded(parts, 5)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:, :, 0], [[1, 1, 0, 0, 0], [2, 2, 2, 2, 0]])
    np.testing.assert_array_equal(padded([np.array([1, 2]), np.array([3])], 2), [[1, 2], [3, 0]])
