"""Inference: batch updates of q (D6), guarded so that the ELBO never decreases, and the estimated rest (D12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesvm.core.latent import LatentFunction
from bayesvm.core.posterior import Gaussian
from bayesvm.data.blocks import BlockSource
from bayesvm.inference.problem import Evaluation, Problem, evaluate

SMALLEST_STEP = 1e-4
# Rows for choosing the length of a step. A probe must determine the weights roughly, and cost little.
PROBE_ROWS, PROBE_ROWS_PER_WEIGHT, ROWS_PER_PROBE_ROW = 4_096, 5, 8
PROBED_STEPS = (1.0, 0.5, 0.25, 0.125)
ERRORS = 2.0  # standard errors by which another step must gain more


@dataclass(frozen=True)
class AscentState:
    """The best q so far, the next step from it, and the estimated gain after that step."""

    best: Evaluation
    proposal: Gaussian
    rho: float
    distance: float  # D12: twice the expected gain of a full step from the best q
    contraction: float  # κ: the ratio of the distances after and before a step
    rejected: bool = False

    @property
    def remaining(self) -> float:
        """Estimated gain of ELBO that remains *after* the next step.

        If squared distances shrink by κ per step, errors shrink by √κ, and all later steps together gain κ/(1-√κ)
        times half the distance.
        """
        return 0.5 * self.distance * self.contraction / (1 - math.sqrt(self.contraction))

    @property
    def stalled(self) -> bool:
        """Whether even tiny steps lower the ELBO: the limit of the numerical precision."""
        return self.rho < SMALLEST_STEP

    def finished(self) -> LatentFunction:
        """The function after the next step, which needs no pass; after a rejected step, the best q itself."""
        return self.best.function if self.rejected else self.best.function.at(self.proposal)

    def settled(self) -> LatentFunction:
        """The function after a full step, so that q is the prior times the sites taken at the previous q (D10).

        Use it only near convergence, where a full step is small, regardless of the ρ used before.
        """
        return self.best.function.at(self.best.posterior.moved(self.best.target, 1.0))


def init(
    problem: Problem, source: BlockSource, functions: Sequence[LatentFunction], contraction: Sequence[float]
) -> list[AscentState]:
    """One pass at the starting points; ``contraction`` is an estimate for each, for example from an earlier stage."""
    found = evaluate(problem, source, functions)
    return [_ready(best, 1.0, kappa) for best, kappa in zip(found, contraction, strict=True)]


def probe_of(problem: Problem, source: BlockSource) -> BlockSource | None:
    """Some rows that predict the gain of a step; None if steps are safe, or if there are too few rows to save time."""
    n_rows = max(PROBE_ROWS, PROBE_ROWS_PER_WEIGHT * problem.features.n_weights)
    if problem.likelihood.full_steps_are_safe or source.n_rows < ROWS_PER_PROBE_ROW * n_rows:
        return None
    return source.subset(n_rows, np.random.default_rng(n_rows))


def probed(problem: Problem, probe: BlockSource, state: AscentState) -> AscentState:
    """The state with another step if that one gains clearly more on the probe (D12).

    A full step often overshoots while many rows are near the margin. A gain on n of N rows has a standard error of
    about the root of distance · N/n.
    """
    steps = [state, *(_with_step(state, rho) for rho in PROBED_STEPS if rho != state.rho)]
    ends = evaluate(problem, probe, [step.best.function.at(step.proposal) for step in steps])
    best = max(range(len(steps)), key=lambda number: ends[number].elbo)
    error = math.sqrt(state.distance * problem.total_weight / probe.total_weight)
    return steps[best] if ends[best].elbo > ends[0].elbo + ERRORS * error else state


def _with_step(state: AscentState, rho: float) -> AscentState:
    return replace(state, rho=rho, proposal=state.best.posterior.moved(state.best.target, rho))


def step(problem: Problem, source: BlockSource, states: Sequence[AscentState]) -> list[AscentState]:
    """One pass: try the steps; where the ELBO decreases, go back and halve the step."""
    trials = evaluate(problem, source, [state.best.function.at(state.proposal) for state in states])
    return [_judged(problem, state, trial) for state, trial in zip(states, trials, strict=True)]


def _judged(problem: Problem, state: AscentState, trial: Evaluation) -> AscentState:
    # Sums are accurate to about one unit of the blocks' precision; smaller decreases are not significant.
    noise = np.finfo(problem.dtype).eps * abs(state.best.elbo)
    if trial.elbo < state.best.elbo - noise and not problem.likelihood.full_steps_are_safe:
        return _ready(state.best, state.rho / 2, state.contraction, rejected=True)
    ahead = _ready(trial, min(1.0, 1.3 * state.rho), state.contraction)
    # The first steps from a cold start shrink the distance by orders of magnitude, which is too optimistic:
    # accept fast convergence only gradually.
    ratio = ahead.distance / max(state.distance, 1e-300)
    contraction = float(np.clip(max(ratio, 0.25 * state.contraction), 0.01, 0.99))
    return AscentState(trial, ahead.proposal, ahead.rho, ahead.distance, contraction)


def _ready(best: Evaluation, rho: float, contraction: float, *, rejected: bool = False) -> AscentState:
    q = best.posterior
    proposal = q.moved(best.target, rho)
    # Near the optimum both agree. If they differ, the larger one shows that the step is too long: a q that is far
    # too narrow has a small slope, but a large step.
    leap = 2 * proposal.divergence_from(q) / rho**2
    distance = max(q.slope_towards(best.target), leap)
    return AscentState(best, proposal, rho, distance, contraction, rejected)
