"""Inference: what features depend on, judged by leave-one-out and learned by gradients (D16-D19).

A *judgement* is a kernel with its inducing points, fitted to some rows: its leave-one-out log loss, its ELBO, and all
that a gradient of either needs. The next one starts from the sites of the last (D18), so that a small change of the
kernel costs a few updates and not a fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import optimize

from bayesvm.core.features import InducingFeatures
from bayesvm.core.gradients import Learner, Response, block_elbo_gradient, block_loss, block_loss_gradient
from bayesvm.core.kernels import Kernel
from bayesvm.core.leave_one_out import Cavities, block_cavities, joined
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array, JitterWarning, NotPositiveDefiniteError
from bayesvm.core.links import Probit, Softmax, calibrated, log_loss
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.statistics import Machine, View, block_transfer
from bayesvm.data.blocks import BlockSource, map_reduce
from bayesvm.inference import coordinate_ascent
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.objective import Model, Task

UNKNOWN_CONTRACTION = 0.9
FIRST_UPDATES, UPDATES = 15, 6  # at most, from a cold start and from the sites of a neighbour
GOOD_ENOUGH = 1e-4  # nats of ELBO per row that an update may still promise
SINGLE_FROM = 50_000  # features in all, rows times points
FIRST_STEP = 0.5  # of a search, in logarithms
RELATIVE_GAIN = 3e-4  # of the objective, below which a search ends

# D19: where parameters are believed to lie before any data are seen, as means and deviations of logarithms.
USUAL_VARIANCE, VARIANCE_DEVIATION = np.log(4.0), 1.5
LENGTH_DEVIATION = 1.0  # of the mean over the features, around log √D
RELEVANCE_DEVIATION = 1.0  # of a feature around that mean


@dataclass(frozen=True)
class Rows:
    """Rows on which kernels are judged, and how: the classes' machines with their prior means, and the bound."""

    source: BlockSource
    likelihood: Likelihood
    labels: tuple[int, ...]
    offsets: tuple[float, ...]

    def model(self, features: InducingFeatures) -> Model:
        """In single precision only where that saves time."""
        dtype = np.float32 if self.source.n_rows * features.n_weights >= SINGLE_FROM else np.float64
        return Model(features, self.likelihood, dtype, self.source.total_weight)


@dataclass(frozen=True)
class Judgement:
    """A kernel and points, fitted to rows and judged by leave-one-out."""

    features: InducingFeatures
    model: Model
    states: tuple[AscentState, ...]
    link: Probit | Softmax
    loo: float  # log loss per unit of weight

    @property
    def kernel(self) -> Kernel:
        """The kernel that was judged."""
        return self.features.kernel

    @property
    def elbo(self) -> float:
        """Of all machines."""
        return sum(state.best.elbo for state in self.states)

    @property
    def tasks(self) -> list[Task]:
        """The machines as they were judged: the prior times the rows' sites."""
        return [state.settled() for state in self.states]

    def learners(self) -> list[Learner]:
        """The machines as gradients see them."""
        pairs = [(state.best.task, state.settled()) for state in self.states]
        return [Learner(b.label, b.offset, after.posterior, b.posterior) for b, after in pairs]


def judge(rows: Rows, features: InducingFeatures, start: Judgement | None = None, updates: int = UPDATES) -> Judgement:
    """Fit, leave each row out, calibrate, and score."""
    model = rows.model(features)
    if start is None:
        prior = Gaussian.prior(features.n_weights)
        machines = zip(rows.labels, rows.offsets, strict=True)
        tasks, updates = [Task(label, offset, prior, prior) for label, offset in machines], FIRST_UPDATES
    else:
        at = replace(start.model, total_weight=rows.source.total_weight)
        tasks = moved(at, start.tasks, rows.source, features, rows.offsets)
    states = coordinate_ascent.init(model, rows.source, tasks, [UNKNOWN_CONTRACTION] * len(tasks))
    for _ in range(updates):
        if all(not s.rejected and s.remaining <= GOOD_ENOUGH * model.total_weight for s in states):
            break
        states = coordinate_ascent.step(model, rows.source, states)
    cavity = _cavities(model, rows.source, states)
    link = calibrated(cavity)
    loss, _, _ = log_loss(link, cavity.mean, cavity.variance, cavity.y, cavity.weight)
    return Judgement(features, model, tuple(states), link, loss / float(cavity.weight.sum()))


def _cavities(model: Model, source: BlockSource, states: Sequence[AscentState]) -> Cavities:
    sites, _ = View.of(model.features, [s.best.task.machine for s in states], source.n_rows, model.dtype)
    final, _ = View.of(model.features, [s.settled().machine for s in states], source.n_rows, model.dtype)
    return joined(source.map(partial(block_cavities, sites=sites, final=final, likelihood=model.likelihood)))


