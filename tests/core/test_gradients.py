"""Derivatives of the ELBO (D16) and of the leave-one-out log loss (D17) against finite differences of dense forms."""

from functools import reduce
from itertools import pairwise
from operator import iadd

import numpy as np
import pytest
from scipy.special import log_ndtr, softmax
from sklearn import metrics
from sklearn.gaussian_process import kernels as sk

from bayesvm.core.cavities import block_marginals
from bayesvm.core.features import Effect, HeldFeatures, InducingFeatures, LinearFeatures
from bayesvm.core.gradients import Response, block_elbo_gradient, loss_gradient, loss_sums
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.likelihoods.contract import LocalUpdate
from bayesvm.core.links import Probit, Softmax
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Matern
from tests import oracles
from tests.oracles import numerical_gradient

rng = np.random.default_rng(0)
N, D, M = 50, 3, 8
X, Z, OMEGA = rng.standard_normal((N, D)), rng.standard_normal((M, D)), rng.uniform(0.3, 3, N)
KERNEL = 2.0 * RBF([1.0, 1.5, 2.0]) + Matern(1.2, nu=2.5)
THETA = KERNEL.log_parameters()
ROOT = np.array([0.5, 1.0, 2.0, 3.0])  # of the linear model's prior, the intercept's last
LINEAR = LinearFeatures(ROOT, intercept=True)
EFFECTS = (
    Effect((1,), InducingFeatures.build(Matern(0.4, 1.5, nu=0.5), np.array([[-1.0], [0.1], [0.8]]))),
    Effect((2, 0), InducingFeatures.build(Matern(np.array([0.6, 0.9]), 0.7, nu=0.5), rng.standard_normal((4, 2)))),
)
CASES = {  # the rows' classes, the head, the class that each function is about, prior means, the link
    "two classes": (rng.integers(0, 2, N), Binary((0.5,)), (1,), (0.4,), Probit(1.3, -0.2)),
    "three classes": (
        rng.integers(0, 3, N),
        OneVsRest((0.3, 0.3, 0.4)),
        (0, 1, 2),
        (0.1, -0.2, 0.3),
        Softmax(1.3, (0.1, -0.2, 0.3)),
    ),
}
every_case = pytest.mark.parametrize(("y", "head", "labels", "offsets", "link"), CASES.values(), ids=CASES)
every_bound = pytest.mark.parametrize("bound", LIKELIHOODS.values(), ids=LIKELIHOODS)
every_map = pytest.mark.parametrize(
    "features",
    [InducingFeatures.build(KERNEL, Z), InducingFeatures.build(KERNEL, Z, effects=EFFECTS), LINEAR],
    ids=["kernel", "effects", "linear"],
)


class Damped:
    """Sites of a twentieth of their size, so that no cavity needs its floor, where the loss has no derivative."""

    full_steps_are_safe = False

    def update(self, m, v, y):
        found = LIKELIHOODS["exact"].update(m, v, y)
        return LocalUpdate(found.bound, found.precision / 20, found.linear / 20)


def some_posteriors(seed, width, how_many):
    generator = np.random.default_rng(seed)
    roots = generator.standard_normal((how_many, width, width))
    return [
        Gaussian.from_natural(NaturalParameters(np.eye(width) + A @ A.T, 3 * generator.standard_normal(width)))
        for A in roots
    ]


def signs(y, label):
    return np.where(y == label, 1.0, -1.0)


def view(features, offsets, posteriors, dtype=np.float64):
    """Functions in the weights' own coordinates."""
    functions = [LatentFunction(i, c, q) for i, (c, q) in enumerate(zip(offsets, posteriors, strict=True))]
    return View.for_adjoints(functions, dtype=dtype)


def in_blocks(y, weight=OMEGA, cuts=(20,)):
    parts = [slice(a, b) for a, b in pairwise((0, *cuts, N))]
    return [Block(X[part], y[part], None if weight is None else weight[part]) for part in parts]


# ---- dense forms ----


