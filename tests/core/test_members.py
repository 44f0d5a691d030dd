"""Several members as one model: shares, mixtures and moments against plain averages, loops and samples (D25, D30)."""

import numpy as np
import pytest
from scipy.special import entr, log_softmax

from bayesvm.core import members as members_module
from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block, LatentFunction
from bayesvm.core.leaves import Leaf, Leaves, Tree
from bayesvm.core.links import Probit, Softmax
from bayesvm.core.members import ROWS_FOR_LEAVES, Member, MemberMoments, MemberViews, mixed_moments
from bayesvm.core.posterior import CompactGaussian, Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import ColumnScaler
from bayesvm.kernels import RBF, Matern
from tests import oracles

rng = np.random.default_rng(0)
N, D = 40, 2
X = rng.standard_normal((N, D))
BLOCKS = [Block(X[:17], np.zeros(17), None), Block(X[17:], np.zeros(N - 17), None)]
LINK = Probit(1.3, 0.2)


def functions(seed, width, n_functions=1):
    generator, found = np.random.default_rng(seed), []
    for number in range(n_functions):
        A = generator.standard_normal((width, width))
        natural = NaturalParameters(np.eye(width) + A @ A.T, 3 * generator.standard_normal(width))
        found.append(LatentFunction(number, generator.standard_normal(), Gaussian.from_natural(natural)))
    return tuple(found)


def a_member(seed, n_functions=1, **given):
    points = np.random.default_rng(seed).standard_normal((5, D))
    kernel = RBF(1.0 + 0.5 * seed, 2.0) if seed % 2 else Matern(1.0 + 0.5 * seed, 1.0)
    return Member(InducingFeatures.build(kernel, points), functions(seed, 5, n_functions), **given)


def dense(member, rows=X):
    """Mean, variance and explained variance of every function at every row, by explicit formulas."""
    phi, residual = oracles.features(member.features.kernel, member.features.inducing_points, rows)
    found = []
    for function in member.functions:
        q = function.posterior
        mean, explained, _ = oracles.marginals(phi, residual, function.offset, q.mean, q.covariance)
        found.append((mean, explained + residual, explained))
    return found


def moments(members, link=LINK):
    return MemberViews.of(members, link, 0, np.float64).moments(BLOCKS, Workspace())


# ---- shares ----


@pytest.mark.parametrize("weights", [(1.0,), (3.0,), (1.0, 3.0), (0.2, 0.5, 0.3)], ids=str)
def test_shares_of_a_committee_are_the_weights_divided_by_their_sum(weights):
    members = [a_member(i, weight=weight) for i, weight in enumerate(weights)]
    views = MemberViews.of(members, LINK, 0, np.float64)
    assert views.shares == pytest.approx(np.array(weights) / sum(weights))
    assert [part.share for part in views.moments(BLOCKS, Workspace())] == list(views.shares)


# ---- mixtures ----

THREE_LINKS = (None, Probit(0.6, -0.4), Probit(2.0, 0.0))


@pytest.mark.parametrize("n_members", [2, 3])
def test_probabilities_are_averages_of_what_the_members_say(n_members):
    given = enumerate(zip((1.0, 2.5, 0.5)[:n_members], THREE_LINKS, strict=False))
    members = [a_member(i, weight=weight, link=link) for i, (weight, link) in given]
    found = Binary((0.5,)).probabilities(moments(members))
    for i in range(N):
        total = np.zeros(2)
        for member in members:
            ((m, v, _),) = dense(member)
            total += member.weight * (member.link or LINK).probabilities(m[i : i + 1, None], v[i : i + 1, None])[0]
        np.testing.assert_allclose(found[i], total / sum(member.weight for member in members), atol=1e-6)


def test_probabilities_of_several_classes_are_averages_too():
    link, members = Softmax(1.4, (0.1, 0.0, -0.2)), [a_member(i, 3, weight=1.0 + i) for i in range(2)]
    found = OneVsRest((0.3, 0.3, 0.4)).probabilities(moments(members, link))
    parts = []
    for member in members:
        m, v = (np.column_stack(column) for column in list(zip(*dense(member), strict=True))[:2])
        parts.append(link.probabilities(m, v))
    np.testing.assert_allclose(found, (parts[0] + 2 * parts[1]) / 3, atol=1e-6)


def test_moments_follow_the_law_of_total_variance():
    members = [a_member(i, 2, weight=1.0 + i) for i in range(3)]
    found = mixed_moments(moments(members))
    shares = np.array([1.0, 2.0, 3.0]) / 6
    for k in range(2):
        m, v = (np.array(column) for column in zip(*(dense(member)[k][:2] for member in members), strict=True))
        mean = shares @ m
        np.testing.assert_allclose(found.mean[:, k], mean, atol=1e-6)
        np.testing.assert_allclose(found.variance[:, k], shares @ v + shares @ (m - mean) ** 2, atol=1e-6)


