"""Core: the constant kernel (D2) and its adjoint (D15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.kernel import Kernel
from bayesvm.core.kernels.parameters import VARIANCE, Bounds, positive
from bayesvm.core.kernels.records import ByParameter, CrossKernel, Recorded
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace


class Constant(Kernel):
    """``σ²`` everywhere. Added to another kernel, it gives a bias with a normal prior.

    Parameters
    ----------
    variance : float
        σ², the prior variance of the bias.
    variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    Linear : A linear trend, in addition to the bias.

    Examples
    --------
    >>> from bayesvm.kernels import Constant, Linear
    >>> Linear() + Constant(10.0)
    Sum(kernels=[Linear(variance=1.0), Constant(variance=10.0)], weights=[1.0, 1.0])
    """

    parameters = {"variance": VARIANCE}  # noqa: RUF012  (never changed)

    def __init__(self, variance: float = 1.0, variance_bounds: Bounds = VARIANCE.bounds) -> None:
        self.variance = variance
        self.variance_bounds = variance_bounds

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return ConstantAgainst(positive("variance", self.variance), len(Z), np.dtype(dtype))

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), positive("variance", self.variance))

    def recorded(self, X: Array, Z: Array) -> Recorded:
        value = np.full((len(X), len(Z)), float(positive("variance", self.variance)))

        return Recorded(
            value,
            lambda adjoint: {"variance": np.array([np.vdot(adjoint, value)])},
            lambda _: np.zeros(Z.shape),
        )

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        return {"variance": np.array([adjoint @ self.diagonal(X)])}


@dataclass(frozen=True)
class ConstantAgainst:
    """``σ²``."""

    variance: float
    n_points: int
    dtype: np.dtype[Any]

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        result: Array = workspace.empty((len(X), self.n_points), self.dtype)
        result.fill(self.variance)
        return result
