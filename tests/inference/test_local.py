"""Local models in the leaves of a tree against single models of the same rows, and against real refits (D30)."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block
from bayesvm.core.leaves import Leaves, Tree
from bayesvm.core.likelihoods import noisy
from bayesvm.core.posterior import CompactGaussian, Gaussian
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BucketRows
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import coordinate_ascent, local
from bayesvm.inference.local import LeafRows, LeafSetup, Start, TrainedLeaves, fitted_leaves
from bayesvm.inference.problem import Problem
from bayesvm.kernels import RBF
from tests import oracles
from tests.core.test_stacks import Alone

N, EXACT = 260, noisy("exact", 1.0)
BELOW, KERNEL = RBF(2.0, 3.0), RBF(0.5, 2.0)
BASE_POINTS = np.random.default_rng(1).uniform(-2, 2, (8, 2))
TREE = Tree(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.3, -0.2]), np.array([1, ~0]), np.array([~2, ~1]))
HEADS = {"two classes": Binary((0.5,)), "three classes": OneVsRest((0.3, 0.3, 0.4))}

every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


def trained_alone(problem, source, functions, steps=60):
    """A single model: the functions before the last step and after it."""
    states = coordinate_ascent.init(problem, source, functions, [0.9] * len(functions))
    for _ in range(steps):
        states = coordinate_ascent.step(problem, source, states)
    return [state.best.function for state in states], [state.settled() for state in states]


def in_memory(X, y, weight):
    return MemorySource(X, y, weight, ColumnScaler(), Workers(1), 64)


def a_table(head, seed=0):
    """A slow wave, fast waves on top of it, and noise."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, (N, 2))
    f = X[:, 0] + 1.5 * np.sin(5 * X[:, 0]) * np.sin(5 * X[:, 1]) + 0.4 * generator.standard_normal(N)
    return X, np.searchsorted(np.quantile(f, np.arange(1, head.n_classes) / head.n_classes), f)


def a_case(head, *, whole=True, copied=False, weight=None, repeated=None, seed=0):
    """Everything that leaves of a table are fitted with; the member below is trained on all of it."""
    X, y = a_table(head, seed)
    weight = np.random.default_rng(2).uniform(0.3, 2, N) if weight is None else weight
    if repeated is not None:
        X, y, weight = X[repeated], y[repeated], weight[repeated]
    source = in_memory(X, y, weight)
    below = Problem(InducingFeatures.build(BELOW, BASE_POINTS), head, EXACT, np.float64, source.total_weight)
    before, final = trained_alone(below, source, below.start([0.1] * head.n_functions))
    views = below.both(0, before, final)
    setup = LeafSetup(views["before"] if whole else None, views["final"], head, EXACT, EXACT, BELOW, 5, copied)
    buckets = next(source.bucketed(TREE.leaf_of, 3).map(lambda rows: rows, [[0, 1, 2]]))
    return SimpleNamespace(
        source=source, below=below, before=before, final=final, setup=setup, buckets=buckets,
        rows=[LeafRows.of(mine, setup) for mine in buckets],
    )  # fmt: skip


class LeafAlone:
    """A single model of some rows of a leaf, on top of the member's mean, with the points of the leaf."""

    def __init__(self, mine, kept=slice(None), priors=None, below=None):
        setup, block, self.mine = mine.setup, mine.block, mine
        phi, residual = self.features(block.X[kept])
        below = mine.below.mean if below is None else below
        self.final = []
        for number in range(setup.head.n_functions):
            target = setup.head.target(block.y[kept], number)
            prior = None if priors is None else priors[number]
            given = phi, residual, below[kept, number], target, block.weights[kept], EXACT, prior
            _, _, settled = Alone(*given).trained()
            self.final.append(settled)

    def features(self, X):
        return oracles.features(KERNEL, self.mine.points.astype(float), X, jitter=1e-6)

    def marginals(self, X):
        """Mean and variance of ``h_k``, a column for each function."""
        phi, residual = self.features(X)
        mean = np.column_stack([phi @ q.mean for q in self.final])
        explained = [np.einsum("ij,jk,ik->i", phi, q.covariance, phi) for q in self.final]
        return mean, np.column_stack(explained) + residual[:, None]


