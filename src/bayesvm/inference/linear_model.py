"""Inference: linear models in primal space, with a full covariance or, for very wide tables, a mean field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.features import LinearFeatures
from bayesvm.core.kernels import positive
from bayesvm.core.latent import Block, Moments
from bayesvm.core.linalg import Array, NotFiniteError, NotPositiveDefiniteError, cholesky
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, RowNumbers, at_most, most_held
from bayesvm.data.repetition import merged
from bayesvm.inference.evidence import maximise
from bayesvm.inference.families import LinearFamily
from bayesvm.inference.fitting import train_all
from bayesvm.inference.hyperparameters import search, trying
from bayesvm.inference.judgements import Rows, moved
from bayesvm.inference.leaving_out import FEW_LOO_ROWS, leave_one_out
from bayesvm.inference.problem import Problem
from bayesvm.inference.scalings import fitted_scalers
from bayesvm.inference.session import Prepared, Session
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Plan, Trained, train_mean_field

WIDEST_FULL_COVARIANCE = 5_000
WIDEST_TUNED = 500  # columns up to which the prior variance is learned
TUNING_ROWS = 8_000  # maximum number of rows for learning it
ROWS_PER_FEATURE = 5  # minimum number of rows per column for learning it
TUNING_JUDGEMENTS = 8  # number of trials
INTERCEPT_VARIANCE = 100.0
SAME_ROW = 1e-12  # tolerance for projections of equal rows, relative to the largest one
SMALLEST_SCALE = 1e-120  # of a column; its inverse square is a factor of coef_covariance_


@dataclass(frozen=True)
class LinearModel:
    """The prior covariance of the coefficients, the intercept, and the form of the posterior covariance."""

    prior_variance: Array  # a number, a vector or a matrix
    fit_intercept: bool
    full_covariance: bool

    def expected_weights(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return n_features + self.fit_intercept

    def matrix_size(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return self.expected_weights(n_rows, n_features, settings) if self.full_covariance else 1

    def wide_vectors(self, n_rows: int, settings: Settings) -> int:
        """The approximate number of vectors as wide as the table that a fit holds at a time, measured with few rows."""
        return 200

    def prepare(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling and prior variances: as given, or tuned."""
        settings = session.settings
        session.display.phase("scaling columns")
        scaler = fitted_scalers([settings.plain_scale], raw)[settings.plain_scale]
        source = raw.scaled(scaler)
        features = LinearFeatures(self._checked_root(source, settings), self.fit_intercept)
        # A mean field starts at zero and does not need a prior with a full matrix.
        functions = session.problem(features, source).start() if self.full_covariance else []
        prepared = Prepared(settings.plain_scale, scaler, features, tuple(functions))
        return self._tuned(prepared, source, session) if self._tunes(source, session) else prepared

    def _tunes(self, source: BlockSource, session: Session) -> bool:
        narrow = self.full_covariance and source.n_features <= WIDEST_TUNED
        # With fewer rows, leave-one-out favours weights that are too large.
        enough = session.repetition.effective_rows >= ROWS_PER_FEATURE * source.n_features
        return session.settings.tune is not None and narrow and enough and self.prior_variance.ndim < 2

    def _tuned(self, prepared: Prepared, source: BlockSource, session: Session) -> Prepared:
        settings = session.settings
        part = at_most(source, TUNING_ROWS, session.rng)
        part = merged(part) if session.repetition.copied else part
        offsets = (0.0,) * session.head.n_functions
        given = part.gathered(), session.workers, session.head, settings.likelihood, offsets
        rows = Rows.held(*given, session.groups_of(part))
        intercept = np.full(int(self.fit_intercept), np.sqrt(INTERCEPT_VARIANCE))
        family = LinearFamily(np.atleast_1d(self.prior_variance), source.n_features, intercept)
        session.clock.stop.heeded = True
        if settings.tune == "elbo":
            best, _ = maximise(rows, family, settings.tune_interval, None, session.rng, session.clock)
        else:
            with trying():
                best = search(rows, family, None, TUNING_JUDGEMENTS).best
        session.clock.stop.settle()
        start = replace(best.plain_problem, total_weight=source.total_weight)
        functions = moved(start, best.functions, part, best.features, rows.offsets)
        return replace(prepared, features=best.features, functions=tuple(functions), likelihood=best.problem.likelihood)

    def _checked_root(self, source: BlockSource, settings: Settings) -> Array:
        width = source.n_features
        if self.full_covariance and width > WIDEST_FULL_COVARIANCE:
            raise ValueError(
                f"X has {width} columns; a full posterior covariance needs at most {WIDEST_FULL_COVARIANCE}. Use "
                "covariance='diagonal'."
            )
        scale: Any = getattr(source.scaler, "scale", None)
        if scale is not None and scale.min() < SMALLEST_SCALE:
            column = int(np.argmin(scale))
            raise ValueError(
                f"column {settings.column(column)} varies by only {scale[column]:.0e}, so the variance of its "
                "coefficient, in units of the column, overflows. Express the column in a smaller unit"
            )
        return self._prior_root(width)

    def _prior_root(self, width: int) -> Array:
        """A matrix ``root`` with ``root rootᵀ = Σ``, or its diagonal; the intercept comes last."""
        prior = self.prior_variance
        if prior.ndim < 2:
            if prior.ndim and prior.shape != (width,):
                raise ValueError(f"prior_variance has {len(prior)} entries, but X has {width} columns")
            root = np.sqrt(np.broadcast_to(positive("prior_variance", prior), (width,)))
            return np.append(root, np.sqrt(INTERCEPT_VARIANCE)) if self.fit_intercept else root.copy()
        if prior.shape != (width, width) or not np.allclose(prior, prior.T):
            raise ValueError(f"prior_variance must be a symmetric {width}×{width} matrix; got shape {prior.shape}")
        if not self.full_covariance:
            raise ValueError("covariance='diagonal' requires prior_variance to be a number or a vector, not a matrix")
        try:
            root, _ = cholesky(prior, what="prior_variance")
        except (NotPositiveDefiniteError, NotFiniteError) as error:
            raise ValueError(f"prior_variance must be positive definite: {error}") from error
        if not self.fit_intercept:
            return root
        padded = np.zeros((width + 1, width + 1))
        padded[:width, :width] = root
        padded[width, width] = np.sqrt(INTERCEPT_VARIANCE)
        return padded

    def enlarged(self, members: Sequence[Prepared], raw: BlockSource, session: Session) -> None:
        """None: the number of weights is fixed by the columns."""

    def train(
        self, problem: Problem, source: BlockSource, plan: Plan, prepared: Prepared, session: Session, name: str
    ) -> Trained:
        if self.full_covariance:
            return train_all(problem, source, plan, prepared, session, name)
        if plan.inference == "stochastic":
            raise ValueError("covariance='diagonal' does not support minibatches; use inference='auto' or 'batch'")
        targets = range(problem.head.n_functions)
        sizes = {"M": problem.features.n_weights, "K": len(targets)}
        memory = session.checkpoint.training("mean field", plan, sizes)
        return train_mean_field(problem, source, plan, targets, session.listeners.notify, memory)

    def leave_out(
        self, problem: Problem, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, RowNumbers]:
        if self.full_covariance:
            return leave_one_out(problem, source, trained, session, few=few)
        # A mean field has no cavities, because its variances do not track the contribution of a row. So each half of
        # the rows is predicted by a fit to the other half.
        rows = at_most(source, FEW_LOO_ROWS if few else most_held(source.n_features), session.rng)
        direction = session.rng.standard_normal(source.n_features)
        parts = rows.map(partial(_projected, direction=direction))
        projected, y, weight = map(np.concatenate, zip(*parts, strict=True))
        groups = session.groups_of(rows)
        half = _halves(projected) if groups is None else session.rng.permutation(int(groups.max()) + 1)[groups] % 2
        targets = range(problem.head.n_functions)
        mean, variance = np.empty((rows.n_rows, len(targets))), np.empty((rows.n_rows, len(targets)))
        for side in (0, 1):
            inside, outside = np.flatnonzero(half == side), np.flatnonzero(half != side)
            functions = trained.functions
            if len(inside) and len(outside):
                other = rows.take(outside)
                alone = replace(problem, total_weight=other.total_weight)
                functions = train_mean_field(alone, other, session.plan(other), targets).functions
            if len(inside):
                view, _ = problem.view(functions, len(inside))
                moments: list[Moments] = list(rows.take(inside).map(view.moments))
                mean[inside], variance[inside] = (np.concatenate(column) for column in zip(*moments, strict=True))
        return Cavities(mean, variance, y, weight), rows.numbers


def _halves(projected: Array) -> RowNumbers:
    """Assign rows to two halves alternately, in the order of a projection; rows equal up to rounding stay together.

    The order does not depend on the units of the columns, unlike the digits of the projection.
    """
    order = np.argsort(projected, kind="stable")
    steps = np.diff(projected[order], prepend=projected[order[:1]]) > SAME_ROW * np.abs(projected).max()
    half = np.empty(len(order), np.intp)
    half[order] = np.cumsum(steps) % 2
    return half


def _projected(blocks: Iterable[Block], _: Workspace, *, direction: Array) -> tuple[Array, ...]:
    """A projection of rows, with their targets and weights."""
    parts = [(block.X @ direction, block.y, block.weights) for block in blocks]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
