"""Joint samples of f against its mean and covariance in dense form (D4, D25)."""

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.links import Probit
from bayesvm.core.members import Member, MemberViews, Region
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.sampling import joint_samples
from bayesvm.kernels import RBF, Matern
from tests import oracles

rng = np.random.default_rng(0)
N, D, DRAWS = 8, 2, 60_000
X = rng.standard_normal((N, D))
X[0] = X[1] + 0.05  # two rows whose f are nearly the same
LEFT = Region(np.array([[1.0, 0.0]]), np.array([-np.inf]), np.zeros(1))
RIGHT = Region(np.array([[1.0, 0.0]]), np.zeros(1), np.array([np.inf]))


def a_member(seed, n_functions=1, **given):
    generator = np.random.default_rng(seed)
    kernel = RBF(1.2, 2.0) if seed % 2 else Matern(1.5, 1.0)
    functions = []
    for number in range(n_functions):
        A = generator.standard_normal((4, 4))
        natural = NaturalParameters(np.eye(4) + A @ A.T, 4 * generator.standard_normal(4))
        functions.append(LatentFunction(number, generator.standard_normal(), Gaussian.from_natural(natural)))
    return Member(InducingFeatures.build(kernel, generator.standard_normal((4, D))), tuple(functions), **given)


def dense(member, number=0, *, residual=True):
    """Mean and covariance of one function at all rows; without the residual, of the part that the weights explain."""
    kernel, points, function = member.features.kernel, member.features.inducing_points, member.functions[number]
    phi, _ = oracles.features(kernel, points, X)
    covariance = phi @ function.posterior.covariance @ phi.T
    if residual:
        covariance = covariance + kernel(X) - phi @ phi.T
    return function.offset + phi @ function.posterior.mean, covariance


def samples(members, n=DRAWS, seed=1):
    views = MemberViews.of(members, Probit(), 0, np.float64)
    return joint_samples(members, views, X, n, np.random.default_rng(seed))


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


def test_two_regions_share_their_parent_and_nothing_else():
    parent = a_member(2, weight=0.0)
    members = [parent, a_member(1, region=LEFT, parent=0), a_member(3, region=RIGHT, parent=0)]
    found = samples(members)[:, :, 0]
    left = X[:, 0] <= 0
    assert 0 < left.sum() < N
    above, shared = dense(parent, residual=False)  # what the parent does not explain is what the regions model
    (m_left, S), (m_right, T) = dense(members[1]), dense(members[2])
    covariance = shared + S * np.outer(left, left) + T * np.outer(~left, ~left)
    assert_moments(found, above + np.where(left, m_left, m_right), covariance)
    assert np.abs(shared[left][:, ~left]).max() > 0.05  # so that rows on both sides are related


def test_two_parents_in_line_are_both_part_of_it():
    members = [a_member(2, weight=0.0), a_member(1, weight=0.0, parent=0), a_member(3, parent=1)]
    found = samples(members)[:, :, 0]
    parts = [dense(members[0], residual=False), dense(members[1], residual=False), dense(members[2])]
    assert_moments(found, sum(mean for mean, _ in parts), sum(covariance for _, covariance in parts))


def test_the_same_seed_gives_the_same_samples():
    members = [a_member(1), a_member(2)]
    np.testing.assert_array_equal(samples(members, 5), samples(members, 5))
    assert not np.array_equal(samples(members, 5), samples(members, 5, seed=2))