@pytest.fixture
def to_the_end(monkeypatch):
    """Training continues until the ELBO no longer rises."""
    monkeypatch.setattr(local, "UPDATES", 300)
    monkeypatch.setattr(local, "ENOUGH", 1e-7)
    monkeypatch.setattr(local, "REFIT_ENOUGH", 1e-7)


# ---- what the member below says ----


@every_head
def test_rows_are_left_out_of_the_member_below(head):
    case = a_case(head)
    for mine in case.rows:
        found, X = mine.below, mine.block.X
        cavities = case.below.cavities(case.source.take(mine.numbers), case.before, case.final)
        np.testing.assert_allclose(found.mean_without, cavities.mean, atol=1e-9)
        np.testing.assert_allclose(found.variance_without, cavities.variance, atol=1e-9)
        phi, residual = oracles.features(BELOW, BASE_POINTS, X)
        np.testing.assert_allclose(found.explained_without, cavities.variance - residual[:, None], atol=1e-6)
        for k, function in enumerate(case.final):
            q = function.posterior
            mean, explained, _ = oracles.marginals(phi, residual, function.offset, q.mean, q.covariance)
            np.testing.assert_allclose(found.mean[:, k], mean, atol=1e-6)
            np.testing.assert_allclose(found.explained[:, k], explained, atol=1e-6)
        assert np.abs(found.mean - found.mean_without).max() > 0.01


@every_head
def test_a_member_that_learned_from_few_of_the_rows_says_the_same_without_a_row(head):
    case, whole = a_case(head, whole=False), a_case(head)
    for mine, other in zip(case.rows, whole.rows, strict=True):
        assert mine.below.mean_without is mine.below.mean
        assert mine.below.explained_without is mine.below.explained
        np.testing.assert_allclose(mine.below.mean, other.below.mean, atol=1e-9)
        moments = case.setup.final.moments([mine.block], Workspace())
        np.testing.assert_allclose(mine.below.variance_without, moments.variance, atol=1e-9)


# ---- the rows of a leaf ----


def test_rows_are_those_of_their_leaf():
    case = a_case(HEADS["two classes"])
    numbers = np.concatenate([mine.numbers for mine in case.rows])
    assert sorted(numbers) == list(range(N))
    for leaf, mine in enumerate(case.rows):
        X = case.source.X[mine.numbers]
        left, low = X[:, 0] <= 0.3, X[:, 1] <= -0.2
        assert mine.leaf == leaf
        assert (~left if leaf == 2 else left & (low if leaf == 0 else ~low)).all()
        np.testing.assert_array_equal(mine.block.X, X)
        np.testing.assert_array_equal(mine.block.y, case.source.y[mine.numbers])


def test_points_are_different_rows_of_the_leaf_and_there_are_fewer_of_them():
    for mine in a_case(HEADS["two classes"]).rows:
        n_rows = len(mine.block.y)
        assert len(mine.points) == int(n_rows / local.ROWS_PER_POINT)
        assert len(np.unique(mine.points, axis=0)) == len(mine.points)
        gaps = np.abs(mine.points[:, None] - mine.block.X.astype(np.float32)).sum(axis=2)
        np.testing.assert_array_equal(gaps.min(axis=1), 0)


def test_a_leaf_of_one_row_has_one_point_and_a_large_one_no_more_than_the_most(monkeypatch):
    case = a_case(HEADS["two classes"])
    one = case.buckets[0]._replace(block=Block(*(part[:1] for part in case.buckets[0].block)))
    assert LeafRows.of(one, case.setup).points.shape == (1, 2)
    monkeypatch.setattr(local, "MOST_POINTS", 11)
    assert LeafRows.of(case.buckets[2], case.setup).points.shape == (11, 2)


