"""Core: vector-Jacobian products of kernels (D15).

A kernel's matrix for a block of rows is *recorded*: its value is kept together with what its adjoint needs. Given the
derivative of some objective by every entry of the matrix, ``pull`` turns it into derivatives by the logarithm of each
kernel parameter and by the points. Everything adds up over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from bayesvm.core.linalg import Array

FARTHEST = 1e150

ByParameter = dict[str, Array]  # derivatives by the logarithms of a kernel's parameters, by name


@dataclass
class KernelGradient:
    """Derivatives by the logarithms of a kernel's parameters, and by the points it is taken against."""

    parameters: ByParameter
    points: Array

    def __iadd__(self, other: Self) -> Self:
        self.parameters = added(self.parameters, other.parameters)
        self.points = self.points + other.points
        return self


def added(mine: ByParameter, theirs: ByParameter) -> ByParameter:
    """The sum, parameter by parameter."""
    return {name: mine[name] + theirs[name] for name in mine}


class Recorded(Protocol):
    """``k(X, Z)`` of one block, and its adjoint."""

    @property
    def value(self) -> Array: ...

    def pull(self, adjoint: Array) -> KernelGradient:
        """``Σ adjoint_im ∂k(x_i, z_m)``."""
        ...


@dataclass(frozen=True)
class RecordedDistance:
    """``σ² f(d²)``. With ``slope = -2 σ² f'(d²)`` and A = adjoint · slope (D15):

    ``∂/∂log ℓ_j = Σ A (x_j - z_j)²/ℓ_j²``, ``∂/∂log σ² = Σ adjoint k``, ``∂/∂z_m = Σ_i A_im (x_i - z_m)/ℓ²``.
    """

    X: Array
    Z: Array
    inverse_scale: Array
    value: Array
    slope: Array

    def pull(self, adjoint: Array) -> KernelGradient:
        A = adjoint * self.slope
        centre = np.mean(self.Z, axis=0)  # squares are taken apart below, so they should be small
        # A row as far as that has a slope of zero; its square must not overflow.
        X, Z = np.clip(self.X - centre, -FARTHEST, FARTHEST), self.Z - centre
        drawn, by_point = A.T @ X, A.sum(axis=0)
        squares = A.sum(axis=1) @ X**2 - 2 * np.einsum("mj,mj->j", drawn, Z) + by_point @ Z**2
        inverse_square = self.inverse_scale**2
        parameters = {"length_scale": squares * inverse_square, "variance": np.array([np.vdot(adjoint, self.value)])}
        return KernelGradient(parameters, (drawn - by_point[:, None] * Z) * inverse_square)


@dataclass(frozen=True)
class RecordedLinear:
    """``σ² xᵀz``."""

    X: Array
    variance: float
    value: Array

    def pull(self, adjoint: Array) -> KernelGradient:
        parameters = {"variance": np.array([np.vdot(adjoint, self.value)])}
        return KernelGradient(parameters, self.variance * (adjoint.T @ self.X))


@dataclass(frozen=True)
class RecordedConstant:
    """``σ²``."""

    value: Array
    n_features: int

    def pull(self, adjoint: Array) -> KernelGradient:
        parameters = {"variance": np.array([np.vdot(adjoint, self.value)])}
        return KernelGradient(parameters, np.zeros((self.value.shape[1], self.n_features)))


@dataclass(frozen=True)
class RecordedSum:
    """``Σ_j γ_j k_j``: ``∂/∂log γ_j = γ_j Σ adjoint k_j``; a part's own parameters are named ``k0__…``, ``k1__…``."""

    parts: tuple[Recorded, ...]
    weights: tuple[float, ...]

    @property
    def value(self) -> Array:
        return np.asarray(sum(weight * part.value for weight, part in zip(self.weights, self.parts, strict=True)))

    def pull(self, adjoint: Array) -> KernelGradient:
        pulled = [part.pull(weight * adjoint) for weight, part in zip(self.weights, self.parts, strict=True)]
        along = [weight * np.vdot(adjoint, p.value) for weight, p in zip(self.weights, self.parts, strict=True)]
        parameters = named_parts([gradient.parameters for gradient in pulled], np.array(along))
        return KernelGradient(parameters, np.sum([gradient.points for gradient in pulled], axis=0))


def named_parts(parts: list[ByParameter], weights: Array) -> ByParameter:
    """Derivatives of a sum from those of its parts and those by its weights."""
    named = {f"k{i}__{name}": value for i, part in enumerate(parts) for name, value in part.items()}
    return {"weights": weights} | named
