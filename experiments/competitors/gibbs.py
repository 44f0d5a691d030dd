"""Competitors: a Gibbs sampler of the augmented model (D21), slow and exact: the truth for small sets.

Polson, Scott, *Data Augmentation for Support Vector Machines* (2011), with the kernels of Henao, Yuan, Carin (2014).
"""

from typing import NamedTuple

import numpy as np
from scipy import fft, linalg
from scipy.special import log_ndtr, logsumexp
from sklearn.utils import check_random_state

from experiments.competitors.dense import DenseClassifier, conditional, factor, solve

JITTER = 1e-8  # of the variance, added to the diagonal of K, so that the prior can be drawn from


class LeaveOneOut(NamedTuple):
    """What the other rows say of each row: moments of f, P(second class), and how many draws really speak."""

    mean: np.ndarray
    variance: np.ndarray
    probability: np.ndarray
    effective_draws: np.ndarray


class GibbsClassifier(DenseClassifier):
    """Draws from the pseudo-posterior of f over all rows, a Cholesky factor of an N×N matrix each (D21).

    Parameters
    ----------
    length_scale, variance : of ``bayesvm.kernels.RBF``
    n_draws, burn_in : draws that are used, and those before them that are not
    n_kept : how many of the draws of λ, evenly spaced, predictions and leave-one-out average over
    link : "probit", "paper" or "hinge", as in ``BayesianSVC``
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_
    f_mean_, f_variance_ : of f at the training rows
    draws_ : of f, a row for each draw
    effective_sample_size_ : so many independent draws would know the mean of f as well; for every training row
    """

    def __init__(
        self,
        length_scale=5.0,
        variance=1.0,
        n_draws=2000,
        burn_in=200,
        n_kept=100,
        link="probit",
        random_state=None,
    ):
        self.length_scale = length_scale
        self.variance = variance
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.n_kept = n_kept
        self.link = link
        self.random_state = random_state

    def fit(self, X, y):
        if not (1 <= self.n_kept <= self.n_draws and self.n_draws >= 2 and self.burn_in >= 0):
            raise ValueError(
                "n_draws must be at least 2, burn_in at least 0 and n_kept between 1 and n_draws; "
                f"got {self.n_draws!r}, {self.burn_in!r}, {self.n_kept!r}"
            )
        self._K, self._signs = self._begin(X, y)
        self._K.flat[:: len(self._K) + 1] += JITTER * self.variance
        root = factor(self._K, 0.0)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        kept = set(np.linspace(0, self.n_draws - 1, self.n_kept).round().astype(int).tolist())
        self.draws_ = np.empty((self.n_draws, len(self._K)))
        self._scales = []
        f = np.zeros(len(self._K))
        for t in range(-self.burn_in, self.n_draws):
            scales = draw_scales(np.abs(1 - self._signs * f), rng)
            f = draw_function(self._K, root, self._signs, scales, rng)
            if t >= 0:
                self.draws_[t] = f
            if t in kept:
                self._scales.append(scales)
        self.f_mean_ = self.draws_.mean(axis=0)
        self.f_variance_ = self.draws_.var(axis=0, ddof=1)
        self.effective_sample_size_ = effective_sample_size(self.draws_)
        return self

    def latent_mean_and_variance(self, X):
        """Of f at new rows; the variance is that within the kept draws plus that between them."""
        m, v = self._given_scales(X)
        return m.mean(axis=0), v.mean(axis=0) + m.var(axis=0)

    def predict_proba(self, X):
        p = self._probability(*self._given_scales(X)).mean(axis=0)
        return np.column_stack([1 - p, p])

    def _given_scales(self, X):
        """Means and variances of f at new rows given λ, a row for each kept draw."""
        diagonal, k_new = self._new(X)
        moments = [conditional(L, beta, k_new, diagonal) for L, beta, _ in self._kept()]
        return tuple(np.array(part) for part in zip(*moments, strict=True))

    def _kept(self):
        """Factor of K + Λ, ``(K+Λ)⁻¹ y(1+λ)`` and λ of every kept draw; factors are made anew, N² numbers each."""
        for scales in self._scales:
            L = factor(self._K, scales)
            yield L, solve(L, self._signs * (1 + scales)), scales

    def leave_one_out(self):
        """Each training row as the others see it, by importance weights (D21).

        The weights are stable while the posterior with the row and that without it overlap. Where
        ``effective_draws`` is small, they are not to be trusted: then fit without the row.
        """
        means, variances = [], []
        for L, beta, scales in self._kept():
            inverse, _ = linalg.lapack.dpotri(L, lower=1)
            alone = np.diag(inverse)
            means.append(self._signs * (1 + scales) - beta / alone)
            variances.append(np.maximum(1 / alone - scales, 0.0))
        m, v = np.array(means), np.array(variances)
        log_weight = -log_expected_likelihood(m, v, self._signs)
        weight = np.exp(log_weight - logsumexp(log_weight, axis=0))
        mean = np.sum(weight * m, axis=0)
        return LeaveOneOut(
            mean,
            np.sum(weight * (v + (m - mean) ** 2), axis=0),
            np.sum(weight * self._probability(m, v), axis=0),
            1 / np.sum(weight**2, axis=0),
        )


def draw_scales(away, rng):
    """λ ~ GIG(1/2, 1, away²), that is 1/λ inverse Gaussian with mean 1/away and shape 1 (D21).

    The two roots of Michael, Schucany and Haas (1976), written for λ: on the margin, where the mean of 1/λ is
    infinite, λ is χ² with one degree of freedom, and nothing is divided by zero or cancels, as it does in ``rng.wald``.
    """
    chi = rng.standard_normal(len(away)) ** 2
    large = away + 0.5 * chi + np.sqrt(away * chi + 0.25 * chi**2)
    return np.where(rng.random(len(away)) * (large + away) <= large, large, away**2 / large)


def draw_function(K, root, signs, scales, rng):
    """f ~ N(C y(1/λ + 1), C), C = (K⁻¹ + Λ⁻¹)⁻¹, by Matheron's rule: the prior's draw, corrected (D21)."""
    prior = root @ rng.standard_normal(len(K))
    noise = np.sqrt(scales) * rng.standard_normal(len(K))
    return prior + K @ solve(factor(K, scales), signs * (1 + scales) - prior - noise)


def log_expected_likelihood(m, v, y):
    """``log E exp(-2 max(0, 1 - y f))`` for f ~ N(m, v) (D21)."""
    e, s = 1 - y * m, np.sqrt(np.maximum(v, 1e-12))
    return np.logaddexp(log_ndtr(-e / s), 2 * s * s - 2 * e + log_ndtr(e / s - 2 * s))


def effective_sample_size(draws):
    """Of every column, from Geyer's initial positive sequence (D21)."""
    n = len(draws)
    centred = draws - draws.mean(axis=0)
    length = fft.next_fast_len(2 * n, real=True)  # zeros behind the chain, or its end would meet its beginning
    power = np.abs(fft.rfft(centred, length, axis=0)) ** 2
    correlation = fft.irfft(power, length, axis=0)[: n - n % 2]
    correlation = correlation / np.maximum(correlation[0], np.finfo(float).tiny)
    pairs = correlation[::2] + correlation[1::2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    return n / np.maximum(2 * np.sum(pairs * positive, axis=0) - 1, 1 / n)
