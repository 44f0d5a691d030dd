"""Inference: judgements: a feature map fitted to some rows and evaluated by leave-one-out (D10), for tuning.

A *judgement* has the leave-one-out log loss and everything that a gradient needs. It starts from the sites of another
one (D18), so a small change of a kernel costs a few updates instead of a fit. The rows are a sample, so their features
are computed once per judgement and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from bayesvm.core.cavities import Cavities, RowMarginals
from bayesvm.core.features import HeldFeatures, InducingFeatures, RecordedFeatures
from bayesvm.core.gradients import LearnableFeatures
from bayesvm.core.groups import Grouping, Removed, group_cavities
from bayesvm.core.heads import Head
from bayesvm.core.kernels.records import Constant
from bayesvm.core.latent import Block, LatentFunction
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.products import row_factors
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, RowNumbers
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import coordinate_ascent
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.problem import Problem

UNKNOWN_CONTRACTION, LEAST_CONTRACTION = 0.9, 0.6  # per update: default, and lower bound of an estimate
FIRST_UPDATES, UPDATES = 15, 6  # maximum number, from a cold start and from the sites of a similar kernel
GOOD_ENOUGH = 3e-4  # nats per row; an ELBO gain that may remain
USELESS = 1.0  # nats per row; a start from which more than that remains is worse than the prior
SINGLE_FROM = 50_000  # total features: rows times points
BLOCK_ROWS = 1_024
NOISE_ROUNDS = 8  # maximum number of rounds until bound and link agree on the noise

Constants = list[Constant] | None  # one per block
Result = TypeVar("Result")


@dataclass(frozen=True)
class Rows:
    """Rows for judging kernels, with the head, the bound and the prior means."""

    source: MemorySource
    head: Head
    likelihood: Likelihood
    offsets: tuple[float, ...]
    grouping: Grouping | None = None  # groups of rows that are left out together

    @classmethod
    def held(
        cls,
        block: Block,
        workers: Workers,
        head: Head,
        likelihood: Likelihood,
        offsets: tuple[float, ...],
        groups: RowNumbers | None = None,
    ) -> Rows:
        """Build from scaled rows in memory; ``groups`` has the group number of every row."""
        source = MemorySource(*block, ColumnScaler(), workers, BLOCK_ROWS)
        return cls(source, head, likelihood, offsets, None if groups is None else Grouping.of(groups))

    def with_features(
        self, features: LearnableFeatures, constants: Constants = None
    ) -> tuple[Problem, MemorySource, tuple[RecordedFeatures, ...]]:
        """The problem, its rows and their recorded features; with inducing points the rows hold their features."""
        problem = self.problem(features)
        if not isinstance(features, InducingFeatures):
            return problem, self.source, tuple(self._blocks(lambda X, _: features.recorded(X)))
        recorder = features.recorder(problem.dtype)
        held = np.empty((self.source.n_rows, features.n_weights + 1), problem.dtype)

        def record(X: Array, first: int) -> RecordedFeatures:
            found = recorder(X, None if constants is None else constants[first // self.source.rows_per_block])
            held[first : first + len(X), :-1], held[first : first + len(X), -1] = found.phi, found.prior_variance
            return replace(found, phi=held[first : first + len(X), :-1])

        records = tuple(self._blocks(record))
        return replace(problem, features=HeldFeatures(features.n_weights)), replace(self.source, X=held), records

    def constants(self, features: LearnableFeatures) -> Constants:
        """What trials with different learned parameters but the same points have in common."""
        if not isinstance(features, InducingFeatures) or features.learns_points:
            return None
        kernel, Z, dtype = features.kernel, features.inducing_points, self.problem(features).dtype
        return list(self._blocks(lambda X, _: kernel.constant(X, Z, dtype)))

    def _blocks(self, function: Callable[[Array, int], Result]) -> Iterator[Result]:
        """Apply a function to the X and the start of every block."""
        X, size = self.source.gathered().X, self.source.rows_per_block
        starts = range(0, len(X), size)
        return self.source.workers.map(lambda first, _: function(X[first : first + size], first), starts)

    def problem(self, features: LearnableFeatures) -> Problem:
        """The problem; in single precision only if that saves time."""
        dtype = np.float32 if self.source.n_rows * features.n_weights >= SINGLE_FROM else np.float64
        return Problem(features, self.head, self.likelihood, dtype, self.source.total_weight)


@dataclass(frozen=True)
class Judgement:
    """A kernel and points, fitted to rows and evaluated by leave-one-out.

    ``problem`` and ``source`` were used for the fit; the rows may hold their features.
    """

    features: LearnableFeatures
    problem: Problem
    source: MemorySource
    records: tuple[RecordedFeatures, ...]  # recorded features, one per block
    states: tuple[AscentState, ...]
    marginals: RowMarginals
    cavities: Cavities
    link: Any
    loo: float  # log loss per unit of weight
    losses: Array  # one per row
    grouping: Grouping | None = None
    removed: list[list[Removed]] | None = None  # the removed groups, for each function

    @property
    def shares(self) -> Array:
        """The share of every row in the mean loss."""
        return np.asarray(self.cavities.weight / self.cavities.weight.sum())

    def error(self, values: Array) -> float:
        """The standard error of a weighted mean over rows; rows of a group are treated as correlated."""
        parts = self.shares * (values - self.shares @ values)
        return float(np.linalg.norm(parts if self.grouping is None else np.bincount(self.grouping.numbers, parts)))

    @property
    def elbo(self) -> float:
        """The ELBO of all functions."""
        return sum(state.best.elbo for state in self.states)

    @property
    def before(self) -> list[LatentFunction]:
        """The functions at which the sites of the rows were computed."""
        return [state.best.function for state in self.states]

    @cached_property
    def functions(self) -> list[LatentFunction]:
        """The functions that were judged: the prior times the sites of the rows."""
        return [state.settled() for state in self.states]

    @property
    def plain_problem(self) -> Problem:
        """The problem for ordinary rows, which hold no features."""
        return replace(self.problem, features=self.features)

    def sites(self, number: int) -> tuple[Array, Array]:
        """The sites of one function at its q, from which the next judgement of the same rows starts (D18)."""
        rows, problem = self.marginals, self.problem
        function = self.functions[number]
        target = problem.head.target(self.cavities.y, function.target)
        m, v = rows.mean[:, number], rows.explained[:, number] + rows.residual[:, number]
        local, weight = problem.likelihood.update(m, v, target), self.cavities.weight
        return weight * local.precision, weight * (local.linear - local.precision * function.offset)


def judge(
    rows: Rows,
    features: LearnableFeatures,
    start: Judgement | None = None,
    updates: int = UPDATES,
    constants: Constants = None,
) -> Judgement:
    """Fit, leave each row out, calibrate and score.

    If the head learns the noise, the bound takes it from the link, and the fit is repeated until both agree (D32).
    """
    if start is not None:
        rows = replace(rows, likelihood=start.problem.likelihood)
    problem, source, records = rows.with_features(features, constants)
    contraction = [UNKNOWN_CONTRACTION] * rows.head.n_functions
    if start is None:
        functions, updates = problem.start(rows.offsets), FIRST_UPDATES
    elif start.source.y is source.y:
        functions = _from_sites(problem, source, start, rows.offsets)
        contraction = [max(LEAST_CONTRACTION, state.contraction) for state in start.states]
    else:
        at = replace(start.plain_problem, total_weight=rows.source.total_weight)
        functions = moved(at, start.functions, rows.source, features, rows.offsets)
        updates = max(updates, FIRST_UPDATES)  # other rows may need more updates
    found = _fitted(rows, features, problem, source, records, functions, contraction, updates)
    for _ in range(NOISE_ROUNDS if rows.head.learns_noise else 0):
        likelihood = rows.head.likelihood_after(found.problem.likelihood, found.link, found.cavities)
        if likelihood == found.problem.likelihood:
            break
        problem = replace(problem, likelihood=likelihood)
        contraction = [max(LEAST_CONTRACTION, state.contraction) for state in found.states]
        found = _fitted(rows, features, problem, source, records, found.functions, contraction, updates)
    return found


def _fitted(
    rows: Rows,
    features: LearnableFeatures,
    problem: Problem,
    source: MemorySource,
    records: tuple[RecordedFeatures, ...],
    functions: Sequence[LatentFunction],
    contraction: Sequence[float],
    updates: int,
) -> Judgement:
    """A judgement with a fixed bound."""
    states = coordinate_ascent.init(problem, source, functions, contraction)
    if functions[0].trained and any(state.remaining > USELESS * problem.total_weight for state in states):
        # In long tails, sites of other rows can be worse than none: from there, training takes dozens of updates.
        fresh = problem.start(rows.offsets)
        states = coordinate_ascent.init(problem, source, fresh, [UNKNOWN_CONTRACTION] * len(fresh))
        updates = max(updates, FIRST_UPDATES)
    for _ in range(updates):
        if all(not s.rejected and s.remaining <= GOOD_ENOUGH * problem.total_weight for s in states):
            break
        states = coordinate_ascent.step(problem, source, states)
    before, final = [state.best.function for state in states], [state.settled() for state in states]
    marginals = problem.marginals(source, before, final)
    weight = np.ones(source.n_rows) if source.weight is None else source.weight
    removed = None
    if rows.grouping is None:
        cavities = marginals.cavities(source.y, weight)
    else:
        removed = problem.without_groups(source, marginals, final, rows.grouping)
        cavities = group_cavities(marginals, removed, source.y, weight)
    link = rows.head.fit_link(cavities)
    losses = link.row_losses(cavities.mean, cavities.variance, cavities.y)
    loo = float(np.average(losses, weights=cavities.weight))
    found = features, problem, source, records, tuple(states), marginals, cavities, link, loo, losses
    return Judgement(*found, rows.grouping, removed)


def _from_sites(
    problem: Problem, source: MemorySource, start: Judgement, offsets: Sequence[float]
) -> list[LatentFunction]:
    """The q in these features that follows from the sites of another judgement of the same rows (D18)."""
    width, size, started = problem.features.n_weights, source.rows_per_block, []
    prepared = problem.features.prepared(None, problem.dtype)
    prior = Gaussian.prior(width)
    for number, (function, offset) in enumerate(zip(start.functions, offsets, strict=True)):
        w, gamma = start.sites(number)
        gamma = gamma + w * (function.offset - offset)

        def sums(first: int, workspace: Workspace, w: Array = w, gamma: Array = gamma) -> tuple[Array, Array]:
            some = slice(first, first + size)
            phi, _ = prepared(source.X[some], workspace)
            scaled = phi * row_factors(np.sqrt(w[some]), phi.dtype)[:, None]
            slope = row_factors(gamma[some], phi.dtype) @ phi
            return (scaled.T @ scaled).astype(np.float64), slope.astype(np.float64)

        precision, linear = np.eye(width), np.zeros(width)
        for curvature, slope in source.workers.map(sums, range(0, source.n_rows, size)):
            precision += curvature
            linear += slope
        q = Gaussian.from_natural(NaturalParameters(precision, linear))
        started.append(replace(function, offset=offset, prior=prior, posterior=q))
    return started


def moved(
    problem: Problem,
    functions: Sequence[LatentFunction],
    source: BlockSource,
    features: LearnableFeatures,
    offsets: Sequence[float],
) -> list[LatentFunction]:
    """The functions in other features and with other prior means, at the q that follows from the sites (D18)."""
    view, _ = problem.view(functions, source.n_rows)
    width = features.n_weights
    work = partial(
        problem.engine.transfer,
        view=view,
        features=features.prepared(None, problem.dtype),
        width=width,
        offsets=offsets,
        **problem.head_and_likelihood,
    )
    prior, started = Gaussian.prior(width), []
    for function, offset, sums in zip(functions, offsets, source.reduce(work).each, strict=True):
        scale = problem.total_weight / sums.weight
        natural = NaturalParameters(np.eye(width) + scale * sums.curvature, scale * sums.linear)
        started.append(replace(function, offset=offset, prior=prior, posterior=Gaussian.from_natural(natural)))
    return started
