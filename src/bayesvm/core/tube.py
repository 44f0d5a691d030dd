"""Core: the links of regression: densities of y given the marginal N(m, v) of f, and their fit (D32).

The density is the ε-insensitive pseudo-likelihood of D31 averaged over f: flat within a tube, with exponential tails,
smoothed by v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from bayesvm.core.linalg import Array

Value = float | Array

SMALLEST_VARIANCE = 1e-12
LOG_SCALES = (float(np.log(1e-3)), float(np.log(30.0)))  # of s; y has a spread of about one
LOG_RATIOS = (float(np.log(1e-2)), float(np.log(30.0)))  # of ε/s
LOG_FACTORS = (float(np.log(0.05)), float(np.log(20.0)))  # of variances
GROWTH = (-1.0, 1.0)  # of log s
PRIOR_LOG_RATIO, RATIO_DEVIATION = -0.7, 1.5
FACTOR_DEVIATION = GROWTH_DEVIATION = 0.5
OUTERMOST = 0.005  # share of rows at either end of m; beyond it the noise stays constant
MOST_DEVIATIONS = 3.0  # of log v from its mean; beyond it the noise stays constant


class Terms(NamedTuple):
    """Logarithms of the three terms of the density at ``u = y - m``: inside, above and below the tube."""

    inside: Array
    over: Array
    under: Array
    total: Array


def tube_terms(u: Array, variance: Array, epsilon: Value, scale: Value) -> Terms:
    """``∫ ℓ(y|f) N(f; m, σ²) df`` times 2ε + s, term by term (D32)."""
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
    """``log[exp(2r² - 2 r z) Φ(z - 2r)]``, with r the ratio σ/s."""
    x = 2 * ratio - z
    # With Φ(-x) = ½ erfcx(x/√2) exp(-x²/2) the large exponents cancel analytically.
    covered = np.log(0.5 * erfcx(np.maximum(x, 0.0) / np.sqrt(2))) - 0.5 * z * z
    outside = 2 * ratio * (ratio - z) + log_ndtr(np.maximum(-x, 0.0))
    return np.where(x >= 0, covered, outside)


def _tail_away(z: Array, ratio: Array) -> Array:
    """``log[exp(2r² + 2 r z) Φ(-z - 2r)]`` for z ≥ 0."""
    return np.asarray(np.log(0.5 * erfcx((z + 2 * ratio) / np.sqrt(2))) - 0.5 * z * z)


@dataclass(frozen=True)
class AnyTube(ABC):
    """The density of y for f ~ N(m, ``factor`` · v); ε and s of the loss may vary between rows."""

    epsilon: float
    scale: float
    factor: float = 1.0

    @abstractmethod
    def shape(self, m: Array, v: Array) -> tuple[Value, Value]:
        """ε and s for every row."""

    def variance(self, v: Array) -> Array:
        """The variance of f used for predictions."""
        return np.asarray(np.maximum(self.factor * v, SMALLEST_VARIANCE))

    def noise(self, m: Array, v: Array) -> Array:
        """The variance of y at every row given f."""
        return np.broadcast_to(np.asarray(noise_variance(*self.shape(m, v))), np.shape(m))

    def sharpened(self, factor: float) -> Self:
        """Sharpen by a factor above one, soften by a factor below one."""
        return replace(self, epsilon=self.epsilon / factor, scale=self.scale / factor, factor=self.factor / factor**2)

    def log_density(self, m: Array, v: Array, y: Array) -> Array:
        """``log p(y)``, entry by entry."""
        e, s = self.shape(m, v)
        return np.asarray(tube_terms(y - m, self.variance(v), e, s).total - np.log(2 * e + s))

    def row_losses(self, m: Array, v: Array, y: npt.NDArray[np.floating]) -> Array:
        """``-log p(y)`` of every row."""
        return -self.log_density(m[:, 0], v[:, 0], y)

    def distribution(self, m: Array, v: Array, y: Array) -> Array:
        """The distribution function at y (D32): the integral of the density, in closed form."""
        (e, s), sigma = self.shape(m, v), np.sqrt(self.variance(v))
        upper, lower = (y - m + e) / sigma, (y - m - e) / sigma
        flat = sigma * (upper * ndtr(upper) + _density(upper) - lower * ndtr(lower) - _density(lower))
        # Each side of the loss: its exponential tail, and the part of N beyond the edge of the tube.
        under = 0.5 * s * (np.exp(_tail(-upper, sigma / s)) + ndtr(upper))
        over = 0.5 * s * (ndtr(lower) - np.exp(_tail(lower, sigma / s)))
        return np.asarray(np.clip((flat + under + over) / (2 * e + s), 0.0, 1.0))

    def sample_noise(self, m: Array, v: Array, n: int, rng: np.random.Generator) -> Array:
        """``n`` draws of y - f for every row, one draw per row of the result."""
        (e, s), size = self.shape(m, v), (n, len(m))
        inside = e * rng.uniform(-1.0, 1.0, size)
        beyond = rng.choice([-1.0, 1.0], size) * (e + 0.5 * s * rng.exponential(1.0, size))
        return np.asarray(np.where(rng.random(size) * (2 * e + s) < s, beyond, inside))


@dataclass(frozen=True)
class Tube(AnyTube):
    """One ε and one s for all rows; tuning compares models with it."""

    def shape(self, m: Array, v: Array) -> tuple[Value, Value]:
        return self.epsilon, self.scale

    def loss(self, m: Array, v: Array, y: Array, weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives with respect to m and v (D17, D32)."""
        slopes = _slopes(m[:, 0], self.variance(v[:, 0]), y, self.epsilon, self.scale)
        loss = -float(weight @ (slopes.total - np.log(2 * self.epsilon + self.scale)))
        by_variance = -weight * self.factor * slopes.by_variance
        return loss, (-weight * slopes.by_mean)[:, None], by_variance[:, None]

    def score(self, m: Array, v: Array, y: Array) -> Array:
        """``∂ log p/∂m`` for every row."""
        return _slopes(m, self.variance(v), y, self.epsilon, self.scale).by_mean


