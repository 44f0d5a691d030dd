"""Core: links, from the marginal N(m, v) of f to class probabilities (D11).

For two classes, ``score`` is the probit of P(second class). For more classes, ``decision`` gives logits; their softmax
gives the probabilities. With v = 0 both describe a *known* f, which is the basis for splitting uncertainty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import erfcx, expit, log_expit, log_ndtr, log_softmax, ndtr, ndtri, softmax

from bayesvm.core.linalg import Array

# An even grid for the expectation over N(0, 1): the integrand has kinks, so higher-order rules are no better.
HINGE_NODES = np.linspace(-7.0, 7.0, 141)
HINGE_WEIGHTS = np.exp(-0.5 * HINGE_NODES**2) / np.exp(-0.5 * HINGE_NODES**2).sum()

# Prior standard deviations of log a and b of the two probits around those of the single best-fitting probit.
PROBIT_DEVIATION = 0.5

Codes = npt.NDArray[np.integer[Any]]


class BinaryLink(ABC):
    """For two classes: y is 0 or 1, m and v have one column."""

    averages_f = True  # whether ``score`` averages the probability given f over f ~ N(m, v)

    @abstractmethod
    def score(self, m: Array, v: Array) -> Array:
        """The probit of P(second class), entry by entry."""

    def decision(self, m: Array, v: Array) -> Array:
        """The scores as a vector."""
        return self.score(m[:, 0], v[:, 0])

    def probabilities(self, m: Array, v: Array) -> Array:
        """Class probabilities, one column per class."""
        z = self.decision(m, v)
        return np.column_stack([ndtr(-z), ndtr(z)])

    def row_losses(self, m: Array, v: Array, y: Codes) -> Array:
        """``-log p(y)`` of every row."""
        return np.asarray(-log_ndtr(signs(y) * self.decision(m, v)))


class ManyClassLink(ABC):
    """For more than two classes: y is a class number; m and v have one column per class."""

    @abstractmethod
    def decision(self, m: Array, v: Array) -> Array:
        """Logarithms of the probabilities along the last axis, up to a constant per row."""

    def probabilities(self, m: Array, v: Array) -> Array:
        """Class probabilities, one column per class."""
        return np.asarray(softmax(self.decision(m, v), axis=-1))

    def row_losses(self, m: Array, v: Array, y: Codes) -> Array:
        """``-log p(y)`` of every row."""
        return np.asarray(-log_softmax(self.decision(m, v), axis=1)[np.arange(len(y)), y])


def signs(y: Codes) -> Array:
    """+1 for rows of the second class, -1 for those of the first."""
    return np.where(y == 1, 1.0, -1.0)


@dataclass(frozen=True)
class Probit(BinaryLink):
    """``(a m + b) / √(1 + a² v)``: P(a f + b + unit normal noise > 0); a = 1, b = 0 is the plain probit link."""

    scale: float = 1.0
    bias: float = 0.0

    def sharpened(self, factor: float) -> Probit:
        """Sharpen with a factor above one, soften with a factor below one."""
        return Probit(factor * self.scale, factor * self.bias)

    def score(self, m: Array, v: Array) -> Array:
        z: Array = (self.scale * m + self.bias) / np.sqrt(1 + self.scale**2 * v)
        return z

    def loss(self, m: Array, v: Array, y: Codes, weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives with respect to m and v (D17)."""
        sign = signs(y)[:, None]
        a, root = self.scale, np.sqrt(1 + self.scale**2 * v)
        z = sign * self.score(m, v)
        hazard = weight[:, None] * _hazard(z)
        return -float(weight @ log_ndtr(z)[:, 0]), -hazard * sign * a / root, 0.5 * hazard * z * (a / root) ** 2


@dataclass(frozen=True)
class TwoProbits(BinaryLink):
    """The mean of two probits, the second with weight ``share``; it can be steep in parts and flat in others."""

    scale: tuple[float, float]
    bias: tuple[float, float]
    share: float

    def sharpened(self, factor: float) -> TwoProbits:
        """Sharpen with a factor above one, soften with a factor below one."""
        (first, second), (bias, other) = self.scale, self.bias
        return TwoProbits((factor * first, factor * second), (factor * bias, factor * other), self.share)

    def score(self, m: Array, v: Array) -> Array:
        first, second = (Probit(a, b).score(m, v) for a, b in zip(self.scale, self.bias, strict=True))
        # Invert the smaller of P and 1-P, or nearly so: the inverse is accurate near zero but not near one.
        side = np.where(first + second > 0, -1.0, 1.0)
        tail = (1 - self.share) * ndtr(side * first) + self.share * ndtr(side * second)
        return np.asarray(side * ndtri(np.maximum(tail, 1e-300)))


@dataclass(frozen=True)
class Paper(BinaryLink):
    """``m / (1+v)``, as printed in the paper, without the root; only to reproduce the paper."""

    averages_f = False

    def score(self, m: Array, v: Array) -> Array:
        return m / (1 + v)


@dataclass(frozen=True)
class Hinge(BinaryLink):
    """The normalised pseudo-likelihood ``ℓ(+1|f) / (ℓ(+1|f) + ℓ(-1|f))``, averaged over f by quadrature."""

    averages_f = False  # it does, but with a different quadrature rule

    def score(self, m: Array, v: Array) -> Array:
        total = np.zeros(np.shape(m))
        for node, weight in zip(HINGE_NODES, HINGE_WEIGHTS, strict=True):
            f = m + np.sqrt(v) * node
            total += weight * expit(2 * (np.maximum(0, 1 + f) - np.maximum(0, 1 - f)))
        return np.asarray(ndtri(np.clip(total, 1e-300, 1 - 1e-16)))


