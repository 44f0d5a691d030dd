"""Trees and the local models in their leaves, against walks row by row and dense formulas (D30)."""

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.leaves import LARGEST_TIER, Leaf, Leaves, Tree
from bayesvm.core.posterior import CompactGaussian, Gaussian, NaturalParameters
from bayesvm.kernels import RBF, Matern
from tests import oracles

rng = np.random.default_rng(0)


# ---- trees ----


def walked(tree, X):
    """One row after the other, one split after the other."""
    found = []
    for row in X:
        at = 0 if len(tree.thresholds) else -1
        while at >= 0:
            is_below = tree.directions[at] @ row <= tree.thresholds[at]
            at = (tree.below if is_below else tree.beyond)[at]
        found.append(~at)
    return np.array(found)


def a_chain(n_splits):
    """The most uneven tree: every split cuts off one leaf, below it or above it in turn."""
    number, even = np.arange(n_splits), np.arange(n_splits) % 2 == 0
    deeper = np.where(number + 1 < n_splits, number + 1, ~n_splits)
    thresholds = np.where(even, 0.5 * number, -0.5 * number) - n_splits / 2 * np.where(even, 1, -1)
    return Tree(np.ones((n_splits, 1)), thresholds, np.where(even, ~number, deeper), np.where(even, deeper, ~number))


def a_random_tree(n_splits, n_features, seed):
    """Every leaf is as likely to be split next as any other; numbers of splits and leaves are shuffled."""
    generator = np.random.default_rng(seed)
    children = [[-1, -1]]
    for number in range(1, n_splits):
        open_ends = [(split, side) for split, ends in enumerate(children) for side in (0, 1) if ends[side] < 0]
        split, side = open_ends[generator.integers(len(open_ends))]
        children[split][side] = number
        children.append([-1, -1])
    order = np.append(0, 1 + generator.permutation(n_splits - 1))  # the root stays the first
    leaves = iter(generator.permutation(n_splits + 1).tolist())
    ends = np.empty((n_splits, 2), np.intp)
    for split, pair in enumerate(children):
        ends[order[split]] = [order[end] if end >= 0 else ~next(leaves) for end in pair]
    directions = generator.standard_normal((n_splits, n_features))
    return Tree(directions, 0.5 * generator.standard_normal(n_splits), ends[:, 0], ends[:, 1])


@pytest.mark.parametrize("n_splits", [1, 2, LARGEST_TIER, LARGEST_TIER + 1, 400])
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_fall_into_the_leaf_that_a_walk_from_the_root_ends_in(n_splits, seed):
    tree, X = a_random_tree(n_splits, 3, seed), rng.standard_normal((500, 3))
    np.testing.assert_array_equal(tree.leaf_of(X), walked(tree, X))


@pytest.mark.parametrize("n_splits", [10, 300])
def test_a_tree_may_be_a_chain(n_splits):
    tree, X = a_chain(n_splits), n_splits * rng.uniform(-1, 1, (400, 1))
    found = tree.leaf_of(X)
    np.testing.assert_array_equal(found, walked(tree, X))
    assert len(np.unique(found)) > n_splits / 5


