"""Core: the Laplacian kernel (D2), a kernel of the Manhattan distance, and its adjoint (D15)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bayesvm.core.kernels.distances import FARTHEST
from bayesvm.core.kernels.parameters import LENGTH_SCALE, VARIANCE, SharedLogNormal
from bayesvm.core.kernels.records import ByParameter, Constant, Recorded, Recorder
from bayesvm.core.kernels.stationary import LengthScaled
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

PANEL_ROWS = 128  # rows per step of distances and adjoints, few enough for the processor's cache


class Laplacian(LengthScaled):
    """``σ² exp(-Σ_j |x_j - z_j|/ℓ_j)``: a product of rough kernels of single columns, as in ``laplacian_kernel``.

    It models steps along single columns well, such as the splits of a decision tree, but it is not invariant to
    rotations. It suits tables in which each column has its own meaning.

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        One for all features, or one per feature. A sum of absolute differences is larger than a Euclidean distance,
        so length-scales are longer: the default is the number of features; for ``RBF``, it is the square root of that.
    variance : float
        Prior variance of f, σ².
    length_scale_bounds, variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    RBF : The infinitely smooth kernel of Euclidean distances.
    sklearn.metrics.pairwise.laplacian_kernel : The same function, with ``gamma`` for the inverse of the length-scale.

    Examples
    --------
    >>> from bayesvm.kernels import Laplacian
    >>> float(Laplacian(length_scale=2.0)([[0.0, 0.0]], [[2.0, 1.0]])[0, 0].round(4))
    0.2231
    """

    parameters = {  # noqa: RUF012  (never changed)
        "length_scale": replace(LENGTH_SCALE, prior=SharedLogNormal(spread=2.0, power=1.0)),
        "variance": VARIANCE,
    }

    def column_distances(self, points: Array) -> Array | None:
        return np.asarray(np.std(points, axis=0) * self.inverse_scale(points.shape[1]))

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> LaplacianAgainst:
        inverse = self.inverse_scale(Z.shape[1])
        return LaplacianAgainst(_scaled(Z, inverse), inverse, self.checked_variance, dtype)

    def recorded(self, X: Array, Z: Array) -> Recorded:
        return self.recorder(Z, X.dtype)(X, None)

    def recorder(self, Z: Array, dtype: npt.DTypeLike) -> Recorder:
        """With ``A = adjoint · k`` (D15):

        ``∂/∂log ℓ_j = Σ A |x_j - z_j|/ℓ_j``, ``∂/∂log σ² = Σ A``, ``∂/∂z_mj = Σ_i A_im sign(x_ij - z_mj)/ℓ_j``.
        """
        against = self.against(Z, dtype)
        points, inverse = against.points, against.inverse_scale
        columns = np.ascontiguousarray(points.T, dtype)

        def recorded(X: Array, _: Constant) -> Recorded:
            rows = _scaled(X, inverse)
            steps = Steps.of(rows)
            others, x = np.flatnonzero(~steps.columns), rows.astype(dtype)
            if np.dtype(dtype) == np.float64:
                value = against(X, Workspace())
            else:
                value = np.empty((len(X), len(Z)), dtype)
                steps.distances(points, out=value)
                _add_distances(x, columns, others, value)
                np.negative(value, out=value)
                np.exp(value, out=value)
                value *= against.variance

            def pull(adjoint: Array) -> ByParameter:
                A = adjoint * value
                along = np.empty(len(inverse))
                along[steps.columns] = steps.pull(A, points)
                along[others] = _pulled_distances(A, x, columns, others)
                return {"length_scale": along, "variance": np.array([A.sum(dtype=np.float64)])}

            def pull_points(adjoint: Array) -> Array:
                A = adjoint * value
                differences = (x[:, None] - z for x, z in zip(rows.T, points.T, strict=True))
                each = [np.einsum("im,im->m", A, (d > 0).astype(A.dtype) - (d < 0)) for d in differences]
                return np.asarray(np.stack(each, axis=1) * inverse)

            return Recorded(value, pull, pull_points)

        return recorded


def _add_distances(x: Array, z: Array, columns: npt.NDArray[np.intp], total: Array) -> None:
    """Add ``Σ_j |x_j - z_j|`` over some columns, for trials that need only single precision.

    ``|x - z| = 2 max(x, z) - x - z`` takes the fewest passes over memory; ``z`` has one row per column.
    """
    total -= x[:, columns].sum(axis=1)[:, None]
    total -= z[columns].sum(axis=0)
    for start in range(0, len(total), PANEL_ROWS):
        panel = slice(start, start + PANEL_ROWS)
        largest, larger = np.zeros_like(total[panel]), np.empty_like(total[panel])
        for j in columns:
            largest += np.maximum(x[panel, j, None], z[j], out=larger)
        largest *= 2
        total[panel] += largest
    np.maximum(total, 0, out=total)  # rounding can make it negative


def _pulled_distances(A: Array, x: Array, z: Array, columns: npt.NDArray[np.intp]) -> Array:
    """``Σ_im A_im |x_ij - z_mj|`` for some columns."""
    along: Array = np.asarray(-(A.sum(axis=1) @ x[:, columns]) - z[columns] @ A.sum(axis=0), np.float64)
    larger = np.empty((min(PANEL_ROWS, len(A)), A.shape[1]), A.dtype)
    for start in range(0, len(A), PANEL_ROWS):
        panel = A[start : start + PANEL_ROWS]
        for i, j in enumerate(columns):
            np.maximum(x[start : start + PANEL_ROWS, j, None], z[j], out=larger[: len(panel)])
            along[i] += 2 * float(np.vdot(panel, larger[: len(panel)]))
    return along


@dataclass(frozen=True)
class LaplacianAgainst:
    """``σ² exp(-d)``, with distances in double precision, where differences are accurate."""

    points: Array
    inverse_scale: Array
    variance: float
    dtype: npt.DTypeLike

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        rows = _scaled(X, self.inverse_scale)
        steps = Steps.of(rows)
        result: Array = workspace.empty((len(X), len(self.points)), self.dtype)
        steps.distances(self.points, out=result)
        if not steps.columns.all():
            others = workspace.empty(result.shape, np.float64)
            cdist(rows[:, ~steps.columns], self.points[:, ~steps.columns], "cityblock", out=others)
            np.add(result, others, out=result, casting="same_kind")
            workspace.release(others)
        np.negative(result, out=result)
        np.exp(result, out=result)
        result *= self.variance
        return result


@dataclass(frozen=True)
class Steps:
    """The columns of a block with at most two distinct values, such as one-hot columns.

    ``|x - z|`` of such a column is ``|low - z|``, plus a step where x has the high value: one matrix product for all
    such columns (D2).
    """

    columns: npt.NDArray[np.bool_]
    low: Array
    high: Array
    is_high: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Array) -> Steps:
        """The two-valued columns of scaled rows."""
        low, high = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        low, high = (np.where(low <= high, end, 0.0) for end in (low, high))  # for a block without rows
        is_high = rows == high
        columns = np.asarray((is_high | (rows == low)).all(axis=0))
        return cls(columns, low[columns], high[columns], is_high[:, columns])

    def distances(self, points: Array, out: Array) -> None:
        """``Σ_j |x_j - z_j|`` over these columns."""
        at_low, at_high = (np.abs(value - points[:, self.columns]) for value in (self.low, self.high))
        np.matmul(self.is_high.astype(out.dtype), (at_high - at_low).T.astype(out.dtype), out=out)
        out += at_low.sum(axis=1).astype(out.dtype)

    def pull(self, A: Array, points: Array) -> Array:
        """``Σ_im A_im |x_ij - z_mj|`` for these columns."""
        high: Array = A.T @ self.is_high.astype(A.dtype)
        low = A.sum(axis=0)[:, None] - high
        at_low, at_high = (np.abs(value - points[:, self.columns]) for value in (self.low, self.high))
        return np.asarray(np.einsum("mj,mj->j", high, at_high) + np.einsum("mj,mj->j", low, at_low))


def _scaled(X: Array, inverse_scale: Array) -> Array:
    return np.clip(np.asarray(X, np.float64) * inverse_scale, -FARTHEST, FARTHEST)
