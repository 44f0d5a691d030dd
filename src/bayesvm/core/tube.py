"""Core: the link of regression, a density of y given the marginal N(m, v) of f (D32), and how it is fitted.

It is the ε-insensitive pseudo-likelihood of D31, averaged over f: flat in a tube, with exponential tails, smoothed
by v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from bayesvm.core.linalg import Array

SMALLEST_VARIANCE = 1e-12
LOG_SCALES = np.log([1e-3, 30.0])  # of s; y varies by about one
LOG_RATIOS = np.log([1e-2, 30.0])  # of ε/s
LOG_FACTORS = np.log([0.05, 20.0])  # of variances
PRIOR_LOG_RATIO, RATIO_DEVIATION = -0.7, 1.5
FACTOR_DEVIATION = 0.5


class Terms(NamedTuple):
    """Logarithms of the three parts of the density at ``u = y - m``: the tube, where y is above it, and below it."""

    inside: Array
    over: Array
    under: Array
    total: Array


def tube_terms(u: Array, variance: Array, epsilon: float, scale: float) -> Terms:
    """``∫ ℓ(y|f) N(f; m, σ²) df``, times 2ε + s, part by part (D32)."""
    size, sigma = np.abs(u), np.sqrt(variance)
    near, outer = (size - epsilon) / sigma, (size + epsilon) / sigma
    lower, upper = log_ndtr(-outer), log_ndtr(-near)
    with np.errstate(divide="ignore"):
        inside = upper + np.log(-np.expm1(np.minimum(lower - upper, 0.0)))
    toward, away = _tail(near, sigma / scale), _tail_away(outer, sigma / scale)
    total = logsumexp(np.stack([inside, toward, away]), axis=0)
    positive = u >= 0
    return Terms(inside, np.where(positive, toward, away), np.where(positive, away, toward), total)


def _tail(z: Array, ratio: Array) -> Array:
    """``log[exp(2r² - 2 r z) Φ(z - 2r)]``, r the ratio σ/s."""
    x = 2 * ratio - z
    # With Φ(-x) = ½ erfcx(x/√2) exp(-x²/2) the large exponents cancel by hand.
    covered = np.log(0.5 * erfcx(np.maximum(x, 0.0) / np.sqrt(2))) - 0.5 * z * z
    outside = 2 * ratio * (ratio - z) + log_ndtr(np.maximum(-x, 0.0))
    return np.where(x >= 0, covered, outside)


def _tail_away(z: Array, ratio: Array) -> Array:
    """``log[exp(2r² + 2 r z) Φ(-z - 2r)]`` for z from zero."""
    return np.asarray(np.log(0.5 * erfcx((z + 2 * ratio) / np.sqrt(2))) - 0.5 * z * z)


@dataclass(frozen=True)
class Tube:
    """The density of y for f ~ N(m, ``factor`` · v), the loss having ε and s (D32)."""

    epsilon: float
    scale: float
    factor: float = 1.0

    def variance(self, v: Array) -> Array:
        """That of f as it is stated."""
        return np.asarray(np.maximum(self.factor * v, SMALLEST_VARIANCE))

    @property
    def noise(self) -> float:
        """The variance of y if f were known."""
        e, s = self.epsilon, self.scale
        return (2 * e**3 / 3 + s * e * e + s * s * e + s**3 / 2) / (2 * e + s)

    def sharpened(self, factor: float) -> Tube:
        """More decided by a factor; less, if it is below one."""
        return Tube(self.epsilon / factor, self.scale / factor, self.factor / factor**2)

    def terms(self, m: Array, v: Array, y: Array) -> Terms:
        """The parts of the density."""
        return tube_terms(y - m, self.variance(v), self.epsilon, self.scale)

    def log_density(self, m: Array, v: Array, y: Array) -> Array:
        """``log p(y)``, entry by entry."""
        return np.asarray(self.terms(m, v, y).total - np.log(2 * self.epsilon + self.scale))

    def row_losses(self, m: Array, v: Array, y: npt.NDArray[np.floating]) -> Array:
        """``-log p(y)`` of every row."""
        return -self.log_density(m[:, 0], v[:, 0], y)

    def loss(self, m: Array, v: Array, y: Array, weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives by m and v (D17, D32)."""
        m, v = m[:, 0], v[:, 0]
        terms = self.terms(m, v, y)
        by_mean, by_variance = self._slopes(m, v, y, terms)
        loss = -float(weight @ (terms.total - np.log(2 * self.epsilon + self.scale)))
        return loss, (-weight * by_mean)[:, None], (-weight * self.factor * by_variance)[:, None]

    def _slopes(self, m: Array, v: Array, y: Array, terms: Terms) -> tuple[Array, Array]:
        """``∂ log p/∂m`` and ``∂ log p/∂σ²``; by σ² half the curvature in y, as of the heat equation."""
        over, under = np.exp(terms.over - terms.total), np.exp(terms.under - terms.total)
        sigma2 = self.variance(v)
        edges = _edge(y - m - self.epsilon, sigma2, terms.total) + _edge(y - m + self.epsilon, sigma2, terms.total)
        rate = 2 / self.scale
        return rate * (over - under), 0.5 * rate * (rate * (over + under) - edges)

    def score(self, m: Array, v: Array, y: Array) -> Array:
        """``∂ log p/∂m`` of every row."""
        return self._slopes(m, v, y, self.terms(m, v, y))[0]

    def sample_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draws of y - f."""
        inside = rng.uniform(-self.epsilon, self.epsilon, shape)
        beyond = rng.choice([-1.0, 1.0], shape) * (self.epsilon + rng.exponential(0.5 * self.scale, shape))
        return np.where(rng.random(shape) * (2 * self.epsilon + self.scale) < self.scale, beyond, inside)

    def distribution(self, u: Array, variance: Array) -> Array:
        """``P(y - m <= u)`` (D32): the integral of the density, in closed form."""
        sigma = np.sqrt(variance)
        upper, lower = (u + self.epsilon) / sigma, (u - self.epsilon) / sigma
        flat = sigma * (upper * ndtr(upper) + _density(upper) - lower * ndtr(lower) - _density(lower))
        ratio, half = sigma / self.scale, 0.5 * self.scale
        # Each side of the loss: its exponential tail, and the part of N that is beyond the tube's edge.
        under = half * (np.exp(_tail(-upper, ratio)) + ndtr(upper))
        over = half * (ndtr(lower) - np.exp(_tail(lower, ratio)))
        return np.asarray(np.clip((flat + under + over) / (2 * self.epsilon + self.scale), 0.0, 1.0))


def _edge(u: Array, variance: Array, total: Array) -> Array:
    """``N(u; 0, σ²)`` over the density."""
    return np.asarray(np.exp(-0.5 * (u * u / variance + np.log(2 * np.pi * variance)) - total))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))


def fit_tube(m: Array, v: Array, y: Array, weight: Array, *, with_factor: bool, start: Tube | None = None) -> Tube:
    """Maximum likelihood for log s, log ε/s and, if asked for, the log factor of variances; weak normal priors."""
    size = np.average(np.abs(y - m), weights=weight)
    start = start or Tube(max(0.5 * size, 1e-3), max(size, 2e-3))
    at = [np.log(start.scale), np.log(max(start.epsilon, 1e-12) / start.scale), np.log(start.factor)]
    limits = [LOG_SCALES, LOG_RATIOS, LOG_FACTORS][: 2 + with_factor]
    first = np.array([np.clip(value, *limit) for value, limit in zip(at, limits, strict=False)])

    def loss(parameters: Array) -> tuple[float, Array]:
        link = _tube(parameters)
        terms = link.terms(m, v, y)
        e, s, sigma2 = link.epsilon, link.scale, link.variance(v)
        over, under = np.exp(terms.over - terms.total), np.exp(terms.under - terms.total)
        edge_over, edge_under = _edge(y - m - e, sigma2, terms.total), _edge(y - m + e, sigma2, terms.total)
        rate = 2 / s
        # The derivatives of the two tails by the rate 2/s, of all by ε, and of the norm 2ε + s by both.
        by_rate = (
            (rate * sigma2 - (y - m - e)) * over + (rate * sigma2 + (y - m + e)) * under
            - sigma2 * (edge_over + edge_under)
        )  # fmt: skip
        by_epsilon = rate * (over + under) - 2 / (2 * e + s)
        by_scale = -rate / s * by_rate - 1 / (2 * e + s)
        by_variance = 0.5 * rate * (rate * (over + under) - edge_over - edge_under)
        each = s * by_scale + e * by_epsilon, e * by_epsilon, sigma2 * by_variance
        gradient = [weight @ part for part in each]
        value = -float(weight @ (terms.total - np.log(2 * e + s)))
        off = np.array([0.0, (parameters[1] - PRIOR_LOG_RATIO) / RATIO_DEVIATION])
        if with_factor:
            off = np.append(off, parameters[2] / FACTOR_DEVIATION)
        deviation = np.array([1.0, RATIO_DEVIATION, FACTOR_DEVIATION])[: len(parameters)]
        return value + 0.5 * float(off @ off), -np.array(gradient[: len(parameters)]) + off / deviation

    bounds = [(float(low), float(high)) for low, high in limits]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    return _tube(found.x)


def _tube(parameters: Array) -> Tube:
    s = float(np.exp(parameters[0]))
    factor = float(np.exp(parameters[2])) if len(parameters) > 2 else 1.0
    return Tube(s * float(np.exp(parameters[1])), s, factor)
