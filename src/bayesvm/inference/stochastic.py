"""Inference: the paper's algorithm 1, natural-gradient steps on minibatches whose sums are scaled up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.data.blocks import BlockSource
from bayesvm.inference.learning_rates import LearningRate
from bayesvm.inference.objective import Model, Task, evaluate


@dataclass(frozen=True)
class StochasticState:
    """A task, what the learning rate remembers, and of the last step its size and the ELBO estimated before it."""

    task: Task
    memory: Any
    rho: float = 0.0
    elbo: float = -np.inf


def init(tasks: Sequence[Task], rate: LearningRate) -> list[StochasticState]:
    """The starting points, with nothing remembered."""
    return [StochasticState(task, rate.init()) for task in tasks]


def step(
    model: Model, batch: BlockSource, states: Sequence[StochasticState], rate: LearningRate
) -> list[StochasticState]:
    """One minibatch: D6 with its sums times N/|batch|, at the learning rate's ρ."""
    moved = []
    for state, here in zip(states, evaluate(model, batch, [state.task for state in states]), strict=True):
        q = state.task.posterior
        now = q.natural
        towards = np.concatenate([(here.target.precision - now.precision).ravel(), here.target.linear - now.linear])
        rho, memory = rate.next(state.memory, towards)
        task = state.task.at(q.moved(here.target, rho)) if rho > 0 else state.task
        moved.append(StochasticState(task, memory, rho, here.elbo))
    return moved
