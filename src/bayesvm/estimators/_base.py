"""Estimators: what the kernel and the linear model share: fit, streams, leave-one-out, files."""

from __future__ import annotations

import time
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from bayesvm.core.features import Features
from bayesvm.core.leave_one_out import Cavities, joined
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.links import Probit, Softmax
from bayesvm.core.posterior import Gaussian
from bayesvm.core.statistics import View
from bayesvm.data.blocks import block_rows, map_reduce
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.estimators._calibration import capped, cavities, decision, fitted_link
from bayesvm.estimators._parameters import COMMON, check_parameters
from bayesvm.estimators._prediction import PredictionMixin, jobs, probabilities
from bayesvm.estimators._validation import coded, coded_as, row_weights, training_data
from bayesvm.inference.learning_rates import AdaptiveRate, FixedRate, LearningRate, RobbinsMonro
from bayesvm.inference.objective import Model, Task
from bayesvm.inference.training import Callback, Plan, Trained, train
from bayesvm.progress import progress_display

SINGLE_FROM = 1_000_000  # features in all, N·M, from which blocks are in single precision
SMALL_MATRICES = 512  # weights below which factorisations are not worth several threads
PRIOR_MEAN_ROWS = 4_096  # of which a first fit tells what the prior mean must be
MANY_ROWS = 2**62  # prediction always sees the posterior in the coordinates made for many rows