def moved(
    model: Model, tasks: Sequence[Task], source: BlockSource, features: InducingFeatures, offsets: Sequence[float]
) -> list[Task]:
    """The tasks in other features and with other prior means, at the q that the rows' sites make there (D18)."""
    view, _ = View.of(model.features, [task.machine for task in tasks], source.n_rows, model.dtype)
    width = features.n_weights
    work = partial(
        block_transfer,
        view=view,
        likelihood=model.likelihood,
        features=features.prepared(None, model.dtype),
        width=width,
        offsets=offsets,
    )
    prior, started = Gaussian.prior(width), []
    for task, offset, sums in zip(tasks, offsets, map_reduce(source, work).each, strict=True):
        scale = model.total_weight / sums.weight
        natural = NaturalParameters(np.eye(width) + scale * sums.curvature, scale * sums.linear)
        started.append(replace(task, offset=offset, prior=prior, posterior=Gaussian.from_natural(natural)))
    return started


def loss_gradient(rows: Rows, here: Judgement) -> tuple[Array, Array]:
    """Derivatives of the summed leave-one-out loss by θ and by Z, with q following at fixed sites (D17)."""
    learners = here.learners()
    loss = partial(block_loss, features=here.features, machines=learners, likelihood=rows.likelihood, link=here.link)
    sums = map_reduce(rows.source, loss)
    pairs = zip(learners, sums.by_mean, sums.by_covariance, strict=True)
    responses = [Response.of(machine.posterior, by_mean, by_covariance) for machine, by_mean, by_covariance in pairs]
    gradient = partial(block_loss_gradient, **loss.keywords, responses=responses)
    return here.features.gradient(map_reduce(rows.source, gradient))


def elbo_gradient(
    source: BlockSource, features: InducingFeatures, machines: Sequence[Machine], likelihood: Likelihood
) -> tuple[Array, Array]:
    """Derivatives of the ELBO by θ and by Z at fixed q, which at the best q are the total ones (D16)."""
    learners = [
        Learner(m.label, m.offset, m.posterior, m.posterior) for m in machines if isinstance(m.posterior, Gaussian)
    ]
    work = partial(block_elbo_gradient, features=features, machines=learners, likelihood=likelihood)
    return features.gradient(map_reduce(source, work))


def penalty(kernel: Kernel, n_features: int) -> tuple[float, Array]:
    """``-log`` of the prior of θ, and its derivative (D19)."""
    value, parts = 0.0, [np.zeros(0)]
    for parameter in kernel.learned():
        theta = np.log(parameter.value)
        if parameter.name.endswith("length_scale"):
            mean = theta.mean()
            away, apart = mean - 0.5 * np.log(n_features), theta - mean
            value += 0.5 * (away / LENGTH_DEVIATION) ** 2 + 0.5 * float(apart @ apart) / RELEVANCE_DEVIATION**2
            parts.append(away / LENGTH_DEVIATION**2 / len(theta) + apart / RELEVANCE_DEVIATION**2)
        else:
            away = theta - USUAL_VARIANCE
            value += 0.5 * float(away @ away) / VARIANCE_DEVIATION**2
            parts.append(away / VARIANCE_DEVIATION**2)
    return value, np.concatenate(parts)


@dataclass(frozen=True)
class Search:
    """The best judgement that a search met, how many it made, and how many kernels could not be judged."""

    best: Judgement
    judged: int
    failed: int


def search(rows: Rows, start: Judgement, most: int, *, learn_points: bool = False) -> Search:
    """Minimise leave-one-out loss plus penalty by L-BFGS, from a judgement on these rows.

    The gradient holds the sites, which really move a little with θ; it is exact enough to go down, not to find the last
    digit. So the best point met counts, and a kernel whose matrices fail counts as a bad one.
    """
    kernel, Z = start.kernel, start.features.inducing_points
    n_theta = len(kernel.log_parameters())
    if n_theta == 0 and not learn_points:
        return Search(start, 1, 0)
    weight = rows.source.total_weight
    best, judged, failed = (np.inf, start), 0, 0

    def objective(x: Array) -> tuple[float, Array]:
        nonlocal best, judged, failed
        points = x[n_theta:].reshape(Z.shape) if learn_points else Z
        judged += 1
        try:
            features = InducingFeatures.build(kernel.at(x[:n_theta]), points, np.float32)
            here = judge(rows, features, best[1])
        except (NotPositiveDefiniteError, FloatingPointError):
            failed += 1
            return best[0] + weight, np.zeros(len(x))
        price, slope = penalty(here.kernel, Z.shape[1])
        by_theta, by_points = loss_gradient(rows, here)
        value = here.loo * weight + price
        if value < best[0]:
            best = (value, here)
        return value, np.concatenate([by_theta + slope, by_points.ravel()] if learn_points else [by_theta + slope])

    first = np.concatenate([kernel.log_parameters(), Z.ravel()]) if learn_points else kernel.log_parameters()
    bounds = [(low, high) for low, high in kernel.log_bounds()] + [(None, None)] * (len(first) - n_theta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)  # kernels on the way need not be good ones
        value, slope = objective(first)
        # L-BFGS begins with a step of the gradient itself.
        unit = FIRST_STEP / max(float(np.linalg.norm(slope)), 1e-12)

        def scaled(x: Array) -> tuple[float, Array]:
            if np.array_equal(x, first):
                return unit * value, unit * slope
            at, gradient = objective(x)
            return unit * at, unit * gradient

        options = {"maxfun": most, "maxiter": most, "ftol": RELATIVE_GAIN * min(1.0, unit * value), "maxcor": 20}
        optimize.minimize(scaled, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)  # type: ignore[call-overload]
    return Search(best[1], judged, failed)
