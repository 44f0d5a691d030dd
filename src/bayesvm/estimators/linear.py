"""Estimators: the linear model, in primal space."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesvm.core.features import Features, LinearFeatures
from bayesvm.core.kernels import positive
from bayesvm.core.linalg import NotPositiveDefiniteError, cholesky
from bayesvm.core.posterior import DiagonalGaussian, Gaussian
from bayesvm.data.memory import MemorySource
from bayesvm.estimators._base import BaseBayesianSVC
from bayesvm.estimators._parameters import COMMON, one_of
from bayesvm.inference.objective import Model
from bayesvm.inference.training import Callback, Plan, Trained, train_mean_field

WIDEST_FULL_COVARIANCE = 5_000
INTERCEPT_VARIANCE = 100.0


class BayesianLinearSVC(BaseBayesianSVC):
    """Bayesian support vector machine with ``f(x) = xᵀβ + b``; cost grows with columns, not with rows squared.

    Parameters
    ----------
    prior_variance : number, vector of length D or D×D matrix
        Prior covariance of β on the scaled inputs: the paper's Σ.
    fit_intercept : bool
        Whether there is a b, with prior N(0, 100).
    covariance : "full" or "diagonal"
        "full" keeps a D×D posterior covariance, up to 5,000 columns; "diagonal" any number of columns,
        with batch inference only.

    The other parameters are those of ``BayesianSVC``.

    Attributes
    ----------
    coef_ : of shape (1, D), in the units of X. intercept_ : of shape (1,).
    coef_covariance_ : posterior covariance of ``coef_``, D×D; for a diagonal one, the D variances.
    classes_, elbo_, elbo_trace_, n_iter_, n_passes_, converged_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from bayesvm import BayesianLinearSVC
    >>> from bayesvm.datasets import twonorm
    >>> data = twonorm(2000, random_state=0)
    >>> BayesianLinearSVC().fit(data.X, data.y).coef_.shape
    (1, 20)
    """

    _parameter_checks = COMMON | {"fit_intercept": one_of(True, False), "covariance": one_of("full", "diagonal")}

    def __init__(
        self,
        prior_variance: Any = 1.0,
        fit_intercept: bool = True,
        covariance: str = "full",
        bound: str = "exact",
        inference: str = "auto",
        tune: str | None = "auto",
        scale: str | None = "auto",
        link: str = "probit",
        batch_size: Any = "auto",
        learning_rate: Any = "adaptive",
        max_iter: int = 100,
        tol: float = 2e-5,
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
        self.scale = scale
        self.link = link
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        return n_features + bool(self.fit_intercept)

    def _build_features(self, source: MemorySource, dtype: Any, rng: np.random.Generator) -> Features:
        if self.covariance == "full" and source.n_features > WIDEST_FULL_COVARIANCE:
            raise ValueError(
                f"X has {source.n_features} columns; a full posterior covariance is kept up to "
                f"{WIDEST_FULL_COVARIANCE}. Use covariance='diagonal'."
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
        except NotPositiveDefiniteError as error:
            raise ValueError(f"prior_variance must be positive definite: {error}") from error
        if not self.fit_intercept:
            return root
        padded = np.zeros((width + 1, width + 1))
        padded[:width, :width] = root
        padded[width, width] = np.sqrt(INTERCEPT_VARIANCE)
        return padded

    def _train(self, model: Model, source: MemorySource, plan: Plan, rng: Any, callback: Callback | None) -> Trained:
        if self.covariance == "full":
            return super()._train(model, source, plan, rng, callback)
        if self.inference == "stochastic":
            raise ValueError("covariance='diagonal' is fitted over all rows; use inference='auto' or 'batch'")
        return train_mean_field(model, source, plan, callback)

    def _store(self, features: Any, trained: Trained, dtype: Any) -> None:
        super()._store(features, trained, dtype)
        width = self.n_features_in_
        scale = np.ones(width) if self._scaler.scale is None else self._scaler.scale
        centre = np.zeros(width) if self._scaler.centre is None else self._scaler.centre
        q = trained.posterior
        if isinstance(q, Gaussian):
            root = np.diag(features.root) if features.root.ndim == 1 else features.root
            weights = root @ q.mean
            spread = root[:width] @ q.root()
            self.coef_covariance_ = (spread @ spread.T) / np.outer(scale, scale)
        elif isinstance(q, DiagonalGaussian):
            weights = features.root * q.mean
            self.coef_covariance_ = (features.root**2 * q.variance)[:width] / scale**2
        self.coef_ = (weights[:width] / scale)[None, :]
        bias = weights[width:].sum()  # the intercept's weight, if there is one
        self.intercept_ = np.array([bias - self.coef_[0] @ centre])
