"""Families: what a vector stands for, and the prior on it against finite differences and normal densities (D19)."""

import numpy as np
import pytest
from scipy import stats

from bayesvm.core.features import Effect, InducingFeatures, LinearFeatures
from bayesvm.core.gradients import block_elbo_gradient
from bayesvm.core.heads import Binary
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.statistics import block_statistics
from bayesvm.core.workspace import Workspace
from bayesvm.inference.families import KernelFamily, LinearFamily
from bayesvm.kernels import RBF, Constant, Linear, Matern, Sum
from tests.oracles import numerical_gradient

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((30, 3)), rng.integers(0, 2, 30)
POINTS = rng.standard_normal((5, 3))
SCALES = np.array([0.5, 1.0, 3.0])
EFFECTS = (  # not of a rough kernel, of which finite differences see the rounding of distances
    Effect((1,), InducingFeatures.build(Matern(0.7, 2.0), np.array([[-1.0], [0.5]]), np.float32)),
    Effect((2, 0), InducingFeatures.build(RBF(np.array([0.6, 2.0]), 0.5), rng.standard_normal((4, 2)), np.float32)),
)
FAMILIES = {
    "one length-scale": KernelFamily(RBF(2.0, 3.0), POINTS),
    "one for every feature": KernelFamily(Matern(SCALES, 3.0), POINTS),
    "sum": KernelFamily(2.0 * RBF(SCALES) + 0.3 * Linear() + Constant(), POINTS),
    "weights fixed": KernelFamily(Sum([RBF(SCALES, 2.0), Matern()], weights_bounds="fixed"), POINTS),
    "scales fixed": KernelFamily(RBF(SCALES, 2.0, length_scale_bounds="fixed"), POINTS),
    "points": KernelFamily(RBF(SCALES, 3.0), POINTS, learn_points=True),
    "only points": KernelFamily(RBF(2.0, 3.0, "fixed", "fixed"), POINTS, learn_points=True),
    "effects": KernelFamily(RBF(2.0, 3.0), POINTS, effects=EFFECTS),
    "effects and points": KernelFamily(RBF(SCALES, 3.0), POINTS, learn_points=True, effects=EFFECTS),
    "one linear prior": LinearFamily(np.array([0.3]), 3, np.array([10.0])),
    "one for every weight": LinearFamily(np.array([0.3, 1.0, 2.0]), 3, np.array([10.0])),
    "no intercept": LinearFamily(np.array([0.3, 1.0, 2.0]), 3, np.zeros(0)),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def elsewhere(family):
    start = family.start()
    return start + 0.3 * np.random.default_rng(1).standard_normal(len(start))


@every_family
def test_the_price_has_the_derivative_that_it_says(family):
    x = elsewhere(family)
    value, slope = family.penalty(x)
    assert value >= 0
    np.testing.assert_allclose(slope, numerical_gradient(lambda x: family.penalty(x)[0], x), rtol=1e-6, atol=1e-8)


@every_family
def test_the_gradient_is_that_of_an_objective_by_the_vector(family):
    """Of the ELBO at fixed q, as a function of the vector."""
    x = elsewhere(family)
    width, likelihood, block = family.features(x).n_weights, LIKELIHOODS["exact"], Block(X, Y, None)
    A = np.random.default_rng(2).standard_normal((width, width))
    q = Gaussian.from_natural(NaturalParameters(np.eye(width) + A @ A.T, A[0]))

    how = {"head": Binary((0.5,)), "likelihood": likelihood}

    def view_at(x):
        return View.of(family.features(x), [LatentFunction(0, 0.2, q)], 0, np.float64)[0]

    def elbo(x):
        return block_statistics([block], Workspace(), view=view_at(x), **how).each[0].bound

    features = family.features(x)
    adjoint = View.for_adjoints([LatentFunction(0, 0.2, q)])
    total = block_elbo_gradient([block], Workspace(), features=features, view=adjoint, **how)
    found = family.gradient(features, total)
    assert found.shape == x.shape
    np.testing.assert_allclose(found, numerical_gradient(elbo, x), rtol=1e-4, atol=1e-4)


@every_family
def test_bounds_are_one_for_each_entry_and_hold_at_the_start(family):
    bounds = family.bounds()
    assert len(bounds) == len(family.start())
    for value, (low, high) in zip(family.start(), bounds, strict=True):
        assert low is None or low <= value
        assert high is None or value <= high


def test_features_at_the_start_are_those_given():
    family = FAMILIES["points"]
    features = family.features(family.start())
    assert isinstance(features, InducingFeatures)
    np.testing.assert_allclose(features.inducing_points, POINTS)
    np.testing.assert_allclose(features.kernel(X, POINTS), RBF(SCALES, 3.0)(X, POINTS))
    moved = family.features(family.start() + np.arange(4 + 15))
    np.testing.assert_allclose(moved.inducing_points, POINTS + np.arange(4, 19).reshape(5, 3))
    np.testing.assert_allclose(moved.kernel.length_scale, SCALES * np.exp([0, 1, 2]))


def test_a_vector_has_the_kernel_then_the_effects_then_the_points():
    family = FAMILIES["effects and points"]
    assert len(family.start()) == 4 + 2 + 3 + 15
    x = family.start() + np.log(np.r_[np.full(4, 2.0), 3.0, 4.0, np.full(3, 5.0), np.full(15, np.e)])
    features = family.features(x)
    one, pair = features.effects
    np.testing.assert_allclose(features.kernel.length_scale, 2 * SCALES)
    assert (one.features.kernel.length_scale, one.features.kernel.variance) == pytest.approx((3 * 0.7, 4 * 2.0))
    np.testing.assert_allclose(pair.features.kernel.length_scale, [3.0, 10.0])
    assert pair.features.kernel.variance == pytest.approx(2.5)
    np.testing.assert_allclose(features.inducing_points, POINTS + 1)
    assert [effect.columns for effect in features.effects] == [(1,), (2, 0)]


def test_the_price_of_an_effect_is_that_of_its_kernel_on_its_columns():
    alone, family = KernelFamily(RBF(2.0, 3.0), POINTS), FAMILIES["effects"]
    prices = [KernelFamily(e.features.kernel, e.features.inducing_points) for e in EFFECTS]
    expected = sum(each.penalty(each.start())[0] for each in (alone, *prices))
    assert family.penalty(family.start())[0] == pytest.approx(expected)


def test_features_of_a_linear_prior_are_the_columns_times_its_root():
    features = FAMILIES["one for every weight"].features(np.log([4.0, 9.0, 16.0]))
    assert isinstance(features, LinearFeatures)
    phi, _ = features.prepared(None, np.float64)(X, Workspace())
    np.testing.assert_allclose(phi, np.column_stack([2 * X[:, 0], 3 * X[:, 1], 4 * X[:, 2], np.full(30, 10.0)]))
    one = FAMILIES["one linear prior"].features(np.log([4.0]))
    np.testing.assert_allclose(one.root, [2, 2, 2, 10])
    assert FAMILIES["no intercept"].features(np.zeros(3)).n_weights == 3


def test_the_price_is_minus_the_log_density_of_normal_logarithms_up_to_a_constant():
    def log_density(scales, variance):
        mean = np.mean(np.log(scales))
        of_mean = stats.norm(0.5 * np.log(3), 1.0).logpdf(mean)
        apart = stats.norm(mean, 2.0).logpdf(np.log(scales)).sum()
        usual = stats.norm(np.log(4.0), 1.5).logpdf(np.log(variance))
        return of_mean + apart + usual

    family = FAMILIES["one for every feature"]
    here, there = np.array([0.5, 1.0, 3.0, 3.0]), np.array([20.0, 0.1, 1.0, 50.0])
    gap = family.penalty(np.log(here))[0] - family.penalty(np.log(there))[0]
    assert gap == pytest.approx(log_density(there[:3], there[3]) - log_density(here[:3], here[3]))


def test_scales_for_every_feature_cost_nothing_as_long_as_they_are_equal():
    one, many = KernelFamily(RBF(2.0, 3.0), POINTS), KernelFamily(RBF(np.full(3, 2.0), 3.0), POINTS)
    assert one.penalty(one.start())[0] == pytest.approx(many.penalty(many.start())[0])
    usual = KernelFamily(RBF(np.sqrt(3), 4.0), POINTS)
    assert usual.penalty(usual.start())[0] == pytest.approx(0, abs=1e-12)
    assert np.abs(usual.penalty(usual.start())[1]).max() < 1e-12


def test_sums_over_other_features_are_refused():
    (kernel, linear) = FAMILIES["points"], FAMILIES["no intercept"]
    with pytest.raises(TypeError):
        kernel.gradient(linear.features(linear.start()), None)
    with pytest.raises(TypeError):
        linear.gradient(kernel.features(kernel.start()), None)