@dataclass(frozen=True)
class VaryingTube(AnyTube):
    """Noise that depends on the prediction and its variance: ``log s = log scale + growth · (z, z², u)``.

    z and u are m and log v, standardised over the rows used for the fit; ε is proportional to s.
    """

    growth: tuple[float, float, float] = (0.0, 0.0, 0.0)
    means: tuple[float, float] = (0.0, 1.0)  # mean and standard deviation of m
    ends: tuple[float, float] = (0.0, 0.0)  # range of m outside which the noise is constant
    log_variances: tuple[float, float] = (0.0, 1.0)  # mean and standard deviation of log v

    def shape(self, m: Array, v: Array) -> tuple[Value, Value]:
        size = np.exp(self.basis(m, v) @ np.array(self.growth))
        return self.epsilon * size, self.scale * size

    def basis(self, m: Array, v: Array) -> Array:
        """``(z, z², u)`` for every row, as columns."""
        z = (np.clip(m, *self.ends) - self.means[0]) / self.means[1]
        u = (np.log(np.maximum(v, SMALLEST_VARIANCE)) - self.log_variances[0]) / self.log_variances[1]
        return np.stack([z, z * z, np.clip(u, -MOST_DEVIATIONS, MOST_DEVIATIONS)], axis=-1)


def noise_variance(epsilon: Value, scale: Value) -> Value:
    """The variance of the density proportional to ``exp(-(2/s) max(0, |u| - ε))`` (D32)."""
    e, s = epsilon, scale
    return (2 * e**3 / 3 + s * e * e + s * s * e + s**3 / 2) / (2 * e + s)


class Slopes(NamedTuple):
    """Derivatives of ``log p`` with respect to m, σ², log s (fixed ε/s) and log ε (fixed s), per row; and ``total``."""

    by_mean: Array
    by_variance: Array
    by_size: Array
    by_width: Array
    total: Array


