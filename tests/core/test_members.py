"""Several members as one model: shares, mixtures and moments against plain averages, loops and samples (D25)."""

import numpy as np
import pytest
from scipy.special import entr, log_softmax

from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block, LatentFunction
from bayesvm.core.links import Probit, Softmax
from bayesvm.core.members import Member, MemberMoments, MemberViews, Region, mixed, mixed_moments
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import ColumnScaler
from bayesvm.kernels import RBF, Matern
from tests import oracles

rng = np.random.default_rng(0)
N, D = 40, 2
X = rng.standard_normal((N, D))
BLOCKS = [Block(X[:17], np.zeros(17), None), Block(X[17:], np.zeros(N - 17), None)]
LINK = Probit(1.3, 0.2)
INFINITE = np.array([np.inf])
LEFT = Region(np.array([[1.0, 0.0]]), -INFINITE, np.zeros(1))
RIGHT = Region(np.array([[1.0, 0.0]]), np.zeros(1), INFINITE)


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


def dense(member, parent=None):
    """Mean, variance and explained variance of every function at every row, by explicit formulas."""
    phi, residual = oracles.features(member.features.kernel, member.features.inducing_points, X)
    found = []
    for k, function in enumerate(member.functions):
        q, prior_mean, inherited = function.posterior, function.offset, 0.0
        if parent is not None:
            above = dense(parent)[k]
            prior_mean, inherited = prior_mean + above[0], above[2]
        mean, explained, _ = oracles.marginals(phi, residual, prior_mean, q.mean, q.covariance)
        found.append((mean, explained + residual + inherited, explained))
    return found


def moments(members, link=LINK):
    return MemberViews.of(members, link, 0, np.float64).moments(BLOCKS, Workspace())


# ---- regions ----


def test_a_region_has_its_upper_edge_and_not_its_lower_one():
    region = Region(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.0, -np.inf]), np.array([1.0, 4.0]))
    rows = np.array([[0.0, 0.0], [1e-300, 0.0], [1.0, 2.0], [1.0 + 1e-15, 0.0], [0.5, 2.1], [0.5, -1e300]])
    np.testing.assert_array_equal(region.contains(rows), [False, True, True, False, False, True])


def test_regions_that_share_an_edge_divide_the_rows():
    edges = np.array([-np.inf, -0.5, 0.0, 0.7, np.inf])
    direction = np.array([[0.6, -0.8]])
    parts = [Region(direction, edges[i : i + 1], edges[i + 1 : i + 2]) for i in range(4)]
    on_edges = np.outer(edges[1:4], direction[0])
    rows = np.vstack([X, on_edges])
    inside = np.array([part.contains(rows) for part in parts])
    np.testing.assert_array_equal(inside.sum(axis=0), 1)


# ---- shares ----


@pytest.mark.parametrize("weights", [(1.0,), (3.0,), (1.0, 3.0), (0.2, 0.5, 0.3), (0.0, 2.0, 6.0)], ids=str)
def test_shares_of_a_committee_are_the_weights_divided_by_their_sum(weights):
    members = [a_member(i, weight=weight) for i, weight in enumerate(weights)]
    found = MemberViews.of(members, LINK, 0, np.float64).shares(X)
    expected = np.array(weights) / sum(weights)
    np.testing.assert_allclose(found, np.tile(expected[:, None], N))


def test_shares_with_regions_are_those_of_the_members_that_have_the_row():
    """Two partitions of the space, one of them whole, as when two sets of local models are averaged."""
    members = [a_member(0, region=LEFT), a_member(1, region=RIGHT, weight=3.0), a_member(2, weight=1.0)]
    found = MemberViews.of(members, LINK, 0, np.float64).shares(X)
    for i, row in enumerate(X):
        here = np.array([1.0, 0.0, 1.0]) if row[0] <= 0 else np.array([0.0, 3.0, 1.0])
        np.testing.assert_allclose(found[:, i], here / here.sum())


# ---- mixtures ----

THREE_LINKS = (None, Probit(0.6, -0.4), Probit(2.0, 0.0))


