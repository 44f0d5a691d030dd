"""Core, likelihoods: the exact expectation of the hinge pseudo-likelihood (D8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from bayesvm.core.likelihoods.contract import LocalUpdate
from bayesvm.core.linalg import Array

SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True)
class ExactHinge:
    """``B = E[-2 max(0, 1 - y f)]``, without a further bound; steps need a guard."""

    noise: float = 0.0  # τ² of D22
    full_steps_are_safe: ClassVar[bool] = False

    def update(self, m: Array, v: Array, y: Array) -> LocalUpdate:
        e = 1 - y * m
        s = np.sqrt(np.maximum(v + self.noise, SMALLEST_VARIANCE))  # v = 0: a zero row of the linear model
        z = e / s
        below = ndtr(z)
        density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        w = 2 * density / s
        # D8. e ncdf(z) + s npdf(z) is positive; rounding for z << 0 must not make B positive.
        return LocalUpdate(np.minimum(-2 * (e * below + s * density), 0.0), w, 2 * y * below + w * m)