def _slopes(m: Array, variance: Array, y: Array, epsilon: Value, scale: Value) -> Slopes:
    """The derivatives of D32; by the heat equation, the one for σ² is half the curvature in y."""
    u, rate, norm = y - m, 2 / scale, 2 * epsilon + scale
    terms = tube_terms(u, variance, epsilon, scale)
    over, under = np.exp(terms.over - terms.total), np.exp(terms.under - terms.total)
    edges = _edge(u - epsilon, variance, terms.total) + _edge(u + epsilon, variance, terms.total)
    by_variance = 0.5 * rate * (rate * (over + under) - edges)
    by_rate = (rate * variance - (u - epsilon)) * over + (rate * variance + (u + epsilon)) * under - variance * edges
    by_epsilon = rate * (over + under) - 2 / norm
    by_scale = -rate / scale * by_rate - 1 / norm
    by_width = epsilon * by_epsilon
    return Slopes(rate * (over - under), by_variance, scale * by_scale + by_width, by_width, terms.total)


def _edge(u: Array, variance: Array, total: Array) -> Array:
    """``N(u; 0, σ²)`` divided by the density."""
    return np.asarray(np.exp(-0.5 * (u * u / variance + np.log(2 * np.pi * variance)) - total))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))


def fit_tube(m: Array, v: Array, y: Array, weight: Array) -> Tube:
    """Maximum likelihood for log s and log ε/s, the latter with a weak normal prior; keeps the variance of f."""
    size = float(np.average(np.abs(y - m), weights=weight))
    return Tube(*_fitted(m, v, y, weight, [np.log(max(size, 2e-3)), PRIOR_LOG_RATIO], None)[:2])


def fit_varying_tube(m: Array, v: Array, y: Array, weight: Array, start: Tube) -> VaryingTube:
    """Maximum likelihood that also fits a factor on the variance and varying noise, all with weak normal priors."""
    log_v = np.log(np.maximum(v, SMALLEST_VARIANCE))
    low, high = np.quantile(m, [OUTERMOST, 1 - OUTERMOST])
    moments = [(float(np.average(x, weights=weight)), max(float(np.std(x)), SMALLEST_VARIANCE)) for x in (m, log_v)]
    link = VaryingTube(
        start.epsilon, start.scale, means=moments[0], ends=(float(low), float(high)), log_variances=moments[1]
    )
    first = [np.log(start.scale), np.log(start.epsilon / start.scale), 0.0, 0.0, 0.0, 0.0]
    epsilon, scale, factor, by_mean, by_square, by_variance = _fitted(m, v, y, weight, first, link.basis(m, v))
    return replace(link, epsilon=epsilon, scale=scale, factor=factor, growth=(by_mean, by_square, by_variance))


def _fitted(m: Array, v: Array, y: Array, weight: Array, first: Sequence[float], basis: Array | None) -> list[float]:
    """The fitted ε and s; with a basis, also the factor and the growth."""
    limits = [LOG_SCALES, LOG_RATIOS, LOG_FACTORS, *[GROWTH] * 3][: len(first)]
    centre = np.array([0.0, PRIOR_LOG_RATIO, 0.0, 0.0, 0.0, 0.0])[: len(first)]
    precision = np.array([0.0, RATIO_DEVIATION**-2, FACTOR_DEVIATION**-2, *[GROWTH_DEVIATION**-2] * 3])[: len(first)]

    def loss(parameters: Array) -> tuple[float, Array]:
        s = np.exp(parameters[0] + (0.0 if basis is None else basis @ parameters[3:]))
        e, variance = s * np.exp(parameters[1]), np.maximum(v, SMALLEST_VARIANCE)
        if basis is not None:
            variance = np.maximum(np.exp(parameters[2]) * variance, SMALLEST_VARIANCE)
        slopes = _slopes(m, variance, y, e, s)
        gradient = [weight @ slopes.by_size, weight @ slopes.by_width]
        if basis is not None:
            gradient += [weight @ (variance * slopes.by_variance), *((weight * slopes.by_size) @ basis)]
        off = parameters - centre
        value = -float(weight @ (slopes.total - np.log(2 * e + s))) + 0.5 * float(precision @ off**2)
        return value, precision * off - np.array(gradient)

    at = [float(np.clip(value, *limit)) for value, limit in zip(first, limits, strict=True)]
    found = minimize(loss, np.array(at), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 80}).x
    scale = float(np.exp(found[0]))
    tail = [] if basis is None else [float(np.exp(found[2])), *map(float, found[3:])]
    return [scale * float(np.exp(found[1])), scale, *tail]