@dataclass(frozen=True)
class Softmax(ManyClassLink):
    """``scale · m_k/√(1+v_k) + bias_k``, fitted jointly for all classes."""

    scale: float
    bias: tuple[float, ...]

    def sharpened(self, factor: float) -> Softmax:
        """Sharpen with a factor above one, soften with a factor below one."""
        return Softmax(factor * self.scale, tuple(factor * b for b in self.bias))

    def decision(self, m: Array, v: Array) -> Array:
        logits: Array = self.scale * m / np.sqrt(1 + v) + np.array(self.bias)
        return logits

    def loss(self, m: Array, v: Array, y: Codes, weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives with respect to m and v (D17)."""
        rows = np.arange(len(y))
        logits = log_softmax(self.decision(m, v), axis=1)
        excess = weight[:, None] * np.exp(logits)
        excess[rows, y] -= weight
        excess *= self.scale / np.sqrt(1 + v)  # ∂logit/∂m
        return -float(weight @ logits[rows, y]), excess, -0.5 * excess * m / (1 + v)


@dataclass(frozen=True)
class Normalised(ManyClassLink):
    """A binary link for each class against the rest, normalised to sum to one."""

    binary: BinaryLink

    def decision(self, m: Array, v: Array) -> Array:
        return np.asarray(log_ndtr(self.binary.score(m, v)))


PLAIN_LINKS: dict[str, BinaryLink] = {"probit": Probit(), "hinge": Hinge(), "paper": Paper()}


def fit_probit(m: Array, v: Array, sign: Array, weight: Array) -> Probit:
    """Maximum likelihood for (log a, b) with weak N(0, 1) priors, on leave-one-out marginals."""

    def loss(parameters: Array) -> tuple[float, Array]:
        a, b = np.exp(parameters[0]), parameters[1]
        root = np.sqrt(1 + a * a * v)
        z = sign * (a * m + b) / root
        log_p = log_ndtr(z)
        hazard = weight * _hazard(z)
        dz_da = sign * (m / root - (a * m + b) * a * v / root**3)
        gradient = np.array([-np.sum(hazard * dz_da) * a, -np.sum(hazard * sign / root)])
        return float(-np.sum(weight * log_p) + 0.5 * parameters @ parameters), gradient + parameters

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B")
    return Probit(float(np.exp(found.x[0])), float(found.x[1]))


def fit_two_probits(m: Array, v: Array, sign: Array, weight: Array, around: Probit) -> TwoProbits:
    """Maximum likelihood for both (log a, b) and the log odds of the share, on leave-one-out marginals.

    Priors: the parameters of both probits are normal around those of the single best fit; the log odds are N(0, 1).
    """
    deviation = np.array([*[PROBIT_DEVIATION] * 4, 1.0])

    def loss(parameters: Array) -> tuple[float, Array]:
        log_share = log_expit(parameters[4] * np.array([-1.0, 1.0]))
        log_parts, slopes = [], []
        for k in (0, 1):
            a, b = around.scale * np.exp(parameters[2 * k]), around.bias + parameters[2 * k + 1]
            root = np.sqrt(1 + a * a * v)
            z = sign * (a * m + b) / root
            log_parts.append(log_share[k] + log_ndtr(z))
            by_bias = _hazard(z) * sign / root
            slopes.append((by_bias * a * (m - (a * m + b) * a * v / root**2), by_bias))
        log_p = np.logaddexp(*log_parts)
        owned = [weight * np.exp(part - log_p) for part in log_parts]
        gradient = [-np.sum(own * slope) for own, pair in zip(owned, slopes, strict=True) for slope in pair]
        gradient.append(-np.sum(owned[1] - weight * np.exp(log_share[1])))
        scaled = parameters / deviation
        value = float(-np.sum(weight * log_p) + 0.5 * scaled @ scaled)
        return value, np.array(gradient) + scaled / deviation

    # Start with one steeper and one flatter probit, symmetric in the classes, so that swapping classes has no effect.
    start = np.array([0.4, 0.0, -0.4, 0.0, 0.0])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-7}).x
    scale, bias = around.scale * np.exp(found[[0, 2]]), around.bias + found[[1, 3]]
    return TwoProbits((float(scale[0]), float(scale[1])), (float(bias[0]), float(bias[1])), float(expit(found[4])))


def _hazard(z: Array) -> Array:
    """``d log ncdf(z) / dz = npdf(z)/ncdf(z)``, accurate even if both are tiny."""
    return np.asarray(np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2)))


def fit_softmax(m: Array, v: Array, y: Codes, weight: Array) -> Softmax:
    """Maximum likelihood for one log scale and a bias per class, with weak N(0, 1) priors."""
    z = m / np.sqrt(1 + v)
    rows = np.arange(len(y))

    def loss(parameters: Array) -> tuple[float, Array]:
        scale, bias = np.exp(parameters[0]), parameters[1:]
        logits = scale * z + bias
        logits -= logits.max(axis=1, keepdims=True)
        excess = np.exp(logits)
        sums = excess.sum(axis=1)
        nll = float(weight @ (np.log(sums) - logits[rows, y]))
        excess *= (weight / sums)[:, None]
        excess[rows, y] -= weight
        gradient = np.concatenate([[np.vdot(excess, z) * scale], excess.sum(axis=0)])
        return nll + 0.5 * float(parameters @ parameters), gradient + parameters

    found = minimize(loss, np.zeros(1 + z.shape[1]), jac=True, method="L-BFGS-B")
    return Softmax(float(np.exp(found.x[0])), tuple(float(b) for b in found.x[1:]))
