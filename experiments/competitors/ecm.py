"""Competitors: expectation conditional maximisation (D20), and what it shares with the sampler in ``gibbs.py``.

Henao, Yuan, Carin, *Bayesian Nonlinear Support Vector Machines and Discriminative Factor Modeling* (2014): the mode of
f by turns with the latent scales λ of D1, over all rows, with one Cholesky factor of an N×N matrix an iteration.
"""

import warnings

import numpy as np
from scipy import linalg
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvm.core.links import PLAIN_LINKS
from bayesvm.kernels import RBF

ON_THE_MARGIN = 1e-8  # |1 - y f| below which a row is on its margin; λ stays above it, and K + Λ positive definite


class DenseClassifier(ClassifierMixin, BaseEstimator):
    """Two classes, the kernel matrix of all rows, and probabilities through one of the library's plain links."""

    def _begin(self, X, y):
        """The kernel matrix and the labels as signs, from whatever ``fit`` was given."""
        if self.link not in PLAIN_LINKS:
            raise ValueError(f"link must be one of {', '.join(map(repr, PLAIN_LINKS))}; got {self.link!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}; "
                f"y has {len(self.classes_)} class(es)"
            )
        self._X = X
        return self._kernel()(X, X), 2.0 * codes - 1

    def _kernel(self):
        return RBF(self.length_scale, self.variance)

    def _new(self, X):
        """``k(x, x)`` of new rows, and ``k(training rows, x)``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._kernel().diagonal(X), self._kernel()(self._X, X)

    def _probability(self, mean, variance):
        return ndtr(PLAIN_LINKS[self.link].score(mean, variance))

    def predict(self, X):
        second = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def factor(K, scales):
    """The lower Cholesky factor of ``K + Λ``."""
    A = K.copy()
    A.flat[:: len(A) + 1] += scales
    return linalg.cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)  # A.T: LAPACK works in place


def solve(L, b):
    """``(L Lᵀ)⁻¹ b``."""
    return linalg.cho_solve((L, True), b, check_finite=False)


def conditional(L, beta, k_new, k_diagonal):
    """Mean and variance of f at new rows given λ, where ``beta = (K+Λ)⁻¹ y(1+λ)`` (D20)."""
    half = linalg.solve_triangular(L, k_new, lower=True, check_finite=False)
    return k_new.T @ beta, np.maximum(k_diagonal - np.einsum("ij,ij->j", half, half), 0.0)


class ECMClassifier(DenseClassifier):
    """The mode of the pseudo-posterior, with the variance that f has given the latent scales there (D20).

    Without the exponential prior the mode is the support vector machine with C = 2 and no intercept.

    Parameters
    ----------
    length_scale, variance : of ``bayesvm.kernels.RBF``
    exponential_prior : whether λ has a prior, by which the hinge becomes a skewed Laplace law; else it is flat
    prior_rate : the rate γ of that prior; the slopes of the loss are √(1+2γ) + 1 and √(1+2γ) - 1
    max_iter : budget of iterations
    tol : stop when the objective rises by less than this share of itself; 0 uses the whole budget
    link : "probit", "paper" or "hinge", as in ``BayesianSVC``

    Attributes
    ----------
    classes_, n_iter_
    f_ : the mode at the training rows
    objective_ : log pseudo-posterior of f after every iteration, up to a constant; it never falls
    """

    def __init__(
        self,
        length_scale=5.0,
        variance=1.0,
        exponential_prior=False,
        prior_rate=1.0,
        max_iter=200,
        tol=1e-6,
        link="probit",
    ):
        self.length_scale = length_scale
        self.variance = variance
        self.exponential_prior = exponential_prior
        self.prior_rate = prior_rate
        self.max_iter = max_iter
        self.tol = tol
        self.link = link

    def fit(self, X, y):
        if self.max_iter < 1 or self.prior_rate <= 0:
            raise ValueError(
                f"max_iter must be at least 1 and prior_rate positive; got {self.max_iter!r} and {self.prior_rate!r}"
            )
        K, signs = self._begin(X, y)
        slope = np.sqrt(1 + 2 * self.prior_rate) if self.exponential_prior else 1.0  # √ψ
        floor = ON_THE_MARGIN * max(1.0, self.variance)
        away = np.ones(len(K))  # |1 - y f| at f = 0
        self.objective_ = []
        for _ in range(self.max_iter):
            scales = away / slope  # E-step: 1/E[1/λ]
            self._L = factor(K, scales)
            self._beta = solve(self._L, signs * (1 + scales))
            self.f_ = K @ self._beta  # CM-step: C y(1/λ + 1), without inverting K or Λ
            a = 1 - signs * self.f_
            away = np.maximum(np.abs(a), floor)
            # -a - √ψ|a| and the prior. Within the floor |a| is rounded to a parabola, of which the steps are still
            # an exact ascent.
            fit = np.sum(a + 0.5 * slope * (a * a / away + away))
            self.objective_.append(-fit - 0.5 * self.f_ @ self._beta)
            if len(self.objective_) > 1 and np.diff(self.objective_[-2:])[0] <= self.tol * abs(self.objective_[-1]):
                break
        else:
            self._warn()
        self.n_iter_ = len(self.objective_)
        self.objective_ = np.array(self.objective_)
        return self

    def _warn(self):
        if self.tol > 0:
            warnings.warn(
                f"the budget of {self.max_iter} iterations was used before the objective settled to tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def latent_mean_and_variance(self, X):
        """Of f at new rows, given the latent scales of the mode."""
        diagonal, k_new = self._new(X)
        return conditional(self._L, self._beta, k_new, diagonal)

    def predict_proba(self, X):
        p = self._probability(*self.latent_mean_and_variance(X))
        return np.column_stack([1 - p, p])