def test_moments_are_those_of_samples():
    parts = [
        MemberMoments(np.array([[1.0]]), np.array([[0.5]]), LINK, 0.25),
        MemberMoments(np.array([[-2.0]]), np.array([[3.0]]), LINK, 0.75),
    ]
    draws = rng.standard_normal(400_000)
    draws = np.where(rng.random(400_000) < 0.25, 1 + np.sqrt(0.5) * draws, -2 + np.sqrt(3) * draws)
    found = mixed_moments(parts)
    assert found.mean.item() == pytest.approx(draws.mean(), abs=0.02)
    assert found.variance.item() == pytest.approx(draws.var(), rel=0.01)


def test_moments_of_many_equal_members_do_not_lose_the_variance_to_rounding():
    """A mean far from zero, whose square is much larger than the variance."""
    part = MemberMoments(np.full((1, 1), 1e4), np.full((1, 1), 1e-6), LINK, 0.5)
    found = mixed_moments([part, part])
    assert found.variance.item() == pytest.approx(1e-6, rel=1e-6)


# ---- leaves ----

SPLITS = Tree(np.array([[1.0, 0.0], [0.3, -1.0]]), np.array([0.1, 0.2]), np.array([~0, ~1]), np.array([1, ~2]))
OF_LEAVES = RBF(0.6, 1.5)


def some_leaves(seed, n_functions=1):
    """Three leaves, one of them with fewer points than the others."""
    generator, found = np.random.default_rng([seed, 30]), []
    for k, n_points in enumerate((4, 2, 4)):
        features = InducingFeatures.build(OF_LEAVES, generator.standard_normal((n_points, D)))
        trained = functions([seed, k], n_points, n_functions)
        compact = (LatentFunction(f.target, 0.0, CompactGaussian.of(f.posterior)) for f in trained)
        found.append(Leaf(features, tuple(compact)))
    return Leaves(SPLITS, OF_LEAVES, tuple(found))


def with_leaves_in_full(member, rows):
    """Mean and variance of every function, row by row: each is in the leaf that two comparisons say."""
    mean, variance = (np.empty((len(rows), len(member.functions))) for _ in range(2))
    below = dense(member, rows)
    for i, row in enumerate(rows):
        leaf = 0 if row[0] <= 0.1 else 1 if 0.3 * row[0] - row[1] <= 0.2 else 2
        model = member.leaves.leaves[leaf]
        phi, residual = oracles.features(OF_LEAVES, model.features.inducing_points, row[None])
        for k, function in enumerate(model.functions):
            root = function.posterior.root.astype(float)
            at, explained, _ = oracles.marginals(phi, residual, 0.0, function.posterior.mean, root @ root.T)
            mean[i, k] = below[k][0][i] + at[0]
            variance[i, k] = below[k][2][i] + explained[0] + residual[0]
    return mean, variance


@pytest.mark.parametrize("n_functions", [1, 3])
@pytest.mark.parametrize("at_a_time", [4_096, 7])
def test_local_models_add_their_mean_and_stand_in_for_the_residual(monkeypatch, n_functions, at_a_time):
    monkeypatch.setattr(members_module, "BASE_ROWS", at_a_time)
    member = a_member(0, n_functions, leaves=some_leaves(1, n_functions))
    (found,) = moments([member])
    mean, variance = with_leaves_in_full(member, X)
    np.testing.assert_allclose(found.mean, mean, atol=1e-5)
    np.testing.assert_allclose(found.variance, variance, atol=1e-5)
    (without,) = moments([a_member(0, n_functions)])
    assert np.abs(found.mean - without.mean).max() > 0.5


def test_leaves_are_found_in_the_scaling_of_their_member():
    scaler = ColumnScaler(np.array([0.3, -1.0]), np.array([2.0, 0.5]))
    members = [a_member(0, leaves=some_leaves(1), scaler=scaler, weight=3.0), a_member(1, link=Probit(0.7, 0.1))]
    local, plain = moments(members)
    mean, variance = with_leaves_in_full(members[0], (X - [0.3, -1.0]) / [2.0, 0.5])
    np.testing.assert_allclose(local.mean, mean, atol=1e-5)
    np.testing.assert_allclose(local.variance, variance, atol=1e-5)
    ((m, v, _),) = dense(members[1])
    np.testing.assert_allclose(plain.mean[:, 0], m, atol=1e-6)
    p = 0.75 * LINK.probabilities(mean, variance) + 0.25 * members[1].link.probabilities(m[:, None], v[:, None])
    np.testing.assert_allclose(Binary((0.5,)).probabilities([local, plain]), p, atol=1e-5)


