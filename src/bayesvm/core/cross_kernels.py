"""Core: the evaluation of kernels against fixed points, block after block (D2).

Whatever depends only on the points is done once, in double precision; what a block needs is small,
immutable and picklable. Only numbers come in here, never a kernel object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev, Polynomial
from scipy.spatial.distance import cdist

from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

# |x̃|² beyond which rounding in d² would be more than about 1e-5 in single, 1e-10 in double precision
FAR = {np.dtype(np.float32): 100.0, np.dtype(np.float64): 1e6}
FARTHEST = 1e15  # in length-scales; squares still fit into single precision, and doubles resolve nothing beyond


class CrossKernel(Protocol):
    """``k(·, Z)`` for a fixed Z; the matrix lies in the workspace and is the caller's to overwrite."""

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        """The matrix ``k(X, Z)``."""
        ...


@dataclass(frozen=True)
class AffineDistances:
    """``slope · d² + intercept`` between rows and fixed points, by one matrix product.

    Rows become ``(x̃, |x̃|², 1)`` and points ``(-2 z̃, 1, |z̃|²)``. Centring on the points keeps the cancellation
    small. Rows so far out that it would show are done again in double, and kept on the right side of d² = 0; those so
    far that it would show in double by differences, since they may be near a point that is as far.
    """

    centre: Array
    inverse_scale: Array
    points: Array  # z̃
    table: Array  # (D+2)×M in double, slope and intercept folded in
    table_in_dtype: Array
    slope: float
    intercept: float

    @classmethod
    def between(
        cls, Z: Array, inverse_scale: Array, slope: float, intercept: float, dtype: npt.DTypeLike
    ) -> AffineDistances:
        """Prepare the distances to the rows of ``Z``."""
        points = np.asarray(Z, np.float64)
        # Any centre will do. One that single precision can hold makes x - centre exact enough there, and the
        # median keeps most points near it even if one is very far.
        centre = np.median(points, axis=0)
        held = np.abs(centre) < np.finfo(np.float32).max
        centre[held] = centre[held].astype(np.float32)
        scaled = np.clip((points - centre) * inverse_scale, -FARTHEST, FARTHEST)
        norms = np.einsum("ij,ij->i", scaled, scaled)
        table = np.vstack([-2 * slope * scaled.T, np.full(len(points), slope), slope * norms + intercept])
        return cls(centre, inverse_scale, scaled, table, table.astype(dtype), slope, intercept)

    def __call__(self, X: Array, workspace: Workspace) -> Array:
        """The matrix for the rows of ``X``."""
        table = self.table_in_dtype
        width, finer = X.shape[1], np.result_type(X, table)
        rows: Array = workspace.empty((len(X), width + 2), table.dtype)
        centred = workspace.empty(X.shape, finer)
        result: Array
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are far, and done again below
            np.subtract(X, self.centre.astype(finer), out=centred)
            np.multiply(centred, self.inverse_scale.astype(finer), out=rows[:, :width], casting="same_kind")
            norms: Array = np.einsum("ij,ij->i", rows[:, :width], rows[:, :width])
            rows[:, width] = norms
            rows[:, width + 1] = 1
            result = np.matmul(rows, table, out=workspace.empty((len(X), table.shape[1]), table.dtype))
        workspace.release(centred)
        workspace.release(rows)
        far = np.flatnonzero(~(norms < FAR[table.dtype]))  # an overflow to infinity or NaN counts as far
        if len(far):
            result[far] = self._carefully(X[far])
        return result

    def _carefully(self, X: Array) -> Array:
        scaled = np.subtract(X, self.centre, dtype=np.float64) * self.inverse_scale
        np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)
        norms = np.einsum("ij,ij->i", scaled, scaled)
        values: Array = np.column_stack([scaled, norms, np.ones(len(X))]) @ self.table
        remote = norms >= FAR[np.dtype(np.float64)]
        if remote.any():
            values[remote] = self.slope * cdist(scaled[remote], self.points, "sqeuclidean") + self.intercept
        return np.minimum(values, self.intercept) if self.slope < 0 else np.maximum(values, self.intercept)


@dataclass(frozen=True)
class RBFAgainst:
    """``σ² exp(-d²/2)``."""

    exponent: AffineDistances  # -d²/2 + log σ²

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        result = self.exponent(X, workspace)
        return np.exp(result, out=result)


# expm1(t)/t on [-1, 0] by a polynomial, to 1e-8: a few products, where exp would leave only what rounding lets through.
_EXPM1 = Chebyshev.interpolate(lambda t: np.expm1(t) / t, 7, domain=[-1, 0]).convert(kind=Polynomial).coef


@dataclass(frozen=True)
class FlatRBFAgainst:
    """``σ² exp(-d²/2) - σ²``, for length-scales so long that the kernel is near σ² everywhere (D3)."""

    exponent: AffineDistances  # -d²/2
    variance: float

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        t = self.exponent(X, workspace)
        np.minimum(t, 0, out=t)
        result: Array = workspace.empty(t.shape, t.dtype)
        if len(t) and t.min() < -1:  # expm1(t) = tanh(t/2) (exp(t) + 1)
            np.exp(t, out=result)
            result += 1
            t *= 0.5
            np.tanh(t, out=t)
            result *= t
            result *= self.variance
        else:
            first, *rest = [self.variance * float(c) for c in reversed(_EXPM1)]
            result.fill(first)
            for coefficient in rest:
                result *= t
                result += coefficient
            result *= t
        workspace.release(t)
        return result


@dataclass(frozen=True)
class MaternAgainst:
    """Matern 3/2 or 5/2 of ``a = √(2ν) d``."""

    squared: AffineDistances  # a² = 2ν d²
    variance: float
    nu: float

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        a = self.squared(X, workspace)
        np.maximum(a, 0, out=a)
        polynomial: Array = workspace.empty(a.shape, a.dtype)
        np.multiply(a, 1 / 3 if self.nu == 2.5 else 0, out=polynomial)
        np.sqrt(a, out=a)
        polynomial += a
        polynomial += 1
        np.negative(a, out=a)
        np.exp(a, out=a)
        a *= polynomial
        a *= self.variance
        workspace.release(polynomial)
        return a


@dataclass(frozen=True)
class LinearAgainst:
    """``σ² xᵀz``."""

    table: Array

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        rows = np.asarray(X, self.table.dtype)
        return np.matmul(rows, self.table, out=workspace.empty((len(X), self.table.shape[1]), self.table.dtype))


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