# ---- training ----


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_leaves_side_by_side_are_single_models_on_top_of_the_member(head):
    case = a_case(head)
    trained = TrainedLeaves.of(case.rows, KERNEL)
    assert trained.converged
    new = np.random.default_rng(3).uniform(-2, 2, (50, 2))
    for mine, leaf in zip(case.rows, trained.leaves(), strict=True):
        mean, variance = LeafAlone(mine).marginals(new)
        assert [function.target for function in leaf.functions] == list(range(head.n_functions))
        for number, at in enumerate(leaf.marginals(new)):
            np.testing.assert_allclose(at.mean, mean[:, number], atol=5e-3)
            np.testing.assert_allclose(at.variance, variance[:, number], atol=5e-3)
        assert np.ptp(mean) > 0.5


def test_training_stops_when_little_is_left():
    """With the usual number of steps, too, what is predicted is close to the end."""
    case = a_case(HEADS["two classes"])
    trained = TrainedLeaves.of(case.rows, KERNEL)
    assert trained.converged
    for mine, leaf in zip(case.rows, trained.leaves(), strict=True):
        (at,), (mean, _) = leaf.marginals(mine.block.X), LeafAlone(mine).marginals(mine.block.X)
        assert np.abs(at.mean - mean[:, 0]).mean() < 0.05


def test_training_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(local, "UPDATES", 1)
    assert not TrainedLeaves.of(a_case(HEADS["two classes"]).rows, KERNEL).converged


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_training_goes_on_from_earlier_leaves_whose_points_stay(head):
    """Other rows, in other leaves than the first; these leave nothing of the start in the end."""
    first, second = a_case(head), a_case(head, seed=1)
    start = Leaves(TREE, KERNEL, tuple(TrainedLeaves.of(first.rows, KERNEL).leaves()))
    again = TrainedLeaves.of(second.rows[1:], KERNEL, Start(start, as_prior=False)).leaves()
    rows = [replace(mine, points=earlier.points) for mine, earlier in zip(second.rows, first.rows, strict=True)]
    anew = TrainedLeaves.of(rows, KERNEL).leaves()[1:]
    for one, other in zip(again, anew, strict=True):
        np.testing.assert_array_equal(one.features.inducing_points, other.features.inducing_points)
        for f, g in zip(one.functions, other.functions, strict=True):
            np.testing.assert_allclose(f.posterior.mean, g.posterior.mean, atol=0.01)
            np.testing.assert_allclose(f.posterior.root, g.posterior.root, atol=0.01)


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_in_a_stream_earlier_leaves_are_the_prior(head):
    first, second = a_case(head), a_case(head, seed=1)
    start = Leaves(TREE, KERNEL, tuple(TrainedLeaves.of(first.rows, KERNEL).leaves()))
    trained = TrainedLeaves.of(second.rows, KERNEL, Start(start, as_prior=True))
    for mine, earlier, before, leaf in zip(second.rows, first.rows, start.leaves, trained.leaves(), strict=True):
        given = [function.posterior.full() for function in before.functions]
        final = LeafAlone(replace(mine, points=earlier.points), priors=given).final
        for function, alone in zip(leaf.functions, final, strict=True):
            np.testing.assert_allclose(function.posterior.mean, alone.mean, atol=0.02)
            root = function.posterior.root.astype(float)
            np.testing.assert_allclose(root @ root.T, alone.covariance, atol=0.01)


# ---- rows left out ----


def held_out(case):
    """Some rows of each leaf, few enough to leave together."""
    return [np.arange(1, len(mine.block.y), 23) for mine in case.rows]


def member_without(case, mine, held):
    """What the member says of a leaf's rows when some leave it: their sites are taken out of its natural parameters."""
    phi, residual = oracles.features(BELOW, BASE_POINTS, mine.block.X)
    means, explained = [], []
    for number, (before, final) in enumerate(zip(case.before, case.final, strict=True)):
        q, c = final.posterior, final.offset
        precision, linear = q.natural.precision.copy(), q.natural.linear.copy()
        if case.setup.before is not None:
            there = before.posterior
            m, t, _ = oracles.marginals(phi, residual, c, there.mean, there.covariance)
            site = EXACT.update(m, t + residual, case.setup.head.target(mine.block.y, number))
            for row in held:
                weight, w = mine.block.weights[row], site.precision[row]
                precision -= weight * w * np.outer(phi[row], phi[row])
                linear -= weight * (site.linear[row] - w * c) * phi[row]
        covariance = np.linalg.inv(precision)
        means.append(c + phi @ covariance @ linear)
        explained.append(np.einsum("ij,jk,ik->i", phi, covariance, phi))
    return np.column_stack(means), np.column_stack(explained)


