"""Inference: batch updates of q (D6), guarded so that the ELBO never falls, and how far is left (D12)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bayesvm.core.posterior import Gaussian
from bayesvm.data.blocks import BlockSource
from bayesvm.inference.objective import Evaluation, Model, evaluate

SMALLEST_STEP = 1e-4


@dataclass(frozen=True)
class AscentState:
    """The best q so far, the step that is ready to be taken from it, and what is left after that."""

    best: Evaluation
    proposal: Gaussian
    rho: float
    distance: float  # D12: twice the gain that a full step from the best q promises
    contraction: float  # κ: the distance after a step, over the distance before it
    rejected: bool = False

    @property
    def remaining(self) -> float:
        """Estimated ELBO still missing *after* the step that is ready.

        If squared distances shrink by κ a step, errors shrink by √κ, and the steps after it together gain
        κ/(1-√κ) of half the distance.
        """
        return 0.5 * self.distance * self.contraction / (1 - math.sqrt(self.contraction))

    @property
    def stalled(self) -> bool:
        """Whether even tiny steps lower the ELBO: the end of what the precision allows."""
        return self.rho < SMALLEST_STEP

    def finished(self) -> Gaussian:
        """q after the step that is ready; free, as it needs no pass. After a rejection, the best q itself."""
        return self.best.posterior if self.rejected else self.proposal


def init(model: Model, source: BlockSource, posterior: Gaussian, contraction: float) -> AscentState:
    """One pass at the starting point; ``contraction`` is a guess, or that of an earlier stage."""
    return _ready(evaluate(model, source, posterior), 1.0, contraction)


def step(model: Model, source: BlockSource, state: AscentState) -> AscentState:
    """One pass: try the step; if the ELBO falls, go back and halve it."""
    trial = evaluate(model, source, state.proposal)
    # Sums are known to about one unit of the blocks' precision; a smaller fall means nothing.
    noise = np.finfo(model.dtype).eps * abs(state.best.elbo)
    if trial.elbo < state.best.elbo - noise and not model.likelihood.full_steps_are_safe:
        return _ready(state.best, state.rho / 2, state.contraction, rejected=True)
    ahead = _ready(trial, min(1.0, 1.3 * state.rho), state.contraction)
    # The first steps from a cold start shrink the distance by orders of magnitude and promise too much:
    # believe in fast convergence only gradually.
    ratio = ahead.distance / max(state.distance, 1e-300)
    contraction = float(np.clip(max(ratio, 0.25 * state.contraction), 0.01, 0.99))
    return AscentState(trial, ahead.proposal, ahead.rho, ahead.distance, contraction)


def _ready(best: Evaluation, rho: float, contraction: float, *, rejected: bool = False) -> AscentState:
    proposal = best.posterior.moved(best.target, rho)
    # Near the optimum the two agree. Where they do not, the larger one says that the step is a leap:
    # a q that is far too narrow has a small slope, but a step that would undo it.
    leap = 2 * proposal.divergence_from(best.posterior) / rho**2
    distance = max(best.posterior.slope_towards(best.target), leap)
    return AscentState(best, proposal, rho, distance, contraction, rejected)