def kernel_model(theta, points):
    """``phi`` and ``k(x,x)`` by explicit factors, at the jitter that the library uses."""
    kernel = KERNEL.at(theta)
    K = kernel(points)
    L = np.linalg.cholesky(K + 1e-10 * np.mean(np.diag(K)) * np.eye(M))
    return np.linalg.solve(L, kernel(points, X)).T, kernel.diagonal(X)


def linear_model(log_variances):
    phi = np.column_stack([X, np.ones(N)]) * np.append(np.exp(0.5 * log_variances), ROOT[-1])
    return phi, np.sum(phi**2, axis=1)


def moments(phi, prior_variance, offset, q):
    explained = np.array([row @ q.covariance @ row for row in phi])
    return offset + phi @ q.mean, explained, prior_variance - np.sum(phi**2, axis=1)


def dense_bound(model, y, labels, offsets, posteriors, bound, weight):
    total = 0.0
    for label, offset, q in zip(labels, offsets, posteriors, strict=True):
        m, t, r = moments(*model, offset, q)
        total += weight @ bound.update(m, t + r, signs(y, label)).bound
    return total


def sites(model, y, labels, offsets, before):
    """Each function's (w, g) of every row, seen by the q before."""
    found = []
    for label, offset, q in zip(labels, offsets, before, strict=True):
        m, t, r = moments(*model, offset, q)
        local = Damped().update(m, t + r, signs(y, label))
        found.append((local.precision, local.linear))
    return found


def followed(phi, offsets, held, weight):
    """The posteriors that these sites make with these features."""
    return [
        Gaussian.from_natural(
            NaturalParameters(
                np.eye(phi.shape[1]) + (phi * (weight * w)[:, None]).T @ phi, phi.T @ (weight * (g - w * c))
            )
        )
        for c, (w, g) in zip(offsets, held, strict=True)
    ]


def dense_loss(model, y, offsets, posteriors, held, link, weight):
    """The loss of cavities, from the sites' own precision and mean: the row is taken out with all its weight."""
    means, variances = [], []
    for c, q, (w, g) in zip(offsets, posteriors, held, strict=True):
        m, t, r = moments(*model, c, q)
        precision, linear = 1 / t - weight * w, (m - c) / t - weight * (g - w * c)
        assert (precision * t > 0.01).all()
        means.append(c + linear / precision)
        variances.append(1 / precision + r)
    means, variances = np.column_stack(means), np.column_stack(variances)
    if isinstance(link, Probit):
        return -weight @ log_ndtr(signs(y, 1) * link.score(means[:, 0], variances[:, 0]))
    logits = link.scale * means / np.sqrt(1 + variances) + np.array(link.bias)
    return -weight @ (logits[np.arange(N), y] - np.log(np.exp(logits).sum(axis=1)))


# ---- the ELBO ----


