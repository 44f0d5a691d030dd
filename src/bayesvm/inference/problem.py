"""Inference: the learning problem, and one pass over its rows, which gives the ELBO (D9) and the target of D6."""

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
    """Features, head and likelihood, the precision of blocks, and the size of the data.

    ``total_weight`` is the weight of all rows; sums over a part of the rows are scaled up to it.
    """

    features: Features
    head: Head
    likelihood: Likelihood
    dtype: npt.DTypeLike
    total_weight: float
    engine: NumpyEngine = NUMPY

    @property
    def head_and_likelihood(self) -> dict[str, Any]:
        """The arguments that all functions of blocks need."""
        return {"head": self.head, "likelihood": self.likelihood}

    def view(
        self, functions: Sequence[LatentFunction], n_rows: int, dtype: npt.DTypeLike | None = None
    ) -> tuple[View, list[Coordinates]]:
        """The view of functions for a pass over about ``n_rows`` rows, and the coordinates of its sums."""
        return self.engine.view(self.features, functions, n_rows, dtype or self.dtype)

    def adjoint_view(self, functions: Sequence[LatentFunction]) -> View:
        """The view of functions for gradients, in the precision of blocks."""
        return self.engine.adjoint_view(functions, self.dtype)

    def start(self, offsets: Sequence[float] | None = None) -> list[LatentFunction]:
        """The functions of the head at the prior."""
        prior = Gaussian.prior(self.features.n_weights)
        means = offsets or [0.0] * self.head.n_functions
        return [LatentFunction(number, offset, prior, prior) for number, offset in enumerate(means)]

    def cavities(self, rows: HeldRows, before: Sequence[LatentFunction], final: Sequence[LatentFunction]) -> Cavities:
        """Leave out each of these rows; the sites are taken at the functions ``before`` (D10)."""
        return Cavities.joined(rows.map(partial(self.engine.cavities, **self.both(rows.n_rows, before, final))))

    def marginals(
        self, rows: HeldRows, before: Sequence[LatentFunction], final: Sequence[LatentFunction]
    ) -> RowMarginals:
        """The sites and marginals of these rows, for searches on a sample."""
        return RowMarginals.joined(rows.map(partial(self.engine.marginals, **self.both(rows.n_rows, before, final))))

    def without_groups(
        self, rows: HeldRows, marginals: RowMarginals, final: Sequence[LatentFunction], grouping: Grouping
    ) -> list[list[Removed]]:
        """Remove groups of these rows from each function (D24)."""
        view, _ = self.view(final, rows.n_rows)

        def spreads(positions: RowNumbers) -> list[Array]:
            return list(view.spreads(rows.take(positions).gathered().X, Workspace()))

        return groups_left_out(marginals, spreads, grouping)

    def both(self, n_rows: int, before: Sequence[LatentFunction], final: Sequence[LatentFunction]) -> dict[str, Any]:
        """Two views for about ``n_rows`` rows, which share features unless these include a basis."""
        (then, where), (now, _) = (self.view(functions, n_rows) for functions in (before, final))
        if len(where) > 1 or where[0].basis is None:
            now = replace(now, features=then.features)
        return {"before": then, "final": now, **self.head_and_likelihood}


@dataclass(frozen=True)
class Evaluation:
    """The result of one pass for a function: the function at its q, the ELBO, and the target of the next step."""

    function: LatentFunction
    elbo: float
    target: NaturalParameters

    @property
    def posterior(self) -> Gaussian:
        """The q, which must have a full covariance."""
        return full(self.function)


def evaluate(problem: Problem, source: BlockSource, functions: Sequence[LatentFunction]) -> list[Evaluation]:
    """One pass for all functions. On a part of the rows, it estimates the ELBO and the target for all rows."""
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
    """Return the ELBO; raises an error if it is not finite."""
    if not np.isfinite(elbo):
        raise NotFiniteError(f"the ELBO is not finite: {OUT_OF_RANGE}")
    return elbo
