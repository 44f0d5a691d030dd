"""Inference: from the prior to the fitted posterior: which updates, on which rows, until when.

All roads end in coordinate ascent over all rows, whose stop rule (D12) can be trusted: ``batch`` starts
there, ``stochastic`` after epochs of minibatches, ``auto`` after growing subsets of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bayesvm.core.posterior import DiagonalGaussian, Gaussian, Posterior
from bayesvm.data.blocks import BlockSource
from bayesvm.inference import coordinate_ascent, mean_field, stochastic
from bayesvm.inference.learning_rates import LearningRate
from bayesvm.inference.objective import Model

FIRST_SUBSET = 16_384
GROWTH = 4
UNKNOWN_CONTRACTION = 0.9


@dataclass(frozen=True)
class Progress:
    """What a callback hears after every update."""

    phase: str
    update: int
    passes: float  # rows read so far, over the rows there are
    max_passes: float
    elbo: float  # of all rows; an estimate while only some are read
    rho: float
    remaining: float  # estimated ELBO per row still to be gained; NaN where unknown


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Plan:
    """How to train: the inference, its budget in passes, and when it is good enough.

    ``tol`` is in nats of ELBO per row, the unit of the log loss; zero means: use the whole budget.
    """

    inference: str
    max_passes: int
    tol: float
    batch_size: int
    learning_rate: LearningRate


@dataclass(frozen=True)
class Trained:
    """The posterior and how it was reached."""

    posterior: Posterior
    elbo: float
    trace: tuple[float, ...]
    passes: float
    converged: bool


@dataclass
class _Log:
    """Counts rows, keeps the trace, calls back."""

    n_rows: int
    plan: Plan
    callback: Callback | None
    rows: int = 0
    trace: list[float] = field(default_factory=list)

    @property
    def passes(self) -> float:
        return self.rows / self.n_rows

    def spent(self, next_rows: int = 0) -> bool:
        return self.rows + next_rows > self.plan.max_passes * self.n_rows

    def __call__(self, phase: str, rows: int, elbo: float, rho: float, remaining: float = np.nan) -> None:
        self.rows += rows
        self.trace.append(elbo)
        if self.callback is not None:
            self.callback(
                Progress(phase, len(self.trace), self.passes, self.plan.max_passes, elbo, rho, remaining / self.n_rows)
            )


def train(
    model: Model, source: BlockSource, plan: Plan, rng: np.random.Generator, callback: Callback | None = None
) -> Trained:
    """Fit a full covariance."""
    log = _Log(source.n_rows, plan, callback)
    posterior, contraction = Gaussian.prior(model.features.n_weights), UNKNOWN_CONTRACTION
    if plan.inference == "stochastic":
        posterior = _minibatch_epochs(model, source, plan, rng, log, posterior)
    elif plan.inference == "auto" and source.n_rows > 2 * FIRST_SUBSET:
        posterior, contraction = _growing_subsets(model, source, plan, rng, log, posterior)
    good_enough = plan.tol * model.total_weight
    state = _ascend(model, source, posterior, contraction, log, "all rows", good_enough)
    converged = state.remaining <= good_enough and not state.rejected
    return Trained(state.finished(), state.best.elbo, tuple(log.trace), log.passes, converged)


def train_mean_field(model: Model, source: BlockSource, plan: Plan, callback: Callback | None = None) -> Trained:
    """Fit a diagonal covariance."""
    log = _Log(source.n_rows, plan, callback)
    posterior: DiagonalGaussian
    posterior, elbo, converged = mean_field.maximise(
        model,
        source,
        max_passes=plan.max_passes,
        tol=plan.tol,
        on_pass=lambda elbo: log("mean field", source.n_rows, elbo, 1.0),
    )
    return Trained(posterior, elbo, tuple(log.trace), log.passes, converged)


def _ascend(
    model: Model,
    source: BlockSource,
    posterior: Gaussian,
    contraction: float,
    log: _Log,
    phase: str,
    good_enough: float,
) -> coordinate_ascent.AscentState:
    """Coordinate ascent until the ELBO that is left after the next step is good enough."""
    state = coordinate_ascent.init(model, source, posterior, contraction)
    log(phase, source.n_rows, state.best.elbo, state.rho, state.remaining)
    while (state.rejected or state.remaining > good_enough) and not state.stalled and not log.spent(source.n_rows):
        state = coordinate_ascent.step(model, source, state)
        log(phase, source.n_rows, state.best.elbo, state.rho, state.remaining)
    return state


def _growing_subsets(
    model: Model, source: BlockSource, plan: Plan, rng: np.random.Generator, log: _Log, posterior: Gaussian
) -> tuple[Gaussian, float]:
    """Nested random subsets, each four times the last, their sums scaled to all rows.

    From a cold start a posterior concentrated by all N rows moves slowly, since only rows near its margin
    still speak; a small subset finds the way at a fraction of the cost. A subset of n rows fixes the
    weights only to about M·N/n nats, so there is no use in converging it much further than that.
    """
    order = source.subset(source.n_rows, rng)
    contraction, n_rows = UNKNOWN_CONTRACTION, FIRST_SUBSET
    while n_rows < source.n_rows // 2:
        part = order.head(n_rows)
        sampling_noise = 0.1 * model.features.n_weights * source.n_rows / n_rows
        good_enough = max(sampling_noise, plan.tol * model.total_weight)
        state = _ascend(model, part, posterior, contraction, log, f"{n_rows:,} rows", good_enough)
        posterior, contraction = state.finished(), state.contraction
        n_rows *= GROWTH
    return posterior, contraction


def _minibatch_epochs(
    model: Model, source: BlockSource, plan: Plan, rng: np.random.Generator, log: _Log, posterior: Gaussian
) -> Gaussian:
    """Epochs of minibatches until their mean ELBO no longer rises beyond its own noise, twice in a row.

    At least one pass of the budget is left for the coordinate ascent that follows and gives the verdict.
    """
    state = stochastic.init(posterior, plan.learning_rate)
    best, flat = -np.inf, 0
    while flat < 2 and not log.spent(2 * source.n_rows):
        estimates = []
        for batch in source.minibatches(plan.batch_size, rng):
            state, info = stochastic.step(model, batch, state, plan.learning_rate)
            log("minibatches", batch.n_rows, info.elbo, info.rho)
            estimates.append(info.elbo)
        mean = float(np.mean(estimates))
        noise = float(np.std(estimates)) / np.sqrt(len(estimates))
        risen = mean > best + max(noise, plan.tol * model.total_weight)
        flat = 0 if risen or plan.tol == 0 else flat + 1
        best = max(best, mean)
    return state.posterior
