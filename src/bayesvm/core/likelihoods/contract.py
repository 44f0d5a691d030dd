"""Core, likelihoods: the interface of a bound. A bound depends on (m, v, y), never on X, K or θ (D5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from bayesvm.core.linalg import Array


@dataclass(frozen=True)
class LocalUpdate:
    """The contribution of a row to the ELBO with its local variable optimised, and its Gaussian site (D5)."""

    bound: Array  # B
    precision: Array  # w = -2 ∂B/∂v
    linear: Array  # g = ∂B/∂m + w m


class Likelihood(Protocol):
    """A lower bound B(m, v, y) of ``E log ℓ(y|f + ε)`` under f ~ N(m, v), ε ~ N(0, ``noise``) (D5, D22)."""

    @property
    def noise(self) -> float: ...

    full_steps_are_safe: ClassVar[bool]  # whether a step with ρ = 1 never lowers the ELBO

    def update(self, m: Array, v: Array, y: Array) -> LocalUpdate: ...