def refitted_alone(case, mine, held):
    """What is said of rows by a real refit of the leaf without them, on top of the member without them."""
    below, explained = member_without(case, mine, held)
    alone = LeafAlone(mine, np.delete(np.arange(len(mine.block.y)), held), below=below)
    mean, variance = alone.marginals(mine.block.X[held])
    return mean + below[held], variance + explained[held]


@every_head
@pytest.mark.parametrize("whole", [True, False], ids=["member of all rows", "member of few rows"])
@pytest.mark.usefixtures("to_the_end")
def test_rows_left_out_are_seen_as_after_a_refit_without_them(monkeypatch, head, whole):
    """A few updates after the sites have left are nearly enough, and many are."""
    case = a_case(head, whole=whole)
    trained, which = TrainedLeaves.of(case.rows, KERNEL), held_out(case)
    expected = [refitted_alone(case, mine, held) for mine, held in zip(case.rows, which, strict=True)]
    quick = trained.refitted(which)
    monkeypatch.setattr(local, "REFIT_UPDATES", 80)
    slow = trained.refitted(which)
    for mine, held, few, many, (mean, variance) in zip(case.rows, which, quick, slow, expected, strict=True):
        np.testing.assert_allclose(many.mean, mean, atol=0.01)
        np.testing.assert_allclose(many.variance, variance, atol=0.01)
        assert np.abs(few.mean - mean).max() < 0.15
        assert np.abs(few.variance - variance).max() < 0.15
        np.testing.assert_array_equal(few.y, mine.block.y[held])
        np.testing.assert_array_equal(few.weight, mine.block.weights[held])
        with_all = np.column_stack([at.mean for at in trained.leaves()[mine.leaf].marginals(mine.block.X[held])])
        assert np.abs(with_all + mine.below.mean[held] - mean).max() > 0.1  # so that it matters


@pytest.mark.usefixtures("to_the_end")
def test_no_more_than_a_twentieth_of_a_leaf_leaves_together(monkeypatch):
    """All rows are asked for: each is then left out of a model that was fitted to nearly all of its leaf."""
    seen = []
    refit = TrainedLeaves._refit
    monkeypatch.setattr(
        TrainedLeaves, "_refit", lambda self, folds, *given: (seen.extend(folds), refit(self, folds, *given))
    )
    monkeypatch.setattr(local, "REFIT_UPDATES", 80)
    case = a_case(HEADS["two classes"])
    trained = TrainedLeaves.of(case.rows, KERNEL)
    found = trained.refitted([np.arange(len(mine.block.y)) for mine in case.rows])
    for i, mine in enumerate(case.rows):
        folds, n_rows = [places for leaf, places in seen if leaf == i], len(mine.block.y)
        assert max(map(len, folds)) <= np.ceil(0.05 * n_rows)
        assert sorted(np.concatenate(folds)) == list(range(n_rows))
    mine, places = case.rows[1], next(places for leaf, places in seen if leaf == 1)
    mean, variance = refitted_alone(case, mine, places)
    np.testing.assert_allclose(found[1].mean[places], mean, atol=0.01)
    np.testing.assert_allclose(found[1].variance[places], variance, atol=0.01)


