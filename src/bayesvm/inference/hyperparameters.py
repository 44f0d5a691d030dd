"""Inference: optimise features by the gradient of the leave-one-out loss, or of the ELBO (D16-D18)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from operator import iadd

import numpy as np

from bayesvm.core import gradients
from bayesvm.core.cavities import LeftOut, effective_rows
from bayesvm.core.features import FeatureGradient, RecordedFeatures
from bayesvm.core.gradients import LearnableFeatures, LossSums, Response, loss_sums
from bayesvm.core.groups import group_loss_gradient
from bayesvm.core.latent import Block, LatentFunction, full
from bayesvm.core.linalg import Array, JitterWarning, NotFiniteError, NotPositiveDefiniteError
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource
from bayesvm.data.stopping import Stopped
from bayesvm.inference.descent import descend
from bayesvm.inference.families import Family
from bayesvm.inference.judgements import Judgement, Rows, judge
from bayesvm.inference.problem import Problem

FIRST_STEP = 0.5  # length of the first step of a search, in logarithms
PATIENCE, STALLED = 4, 3e-4  # stop unless this many judgements gain this many nats per row, and more than the noise
MUCH = 4e-3  # nats per row that they must gain after enough judgements


def loss_gradient(here: Judgement) -> FeatureGradient:
    """Sums over rows of the derivative of the leave-one-out loss, where q changes at fixed sites (D17)."""
    problem, source, size = here.problem, here.source, here.source.rows_per_block
    if here.removed is not None:
        given = here.records, here.marginals, here.removed, here.cavities, here.functions, here.link
        return reduce(iadd, group_loss_gradient(*given))
    final = problem.adjoint_view(here.functions)

    def part(first: int) -> tuple[Block, RecordedFeatures, list[LeftOut]]:
        some = slice(first, min(first + size, source.n_rows))
        block = Block(source.X[some], source.y[some], None if source.weight is None else source.weight[some])
        record = here.records[first // size]
        return block, record, here.marginals.left_out(some, record.phi)

    def sums(first: int, _: Workspace) -> LossSums:
        block, record, left = part(first)
        return loss_sums(block, record.phi, left, here.link)

    starts = range(0, source.n_rows, size)
    total = reduce(iadd, source.workers.map(sums, starts))
    triples = zip(map(full, here.functions), total.by_mean, total.by_covariance, strict=True)
    responses = [Response.of(q, by_mean, by_covariance) for q, by_mean, by_covariance in triples]

    def gradient(first: int, _: Workspace) -> FeatureGradient:
        block, record, left = part(first)
        return gradients.loss_gradient(block, record, left, final, here.link, responses)

    return reduce(iadd, source.workers.map(gradient, starts))


def elbo_gradient(
    problem: Problem, source: BlockSource, features: LearnableFeatures, functions: Sequence[LatentFunction]
) -> FeatureGradient:
    """Sums over rows of the derivative of the ELBO at fixed q, which at the optimal q is the total derivative (D16)."""
    view = problem.adjoint_view(functions)
    return source.reduce(
        partial(problem.engine.elbo_gradient, features=features, view=view, **problem.head_and_likelihood)
    )


@dataclass(frozen=True)
class Search:
    """The best judgement of a search, the number of judgements, and the number of kernels that failed."""

    best: Judgement
    judged: int
    failed: int


@contextmanager
def trying() -> Iterator[None]:
    """Suppress warnings during searches: intermediate kernels may be poor. For the main thread only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)
        yield


def search(
    rows: Rows,
    family: Family,
    start: Judgement | None,
    most: int,
    first_step: float = FIRST_STEP,
    enough: int | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Search:
    """Minimise leave-one-out loss plus penalty over a family, starting from the sites of a judgement.

    The gradient treats the sites as fixed although they change slightly; it is accurate enough to descend, but not to
    converge to the last digit. So the best vector visited is returned. A vector whose matrices fail counts as a bad
    one. After ``enough`` judgements, the search continues, up to ``most``, only while it gains ``MUCH``. A request to
    stop ends it, and so does ``over``, which checks the time limit.
    """
    first = family.start()
    features = family.features(first)
    constants = rows.constants(features)
    here = judge(rows, features, start, constants=constants)
    if len(first) == 0:
        return Search(here, 1, 0)
    n_rows = 1.0 * rows.source.n_rows if rows.source.weights is None else effective_rows(rows.source.weights)
    best, judged, failed = (np.inf, here), 0, 0
    reached = list[Judgement]()  # the best one before each judgement

    def objective(x: Array) -> tuple[float, Array]:
        nonlocal best, judged, failed
        if judged and over():
            raise StopIteration
        reached.append(best[1])
        least = STALLED if enough is None or judged < enough else MUCH
        if judged > PATIENCE and _has_stalled(reached[-PATIENCE], best[1], least):
            raise StopIteration
        judged += 1
        try:
            here = best[1] if judged == 1 else judge(rows, family.features(x), best[1], constants=constants)
        except (NotPositiveDefiniteError, NotFiniteError):
            failed += 1
            return np.inf, np.zeros(len(x))
        price, slope = family.penalty(x)
        value = here.loo * n_rows + price
        if value < best[0]:
            best = (value, here)
        per_row = n_rows / rows.source.total_weight
        return value, per_row * family.gradient(here.features, loss_gradient(here)) + slope

    low, high = (np.array(limits, np.float64) for limits in zip(*family.bounds(), strict=True))
    with suppress(Stopped, StopIteration):
        descend(objective, first, low, high, most, first_step)
    return Search(best[1], judged, failed)


def _has_stalled(before: Judgement, now: Judgement, least: float) -> bool:
    """Whether the gain since then is small, or below its standard error."""
    gained = before.losses - now.losses
    return float(now.shares @ gained) < max(least, now.error(gained))
