"""Estimators: the linear model, in primal space."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesvm.core.features import LinearFeatures
from bayesvm.core.posterior import DiagonalGaussian, Gaussian
from bayesvm.data.scaling import ColumnScaler
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators.classification import BaseBayesianSVC
from bayesvm.estimators.columns import n_features
from bayesvm.estimators.parameters import CLASSIFIER, COMMON, one_of, whole
from bayesvm.inference.fitted import Fitted
from bayesvm.inference.linear_model import LinearModel


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

    _kind = "BayesianLinearSVC"
    _feature_map = LinearFeatures
    _parameter_checks = (
        COMMON
        | CLASSIFIER
        | {
            "fit_intercept": one_of(True, False),
            "covariance": one_of("full", "diagonal"),
            "tune_interval": whole(1),
            "tune": one_of("auto", "loo", "elbo", None),
            "scale": one_of("auto", "standard", "common", None),  # coefficients of ranks would mean nothing
        }
    )

    coef_ = FittedAttribute(lambda fitted: _coefficients(fitted)[0])
    intercept_ = FittedAttribute(lambda fitted: _coefficients(fitted)[1])
    coef_covariance_ = FittedAttribute(lambda fitted: _covariance(fitted))  # noqa: PLW0108  (it is defined below)

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

    @property
    def prior_variance_(self) -> Any:
        """Prior variances of the coefficients on the scaled inputs, as they were learned."""
        root, width = _features(self.fitted_).root, n_features(self)
        weights = root[:width] ** 2 if root.ndim == 1 else np.diag(root[:width] @ root[:width].T)
        return float(weights[0]) if np.ndim(self.prior_variance) == 0 else weights

    def _model(self, n_features: int) -> LinearModel:
        prior = np.asarray(self.prior_variance, np.float64)
        return LinearModel(prior, bool(self.fit_intercept), full_covariance=self.covariance == "full")


def _features(fitted: Fitted) -> LinearFeatures:
    features = fitted.member.features
    if not isinstance(features, LinearFeatures):
        raise TypeError("this model is not linear")
    return features


class _Columns(NamedTuple):
    """What leads from weights on whitened features to coefficients of the columns."""

    root: np.ndarray
    width: int
    scale: np.ndarray
    centre: np.ndarray

    @classmethod
    def of(cls, fitted: Fitted) -> _Columns:
        features, scaler = _features(fitted), fitted.first_scaler
        if not isinstance(scaler, ColumnScaler):
            raise TypeError("coefficients of ranks would mean nothing")
        width = features.n_weights - features.intercept
        scale = np.ones(width) if scaler.scale is None else scaler.scale
        centre = np.zeros(width) if scaler.centre is None else scaler.centre
        return cls(features.root, width, scale, centre)


def _coefficients(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of coefficients and intercepts in the units of X, a row for each latent function."""
    root, width, scale, centre = _Columns.of(fitted)
    means = [function.posterior.mean for function in fitted.member.functions]
    weights = np.stack([root * mean if root.ndim == 1 else root @ mean for mean in means])
    coefficients = weights[:, :width] / scale
    bias = weights[:, width:].sum(axis=1)  # the intercept's weight, if there is one
    return coefficients, bias - coefficients @ centre


def _covariance(fitted: Fitted) -> np.ndarray:
    """Posterior covariance of the coefficients, or their variances, of each latent function."""
    root, width, scale, _ = _Columns.of(fitted)
    covariances = []
    for function in fitted.member.functions:
        q = function.posterior
        if isinstance(q, Gaussian):
            spread = root[:width, None] * q.root[:width] if root.ndim == 1 else root[:width] @ q.root
            covariances.append((spread @ spread.T) / np.outer(scale, scale))
        elif isinstance(q, DiagonalGaussian):
            covariances.append((root**2 * q.variance)[:width] / scale**2)
    return covariances[0] if len(covariances) == 1 else np.stack(covariances)