@every_head
def test_at_fixed_sites_each_row_takes_its_own_site_away(head):
    """The sites are those that rows had at the q before, which the final q is made of."""
    case = a_case(head)
    trained = TrainedLeaves.of(case.rows, KERNEL)
    found, first = trained.cavities(), 0
    np.testing.assert_array_equal(found.y, np.concatenate([mine.block.y for mine in case.rows]))
    for i, mine in enumerate(case.rows):
        phi = trained.stack.phi[i].astype(float)
        for k, end in enumerate(trained.ends):
            P = np.eye(phi.shape[1]) + phi.T @ (end.at.precision[i][:, None] * phi)
            h = phi.T @ end.at.linear[i]
            for row in range(0, len(mine.block.y), 17):
                p = phi[row]
                S = np.linalg.inv(P - end.at.precision[i, row] * np.outer(p, p))
                mean = mine.below.mean_without[row, k] + p @ S @ (h - end.at.linear[i, row] * p)
                variance = p @ S @ p + trained.stack.residual[i, row] + mine.below.explained_without[row, k]
                assert found.mean[first + row, k] == pytest.approx(mean, abs=1e-3)
                assert found.variance[first + row, k] == pytest.approx(variance, abs=1e-3)
        first += len(mine.block.y)


# ---- copies and weights ----


def twice(head, **changes):
    """A table where every third row is there twice, and the same where it has twice the weight."""
    heavy = np.where(np.arange(N) % 3 == 0, 2.0, 1.0)
    repeated = np.append(np.arange(N), np.arange(0, N, 3))
    one = a_case(head, weight=heavy, copied=True)
    other = a_case(head, weight=np.ones(N), repeated=repeated, **({"copied": True} | changes))
    rows = [replace(mine, points=theirs.points) for mine, theirs in zip(other.rows, one.rows, strict=True)]
    return one.rows, rows


def originals(rows):
    """The places of rows that are no copies, in the order of the table."""
    return [np.flatnonzero(mine.numbers < N) for mine in rows]


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_a_row_of_weight_two_counts_as_two_copies(head):
    one, other = twice(head)
    for weighted, repeated, where in zip(one, other, originals(other), strict=True):
        assert weighted.numbers.tolist() == repeated.numbers[where].tolist()
        for mine, theirs in zip(weighted.below[:-1], repeated.below[:-1], strict=True):
            np.testing.assert_allclose(mine, theirs[where], atol=1e-6)
        leaving = np.arange(0, len(where), 7)
        copies = np.flatnonzero(np.isin(repeated.equal, repeated.equal[where[leaving]]))
        (shift, explained), (with_copies, again) = weighted.below.without(leaving), repeated.below.without(copies)
        np.testing.assert_allclose(shift, with_copies[where], atol=1e-6)
        np.testing.assert_allclose(explained, again[np.searchsorted(copies, where[leaving])], atol=1e-6)
    for a, b in zip(TrainedLeaves.of(one, KERNEL).leaves(), TrainedLeaves.of(other, KERNEL).leaves(), strict=True):
        for f, g in zip(a.functions, b.functions, strict=True):
            np.testing.assert_allclose(f.posterior.mean, g.posterior.mean, atol=5e-3)
            np.testing.assert_allclose(f.posterior.root, g.posterior.root, atol=5e-3)


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_copies_leave_together(head):
    """Also those that are not asked for."""
    one, other = twice(head)
    asked = [np.arange(0, len(mine.numbers), 15) for mine in one]
    theirs = [where[places] for where, places in zip(originals(other), asked, strict=True)]
    alone = TrainedLeaves.of(one, KERNEL).refitted(asked)
    together = TrainedLeaves.of(other, KERNEL).refitted(theirs)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_allclose(b.mean, a.mean, atol=0.01)
        np.testing.assert_allclose(b.variance, a.variance, atol=0.01)
    _, apart = twice(head, copied=False)
    not_so = TrainedLeaves.of(apart, KERNEL).refitted(theirs)
    assert max(np.abs(b.mean - a.mean).max() for a, b in zip(alone, not_so, strict=True)) > 0.1


