"""Inference: what is being learned, and one pass over its rows: the ELBO (D9) there, and where D6 wants to go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import Cavities, RowMarginals
from bayesvm.core.engine import NUMPY, NumpyEngine
from bayesvm.core.features import Features
from bayesvm.core.groups import Grouping, Removed, groups_left_out
from bayesvm.core.heads import Head
from bayesvm.core.latent import LatentFunction, View, full
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import OUT_OF_RANGE, Array, NotFiniteError
from bayesvm.core.posterior import Coordinates, Gaussian, NaturalParameters
from bayesvm.core.statistics import Statistics
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, HeldRows, RowNumbers


@dataclass(frozen=True)
class Problem:
    """Features, head and likelihood, the precision of blocks, and the data's size.

    ``total_weight`` is that of all rows: sums over a part of the rows are scaled up to it.
    """

    features: Features
    head: Head
    likelihood: Likelihood
    dtype: npt.DTypeLike
    total_weight: float
    engine: NumpyEngine = NUMPY

    @property
    def head_and_likelihood(self) -> dict[str, Any]:
        """What every function of blocks must know."""
        return {"head": self.head, "likelihood": self.likelihood}

    def view(
        self, functions: Sequence[LatentFunction], n_rows: int, dtype: npt.DTypeLike | None = None
    ) -> tuple[View, list[Coordinates]]:
        """Functions as blocks see them in a pass over about so many rows, and the coordinates of its sums."""
        return self.engine.view(self.features, functions, n_rows, dtype or self.dtype)

    def adjoint_view(self, functions: Sequence[LatentFunction]) -> View:
        """Functions as gradients see them, in the precision of blocks."""
        return self.engine.adjoint_view(functions, self.dtype)

    def start(self, offsets: Sequence[float] | None = None) -> list[LatentFunction]:
        """The head's functions at the prior."""
        prior = Gaussian.prior(self.features.n_weights)
        means = offsets or [0.0] * self.head.n_functions
        return [LatentFunction(number, offset, prior, prior) for number, offset in enumerate(means)]

    def cavities(self, rows: HeldRows, before: Sequence[LatentFunction], final: Sequence[LatentFunction]) -> Cavities:
        """Each of these rows left out; the sites are those that rows had at the functions ``before`` (D10)."""
        return Cavities.joined(rows.map(partial(self.engine.cavities, **self.both(rows.n_rows, before, final))))

    def marginals(
        self, rows: HeldRows, before: Sequence[LatentFunction], final: Sequence[LatentFunction]
    ) -> RowMarginals:
        """The sites and marginals of these rows, for a sample that is searched on."""
        return RowMarginals.joined(rows.map(partial(self.engine.marginals, **self.both(rows.n_rows, before, final))))

    def without_groups(
        self, rows: HeldRows, marginals: RowMarginals, final: Sequence[LatentFunction], grouping: Grouping
    ) -> list[list[Removed]]:
        """Groups of these rows removed from each function (D24)."""
        view, _ = self.view(final, rows.n_rows)

        def spreads(positions: RowNumbers) -> list[Array]:
            return list(view.spreads(rows.take(positions).gathered().X, Workspace()))

        return groups_left_out(marginals, spreads, grouping)

    def both(self, n_rows: int, before: Sequence[LatentFunction], final: Sequence[LatentFunction]) -> dict[str, Any]:
        """Two views for about so many rows, which share the features unless a basis is folded into them."""
        (then, where), (now, _) = (self.view(functions, n_rows) for functions in (before, final))
        if len(where) > 1 or where[0].basis is None:
            now = replace(now, features=then.features)
        return {"before": then, "final": now, **self.head_and_likelihood}


@dataclass(frozen=True)
class Evaluation:
    """A function at its q, the ELBO there and the target of the step from it, from one pass."""

    function: LatentFunction
    elbo: float
    target: NaturalParameters

    @property
    def posterior(self) -> Gaussian:
        """The q, which has a full covariance wherever there are steps."""
        return full(self.function)


def evaluate(problem: Problem, source: BlockSource, functions: Sequence[LatentFunction]) -> list[Evaluation]:
    """One pass for all. On a part of the rows, ELBO and target estimate those of all rows."""
    view, where = problem.view(functions, source.n_rows)
    total = source.reduce(partial(problem.engine.statistics, view=view, **problem.head_and_likelihood))
    return [
        _evaluated(problem, function, sums, coordinates)
        for function, sums, coordinates in zip(functions, total.each, where, strict=True)
    ]


def _evaluated(problem: Problem, function: LatentFunction, sums: Statistics, where: Coordinates) -> Evaluation:
    scale = problem.total_weight / sums.weight
    prior = function.prior or Gaussian.prior(problem.features.n_weights)
    elbo = checked(scale * sums.bound - full(function).divergence_from(prior))
    return Evaluation(function, elbo, sums.target(where, scale, prior.natural))


def checked(elbo: float) -> float:
    """The ELBO itself, if it is a number."""
    if not np.isfinite(elbo):
        raise NotFiniteError(f"the ELBO is not finite: {OUT_OF_RANGE}")
    return elbo
