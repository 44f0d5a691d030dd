"""Core, likelihoods: the exact expectation of the ε-insensitive pseudo-likelihood, for regression (D31)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from bayesvm.core.likelihoods.contract import LocalUpdate
from bayesvm.core.linalg import Array

SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True)
class EpsilonInsensitive:
    """``log ℓ(y|f) = -(2/s) max(0, |y - f| - ε) - log(2ε + s)``: a density of y, so ε and s can be learned."""

    epsilon: float
    scale: float  # s
    noise: float = 0.0  # τ² of D22
    full_steps_are_safe: ClassVar[bool] = False

    def update(self, m: Array, v: Array, y: Array) -> LocalUpdate:
        sigma = np.sqrt(np.maximum(v + self.noise, SMALLEST_VARIANCE))
        over, under = (y - m - self.epsilon) / sigma, (m - y - self.epsilon) / sigma  # a/σ, b/σ
        density = _density(over), _density(under)
        beyond = ndtr(over), ndtr(under)
        loss = sigma * (over * beyond[0] + density[0] + under * beyond[1] + density[1])
        w = 2 / self.scale * (density[0] + density[1]) / sigma
        slope = 2 / self.scale * (beyond[0] - beyond[1])  # ∂B/∂m
        # D31. The expected loss is positive; rounding deep inside the tube must not make it negative.
        bound = -2 / self.scale * np.maximum(loss, 0.0) - np.log(2 * self.epsilon + self.scale)
        return LocalUpdate(bound, w, slope + w * m)


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
