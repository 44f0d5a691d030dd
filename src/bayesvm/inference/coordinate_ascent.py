"""Inference: batch updates of q (D6), guarded so that the ELBO never falls, and how far is left (D12)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesvm.core.posterior import Gaussian
from bayesvm.data.blocks import BlockSource
from bayesvm.inference.objective import Evaluation, Model, evaluate

SMALLEST_STEP = 1e-4


@dataclass(frozen=True)
class AscentState:
    """The best q so far, the step to take from it, and what is still to be gained."""

    best: Evaluation
    rho: float
    slope: float  # D12 at the best q
    contraction: float  # κ: the slope after a step, over the slope before it
    rejected: bool = False

    @property
    def remaining(self) -> float:
        """Estimated ELBO still missing *after* the step that is ready to be taken.

        Half the slope is what a full step gains; if slopes shrink by κ a step, all the steps
        after it together gain κ/(1-κ) times as much.
        """
        return 0.5 * self.slope * self.contraction / (1 - self.contraction)

    @property
    def stalled(self) -> bool:
        """Whether even tiny steps lower the ELBO: the end of what the precision allows."""
        return self.rho < SMALLEST_STEP

    def finished(self) -> Gaussian:
        """q after the step whose target is already known; free, as it needs no pass."""
        if self.rejected:
            return self.best.posterior
        return self.best.posterior.moved(self.best.target, self.rho)


def init(model: Model, source: BlockSource, posterior: Gaussian, contraction: float) -> AscentState:
    """One pass at the starting point; ``contraction`` is a guess, or that of an earlier stage."""
    best = evaluate(model, source, posterior)
    return AscentState(best, 1.0, posterior.slope_towards(best.target), contraction)


def step(model: Model, source: BlockSource, state: AscentState) -> AscentState:
    """One pass: try the step; if the ELBO falls, go back and halve it."""
    trial = evaluate(model, source, state.best.posterior.moved(state.best.target, state.rho))
    # Sums are known to about one unit of the blocks' precision; a smaller fall means nothing.
    noise = np.finfo(model.dtype).eps * abs(state.best.elbo)
    if trial.elbo < state.best.elbo - noise and not model.likelihood.full_steps_are_safe:
        return replace(state, rho=state.rho / 2, rejected=True)
    slope = trial.posterior.slope_towards(trial.target)
    ratio = slope / max(state.slope, 1e-300)
    # The first steps from a cold start shrink the slope by orders of magnitude and promise too much:
    # believe in fast convergence only gradually.
    contraction = float(np.clip(max(ratio, 0.1 * state.contraction), 0.01, 0.99))
    return AscentState(trial, min(1.0, 1.3 * state.rho), slope, contraction)
