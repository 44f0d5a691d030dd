"""Inference: hyperparameters as in the paper: alternate variational updates and gradient steps of the ELBO (ML-II).

The ELBO of a pseudo-likelihood is only a pseudo-evidence, so leave-one-out (``tuning``) is the default. This module
implements the paper's method, on all rows or on minibatches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from bayesvm.core.linalg import Array
from bayesvm.data.blocks import BlockSource, HeldRows
from bayesvm.data.stopping import Stopped
from bayesvm.inference import coordinate_ascent, stochastic
from bayesvm.inference.families import Family
from bayesvm.inference.hyperparameters import elbo_gradient
from bayesvm.inference.judgements import UNKNOWN_CONTRACTION, Judgement, Rows, judge
from bayesvm.inference.learning_rates import RobbinsMonro
from bayesvm.inference.training_state import Clock

RATE = 0.1  # of Adam, in logarithms
MOST_STEPS = 100
SETTLED = 1e-4  # nats per row; stops if the last steps together gain less
LOOK_BACK = 20


@dataclass(frozen=True)
class Adam:
    """Ascent steps of Adam (Kingma and Ba 2015), with the current moments."""

    mean: Array
    square: Array
    steps: int = 0

    @classmethod
    def init(cls, size: int) -> Adam:
        """The initial state."""
        return cls(np.zeros(size), np.zeros(size))

    def step(self, gradient: Array) -> tuple[Array, Adam]:
        """The increment, and the updated moments."""
        t = self.steps + 1
        mean, square = 0.9 * self.mean + 0.1 * gradient, 0.99 * self.square + 0.01 * gradient**2
        unbiased = mean / (1 - 0.9**t), square / (1 - 0.99**t)
        return RATE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-12), Adam(mean, square, t)


@dataclass(frozen=True)
class Climbed:
    """One point of an ascent: the ELBO and the parameter vector of the family (logarithms for kernels)."""

    elbo: float
    x: Array


def maximise(
    rows: Rows,
    family: Family,
    updates: int,
    batch_size: int | None,
    rng: np.random.Generator,
    clock: Clock | None = None,
) -> tuple[Judgement, tuple[Climbed, ...]]:
    """Alternate ``updates`` variational updates and one step of the family until the ELBO settles; yields each point.

    q in whitened weights is kept when the features change. On minibatches, the gradient is computed before q is updated
    with the batch; afterwards it would only reflect the noise of the batch. Stops at the deadline or on request.
    """
    clock = clock or Clock()
    x, adam, trace = family.start(), Adam.init(len(family.start())), [-np.inf]
    climb: list[Climbed] = []
    low, high = (np.array([limit[i] for limit in family.bounds()], np.float64) for i in (0, 1))
    best = features = family.features(x)
    functions = rows.problem(features).start(rows.offsets)
    batches = None if batch_size is None else _endless(rows.source, batch_size, rng)
    source: HeldRows
    with suppress(Stopped):
        while len(trace) <= MOST_STEPS and len(x) and not clock.over():
            problem = rows.problem(features)
            if batches is None:
                source = rows.source
                states = coordinate_ascent.init(problem, source, functions, [UNKNOWN_CONTRACTION] * len(functions))
                for _ in range(updates - 1):
                    states = coordinate_ascent.step(problem, source, states)
                functions, elbo = [state.finished() for state in states], sum(state.best.elbo for state in states)
            else:
                rate = RobbinsMonro()
                walk = stochastic.init(functions, rate)
                for source in itertools.islice(batches, updates):
                    walk = stochastic.step(problem, source, walk, rate)
                functions, elbo = [state.function for state in walk], sum(state.elbo for state in walk)
                source = next(batches)
            if batches is not None or elbo > max(trace):
                best = features
            trace.append(elbo)
            climb.append(Climbed(elbo, x))
            # Adam may overshoot temporarily.
            gained = max(trace[-LOOK_BACK:]) - max(trace[:-LOOK_BACK], default=-np.inf)
            if gained < SETTLED * problem.total_weight and batches is None:
                break
            scale = problem.total_weight / source.total_weight
            total = elbo_gradient(problem, source, features, functions)
            step, adam = adam.step(scale * family.gradient(features, total))
            x = np.clip(x + step, low, high)
            features = family.features(x)
    clock.stop.settle()
    return judge(rows, best), tuple(climb)


def _endless(source: BlockSource, size: int, rng: np.random.Generator) -> Iterator[HeldRows]:
    while True:
        yield from source.minibatches(size, rng)
