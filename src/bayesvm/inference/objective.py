"""Inference: one pass over a source at given posteriors: the ELBO (D9) there, and where D6 wants to go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import OUT_OF_RANGE, NotFiniteError
from bayesvm.core.posterior import Coordinates, Gaussian, NaturalParameters
from bayesvm.core.statistics import Block, Machine, MachineSums, Statistics, View, block_statistics
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource


class BlockFunction(Protocol):
    """``block_statistics`` or ``block_gradient``."""

    def __call__(
        self, blocks: Iterable[Block], workspace: Workspace, *, view: View, likelihood: Likelihood
    ) -> MachineSums:
        """Sums over some blocks."""
        ...


@dataclass(frozen=True)
class Model:
    """What is fitted: features, a likelihood bound, the precision of blocks, and the data's size.

    ``total_weight`` is that of all rows: sums over a part of the rows are scaled up to it.
    """

    features: Features
    likelihood: Likelihood
    dtype: npt.DTypeLike
    total_weight: float

    def sums(
        self, source: BlockSource, machines: Sequence[Machine], work: BlockFunction
    ) -> list[tuple[Statistics, Coordinates]]:
        """Each machine's sums over the source, unscaled, and the coordinates they are in."""
        view, where = View.of(self.features, machines, source.n_rows, self.dtype)
        total = source.reduce(partial(work, view=view, likelihood=self.likelihood))
        return list(zip(total.each, where, strict=True))


@dataclass(frozen=True)
class Task:
    """A machine to be trained: its class, its prior mean, the prior of its weights, and its q so far."""

    label: int
    offset: float
    prior: Gaussian
    posterior: Gaussian

    @property
    def machine(self) -> Machine:
        """What a block sees of it."""
        return Machine(self.label, self.offset, self.posterior)

    def at(self, posterior: Gaussian) -> Task:
        """The same with another q."""
        return replace(self, posterior=posterior)


@dataclass(frozen=True)
class Evaluation:
    """A task at its q, the ELBO there and the target of the step from it, from one pass."""

    task: Task
    elbo: float
    target: NaturalParameters


def evaluate(model: Model, source: BlockSource, tasks: Sequence[Task]) -> list[Evaluation]:
    """One pass for all. On a part of the rows, ELBO and target estimate those of all rows."""
    found = []
    for task, (sums, where) in zip(
        tasks, model.sums(source, [task.machine for task in tasks], block_statistics), strict=True
    ):
        scale = model.total_weight / sums.weight
        elbo = checked(scale * sums.bound - task.posterior.divergence_from(task.prior))
        found.append(Evaluation(task, elbo, sums.target(where, scale, task.prior.natural)))
    return found


def checked(elbo: float) -> float:
    """The ELBO itself, if it is a number."""
    if not np.isfinite(elbo):
        raise NotFiniteError(f"the ELBO is not finite: {OUT_OF_RANGE}")
    return elbo