def test_no_rows_fall_into_no_leaf():
    assert a_random_tree(100, 3, 0).leaf_of(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize("n_leaves", [2, 7, 64, 200])
@pytest.mark.parametrize("n_features", [1, 4])
def test_every_row_is_in_one_leaf_and_leaves_are_about_equal_in_size(n_leaves, n_features):
    rows = rng.standard_normal((6_000, n_features)) @ rng.standard_normal((n_features, n_features))
    tree = Tree.grown(rows, np.ones(n_features), n_leaves)
    assert tree.n_leaves == n_leaves
    ends = np.concatenate([tree.below, tree.beyond])
    assert sorted(ends[ends >= 0]) == list(range(1, n_leaves - 1))  # every split but the root is one child
    assert sorted(~ends[ends < 0]) == list(range(n_leaves))  # and so is every leaf
    found = tree.leaf_of(rows)
    np.testing.assert_array_equal(found, walked(tree, rows))
    sizes = np.bincount(found, minlength=n_leaves)
    assert sizes.sum() == 6_000
    assert sizes.max() <= 2 * sizes.min() + 2


def test_splits_are_medians_along_the_direction_of_the_largest_spread():
    """In units of the length-scales, of which one makes the second column the widest."""
    rows = rng.standard_normal((1_001, 3)) * [5.0, 1.0, 1.0]
    for unit, widest in ((np.ones(3), 0), (np.array([100.0, 1.0, 4.0]), 1)):
        tree = Tree.grown(rows, unit, 2)
        along = rows @ tree.directions[0]
        assert np.abs(tree.directions[0] * unit).argmax() == widest
        assert (along <= tree.thresholds[0]).sum() in (500, 501)
        scaled = rows / unit
        _, _, axes = np.linalg.svd(scaled - scaled.mean(axis=0))
        assert abs(axes[0] @ (tree.directions[0] * unit)) == pytest.approx(1)


def test_units_of_the_columns_do_not_matter_if_length_scales_have_the_same():
    rows, unit, factors = rng.standard_normal((2_000, 3)), np.array([0.5, 1.0, 2.0]), np.array([1e3, 1.0, 1e-2])
    one, other = Tree.grown(rows, unit, 30), Tree.grown(rows * factors, unit * factors, 30)
    np.testing.assert_array_equal(one.leaf_of(rows), other.leaf_of(rows * factors))


def assert_thresholds_are_between_rows(tree, rows):
    for direction, threshold in zip(tree.directions, tree.thresholds, strict=True):
        along = rows @ direction
        assert np.abs(along - threshold).min() > 1e-10 * np.abs(along).max()


@pytest.mark.parametrize("n_features", [1, 3])
def test_thresholds_are_between_different_rows_so_that_rounding_moves_none(n_features):
    rows = rng.integers(0, 12, (3_000, n_features)) / 7.0
    tree = Tree.grown(rows, np.full(n_features, 0.3), 12)
    found = tree.leaf_of(rows)
    assert tree.n_leaves == 12
    assert_thresholds_are_between_rows(tree, rows)
    for changed in (rows * (1 + 1e-13), rows * (1 - 1e-13), rows.astype(np.longdouble).astype(float)):
        np.testing.assert_array_equal(tree.leaf_of(changed), found)
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(tree.leaf_of(rows[order][:1_000]), found[order][:1_000])


@pytest.mark.parametrize("n_features", [1, 2, 13, 18])
def test_equal_rows_are_never_divided_and_different_ones_always_may_be(n_features):
    """With more leaves than there are different rows, each of these gets a leaf of its own."""
    for seed in range(10):
        generator = np.random.default_rng(seed)
        distinct = generator.standard_normal((5, n_features))
        which = generator.choice(5, 1_000, p=generator.dirichlet(np.ones(5)))
        which[:5] = range(5)
        tree = Tree.grown(distinct[which], np.exp(generator.standard_normal(n_features)), 50)
        assert tree.n_leaves == 5
        leaf = tree.leaf_of(distinct)
        assert sorted(leaf) == list(range(5))
        np.testing.assert_array_equal(tree.leaf_of(distinct[which]), leaf[which])


@pytest.mark.parametrize("value", [0.0, 3.7, -1e6])
@pytest.mark.parametrize("n_rows", [1, 50])
def test_rows_that_are_all_equal_have_one_leaf(value, n_rows):
    tree = Tree.grown(np.full((n_rows, 3), value), np.array([0.1, 1.0, 10.0]), 8)
    assert tree.n_leaves == 1
    assert tree.directions.shape == (0, 3)
    np.testing.assert_array_equal(tree.leaf_of(rng.standard_normal((4, 3))), 0)


def test_most_rows_equal_and_some_not():
    """The median is the value that most rows have, so that the first cut is beside it."""
    rows = np.zeros((1_000, 2))
    rows[:300] = rng.uniform(1, 2, (300, 2))
    for sign in (1, -1):
        tree = Tree.grown(sign * rows, np.ones(2), 9)
        found = tree.leaf_of(sign * rows)
        assert tree.n_leaves == 9
        (with_most,) = np.unique(found[300:])
        assert with_most not in found[:300]
        sizes = np.bincount(found[:300])
        assert sizes[sizes > 0].max() <= 2 * sizes[sizes > 0].min() + 2


# ---- the models in leaves ----

KERNEL = Matern(0.7, 1.5)


def a_posterior(seed, width):
    generator = np.random.default_rng(seed)
    A = generator.standard_normal((width, width))
    return Gaussian.from_natural(NaturalParameters(np.eye(width) + A @ A.T, 3 * generator.standard_normal(width)))


def some_leaves(tree, n_functions):
    found = []
    for k in range(tree.n_leaves):
        points = np.random.default_rng(k).standard_normal((3 + k % 2, 2))
        posteriors = (CompactGaussian.of(a_posterior([k, number], len(points))) for number in range(n_functions))
        functions = tuple(LatentFunction(number, 0.0, q) for number, q in enumerate(posteriors))
        found.append(Leaf(InducingFeatures.build(KERNEL, points), functions))
    return Leaves(tree, KERNEL, tuple(found))


@pytest.mark.parametrize("n_functions", [1, 3])
def test_moments_add_mean_and_variance_of_the_rows_own_leaf(n_functions):
    leaves = some_leaves(a_random_tree(6, 2, 0), n_functions)
    X = rng.standard_normal((80, 2))
    mean, explained = rng.standard_normal((80, n_functions)), rng.uniform(0.1, 1, (80, n_functions))
    given = mean.copy(), explained.copy()
    found = leaves.moments(X, mean, explained)
    for i, (row, number) in enumerate(zip(X, walked(leaves.tree, X), strict=True)):
        points = leaves.leaves[number].features.inducing_points
        inverse, near = np.linalg.inv(KERNEL(points)), KERNEL(points, row[None])[:, 0]
        L = np.linalg.cholesky(KERNEL(points))
        for k, function in enumerate(leaves.leaves[number].functions):
            # q(u) = N(L mu, L S Lᵀ), and f given u is N(kᵀ K^-1 u, k(x,x) - kᵀ K^-1 k).
            root = function.posterior.root.astype(float)
            u, S = L @ function.posterior.mean, L @ root @ root.T @ L.T
            a = inverse @ near
            assert found.mean[i, k] == pytest.approx(mean[i, k] + a @ u, abs=1e-5)
            variance = explained[i, k] + KERNEL(row[None], row[None]).item() - near @ a + a @ S @ a
            assert found.variance[i, k] == pytest.approx(variance, abs=1e-5)
    np.testing.assert_array_equal((mean, explained), given)


def test_groups_divide_the_rows_by_their_leaf():
    leaves, X = some_leaves(a_random_tree(6, 2, 0), 1), rng.standard_normal((80, 2))
    X = X[walked(leaves.tree, X) != 2]  # one leaf stays empty
    number = walked(leaves.tree, X)
    groups = list(leaves.groups(X))
    assert sorted(np.concatenate([rows for _, rows in groups])) == list(range(len(X)))
    for leaf, rows in groups:
        (place,) = np.unique(number[rows])
        assert leaf is leaves.leaves[place]
    assert len(groups) == len(np.unique(number)) < leaves.tree.n_leaves


def test_models_in_single_precision_say_nearly_the_same():
    leaves, X = some_leaves(a_random_tree(1, 2, 0), 3), rng.standard_normal((20, 2))
    for one, other in zip(leaves.leaves[0].marginals(X), leaves.leaves[0].marginals(X, np.float32), strict=True):
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-4)
        np.testing.assert_allclose(one.variance, other.variance, atol=1e-4)


