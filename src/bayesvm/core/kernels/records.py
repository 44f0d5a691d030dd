"""Core: what learning needs from a kernel: matrices with their adjoints, and sums of derivatives (D15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

ByParameter = dict[str, Array]  # name -> derivative with respect to the logarithm of the kernel parameter


class CrossKernel(Protocol):
    """``k(·, Z)`` for a fixed Z. The matrix is in the workspace, and the caller may overwrite it."""

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        """The matrix ``k(X, Z)``."""
        ...


@dataclass
class KernelGradient:
    """Derivatives with respect to the log parameters of a kernel, and to the points if these are learned."""

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
    """``k(X, Z)`` of one block, and its adjoint: ``Σ adjoint_im ∂k(x_i, z_m)`` for parameters and points (D15)."""

    value: Array
    pull: Callable[[Array], ByParameter]
    pull_points: Callable[[Array], Array]


Constant = Sequence[Array | None] | None  # matrices of those parts of a sum that are not learned
Recorder = Callable[[Array, Constant], Recorded]
