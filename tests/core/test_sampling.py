"""Joint samples of f against its mean and covariance in dense form (D4, D25, D30)."""

from dataclasses import replace

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.leaves import Leaf, Leaves, Tree
from bayesvm.core.members import Member
from bayesvm.core.posterior import CompactGaussian, DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.sampling import drawn_members, joint_samples
from bayesvm.kernels import RBF, Matern
from tests import oracles

rng = np.random.default_rng(0)
N, D, DRAWS = 8, 2, 60_000
X = rng.standard_normal((N, D))
X[0] = X[1] + 0.05  # two rows whose f are nearly the same


def a_member(seed, n_functions=1, **given):
    generator = np.random.default_rng(seed)
    kernel = RBF(1.2, 2.0) if seed % 2 else Matern(1.5, 1.0)
    functions = []
    for number in range(n_functions):
        A = generator.standard_normal((4, 4))
        natural = NaturalParameters(np.eye(4) + A @ A.T, 4 * generator.standard_normal(4))
        functions.append(LatentFunction(number, generator.standard_normal(), Gaussian.from_natural(natural)))
    return Member(InducingFeatures.build(kernel, generator.standard_normal((4, D))), tuple(functions), **given)


def dense(member, number=0, *, residual=True, offset=True):
    """Mean and covariance of one function at all rows; without the residual, of the part that the weights explain."""
    kernel, points, function = member.features.kernel, member.features.inducing_points, member.functions[number]
    phi, _ = oracles.features(kernel, points, X)
    covariance = phi @ function.posterior.covariance @ phi.T
    if residual:
        covariance = covariance + kernel(X) - phi @ phi.T
    return offset * function.offset + phi @ function.posterior.mean, covariance


def samples(members, n=DRAWS, seed=1):
    generator, total = np.random.default_rng(seed), sum(member.weight for member in members)
    chosen = drawn_members([member.weight / total for member in members], n, generator)
    return joint_samples(members, X, chosen, generator)


def assert_moments(draws, mean, covariance):
    """Up to five standard errors, which for a covariance are those of a product of normal variables."""
    scale = np.sqrt(np.diag(covariance))
    error = 5 / np.sqrt(len(draws))
    assert np.abs((draws.mean(axis=0) - mean) / scale).max() < error
    found = np.cov(draws.T)
    assert np.abs((found - covariance) / np.outer(scale, scale)).max() < 2 * error


def test_one_member_has_its_mean_and_covariance():
    member = a_member(1, n_functions=2)
    found = samples([member])
    assert found.shape == (DRAWS, N, 2)
    for number in range(2):
        assert_moments(found[:, :, number], *dense(member, number))
    # The functions are independent of each other.
    assert np.abs(np.corrcoef(found[:, 0, 0], found[:, 0, 1])[0, 1]) < 5 / np.sqrt(DRAWS)


def test_a_linear_model_and_a_mean_field_have_theirs():
    q = DiagonalGaussian(np.array([1.0, -0.5, 0.3]), np.array([0.5, 1.0, 2.0]))
    features = LinearFeatures(np.array([1.0, 2.0, 0.5]), intercept=True)
    found = samples([Member(features, (LatentFunction(0, 0.4, q),))])[:, :, 0]
    phi = np.column_stack([X, np.ones(N)]) * features.root
    covariance = phi @ np.diag(q.variance) @ phi.T
    assert_moments(found, 0.4 + phi @ q.mean, covariance)


def test_a_committee_is_a_mixture_of_whole_functions():
    """A draw is a draw of one member at all rows, so rows stay as related as that member has them."""
    members = [a_member(1, weight=1.0), a_member(2, weight=3.0)]
    found = samples(members)[:, :, 0]
    (first, S), (second, T) = map(dense, members)
    mean = 0.25 * first + 0.75 * second
    apart = 0.25 * np.outer(first - mean, first - mean) + 0.75 * np.outer(second - mean, second - mean)
    assert_moments(found, mean, 0.25 * S + 0.75 * T + apart)
    gap = found[:, 0] - found[:, 1]  # of neighbours, which a mixture of rows would take from different members
    expected = [np.array([1, -1]) @ C[:2, :2] @ np.array([1, -1]) for C in (S, T)]
    gaps = first[0] - first[1], second[0] - second[1]
    assert gap.var() == pytest.approx(
        0.25 * expected[0] + 0.75 * expected[1] + 0.1875 * (gaps[0] - gaps[1]) ** 2, rel=0.05
    )


def with_leaves(member, *models):
    """The member with these as local models: those of rows whose first column is at most zero, and of the others."""
    tree = Tree(np.array([[1.0, 0.0]]), np.zeros(1), np.array([~0]), np.array([~1]))
    leaves = []
    for model in models:
        compact = (LatentFunction(f.target, 0.0, CompactGaussian.of(f.posterior)) for f in model.functions)
        leaves.append(Leaf(model.features, tuple(compact)))
    return replace(member, leaves=Leaves(tree, models[0].features.kernel, tuple(leaves)))


def test_two_leaves_share_the_mean_below_them_and_nothing_else():
    base, models = a_member(2, 2), (a_member(1, 2), a_member(3, 2))
    found = samples([with_leaves(base, *models)])
    left = X[:, 0] <= 0
    assert 0 < left.sum() < N
    for number in range(2):
        below, shared = dense(base, number, residual=False)  # what it does not explain is what the leaves model
        (m_left, S), (m_right, T) = (dense(model, number, offset=False) for model in models)
        covariance = shared + S * np.outer(left, left) + T * np.outer(~left, ~left)
        assert_moments(found[:, :, number], below + np.where(left, m_left, m_right), covariance)
        assert np.abs(shared[left][:, ~left]).max() > 0.05  # so that rows on both sides are related


def test_every_draw_is_of_the_member_that_was_chosen_for_it():
    members = [a_member(1), with_leaves(a_member(2), a_member(1), a_member(3))]
    chosen = np.array([1, 0, 0, 1, 0, 1] * 10_000)
    found = joint_samples(members, X, chosen, np.random.default_rng(0))[:, :, 0]
    assert_moments(found[chosen == 0], *dense(members[0]))
    left = X[:, 0] <= 0
    (below, shared), (m, S), (n, T) = (
        dense(a_member(2), residual=False),
        *(dense(a_member(seed), offset=False) for seed in (1, 3)),
    )
    covariance = shared + S * np.outer(left, left) + T * np.outer(~left, ~left)
    assert_moments(found[chosen == 1], below + np.where(left, m, n), covariance)


@pytest.mark.parametrize("shares", [(1.0,), (0.2, 0.5, 0.3), (0.9, 0.1)], ids=str)
def test_members_are_drawn_by_their_shares(shares):
    chosen = drawn_members(shares, DRAWS, np.random.default_rng(0))
    assert chosen.shape == (DRAWS,)
    found = np.bincount(chosen, minlength=len(shares)) / DRAWS
    np.testing.assert_allclose(found, shares, atol=5 * 0.5 / np.sqrt(DRAWS))


def test_shares_that_add_up_to_less_than_one_by_rounding_draw_no_member_that_is_not_there():
    class Last:
        def random(self, n):
            return np.full(n, np.nextafter(1.0, 0.0))

    shares = [0.1] * 10
    assert np.cumsum(shares)[-1] < 1
    assert drawn_members(shares, 3, Last()).tolist() == [9, 9, 9]


def test_the_same_seed_gives_the_same_samples():
    members = [a_member(1), a_member(2)]
    np.testing.assert_array_equal(samples(members, 5), samples(members, 5))
    assert not np.array_equal(samples(members, 5), samples(members, 5, seed=2))