def test_blocks_are_larger_where_some_member_has_leaves():
    views = lambda *members: MemberViews.of(members, LINK, 0, np.float64)
    assert views(a_member(0), a_member(1)).block_rows(500) == 500
    assert views(a_member(0), a_member(1, leaves=some_leaves(1))).block_rows(500) == ROWS_FOR_LEAVES > 500


# ---- committees of one ----


@pytest.mark.parametrize(
    ("head", "link"),
    [(Binary((0.4,)), Probit(1.3, 0.2)), (OneVsRest((0.2, 0.3, 0.5)), Softmax(1.3, (0.1, 0.0, -0.3)))],
    ids=["two classes", "three classes"],
)
def test_two_equal_members_say_what_one_does(head, link):
    alone = a_member(1, head.n_functions)
    pair = [a_member(1, head.n_functions, weight=0.3), a_member(1, head.n_functions, weight=0.9)]
    one, two = moments([alone], link), moments(pair, link)
    y = rng.integers(0, head.n_classes, N)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(head.probabilities(two), head.probabilities(one), **close)
    np.testing.assert_allclose(head.mixed_losses(two, y), link.row_losses(one[0].mean, one[0].variance, y), **close)
    scores = head.decision(one), head.decision(two)
    if head.n_functions > 1:  # which are known up to a constant a row
        scores = [log_softmax(each, axis=1) for each in scores]
    np.testing.assert_allclose(*scores, **close)
    for a, b in zip(mixed_moments(two), mixed_moments(one), strict=True):
        np.testing.assert_allclose(a, b, **close)
    parts_one, parts_two = head.uncertainty_of([link])(one), head.uncertainty_of([link])(two)
    assert parts_one.keys() == parts_two.keys()
    for name in parts_one:
        np.testing.assert_allclose(parts_two[name], parts_one[name], atol=1e-6)


def test_one_member_of_another_weight_says_the_same():
    one, heavy = moments([a_member(1)]), moments([a_member(1, weight=7.0)])
    np.testing.assert_allclose(
        Binary((0.5,)).probabilities(heavy), Binary((0.5,)).probabilities(one), rtol=1e-12, atol=1e-12
    )


def test_disagreement_is_epistemic():
    """Two members that are sure, of opposite classes: neither says that the row is a coin toss."""
    root = LinearFeatures(np.array([1.0, 0.0]), intercept=False)
    sure = Gaussian.from_natural(NaturalParameters(1e12 * np.eye(2), np.zeros(2)))
    members = [Member(root, (LatentFunction(0, offset, sure),)) for offset in (-8.0, 8.0)]
    parts = Binary((0.5,)).uncertainty_of([LINK])(moments(members))
    np.testing.assert_allclose(parts["total"], 2 * entr(0.5), atol=1e-6)
    np.testing.assert_allclose(parts["aleatoric"], 0, atol=1e-6)
    np.testing.assert_allclose(parts["epistemic"], 2 * entr(0.5), atol=1e-6)


def test_the_width_of_the_widest_member_decides():
    members = [a_member(0), Member(LinearFeatures(np.ones(D), intercept=False), functions(1, D))]
    assert MemberViews.of(members, LINK, 0, np.float64).n_weights == 5


# ---- scalings ----


def test_a_member_sees_rows_in_its_own_scaling():
    scalers = ColumnScaler(np.array([0.3, -1.0]), np.array([2.0, 0.5])), None
    members = [a_member(i, link=Probit(1.0, 0.1 * i), scaler=scaler) for i, scaler in enumerate(scalers)]
    found = Binary((0.5,)).probabilities(moments(members))
    expected = np.zeros(N)
    for member in members:
        rows = member.rows(X)
        alone = MemberViews.of([Member(member.features, member.functions, link=member.link)], LINK, 0, np.float64)
        each = Binary((0.5,)).probabilities(alone.moments([Block(rows, np.zeros(N), None)], Workspace()))[:, 1]
        expected += 0.5 * each
    np.testing.assert_allclose(found[:, 1], expected)
    np.testing.assert_allclose(members[0].rows(X), (X - [0.3, -1.0]) / [2.0, 0.5])
    assert members[1].rows(X) is X


def test_one_member_with_a_scaling_of_its_own_is_not_taken_for_an_ordinary_model():
    scaler = ColumnScaler(np.array([0.3, -1.0]), np.array([2.0, 0.5]))
    member = a_member(0, scaler=scaler)
    (found,) = moments([member])
    (expected,) = MemberViews.of([a_member(0)], LINK, 0, np.float64).moments(
        [Block(scaler(X), np.zeros(N), None)], Workspace()
    )
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.variance, expected.variance)