@every_case
@every_bound
def test_elbo_by_kernel_parameters_and_points(y, head, labels, offsets, link, bound):
    posteriors = some_posteriors(1, M, len(labels))
    features = InducingFeatures.build(KERNEL, Z)
    how = {"view": view(features, offsets, posteriors), "head": head, "likelihood": bound}
    sums = block_elbo_gradient(in_blocks(y), Workspace(), features=features, **how)
    by_theta, by_points = features.gradient(sums)
    elbo = lambda theta, points: dense_bound(
        kernel_model(theta, points), y, labels, offsets, posteriors, bound, OMEGA
    )  # at fixed q the KL term does not move
    np.testing.assert_allclose(by_theta, numerical_gradient(lambda t: elbo(t, Z), THETA), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(by_points, numerical_gradient(lambda p: elbo(THETA, p), Z), rtol=1e-5, atol=1e-4)


@every_case
@every_bound
def test_elbo_by_prior_variances_of_the_linear_model(y, head, labels, offsets, link, bound):
    posteriors = some_posteriors(1, D + 1, len(labels))
    how = {"view": view(LINEAR, offsets, posteriors), "head": head, "likelihood": bound}
    sums = block_elbo_gradient(in_blocks(y), Workspace(), features=LINEAR, **how)
    elbo = lambda theta: dense_bound(linear_model(theta), y, labels, offsets, posteriors, bound, OMEGA)
    truth = numerical_gradient(elbo, 2 * np.log(ROOT[:D]))
    np.testing.assert_allclose(LINEAR.gradient(sums), truth, rtol=1e-5, atol=1e-5)


def test_points_on_top_of_rows_and_of_each_other_nearly_have_the_jitter_in_their_gradient():
    """At fixed q, with points so close that the jitter is most of what tells them apart."""
    y, head, labels, offsets, _ = CASES["two classes"]
    kernel, points = RBF(2.0, 3.0), np.vstack([X[:5], X[:3] + 1e-3])
    (q,) = some_posteriors(1, M, 1)

    def elbo(theta, points):
        features = InducingFeatures.build(kernel.at(theta), points, np.float32)
        phi, k_xx = kernel.at(theta)(X, points) @ features.whitening, kernel.at(theta).diagonal(X)
        return dense_bound((phi, k_xx), y, labels, offsets, [q], LIKELIHOODS["exact"], OMEGA)

    features = InducingFeatures.build(kernel, points, np.float32)
    how = {"view": view(features, offsets, [q]), "head": head, "likelihood": LIKELIHOODS["exact"]}
    sums = block_elbo_gradient(in_blocks(y), Workspace(), features=features, **how)
    by_theta, by_points = features.gradient(sums)
    theta = kernel.log_parameters()
    np.testing.assert_allclose(by_theta, numerical_gradient(lambda t: elbo(t, points), theta), rtol=1e-4, atol=1e-2)
    truth = numerical_gradient(lambda p: elbo(theta, p), points, step=1e-7)
    np.testing.assert_allclose(by_points, truth, rtol=1e-3, atol=1e-2 * np.abs(truth).max())


# ---- the leave-one-out loss ----


def left_out(features, blocks, offsets, before, final, head, dtype=np.float64, record=None):
    """Of each block the recorded features, and its rows without their own sites."""

    def seen(posteriors):
        functions = [LatentFunction(i, c, q) for i, (c, q) in enumerate(zip(offsets, posteriors, strict=True))]
        return View.of(features, functions, 0, dtype)[0]

    both = {"before": seen(before), "final": seen(final)}
    for block in blocks:
        own = record or features.recorded(block.X)
        rows = block_marginals([block], Workspace(), **both, head=head, likelihood=Damped())
        yield block, own, rows.left_out(slice(None), own.phi)


def block_loss(features, blocks, offsets, before, final, head, link):
    parts = left_out(features, blocks, offsets, before, final, head)
    return reduce(iadd, (loss_sums(block, record.phi, left, link) for block, record, left in parts))


def block_loss_gradient(features, blocks, offsets, before, final, head, link, responses):
    at, parts = view(features, offsets, final), left_out(features, blocks, offsets, before, final, head)
    return reduce(iadd, (loss_gradient(*part, at, link, responses) for part in parts))


def responses_of(posteriors, sums):
    return list(map(Response.of, posteriors, sums.by_mean, sums.by_covariance))


@every_case
@pytest.mark.parametrize("weight", [OMEGA, None], ids=["weights", "no weights"])
@pytest.mark.parametrize("follow", [False, True], ids=["q held", "q following"])
def test_loss_by_kernel_parameters_and_points(y, head, labels, offsets, link, weight, follow):
    features, omega = InducingFeatures.build(KERNEL, Z), np.ones(N) if weight is None else weight
    before = some_posteriors(2, M, len(labels))
    model = kernel_model(THETA, Z)
    held = sites(model, y, labels, offsets, before)
    fixed = followed(model[0], offsets, held, omega) if follow else some_posteriors(1, M, len(labels))

    def loss(theta, points):
        there = kernel_model(theta, points)
        posteriors = followed(there[0], offsets, held, omega) if follow else fixed
        return dense_loss(there, y, offsets, posteriors, held, link, omega)

    how = features, in_blocks(y, weight), offsets, before, fixed, head, link
    sums = block_loss(*how)
    assert sums.loss == pytest.approx(loss(THETA, Z), rel=1e-7)
    total = block_loss_gradient(*how, responses_of(fixed, sums) if follow else None)
    by_theta, by_points = features.gradient(total)
    np.testing.assert_allclose(by_theta, numerical_gradient(lambda t: loss(t, Z), THETA), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_points, numerical_gradient(lambda p: loss(THETA, p), Z), rtol=1e-4, atol=1e-4)


def model_with_effects(theta):
    """Features side by side; the variances add up.

    The effects' kernels are scikit-learn's: a kernel with a kink needs distances of exactly zero to be differentiated.
    """
    phi, total = kernel_model(theta[: len(THETA)], Z)
    parts, first = [phi], len(THETA)
    for effect in EFFECTS:
        scales, points = theta[first : first + len(effect.columns)], effect.features.inducing_points
        kernel = sk.ConstantKernel(np.exp(theta[first + len(scales)])) * sk.Matern(np.exp(scales), nu=0.5)
        phi, residual = oracles.features(kernel, points, X[:, effect.columns])
        parts.append(phi)
        total = total + residual + np.sum(phi**2, axis=1)
        first += len(scales) + 1
    return np.hstack(parts), total


WITH_EFFECTS = InducingFeatures.build(KERNEL, Z, effects=EFFECTS)
ALL_THETA = np.concatenate([THETA, *(effect.features.kernel.log_parameters() for effect in EFFECTS)])


@every_case
def test_elbo_by_the_parameters_of_all_effects(y, head, labels, offsets, link):
    posteriors, bound = some_posteriors(1, M + 7, len(labels)), LIKELIHOODS["exact"]
    how = {"view": view(WITH_EFFECTS, offsets, posteriors), "head": head, "likelihood": bound}
    found, _ = WITH_EFFECTS.gradient(block_elbo_gradient(in_blocks(y), Workspace(), features=WITH_EFFECTS, **how))
    elbo = lambda theta: dense_bound(model_with_effects(theta), y, labels, offsets, posteriors, bound, OMEGA)
    np.testing.assert_allclose(found, numerical_gradient(elbo, ALL_THETA), rtol=1e-5, atol=1e-4)


@every_case
@pytest.mark.parametrize("follow", [False, True], ids=["q held", "q following"])
def test_loss_by_the_parameters_of_all_effects(y, head, labels, offsets, link, follow):
    before, model = some_posteriors(2, M + 7, len(labels)), model_with_effects(ALL_THETA)
    held = sites(model, y, labels, offsets, before)
    fixed = followed(model[0], offsets, held, OMEGA) if follow else some_posteriors(1, M + 7, len(labels))

    def loss(theta):
        there = model_with_effects(theta)
        posteriors = followed(there[0], offsets, held, OMEGA) if follow else fixed
        return dense_loss(there, y, offsets, posteriors, held, link, OMEGA)

    how = WITH_EFFECTS, in_blocks(y), offsets, before, fixed, head, link
    sums = block_loss(*how)
    assert sums.loss == pytest.approx(loss(ALL_THETA), rel=1e-7)
    found, _ = WITH_EFFECTS.gradient(block_loss_gradient(*how, responses_of(fixed, sums) if follow else None))
    assert found.shape == ALL_THETA.shape
    np.testing.assert_allclose(found, numerical_gradient(loss, ALL_THETA), rtol=1e-4, atol=1e-4)


def held_parts(features, y, offsets, before, final, head, dtype):
    """What ``left_out`` gives, from rows that hold their features, as a sample that is searched on has them."""
    recorder, held = features.recorder(dtype), HeldFeatures(features.n_weights)
    for block in in_blocks(y):
        record = recorder(block.X)
        rows = block._replace(X=np.column_stack([record.phi, record.prior_variance]).astype(dtype))
        (_, _, left), *_ = left_out(held, [rows], offsets, before, final, head, dtype, record)
        yield block, record, left


@every_case
@pytest.mark.parametrize("features", [InducingFeatures.build(KERNEL, Z), WITH_EFFECTS], ids=["kernel", "effects"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_held_features_have_the_gradient_of_plain_ones(y, head, labels, offsets, link, features, dtype):
    """Single precision only as nearly as a search needs it."""
    before = some_posteriors(2, features.n_weights, len(labels))
    posteriors = some_posteriors(1, features.n_weights, len(labels))
    how = features, in_blocks(y), offsets, before, posteriors, head, link
    plain = features.gradient(block_loss_gradient(*how, responses_of(posteriors, block_loss(*how))))
    parts = list(held_parts(features, y, offsets, before, posteriors, head, dtype))
    sums = reduce(iadd, (loss_sums(block, record.phi, left, link) for block, record, left in parts))
    at, responses = view(features, offsets, posteriors, dtype), responses_of(posteriors, sums)
    kept = features.gradient(reduce(iadd, (loss_gradient(*part, at, link, responses) for part in parts)))
    for one, other in zip(kept, plain, strict=True):
        if dtype == np.float64:  # effects have roots of squared distances, whose rounding depends on the blocks
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)
        assert np.vdot(one, other) > 0.99 * np.linalg.norm(one) * np.linalg.norm(other)
        assert np.linalg.norm(one) == pytest.approx(np.linalg.norm(other), rel=0.02)


@every_case
def test_loss_by_prior_variances_of_the_linear_model(y, head, labels, offsets, link):
    theta, before = 2 * np.log(ROOT[:D]), some_posteriors(2, D + 1, len(labels))
    held = sites(linear_model(theta), y, labels, offsets, before)

    def loss(theta):
        model = linear_model(theta)
        return dense_loss(model, y, offsets, followed(model[0], offsets, held, OMEGA), held, link, OMEGA)

    posteriors = followed(linear_model(theta)[0], offsets, held, OMEGA)
    how = LINEAR, in_blocks(y), offsets, before, posteriors, head, link
    found = LINEAR.gradient(block_loss_gradient(*how, responses_of(posteriors, block_loss(*how))))
    np.testing.assert_allclose(found, numerical_gradient(loss, theta), rtol=1e-5, atol=1e-6)


@every_case
def test_loss_by_mean_and_covariance(y, head, labels, offsets, link):
    """What the response of q to the features is multiplied with."""
    model = kernel_model(THETA, Z)
    before, posteriors = some_posteriors(2, M, len(labels)), some_posteriors(1, M, len(labels))
    held = sites(model, y, labels, offsets, before)
    sums = block_loss(InducingFeatures.build(KERNEL, Z), in_blocks(y), offsets, before, posteriors, head, link)

    class Moments:
        def __init__(self, mean, covariance):
            self.mean, self.covariance = mean, covariance

    for i, q in enumerate(posteriors):

        def loss(mean, covariance, i=i):
            moved = [*posteriors[:i], Moments(mean, covariance), *posteriors[i + 1 :]]
            return dense_loss(model, y, offsets, moved, held, link, OMEGA)

        by_mean = numerical_gradient(lambda mean, loss=loss, q=q: loss(mean, q.covariance), q.mean)
        by_covariance = numerical_gradient(lambda S, loss=loss, q=q: loss(q.mean, S), q.covariance)
        np.testing.assert_allclose(sums.by_mean[i], by_mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sums.by_covariance[i], by_covariance, rtol=1e-5, atol=1e-5)


# ---- blocks ----


def all_numbers(gradient):
    numbers = [gradient.gram]
    if gradient.kernel is not None:
        numbers += [gradient.kernel.points, *gradient.kernel.parameters.values()]
    return numbers + [number for effect in gradient.effects for number in all_numbers(effect)]


@every_case
@every_map
def test_how_rows_are_cut_into_blocks_does_not_matter(y, head, labels, offsets, link, features):
    width, n = features.n_weights, len(labels)
    posteriors, before = some_posteriors(1, width, n), some_posteriors(2, width, n)
    how = offsets, before, posteriors, head, link
    at_q = {"features": features, "head": head, "likelihood": Damped(), "view": view(features, offsets, posteriors)}
    whole, cut = in_blocks(y, cuts=()), in_blocks(y, cuts=(1, 7, 30))
    responses = [Response(q.mean, q.covariance) for q in before]
    works = [
        lambda blocks: all_numbers(block_elbo_gradient(blocks, Workspace(), **at_q)),
        lambda blocks: all_numbers(block_loss_gradient(features, blocks, *how, responses)),
        lambda blocks: (s := block_loss(features, blocks, *how)) and [s.loss, *s.by_mean, *s.by_covariance],
    ]
    for work in works:
        for a, b in zip(work(whole), work(cut), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@every_case
def test_a_weight_of_two_is_the_row_twice_for_the_elbo(y, head, labels, offsets, link):
    times = rng.integers(1, 4, N)
    repeated = [Block(np.repeat(X, times, 0), np.repeat(y, times), None)]
    posteriors, features = some_posteriors(1, M, len(labels)), InducingFeatures.build(KERNEL, Z)
    how = {"features": features, "head": head, "likelihood": Damped()}
    how["view"] = view(features, offsets, posteriors)
    weighted, twice = (
        block_elbo_gradient(blocks, Workspace(), **how) for blocks in (in_blocks(y, times.astype(float)), repeated)
    )
    for a, b in zip(all_numbers(weighted), all_numbers(twice), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


# ---- the loss of a link ----


@every_case
def test_log_loss_is_that_of_scikit_learn_and_its_derivatives_are_right(y, head, labels, offsets, link):
    m, v = 2 * rng.standard_normal((N, len(labels))), rng.uniform(0.1, 3, (N, len(labels)))
    loss, by_mean, by_variance = link.loss(m, v, y, OMEGA)
    if isinstance(link, Probit):
        z = (link.scale * m + link.bias) / np.sqrt(1 + link.scale**2 * v)
        probability = np.exp(log_ndtr(np.hstack([-z, z])))
    else:
        probability = softmax(link.scale * m / np.sqrt(1 + v) + np.array(link.bias), axis=1)
    expected = metrics.log_loss(y, probability, sample_weight=OMEGA, normalize=False)
    assert loss == pytest.approx(expected, rel=1e-10)
    assert OMEGA @ link.row_losses(m, v, y) == pytest.approx(expected, rel=1e-10)
    truth = numerical_gradient(lambda mean: link.loss(mean, v, y, OMEGA)[0], m)
    np.testing.assert_allclose(by_mean, truth, rtol=1e-6, atol=1e-7)
    truth = numerical_gradient(lambda variance: link.loss(m, variance, y, OMEGA)[0], v)
    np.testing.assert_allclose(by_variance, truth, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("sure", [1e2, 1e4, 1e10])
def test_log_loss_of_a_very_wrong_row_is_large_and_so_is_its_slope(sure):
    """Far out, ``-log Φ(z)`` is ``z²/2`` and its slope is ``z``."""
    m, v, y, weight = np.full((1, 1), -sure), np.full((1, 1), 0.5), np.array([1]), np.ones(1)
    loss, by_mean, by_variance = Probit(3.0, 0.0).loss(m, v, y, weight)
    square = 9 / (1 + 9 * 0.5)
    assert loss == pytest.approx(0.5 * square * sure**2, rel=1e-2)
    np.testing.assert_allclose(by_mean, -square * sure, rtol=1e-2)
    np.testing.assert_allclose(by_variance, -0.5 * square**2 * sure**2, rtol=1e-2)
    m, v = np.array([[sure, -sure, 0.0]]), np.full((1, 3), 0.5)
    loss, by_mean, _ = Softmax(3.0, (0, 0, 0)).loss(m, v, y, weight)
    assert loss == pytest.approx(2 * sure * 3 / np.sqrt(1.5))
    np.testing.assert_allclose(by_mean, np.array([[1, -1, 0]]) * 3 / np.sqrt(1.5), atol=1e-9)
