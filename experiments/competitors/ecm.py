"""Competitors: expectation conditional maximisation (D20).

Henao, Yuan, Carin, *Bayesian Nonlinear Support Vector Machines and Discriminative Factor Modeling* (2014): the mode of
f by turns with the latent scales λ of D1, over all rows, with one Cholesky factor of an N×N matrix an iteration.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.competitors.dense import DenseClassifier, conditional, factor, solve

ON_THE_MARGIN = 1e-8  # |1 - y f| below which a row is on its margin; λ stays above it, and K + Λ positive definite


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