@every_head
@pytest.mark.usefixtures("to_the_end")
def test_copies_take_their_sites_away_together(head):
    one, other = twice(head)
    a, b = TrainedLeaves.of(one, KERNEL).cavities(), TrainedLeaves.of(other, KERNEL).cavities()
    first = np.concatenate([mine.numbers < N for mine in other])
    np.testing.assert_allclose(b.mean[first], a.mean, atol=0.01)
    np.testing.assert_allclose(b.variance[first], a.variance, atol=0.01)


# ---- some leaves at a time ----


@every_head
def test_fitted_leaves_are_in_the_order_of_their_buckets_with_the_rows_left_out(head):
    case = a_case(head)
    left_out = np.arange(3, N, 8)
    found = fitted_leaves(case.buckets, setup=case.setup, kernel=KERNEL, left_out=left_out)
    assert sorted(found.numbers) == left_out.tolist()
    np.testing.assert_array_equal(found.left_out.y, case.source.y[found.numbers])
    np.testing.assert_array_equal(found.left_out.weight, case.source.weight[found.numbers])
    trained = TrainedLeaves.of(case.rows, KERNEL)
    assert found.converged == trained.converged
    for one, other in zip(found.leaves, trained.leaves(), strict=True):
        np.testing.assert_array_equal(one.functions[-1].posterior.mean, other.functions[-1].posterior.mean)
    which = [np.flatnonzero(np.isin(mine.numbers, left_out)) for mine in case.rows]
    again = [part.mean for part in trained.refitted(which)]
    np.testing.assert_array_equal(found.left_out.mean, np.concatenate(again))


@every_head
def test_a_leaf_without_rows_has_the_prior_and_others_are_not_disturbed(head):
    case = a_case(head)
    nothing = Block(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0))
    empty = BucketRows(1, nothing, np.zeros(0, int))
    given = {"setup": case.setup, "kernel": KERNEL, "left_out": np.arange(0, N, 8)}
    full_ones, found = (fitted_leaves([case.buckets[0], *others, case.buckets[2]], **given) for others in ([], [empty]))
    for at in found.leaves[1].marginals(np.random.default_rng(0).uniform(-3, 3, (20, 2))):
        np.testing.assert_allclose(at.mean, 0, atol=1e-9)
        np.testing.assert_allclose(at.variance, 2.0, rtol=1e-5)
    np.testing.assert_array_equal(found.numbers, full_ones.numbers)
    np.testing.assert_array_equal(found.left_out.mean, full_ones.left_out.mean)
    for one, other in zip(found.leaves[::2], full_ones.leaves, strict=True):
        np.testing.assert_array_equal(one.functions[0].posterior.mean, other.functions[0].posterior.mean)


def test_only_empty_leaves_leave_nothing_out():
    case = a_case(HEADS["three classes"])
    empty = BucketRows(1, Block(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0)), np.zeros(0, int))
    found = fitted_leaves([empty], setup=case.setup, kernel=KERNEL, left_out=np.arange(5))
    assert found.left_out.mean.shape == (0, 3)
    assert found.converged
    start = Leaves(TREE, KERNEL, tuple(TrainedLeaves.of(case.rows, KERNEL).leaves()))
    again = fitted_leaves([empty], setup=case.setup, kernel=KERNEL, left_out=np.arange(5), start=Start(start, True))
    assert again.leaves == [start.leaves[1]]  # what it was


def test_the_features_of_a_leaf_are_in_single_precision_and_so_are_its_posteriors():
    case = a_case(HEADS["two classes"])
    (leaf, *_) = TrainedLeaves.of(case.rows, KERNEL).leaves()
    assert leaf.features.whitening.dtype == leaf.features.inducing_points.dtype == np.float32
    assert isinstance(leaf.functions[0].posterior, CompactGaussian)
    assert leaf.functions[0].posterior.root.dtype == np.float32
    assert isinstance(leaf.functions[0].posterior.full(), Gaussian)
    phi, _ = oracles.features(KERNEL, leaf.features.inducing_points.astype(float), case.rows[0].block.X, jitter=1e-6)
    found, _ = leaf.features.prepared(None, np.float32)(case.rows[0].block.X, Workspace())
    np.testing.assert_allclose(found @ found.T, phi @ phi.T, atol=1e-3)
