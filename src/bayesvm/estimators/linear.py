"""Estimators: the linear model, in primal space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayesvm.core.features import Features, LinearFeatures
from bayesvm.core.kernels import positive
from bayesvm.core.leave_one_out import Cavities
from bayesvm.core.linalg import NotFiniteError, NotPositiveDefiniteError, cholesky
from bayesvm.core.posterior import DiagonalGaussian, Gaussian
from bayesvm.core.statistics import Block, View
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, at_most, most_held
from bayesvm.data.repetition import merged
from bayesvm.estimators._base import BaseBayesianSVC, Prepared
from bayesvm.estimators._calibration import FEW_LOO_ROWS
from bayesvm.estimators._parameters import COMMON, one_of, whole
from bayesvm.estimators._schemas import MEAN_FIELD
from bayesvm.estimators._session import Session
from bayesvm.estimators.validation import column_name
from bayesvm.inference.evidence import maximise
from bayesvm.inference.families import LinearFamily
from bayesvm.inference.hyperparameters import Rows, moved, search
from bayesvm.inference.objective import Model, Task
from bayesvm.inference.training import Plan, Trained, train_mean_field

WIDEST_FULL_COVARIANCE = 5_000
WIDEST_TUNED = 500  # columns up to which the prior variance is learned,
TUNING_ROWS = 8_000  # from at most so many rows
ROWS_PER_FEATURE = 5  # from so many rows a column on,
TUNING_JUDGEMENTS = 8  # and so many trials
INTERCEPT_VARIANCE = 100.0
SAME_ROW = 1e-12  # of the largest projection, by which those of equal rows may differ
SMALLEST_SCALE = 1e-120  # of a column; the square of its inverse is a factor of coef_covariance_


class BayesianLinearSVC(BaseBayesianSVC):
    """Bayesian support vector machine with ``f(x) = xᵀβ + b``, for two classes or more, in primal space.

    Parameters and attributes that are not listed are those of ``BayesianSVC``; "auto" and "loo" tune alike, and
    ``scale="auto"`` is "standard".

    Parameters
    ----------
    prior_variance : number, vector of length D or D×D matrix
        Prior covariance of β on the scaled inputs: the paper's Σ. Tuning (up to 500 columns, from five rows a
        column on) starts there and learns one variance or one for every feature, as given; a matrix stays.
    fit_intercept : bool
        Whether there is a b, with prior N(0, 100).
    covariance : "full" or "diagonal"
        "full" keeps a D×D posterior covariance, up to 5,000 columns; "diagonal" any number of columns,
        with batch inference only, no ``partial_fit``, and two-fold predictions in the place of leave-one-out.

    Attributes
    ----------
    coef_ : array of shape (1, D), or (K, D) for K > 2 classes
        In the units of X.
    intercept_ : array of shape (1,) or (K,)
        The b.
    prior_variance_ : as ``prior_variance``
        As it was learned.
    coef_covariance_ : array of shape (D, D)
        Posterior covariance of ``coef_``; for a diagonal one, the D variances; for K > 2 classes one after the other
        along a first axis.

    Examples
    --------
    >>> from bayesvm import BayesianLinearSVC
    >>> from bayesvm.datasets import twonorm
    >>> data = twonorm(2000, random_state=0)
    >>> BayesianLinearSVC().fit(data.X, data.y).coef_.shape
    (1, 20)
    """

    _parameter_checks = COMMON | {
        "fit_intercept": one_of(True, False),
        "covariance": one_of("full", "diagonal"),
        "tune_interval": whole(1),
        "tune": one_of("auto", "loo", "elbo", None),
        "scale": one_of("auto", "standard", "common", None),  # coefficients of ranks would mean nothing
    }

    def __init__(
        self,
        prior_variance: Any = 1.0,
        fit_intercept: bool = True,
        covariance: str = "full",
        bound: str = "exact",
        inference: str = "auto",
        tune: str | None = "auto",
        tune_interval: int = 10,
        scale: str | None = "auto",
        link: str = "calibrated",
        noise: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "adaptive",
        max_iter: int = 100,
        tol: float = 5e-5,
        time_limit: float | None = None,
        warm_start: bool = False,
        class_weight: Any = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.prior_variance = prior_variance
        self.fit_intercept = fit_intercept
        self.covariance = covariance
        self.bound = bound
        self.inference = inference
        self.tune = tune
        self.tune_interval = tune_interval
        self.scale = scale
        self.link = link
        self.noise = noise
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        return n_features + bool(self.fit_intercept)

    def _wide_vectors(self, n_rows: int) -> int:
        return 200

    def _matrix_size(self, n_rows: int, n_features: int) -> int:
        return 1 if self.covariance == "diagonal" else super()._matrix_size(n_rows, n_features)

    def _build_features(self, source: BlockSource, dtype: Any, rng: np.random.Generator) -> Features:
        if self.covariance == "full" and source.n_features > WIDEST_FULL_COVARIANCE:
            raise ValueError(
                f"X has {source.n_features} columns; a full posterior covariance is kept up to "
                f"{WIDEST_FULL_COVARIANCE}. Use covariance='diagonal'."
            )
        scale: Any = getattr(source.scaler, "scale", None)
        if scale is not None and scale.min() < SMALLEST_SCALE:
            column = int(np.argmin(scale))
            raise ValueError(
                f"column {column_name(self, column)} varies by {scale[column]:.0e} only, and the variance of its "
                "coefficient, which is per unit of the column, is too large a number. Give the column in a smaller unit"
            )
        return LinearFeatures(self._prior_root(source.n_features), bool(self.fit_intercept))

    def _prior_root(self, width: int) -> np.ndarray:
        """A matrix ``root`` with ``root rootᵀ = Σ``, or the diagonal of one; the intercept comes last."""
        prior = np.asarray(self.prior_variance, np.float64)
        if prior.ndim < 2:
            if prior.ndim and prior.shape != (width,):
                raise ValueError(f"prior_variance has {len(prior)} entries, but X has {width} columns")
            root = np.sqrt(np.broadcast_to(positive("prior_variance", prior), (width,)))
            return np.append(root, np.sqrt(INTERCEPT_VARIANCE)) if self.fit_intercept else root.copy()
        if prior.shape != (width, width) or not np.allclose(prior, prior.T):
            raise ValueError(f"prior_variance has shape {prior.shape}; a symmetric {width}×{width} matrix is needed")
        if self.covariance == "diagonal":
            raise ValueError("covariance='diagonal' needs a number or a vector as prior_variance, not a matrix")
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

    def _prepared(self, raw: BlockSource, session: Session) -> Prepared:
        model, source, tasks = super()._prepared(raw, session)
        learns = self.tune is not None and self.covariance == "full" and source.n_features <= WIDEST_TUNED
        # With fewer rows leave-one-out trusts large weights.
        few = session.repetition.effective_rows < ROWS_PER_FEATURE * source.n_features
        if not learns or few or np.ndim(self.prior_variance) == 2:
            return model, source, tasks
        part = at_most(source, TUNING_ROWS, session.rng)
        part = merged(part) if session.repetition.copied else part
        labels = tuple(self._labels())
        rows = Rows(part, model.likelihood, labels, (0.0,) * len(labels))
        intercept = np.full(int(self.fit_intercept), np.sqrt(INTERCEPT_VARIANCE))
        prior = np.atleast_1d(np.asarray(self.prior_variance, np.float64))
        family = LinearFamily(prior, source.n_features, intercept)
        session.clock.stop.heeded = True
        if self.tune == "elbo":
            best, _ = maximise(rows, family, self.tune_interval, None, session.rng, session.clock)
        else:
            best = search(rows, family, None, TUNING_JUDGEMENTS).best
        self._features = best.features
        session.clock.stop.settle()
        start = replace(best.model, total_weight=source.total_weight)
        tasks = moved(start, best.tasks, part, best.features, rows.offsets)
        return self._model(best.features, source), source, tasks

    def _train(self, model: Model, source: BlockSource, plan: Plan, tasks: list[Task], session: Session) -> Trained:
        if self.covariance == "full":
            return super()._train(model, source, plan, tasks, session)
        if self.inference == "stochastic":
            raise ValueError("covariance='diagonal' is fitted over all rows; use inference='auto' or 'batch'")
        labels = [task.label for task in tasks]
        sizes = {"M": model.features.n_weights, "K": len(labels)}
        memory = session.checkpoint.training("mean field", MEAN_FIELD, sizes)
        return train_mean_field(model, source, plan, labels, session.audience.tell, memory)

    def _left_out(
        self, model: Model, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, np.ndarray]:
        if self.covariance == "full":
            return super()._left_out(model, source, trained, session, few=few)
        rng = session.rng
        # A mean field has no cavities: its variances do not know what a row contributed. So each half of the rows is
        # predicted by a fit to the other.
        rows = at_most(source, FEW_LOO_ROWS if few else most_held(source.n_features), rng)
        labels, direction = [machine.label for machine in trained.machines], rng.standard_normal(source.n_features)
        projected, y, weight = map(np.concatenate, zip(*rows.map(partial(_seen, direction=direction)), strict=True))
        half = _halves(projected)
        mean, variance = np.empty((rows.n_rows, len(labels))), np.empty((rows.n_rows, len(labels)))
        for side in (0, 1):
            inside, outside = np.flatnonzero(half == side), np.flatnonzero(half != side)
            if len(inside) and len(outside):
                other = rows.take(outside)
                fit = train_mean_field(
                    replace(model, total_weight=other.total_weight), other, self._plan(other, session), labels
                )
                view, _ = View.of(model.features, fit.machines, len(inside), model.dtype)
            else:
                view, _ = View.of(model.features, trained.machines, rows.n_rows, model.dtype)
            if len(inside):
                moments = list(rows.take(inside).map(view.moments))
                mean[inside], variance[inside] = (np.concatenate(column) for column in zip(*moments, strict=True))
        return Cavities(mean, variance, y, weight), rows.numbers

    def _store(self, model: Model, trained: Trained) -> None:
        super()._store(model, trained)
        width, root = self.n_features_in_, self._features.root
        weights = root[:width] ** 2 if root.ndim == 1 else np.diag(root[:width] @ root[:width].T)
        self.prior_variance_ = float(weights[0]) if np.ndim(self.prior_variance) == 0 else weights
        scaler: Any = self._scaler  # one of columns: ranks are refused above
        scale = np.ones(width) if scaler.scale is None else scaler.scale
        centre = np.zeros(width) if scaler.centre is None else scaler.centre
        weights, covariances = [], []
        for machine in trained.machines:
            q = machine.posterior
            weights.append(root * q.mean if root.ndim == 1 else root @ q.mean)
            if isinstance(q, Gaussian):
                factor = q.root
                spread = root[:width, None] * factor[:width] if root.ndim == 1 else root[:width] @ factor
                covariances.append((spread @ spread.T) / np.outer(scale, scale))
            elif isinstance(q, DiagonalGaussian):
                covariances.append((root**2 * q.variance)[:width] / scale**2)
        stacked = np.stack(weights)
        self.coef_ = stacked[:, :width] / scale
        self.coef_covariance_ = covariances[0] if len(covariances) == 1 else np.stack(covariances)
        bias = stacked[:, width:].sum(axis=1)  # the intercept's weight, if there is one
        self.intercept_ = bias - self.coef_ @ centre


def _halves(projected: np.ndarray) -> np.ndarray:
    """Rows in the order of a projection go to either half by turns; equal ones, up to rounding, go together.

    Their order does not depend on the units of the columns, as digits of the projection do.
    """
    order = np.argsort(projected, kind="stable")
    steps = np.diff(projected[order], prepend=projected[order[:1]]) > SAME_ROW * np.abs(projected).max()
    half = np.empty(len(order), np.intp)
    half[order] = np.cumsum(steps) % 2
    return half


def _seen(blocks: Iterable[Block], _: Workspace, *, direction: np.ndarray) -> tuple[np.ndarray, ...]:
    """A projection of some rows, their classes and their weights."""
    parts = [
        (block.X @ direction, block.y, np.ones(len(block.y)) if block.weight is None else block.weight)
        for block in blocks
    ]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