# ---- compact posteriors ----


def test_a_compact_posterior_has_all_that_predictions_need():
    q, phi = a_posterior(0, 20), RBF(1.0)(rng.standard_normal((30, 2)), rng.standard_normal((20, 2)))
    compact = CompactGaussian.of(q)
    assert compact.root.dtype == np.float32
    at = compact.coordinates(10**9)
    mean, explained, _ = oracles.marginals(phi, 0.0, 0.0, q.mean, q.covariance)
    assert at.basis is None
    np.testing.assert_allclose(phi @ at.mean, mean)
    np.testing.assert_allclose(np.sum((phi @ at.spread) ** 2, axis=1), explained, rtol=1e-5)
    draws = rng.standard_normal((7, 20))
    np.testing.assert_allclose(compact.spread(draws), q.spread(draws), atol=1e-5)


def test_training_goes_on_from_a_compact_posterior_as_from_the_whole_one():
    q = a_posterior(0, 20)
    again = CompactGaussian.of(q).full()
    np.testing.assert_allclose(again.mean, q.mean, atol=1e-8)
    np.testing.assert_allclose(again.covariance, q.covariance, atol=1e-5)
    np.testing.assert_allclose(again.natural.precision, q.natural.precision, rtol=1e-4, atol=1e-4)
    assert again.divergence_from(q) == pytest.approx(0, abs=1e-6)
    np.testing.assert_array_equal(CompactGaussian.of(again).root, CompactGaussian.of(q).root)
