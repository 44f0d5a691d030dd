"""Core, likelihoods: the paper's bound, with generalised inverse Gaussian latent variables (D7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesvm.core.likelihoods.contract import LocalUpdate
from bayesvm.core.linalg import Array

SMALLEST_SQUARE = 1e-24


@dataclass(frozen=True)
class AugmentedHinge:
    """``B = -(1 - y m) - √c``, ``c = (1 - y m)² + v``; full steps never lower the ELBO."""

    noise: float = 0.0  # τ² of D22
    full_steps_are_safe: ClassVar[bool] = True

    def update(self, m: Array, v: Array, y: Array) -> LocalUpdate:
        e = 1 - y * m
        root = np.sqrt(np.maximum(e * e + v + self.noise, SMALLEST_SQUARE))  # √c = √α_i of the paper
        w = 1 / root
        return LocalUpdate(-e - root, w, y * (1 + w))  # D7