class BaseBayesianSVC(PredictionMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """The walk of ``fit``; subclasses say what the features are."""

    _parameter_checks = COMMON

    @abstractmethod
    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        """About how many features a row will have; decides precision and block size."""

    @abstractmethod
    def _build_features(self, source: MemorySource, dtype: Any, rng: np.random.Generator) -> Features:
        """The feature map, and fitted attributes that belong to it."""

    @abstractmethod
    def _offsets(self, rates: np.ndarray, link: Any) -> list[float]:
        """The prior means of f, for which a row far away gets the base rates."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> Any:
        """Fit to rows ``X`` and labels ``y``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), two or more classes of any type
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as the row given twice, a weight of 0 as the row left out.
        callback : callable, optional
            Called with a ``Progress`` after every update.
        """
        check_parameters(self, self._parameter_checks)
        X, y = training_data(self, X, y)
        classes, codes = coded(self, y)
        weight = row_weights(sample_weight, self.class_weight, X, codes, classes)
        given = np.arange(X.shape[0])
        if weight is not None and not weight.all():
            given = np.flatnonzero(weight)
            X, codes, weight = X[given], codes[given], weight[given]
            empty = np.setdiff1d(np.arange(len(classes)), codes)
            if len(empty):
                raise ValueError(
                    f"all rows of class {classes[empty[0]]!r} have zero weight; leave them out of y instead"
                )
        again = self.warm_start and self._can_go_on(classes)
        self.classes_ = classes
        rng = self._generator()
        with self._session(X, codes, weight, callback, rng, keep=again) as (model, source, on_update):
            tasks = self._first_tasks(source, again=again)
            if self._moves_the_mean() and not again:
                tasks = self._with_prior_mean(model, source, tasks, rng, on_update)
            trained = self._train(model, source, self._plan(source), tasks, rng, on_update)
            self._store(model, trained)
            cavity, which = self._leave_out(model, source, trained, rng)
            self._calibrate(cavity, given[which])
        self._warn_if_unfinished(trained)
        return self

    @available_if(lambda self: getattr(self, "covariance", "full") == "full")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more part of a stream.

        The first call (if there was no ``fit``) needs ``classes``, all labels that will come; it sets scaling, kernel
        and inducing points, which stay as they are. Each part's sites are added to the posterior so far, for good;
        the link is fitted again to leave-one-out marginals remembered from all parts (at most 20,000).
        """
        check_parameters(self, self._parameter_checks)
        first = not hasattr(self, "_machines")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs `classes`, all labels that will come")
        X, y = training_data(self, X, y, first=first)
        if first:
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"`classes` must hold at least two labels, got {self.classes_.tolist()}")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"`classes` differs from the first call's {self.classes_.tolist()}")
        codes = coded_as(self.classes_, y)
        weight = row_weights(sample_weight, self.class_weight, X, codes, self.classes_)
        rng = self._generator()
        with self._session(X, codes, weight, None, rng, keep=not first) as (model, source, on_update):
            tasks = self._first_tasks(source, again=False) if first else self._tasks_from_here()
            trained = self._train(model, source, replace(self._plan(source), inference="batch"), tasks, rng, on_update)
            self._store(model, trained)
            cavity, _ = self._leave_out(model, source, trained, rng)
            seen = cavity if first else joined([self._cavities, cavity])
            self._calibrate(capped(seen, rng), None)
        return self

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, without pickle; ``bayesvm.load`` reads it back, to the same bits."""
        from bayesvm.estimators._files import save  # noqa: PLC0415  (it must know the estimators, which import this)

        save(self, path)

    @contextmanager
    def _session(
        self, X: Any, codes: Any, weight: Any, callback: Any, rng: Any, *, keep: bool
    ) -> Iterator[tuple[Model, MemorySource, Callback | None]]:
        """Threads, progress, a source of scaled blocks and the model to be trained, for the length of a ``with``.

        Scaling and features are made anew, or kept when a model goes on learning.
        """
        n_weights = self._expected_weights(*X.shape)
        dtype = _block_dtype(self.precision, X.shape[0] * n_weights)
        workers = Workers(jobs(self.n_jobs), small_matrices=n_weights < SMALL_MATRICES)
        with workers, progress_display(self.verbose, callback) as on_update:
            raw = MemorySource(X, codes, weight, ColumnScaler(), workers, block_rows(n_weights, X.shape[1]))
            if not keep:
                self._scaler = ColumnScaler() if self.scale is None else map_reduce(raw, ColumnMoments.of).scaler()
            source = replace(raw, scaler=self._scaler)
            if not keep:
                self._features = self._build_features(source, dtype, rng)
            yield Model(self._features, LIKELIHOODS[self.bound], dtype, source.total_weight), source, on_update

    def _can_go_on(self, classes: np.ndarray) -> bool:
        """Whether there is an earlier fit of the same classes to start from."""
        machines: Any = getattr(self, "_machines", None)
        full = machines is not None and isinstance(machines[0].posterior, Gaussian)
        return full and list(classes) == list(self.classes_)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _labels(self) -> list[int]:
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _moves_the_mean(self) -> bool:
        """Whether the prior mean is set from the data; ``tune=None`` leaves everything fixed, at zero mean."""
        return self.tune is not None and self.link != "paper"

    def _first_tasks(self, source: MemorySource, *, again: bool) -> list[Task]:
        prior = Gaussian.prior(self._features.n_weights)
        if again:
            return [replace(task, prior=prior) for task in self._tasks_from_here()]
        self._rates = self._base_rates(source)
        offsets = self._offsets(self._rates, None) if self._moves_the_mean() else [0.0] * len(self._labels())
        return [Task(label, offset, prior, prior) for label, offset in zip(self._labels(), offsets, strict=True)]

    def _tasks_from_here(self) -> list[Task]:
        machines = [(m, m.posterior) for m in self._machines]
        return [Task(m.label, m.offset, q, q) for m, q in machines if isinstance(q, Gaussian)]

    def _base_rates(self, source: MemorySource) -> np.ndarray:
        share = np.bincount(source.y, source.weight, minlength=len(self.classes_)) + 0.5
        return (share / share.sum())[self._labels()]

    def _with_prior_mean(
        self, model: Model, source: MemorySource, tasks: list[Task], rng: Any, on_update: Any
    ) -> list[Task]:
        """Fit some rows, calibrate, and move the prior mean: far away the *calibrated* probability is the base rate."""
        if self.link != "calibrated":
            return tasks
        part = source if source.n_rows <= PRIOR_MEAN_ROWS else source.subset(PRIOR_MEAN_ROWS, rng)
        plan = replace(self._plan(source), inference="auto", tol=1e-3)
        hear = on_update and (lambda progress: on_update(replace(progress, phase="prior mean")))
        small = replace(model, total_weight=part.total_weight)  # each row's site is in q once, as cavities need it
        trained = train(small, part, plan, tasks, rng, hear)
        link = fitted_link("calibrated", cavities(small, part, trained, rng)[0])
        moved = self._offsets(self._rates, link)
        return [replace(task, offset=offset) for task, offset in zip(trained.tasks, moved, strict=True)]

    def _train(
        self, model: Model, source: MemorySource, plan: Plan, tasks: list[Task], rng: Any, callback: Any
    ) -> Trained:
        return train(model, source, plan, tasks, rng, callback)

    def _leave_out(self, model: Model, source: MemorySource, trained: Trained, rng: Any) -> tuple[Cavities, np.ndarray]:
        """What the fit would say of its rows had it not seen them, and which rows those are."""
        return cavities(model, source, trained, rng, self._view)

    def _plan(self, source: MemorySource) -> Plan:
        size = min(source.n_rows, 4096 if self.batch_size == "auto" else int(self.batch_size))
        deadline = np.inf if self.time_limit is None else time.monotonic() + self.time_limit
        rate = _learning_rate(self.learning_rate)
        return Plan(self.inference, int(self.max_iter), float(self.tol), size, rate, deadline)

    def _store(self, model: Model, trained: Trained) -> None:
        self._machines = trained.machines
        self._view, _ = View.of(model.features, trained.machines, MANY_ROWS, model.dtype)
        self.elbo_ = trained.elbo
        self.elbo_trace_ = np.array(trained.trace)
        self.n_iter_ = len(trained.trace)
        self.n_passes_ = trained.passes
        self.converged_ = trained.converged

    def _calibrate(self, cavity: Cavities, indices: np.ndarray | None) -> None:
        """Fit the link to leave-one-out marginals, and say how good they are."""
        self._cavities = cavity
        self._link = fitted_link(self.link, cavity)
        if isinstance(self._link, Probit | Softmax):
            self.calibration_scale_ = self._link.scale
            self.calibration_bias_ = np.atleast_1d(self._link.bias)
        self.loo_proba_ = probabilities(decision(self._link, cavity))
        if indices is not None:
            self.loo_indices_ = indices
        right = self.loo_proba_[np.arange(len(cavity.y)), cavity.y]
        self.loo_log_loss_ = float(np.average(-np.log(np.maximum(right, 1e-300)), weights=cavity.weight))
        self.loo_error_ = float(np.average(self.loo_proba_.argmax(axis=1) != cavity.y, weights=cavity.weight))

    def _warn_if_unfinished(self, trained: Trained) -> None:
        if not trained.converged and self.tol > 0:
            budget = f"{self.max_iter} passes" + ("" if self.time_limit is None else f" or {self.time_limit} seconds")
            warnings.warn(
                f"{type(self).__name__} used its budget of {budget} before the ELBO settled to "
                f"tol={self.tol:g} nats per row; raise max_iter (or time_limit), or tol if that is good enough. "
                "elbo_trace_ shows how far it was.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _block_dtype(precision: str, n_features: int) -> Any:
    if precision == "auto":
        return np.float32 if n_features >= SINGLE_FROM else np.float64
    return {"single": np.float32, "double": np.float64}[precision]


def _learning_rate(rate: Any) -> LearningRate:
    if rate == "adaptive":
        return AdaptiveRate()
    return RobbinsMonro() if rate == "robbins_monro" else FixedRate(float(rate))
