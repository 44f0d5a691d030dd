"""Core: the linear kernel (D2) and its adjoint (D15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.kernel import Kernel
from bayesvm.core.kernels.parameters import VARIANCE, Bounds, positive
from bayesvm.core.kernels.records import ByParameter, CrossKernel, Recorded
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace


class Linear(Kernel):
    """``σ² xᵀz``, the kernel of the linear model.

    Alone, it gives a linear boundary through the origin of the scaled inputs; ``BayesianLinearSVC`` does the same
    without inducing points. It is useful in sums, where it adds a linear trend to another kernel.

    Parameters
    ----------
    variance : float
        σ², the prior variance of each coefficient on the scaled inputs.
    variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    Constant : A bias, which this kernel does not have.
    bayesvm.BayesianLinearSVC : The linear model without inducing points.

    Examples
    --------
    >>> from bayesvm.kernels import RBF, Linear
    >>> RBF(4.0) + 0.1 * Linear()
    Sum(kernels=[RBF(length_scale=4.0, variance=1.0), Linear(variance=1.0)], weights=[1.0, 0.1])
    """

    parameters = {"variance": VARIANCE}  # noqa: RUF012  (never changed)

    def __init__(self, variance: float = 1.0, variance_bounds: Bounds = VARIANCE.bounds) -> None:
        self.variance = variance
        self.variance_bounds = variance_bounds

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return LinearAgainst(np.asarray(positive("variance", self.variance) * Z.T, dtype))

    def diagonal(self, X: Array) -> Array:
        rows = np.asarray(X, np.float64)
        norms: Array = np.einsum("ij,ij->i", rows, rows)
        return norms * float(positive("variance", self.variance))

    def recorded(self, X: Array, Z: Array) -> Recorded:
        variance = float(positive("variance", self.variance))
        value = variance * (X @ Z.T)

        return Recorded(
            value,
            lambda adjoint: {"variance": np.array([np.vdot(adjoint, value)])},
            lambda adjoint: variance * (adjoint.T @ X),
        )

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        return {"variance": np.array([adjoint @ self.diagonal(X)])}


@dataclass(frozen=True)
class LinearAgainst:
    """``σ² xᵀz``."""

    table: Array

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        rows = np.asarray(X, self.table.dtype)
        return np.matmul(rows, self.table, out=workspace.empty((len(X), self.table.shape[1]), self.table.dtype))
