"""Inference: the paper's algorithm 1, natural-gradient steps on minibatches whose sums are scaled up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.posterior import Gaussian
from bayesvm.data.blocks import BlockSource
from bayesvm.inference.learning_rates import LearningRate
from bayesvm.inference.objective import Model, evaluate


@dataclass(frozen=True)
class StochasticState:
    """q, and what the learning rate remembers."""

    posterior: Gaussian
    rate: Any


@dataclass(frozen=True)
class StochasticInfo:
    """Of one step: its size, and the minibatch's estimate of the ELBO before it."""

    rho: float
    elbo: float


def init(posterior: Gaussian, rate: LearningRate) -> StochasticState:
    """The starting point, with nothing remembered."""
    return StochasticState(posterior, rate.init())


def step(
    model: Model, batch: BlockSource, state: StochasticState, rate: LearningRate
) -> tuple[StochasticState, StochasticInfo]:
    """One minibatch: D6 with its sums times N/|batch|, at the learning rate's ρ."""
    here = evaluate(model, batch, state.posterior)
    now = state.posterior.natural
    towards = np.concatenate([(here.target.precision - now.precision).ravel(), here.target.linear - now.linear])
    rho, memory = rate.next(state.rate, towards)
    posterior = state.posterior.moved(here.target, rho) if rho > 0 else state.posterior
    return StochasticState(posterior, memory), StochasticInfo(rho, here.elbo)
