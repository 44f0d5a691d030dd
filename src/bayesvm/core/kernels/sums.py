"""Core: sums of kernels: their matrices, and derivatives with respect to parts and weights (D15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.kernels.records import ByParameter, CrossKernel
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace


@dataclass(frozen=True)
class SumAgainst:
    """``Σ_j γ_j k_j``."""

    parts: tuple[CrossKernel, ...]
    weights: tuple[float, ...]

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        total = self.parts[0](X, workspace)
        total *= self.weights[0]
        for part, weight in zip(self.parts[1:], self.weights[1:], strict=True):
            term = part(X, workspace)
            term *= weight
            total += term
            workspace.release(term)
        return total


def no_parameters(_: Array) -> ByParameter:
    """The parameter derivatives of a part that is not learned: none."""
    return {}


def no_points(_: Array) -> Array:
    """The point derivatives of a constant part: not available."""
    raise TypeError("no part of the sum is constant while the inducing points are learned")


def named_by_part(parts: list[ByParameter], weights: Sequence[Any]) -> ByParameter:
    """Derivatives of a sum from those of its parts and its weights: ``∂/∂log γ_j = γ_j Σ adjoint k_j``."""
    named = {f"k{i}__{name}": value for i, part in enumerate(parts) for name, value in part.items()}
    return {"weights": np.array(weights)} | named
