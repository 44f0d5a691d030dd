"""Core: squared distances to fixed points, block after block (D2).

Everything that depends only on the points is computed once, in double precision. The object that blocks use is small,
immutable and picklable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

# |x̃|² beyond which rounding errors in d² exceed about 1e-5 in single and 1e-10 in double precision
REMOTE_FROM = {np.dtype(np.float32): 100.0, np.dtype(np.float64): 1e6}
FARTHEST = 1e15  # in length-scales: squares still fit into single precision, and doubles resolve no details beyond


@dataclass(frozen=True)
class AffineDistances:
    """``slope · d² + intercept`` between rows and fixed points, by one matrix product.

    Rows become ``(x̃, |x̃|², 1)`` and points ``(-2 z̃, 1, |z̃|²)``. Centring on the points keeps the cancellation
    small. Rows far enough for it to matter are recomputed in double precision. Rows far enough for it to matter even
    in double precision are recomputed from differences, since they may be near an equally distant point.
    """

    centre: Array
    inverse_scale: Array
    points: Array  # z̃
    table: Array  # (D+2)×M in double precision, slope and intercept included
    table_in_dtype: Array
    slope: float
    intercept: float

    @classmethod
    def between(
        cls, Z: Array, inverse_scale: Array, slope: float, intercept: float, dtype: npt.DTypeLike
    ) -> AffineDistances:
        """Prepare distances to the rows of ``Z``."""
        points = np.asarray(Z, np.float64)
        # Any centre is valid. If single precision can represent it, x - centre is accurate enough there. The median
        # is close to most points even if one of them is very far away.
        centre = np.median(points, axis=0)
        held = np.abs(centre) < np.finfo(np.float32).max
        centre[held] = centre[held].astype(np.float32)
        scaled = _scaled(points, centre, inverse_scale)
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
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are remote and are recomputed below
            np.subtract(X, self.centre.astype(finer), out=centred)
            np.multiply(centred, self.inverse_scale.astype(finer), out=rows[:, :width], casting="same_kind")
            norms: Array = np.einsum("ij,ij->i", rows[:, :width], rows[:, :width])
            rows[:, width] = norms
            rows[:, width + 1] = 1
            result = np.matmul(rows, table, out=workspace.empty((len(X), table.shape[1]), table.dtype))
        workspace.release(centred)
        workspace.release(rows)
        remote = np.flatnonzero(~(norms < REMOTE_FROM[table.dtype]))  # overflow to infinity or NaN counts as remote
        if len(remote):
            result[remote] = self._carefully(X[remote])
        return result

    def clamp(self, values: Array) -> Array:
        """Clip values that rounding moved below d² = 0, in place."""
        low, high = (-np.inf, self.intercept) if self.slope < 0 else (self.intercept, np.inf)
        return np.clip(values, low, high, out=values)  # several times faster than np.maximum with a scalar

    def scaled(self, X: Array) -> Array:
        """x̃, in double precision."""
        return _scaled(X, self.centre, self.inverse_scale)

    def _carefully(self, X: Array) -> Array:
        scaled = self.scaled(X)
        norms = np.einsum("ij,ij->i", scaled, scaled)
        values: Array = np.column_stack([scaled, norms, np.ones(len(X))]) @ self.table
        remote = norms >= REMOTE_FROM[np.dtype(np.float64)]
        if remote.any():
            values[remote] = self.slope * cdist(scaled[remote], self.points, "sqeuclidean") + self.intercept
        return self.clamp(values)


def _scaled(X: Array, centre: Array, inverse_scale: Array) -> Array:
    scaled = np.subtract(X, centre, dtype=np.float64) * inverse_scale
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)
