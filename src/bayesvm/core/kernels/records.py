"""Core: what a kernel gives to those that learn: matrices with their adjoints, and sums of derivatives (D15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

ByParameter = dict[str, Array]  # derivatives by the logarithms of a kernel's parameters, by name


class CrossKernel(Protocol):
    """``k(·, Z)`` for a fixed Z; the matrix lies in the workspace and is the caller's to overwrite."""

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        """The matrix ``k(X, Z)``."""
        ...


@dataclass
class KernelGradient:
    """Derivatives by the logarithms of a kernel's parameters, and by the points if these are learned."""

    parameters: ByParameter
    points: Array | None = None

    def __iadd__(self, other: Self) -> Self:
        self.parameters = added(self.parameters, other.parameters)
        if self.points is not None and other.points is not None:
            self.points = self.points + other.points
        return self


def added(mine: ByParameter, theirs: ByParameter) -> ByParameter:
    """The sum, parameter by parameter."""
    return {name: mine[name] + theirs[name] for name in mine}


@dataclass(frozen=True)
class Recorded:
    """``k(X, Z)`` of one block, and its adjoint: ``Σ adjoint_im ∂k(x_i, z_m)`` by parameters and by points (D15)."""

    value: Array
    pull: Callable[[Array], ByParameter]
    pull_points: Callable[[Array], Array]


Constant = Sequence[Array | None] | None  # matrices of the parts of a sum that have nothing to learn
Recorder = Callable[[Array, Constant], Recorded]
