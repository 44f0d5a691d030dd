"""Inference: one pass over a source at a given q: the ELBO (D9) there, and where D6 wants to go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.posterior import Coordinates, Gaussian, NaturalParameters, Posterior
from bayesvm.core.statistics import Block, Statistics, View, block_statistics
from bayesvm.data.blocks import BlockSource, map_reduce


class BlockFunction(Protocol):
    """``block_statistics`` or ``block_gradient``."""

    def __call__(self, blocks: Iterable[Block], *, view: View, likelihood: Likelihood) -> Statistics:
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

    def sums(self, source: BlockSource, posterior: Posterior, work: BlockFunction) -> tuple[Statistics, Coordinates]:
        """Sums over the source at q, unscaled, and the coordinates they are in."""
        view, where = View.of(self.features, posterior, source.n_rows, self.dtype)
        return map_reduce(source, partial(work, view=view, likelihood=self.likelihood)), where


@dataclass(frozen=True)
class Evaluation:
    """q, its ELBO and the target of the step from it, from one pass."""

    posterior: Gaussian
    elbo: float
    target: NaturalParameters


def evaluate(model: Model, source: BlockSource, posterior: Gaussian) -> Evaluation:
    """One pass. On a part of the rows, ELBO and target estimate those of all rows."""
    sums, where = model.sums(source, posterior, block_statistics)
    scale = model.total_weight / sums.weight
    elbo = checked(scale * sums.bound - posterior.kl_from_prior())
    return Evaluation(posterior, elbo, sums.target(where, scale))


def checked(elbo: float) -> float:
    """The ELBO itself, if it is a number."""
    if not np.isfinite(elbo):
        raise FloatingPointError(
            "the ELBO is not finite: values in X or kernel parameters are out of range; "
            "scale the inputs (scale='standard') or use precision='double'"
        )
    return elbo
