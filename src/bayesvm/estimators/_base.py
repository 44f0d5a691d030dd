"""Estimators: what the kernel and the linear model share: fit, prediction in blocks, links."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import log_ndtr, ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from bayesvm.core.features import Features
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.links import LINKS
from bayesvm.core.statistics import View
from bayesvm.data.blocks import block_rows, map_reduce
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.estimators._parameters import COMMON, check_parameters
from bayesvm.estimators._validation import new_data, row_weights, training_data
from bayesvm.inference.learning_rates import AdaptiveRate, FixedRate, LearningRate, RobbinsMonro
from bayesvm.inference.objective import Model
from bayesvm.inference.training import Callback, Plan, Trained, train
from bayesvm.progress import progress_display

SINGLE_FROM = 5_000_000  # features in all, N·M, from which blocks are in single precision
SMALL_MATRICES = 512  # weights below which factorisations are not worth several threads
MANY_ROWS = 2**62  # prediction always sees the posterior in the coordinates made for many rows


class BaseBayesianSVC(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """The walk of ``fit`` and ``predict_proba``; subclasses say what the features are."""

    _parameter_checks = COMMON

    @abstractmethod
    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        """About how many features a row will have; decides precision and block size."""

    @abstractmethod
    def _build_features(self, source: MemorySource, dtype: Any, rng: np.random.Generator) -> Features:
        """The feature map, and fitted attributes that belong to it."""

    def _train(self, model: Model, source: MemorySource, plan: Plan, rng: Any, callback: Callback | None) -> Trained:
        return train(model, source, plan, rng, callback)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> Any:
        """Fit to rows ``X`` and labels ``y``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), two classes of any type
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as the row given twice, a weight of 0 as the row left out.
        callback : callable, optional
            Called with a ``Progress`` after every update.
        """
        check_parameters(self, self._parameter_checks)
        X, sign, self.classes_ = training_data(self, X, y)
        weight = row_weights(sample_weight, self.class_weight, X, sign, self.classes_)
        if weight is not None and not weight.all():
            X, sign, weight = X[weight > 0], sign[weight > 0], weight[weight > 0]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        n_weights = self._expected_weights(*X.shape)
        dtype = self._block_dtype(len(X) * n_weights)
        workers = Workers(_jobs(self.n_jobs), small_matrices=n_weights < SMALL_MATRICES)
        with workers, progress_display(self.verbose, callback) as on_update:
            rows = block_rows(n_weights)
            raw = MemorySource(X, sign, weight, ColumnScaler(), workers, rows)
            self._scaler = ColumnScaler() if self.scale is None else map_reduce(raw, ColumnMoments.of).scaler()
            source = MemorySource(X, sign, weight, self._scaler, workers, rows)
            features = self._build_features(source, dtype, rng)
            model = Model(features, LIKELIHOODS[self.bound], dtype, source.total_weight)
            trained = self._train(model, source, self._plan(source), rng, on_update)
        self._store(features, trained, dtype)
        self._warn_if_unfinished(trained)
        return self

    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the latent function f at each row."""
        X = new_data(self, X)
        with Workers(_jobs(self.n_jobs)) as workers:
            unlabelled = np.zeros(len(X), np.int8)
            source = MemorySource(X, unlabelled, None, self._scaler, workers, block_rows(len(self._view.mean)))
            parts = list(source.map(self._view.moments))
        return np.concatenate([m for m, _ in parts]), np.concatenate([v for _, v in parts])

    def decision_function(self, X: Any) -> np.ndarray:
        """The probit of P(second class): positive where that class is predicted, and ordered like the probability."""
        return LINKS[self.link](*self.latent_mean_and_variance(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes, columns in the order of ``classes_``."""
        z = self.decision_function(X)
        return np.column_stack([ndtr(-z), ndtr(z)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, accurate where those round to zero or one."""
        z = self.decision_function(X)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)])

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _block_dtype(self, n_features: int) -> Any:
        if self.precision == "auto":
            return np.float32 if n_features >= SINGLE_FROM else np.float64
        return {"single": np.float32, "double": np.float64}[self.precision]

    def _plan(self, source: MemorySource) -> Plan:
        size = min(source.n_rows, 4096 if self.batch_size == "auto" else int(self.batch_size))
        return Plan(self.inference, int(self.max_iter), float(self.tol), size, _learning_rate(self.learning_rate))

    def _store(self, features: Features, trained: Trained, dtype: Any) -> None:
        self._posterior = trained.posterior
        self._view, _ = View.of(features, trained.posterior, MANY_ROWS, dtype)
        self.elbo_ = trained.elbo
        self.elbo_trace_ = np.array(trained.trace)
        self.n_iter_ = len(trained.trace)
        self.n_passes_ = trained.passes
        self.converged_ = trained.converged

    def _warn_if_unfinished(self, trained: Trained) -> None:
        if not trained.converged and self.tol > 0:
            warnings.warn(
                f"{type(self).__name__} used its budget of {self.max_iter} passes before the ELBO settled to "
                f"tol={self.tol:g} nats per row; raise max_iter, or tol if that is good enough. "
                "elbo_trace_ shows how far it was.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _jobs(n_jobs: int | None) -> int:
    """``None`` means all cores (and one inside a parallel search, as joblib says)."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))


def _learning_rate(rate: Any) -> LearningRate:
    if rate == "adaptive":
        return AdaptiveRate()
    return RobbinsMonro() if rate == "robbins_monro" else FixedRate(float(rate))
