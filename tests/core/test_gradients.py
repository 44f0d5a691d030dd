"""Derivatives of the ELBO (D16) and of the leave-one-out log loss (D17) against finite differences of dense forms."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_ndtr, softmax
from sklearn import metrics

from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.gradients import Response, block_elbo_gradient, block_loss, block_loss_gradient
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.likelihoods.contract import LocalUpdate
from bayesvm.core.links import Probit, Softmax
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Matern
from tests.oracles import numerical_gradient

rng = np.random.default_rng(0)
N, D, M = 50, 3, 8
X, Z, OMEGA = rng.standard_normal((N, D)), rng.standard_normal((M, D)), rng.uniform(0.3, 3, N)
KERNEL = 2.0 * RBF([1.0, 1.5, 2.0]) + Matern(1.2, nu=2.5)
THETA = KERNEL.log_parameters()
ROOT = np.array([0.5, 1.0, 2.0, 3.0])  # of the linear model's prior, the intercept's last
LINEAR = LinearFeatures(ROOT, intercept=True)
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
both_features = pytest.mark.parametrize(
    "features", [InducingFeatures.build(KERNEL, Z), LINEAR], ids=["kernel", "linear"]
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


def view(features, offsets, posteriors):
    """Functions in the weights' own coordinates."""
    functions = [LatentFunction(i, c, q) for i, (c, q) in enumerate(zip(offsets, posteriors, strict=True))]
    return View.for_adjoints(functions)


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


def loss_of(features, offsets, before, final, head):
    views = {"before": view(features, offsets, before), "final": view(features, offsets, final)}
    return views | {"features": features, "head": head, "likelihood": Damped()}


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

    how = loss_of(features, offsets, before, fixed, head) | {"link": link}
    sums = block_loss(in_blocks(y, weight), Workspace(), **how)
    assert sums.loss == pytest.approx(loss(THETA, Z), rel=1e-7)
    responses = [
        Response.of(q, by_mean, by_covariance)
        for q, by_mean, by_covariance in zip(fixed, sums.by_mean, sums.by_covariance, strict=True)
    ]
    how |= {"responses": responses if follow else None}
    total = block_loss_gradient(in_blocks(y, weight), Workspace(), **how)
    by_theta, by_points = features.gradient(total)
    np.testing.assert_allclose(by_theta, numerical_gradient(lambda t: loss(t, Z), THETA), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_points, numerical_gradient(lambda p: loss(THETA, p), Z), rtol=1e-4, atol=1e-4)


@every_case
def test_loss_by_prior_variances_of_the_linear_model(y, head, labels, offsets, link):
    theta, before = 2 * np.log(ROOT[:D]), some_posteriors(2, D + 1, len(labels))
    held = sites(linear_model(theta), y, labels, offsets, before)

    def loss(theta):
        model = linear_model(theta)
        return dense_loss(model, y, offsets, followed(model[0], offsets, held, OMEGA), held, link, OMEGA)

    posteriors = followed(linear_model(theta)[0], offsets, held, OMEGA)
    how = loss_of(LINEAR, offsets, before, posteriors, head) | {"link": link}
    sums = block_loss(in_blocks(y), Workspace(), **how)
    responses = list(map(Response.of, posteriors, sums.by_mean, sums.by_covariance))
    how |= {"responses": responses}
    found = LINEAR.gradient(block_loss_gradient(in_blocks(y), Workspace(), **how))
    np.testing.assert_allclose(found, numerical_gradient(loss, theta), rtol=1e-5, atol=1e-6)


@every_case
def test_loss_by_mean_and_covariance(y, head, labels, offsets, link):
    """What the response of q to the features is multiplied with."""
    model = kernel_model(THETA, Z)
    before, posteriors = some_posteriors(2, M, len(labels)), some_posteriors(1, M, len(labels))
    held = sites(model, y, labels, offsets, before)
    how = loss_of(InducingFeatures.build(KERNEL, Z), offsets, before, posteriors, head)
    sums = block_loss(in_blocks(y), Workspace(), **how, link=link)

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
    return numbers


@every_case
@both_features
def test_how_rows_are_cut_into_blocks_does_not_matter(y, head, labels, offsets, link, features):
    width, n = features.n_weights, len(labels)
    posteriors, before = some_posteriors(1, width, n), some_posteriors(2, width, n)
    how = loss_of(features, offsets, before, posteriors, head)
    at_q = {"features": features, "head": head, "likelihood": Damped(), "view": how["final"]}
    whole, cut = in_blocks(y, cuts=()), in_blocks(y, cuts=(1, 7, 30))
    responses = [Response(q.mean, q.covariance) for q in before]
    works = [
        lambda blocks: all_numbers(block_elbo_gradient(blocks, Workspace(), **at_q)),
        lambda blocks: all_numbers(block_loss_gradient(blocks, Workspace(), **how, link=link, responses=responses)),
        lambda blocks: (
            (s := block_loss(blocks, Workspace(), **how, link=link)) and [s.loss, *s.by_mean, *s.by_covariance]
        ),
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