@pytest.mark.parametrize("n_members", [2, 3])
@pytest.mark.parametrize("regions", [False, True], ids=["everywhere", "regions"])
def test_probabilities_are_averages_of_what_the_members_say(n_members, regions):
    where = [LEFT, RIGHT, None] if regions else [None] * 3
    given = zip((1.0, 2.5, 0.5), where, THREE_LINKS, strict=True)
    members = [a_member(i, weight=w, region=r, link=link) for i, (w, r, link) in enumerate(given)][:n_members]
    found = Binary((0.5,)).probabilities(moments(members))
    for i, row in enumerate(X):
        total, weight = np.zeros(2), 0.0
        for member in members:
            if member.region is None or (row[0] <= 0) == (member.region is LEFT):
                ((m, v, _),) = dense(member)
                total += member.weight * (member.link or LINK).probabilities(m[i : i + 1, None], v[i : i + 1, None])[0]
                weight += member.weight
        np.testing.assert_allclose(found[i], total / weight, atol=1e-6)


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
        MemberMoments(np.array([[1.0]]), np.array([[0.5]]), LINK, np.array([0]), np.array([0.25])),
        MemberMoments(np.array([[-2.0]]), np.array([[3.0]]), LINK, np.array([0]), np.array([0.75])),
    ]
    draws = rng.standard_normal(400_000)
    draws = np.where(rng.random(400_000) < 0.25, 1 + np.sqrt(0.5) * draws, -2 + np.sqrt(3) * draws)
    found = mixed_moments(parts)
    assert found.mean.item() == pytest.approx(draws.mean(), abs=0.02)
    assert found.variance.item() == pytest.approx(draws.var(), rel=0.01)


def test_moments_of_many_equal_members_do_not_lose_the_variance_to_rounding():
    """A mean far from zero, whose square is much larger than the variance."""
    part = MemberMoments(np.full((1, 1), 1e4), np.full((1, 1), 1e-6), LINK, np.array([0]), np.array([0.5]))
    found = mixed_moments([part, part])
    assert found.variance.item() == pytest.approx(1e-6, rel=1e-6)


def test_a_mixture_is_in_the_order_of_the_rows():
    """Regions leave each member some of the rows; the last row may be that of any of them."""
    for regions in ((LEFT, RIGHT), (RIGHT, LEFT)):
        members = [a_member(i, region=region) for i, region in enumerate(regions)]
        parts = moments(members)
        found = mixed(parts, lambda part: part.mean[:, 0])
        expected = np.empty(N)
        for member in members:
            mine = (X[:, 0] <= 0) == (member.region is LEFT)
            expected[mine] = dense(member)[0][0][mine]
        np.testing.assert_allclose(found, expected, atol=1e-6)


# ---- parents ----


def test_members_on_top_of_a_parent_that_predicts_nothing_itself():
    parent = a_member(0, 2, weight=0.0)
    members = [parent, a_member(1, 2, region=LEFT, parent=0), a_member(3, 2, region=RIGHT, parent=0)]
    found = mixed_moments(moments(members))
    for k in range(2):
        left, right = dense(members[1], parent)[k], dense(members[2], parent)[k]
        np.testing.assert_allclose(found.mean[:, k], np.where(X[:, 0] <= 0, left[0], right[0]), atol=1e-6)
        np.testing.assert_allclose(found.variance[:, k], np.where(X[:, 0] <= 0, left[1], right[1]), atol=1e-6)


def test_a_parent_may_predict_too():
    members = [a_member(0, weight=1.0), a_member(1, parent=0, weight=1.0)]
    found = mixed_moments(moments(members))
    mean = (dense(members[0])[0][0] + dense(members[1], members[0])[0][0]) / 2
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-6)


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


@pytest.mark.parametrize("regions", [False, True], ids=["everywhere", "regions"])
def test_a_member_sees_rows_in_its_own_scaling(regions):
    """Regions are those of the rows as the model has them."""
    where = (LEFT, RIGHT) if regions else (None, None)
    scalers = ColumnScaler(np.array([0.3, -1.0]), np.array([2.0, 0.5])), None
    given = [{"region": region, "scaler": scaler} for region, scaler in zip(where, scalers, strict=True)]
    members = [a_member(i, link=Probit(1.0, 0.1 * i), **each) for i, each in enumerate(given)]
    found = Binary((0.5,)).probabilities(moments(members))
    expected = np.zeros(N)
    for i, member in enumerate(members):
        rows = member.rows(X)
        alone = MemberViews.of([Member(member.features, member.functions, link=member.link)], LINK, 0, np.float64)
        each = Binary((0.5,)).probabilities(alone.moments([Block(rows, np.zeros(N), None)], Workspace()))[:, 1]
        share = 0.5 if not regions else (X[:, 0] <= 0) if i == 0 else (X[:, 0] > 0)
        expected += share * each
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
