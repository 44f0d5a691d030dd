"""Inference: the paper's algorithm 1: natural-gradient steps on minibatches, whose sums are scaled up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.latent import LatentFunction
from bayesvm.data.blocks import BlockSource
from bayesvm.inference.learning_rates import LearningRate
from bayesvm.inference.problem import Problem, evaluate


@dataclass(frozen=True)
class StochasticState:
    """A function, the state of the learning rate, the size of the last step, and the ELBO estimate before it."""

    function: LatentFunction
    memory: Any
    rho: float = 0.0
    elbo: float = -np.inf


def init(functions: Sequence[LatentFunction], rate: LearningRate) -> list[StochasticState]:
    """The initial states."""
    return [StochasticState(function, rate.init()) for function in functions]


def step(
    problem: Problem, batch: BlockSource, states: Sequence[StochasticState], rate: LearningRate
) -> list[StochasticState]:
    """Process one minibatch: D6 with its sums times N/|batch|, with ρ from the learning rate."""
    moved = []
    for state, here in zip(states, evaluate(problem, batch, [state.function for state in states]), strict=True):
        q = here.posterior
        now = q.natural
        towards = np.concatenate([(here.target.precision - now.precision).ravel(), here.target.linear - now.linear])
        rho, memory = rate.next(state.memory, towards)
        function = state.function.at(q.moved(here.target, rho)) if rho > 0 else state.function
        moved.append(StochasticState(function, memory, rho, here.elbo))
    return moved
