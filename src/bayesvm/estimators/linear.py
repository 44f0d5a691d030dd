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
    """Bayesian support vector machine with ``f(x) = xᵀβ + b``, for two or more classes, in primal space.

    Parameters
    ----------
    prior_variance : float, array of shape (n_features,) or array of shape (n_features, n_features), default=1.0
        Prior covariance of β on the scaled inputs: Σ of the paper. Tuning (up to 500 columns, from five rows per column
        on) starts there and learns one variance or one per feature, as given; a matrix is kept.
    fit_intercept : bool, default=True
        Whether to fit b, with prior N(0, 100).
    covariance : {"full", "diagonal"}, default="full"
        "full" keeps a D×D posterior covariance, for up to 5,000 columns. "diagonal" takes any number of columns, but
        only batch inference and no ``partial_fit``; two-fold predictions replace the leave-one-out ones.
    bound : {"exact", "augmented"}, default="exact"
        "exact" uses the expected hinge loss itself, "augmented" the looser bound of the paper.
    inference : {"auto", "batch", "stochastic"}, default="auto"
        "batch": updates over all rows. "stochastic": minibatches (algorithm 1 of the paper), then at least one pass
        over all rows. "auto": batch; with many rows, growing random subsets first.
    tune : {"auto", "loo", "elbo"} or None, default="auto"
        "auto" and "loo" learn the prior variance by the gradient of the leave-one-out loss. "elbo": the method of the
        paper, which alternates ``tune_interval`` variational updates with one gradient step of the ELBO. None keeps
        the prior variance fixed.
    tune_interval : int, default=10
        Number of variational updates between two steps of ``tune="elbo"``.
    scale : {"auto", "standard", "common"} or None, default="auto"
        "standard" scales each column to mean 0 and standard deviation 1. "common" divides all columns by the same
        number, for pixels and spectra. "auto" is "standard".
    link : {"calibrated", "probit", "hinge", "paper"}, default="calibrated"
        How f becomes a probability. "calibrated": the mean of two probits, fitted to leave-one-out marginals; with more
        than two classes, a softmax with a scale and a bias per class. "probit": P(f + unit noise > 0). "hinge": the
        normalised pseudo-likelihood. "paper": the printed formula, to reproduce it. With more than two classes, all but
        "calibrated" divide by the sum over the classes.
    noise : float or "auto", default="auto"
        Variance of the noise that is added to f of every row before the hinge loss. With 0, the hinge loss of the
        paper, many rows pull f to ±1, which separates the classes but gives poor probabilities (D22). "auto" is 1 with
        ``tune="auto"`` or "loo", otherwise 0.
    batch_size : int or "auto", default="auto"
        Number of rows of a minibatch; "auto" is 4096.
    learning_rate : {"adaptive", "robbins_monro"} or float, default="adaptive"
        Step size of stochastic inference; a number in (0, 1] is a constant step size.
    max_iter : int, default=100
        Budget in passes over the data, including rejected steps.
    tol : float, default=5e-5
        Stop when the estimated gain in ELBO of further updates is below this many nats per row; with the default, a
        tuned model also stops when it is below 0.01 nats in total. 0 uses the whole budget.
    time_limit : float or None, default=None
        Budget in seconds. The current update is completed.
    warm_start : bool, default=False
        Whether another call of ``fit`` keeps the scaling and the prior and starts from the current posterior.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied by the sample weights. The probabilities are then those of the reweighted
        population.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the arithmetic inside blocks during ``fit``. Sums and predictions always use double precision.
        "auto" is single when rows × columns reaches one million.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. Results are bit-identical for any number.
    random_state : int, RandomState or None, default=None
        Controls the randomness. With an int, results are bit-identical on one machine with one set of library versions.
    verbose : int, default=0
        1 shows the progress.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels, sorted. Of two classes, the second is the positive class.
    loo_proba_ : array of shape (n_left_out, n_classes)
        Leave-one-out probabilities of the rows ``loo_indices_``, from this one fit.
    loo_log_loss_ : float
        Leave-one-out estimate of the log loss.
    loo_error_ : float
        Leave-one-out estimate of the error rate.
    loo_indices_ : array of shape (n_left_out,)
        Indices of the rows of X behind the leave-one-out estimates: all rows up to 20,000, a random choice beyond.
    calibration_scale_ : array
        Scales of the calibrated link: of each of the two probits for two classes, of each class for more.
    calibration_bias_ : array
        Biases of the calibrated link, in the same order.
    calibration_share_ : float
        Weight of the second probit of the calibrated link; two classes only.
    noise_ : float
        Variance of the noise that was used.
    scale_ : str or None
        The scaling that was used.
    coef_ : array of shape (1, n_features), or (n_classes, n_features) for more than two classes
        Posterior means of the coefficients, in the units of X.
    intercept_ : array of shape (1,) or (n_classes,)
        Posterior means of the intercepts.
    prior_variance_ : float or array of shape (n_features,)
        Prior variance of the coefficients on the scaled inputs, as learned: one number if ``prior_variance`` is one,
        else one per feature.
    coef_covariance_ : array of shape (n_features, n_features)
        Posterior covariance of ``coef_``; with ``covariance="diagonal"``, the variances only. With more than two
        classes, a first axis runs over the classes.
    n_samples_ : int
        Number of rows with non-zero weight that the model was fitted to; in a stream, of all parts. Missing for models
        loaded from files of version 1.
    elbo_ : float
        Evidence lower bound after the last update, in nats.
    elbo_trace_ : array of shape (n_updates,)
        Evidence lower bound after each update.
    n_iter_ : int
        Number of updates.
    n_passes_ : float
        Number of passes over the data: rows read divided by rows given.
    converged_ : bool
        Whether the fit reached ``tol``.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only if X was a data frame or a table.
    recipe_ : Recipe or None
        How the columns of X (text, categories, dates, missing values) become numeric features; None if X has only
        numbers, and no missing value says something about y.
    completion_ : Completion or None
        Completes missing values of X from the other values of their row, with a Gaussian copula learned from the
        training rows (D33). None for sparse X, and for more than 2,000 columns without a missing value.

    See Also
    --------
    BayesianSVC : The same with a kernel, for nonlinear functions.
    load : Read a model that ``save`` wrote.

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
    """The map from weights of whitened features to coefficients of the columns."""

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
