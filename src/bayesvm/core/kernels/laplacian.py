"""Core: the Laplacian kernel (D2), whose distance adds up the columns' absolute differences, and its adjoint (D15)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bayesvm.core.kernels.distances import FARTHEST
from bayesvm.core.kernels.kernel import CrossKernel, KernelGradient, Recorded
from bayesvm.core.kernels.parameters import LENGTH_SCALE, VARIANCE, SharedLogNormal
from bayesvm.core.kernels.stationary import LengthScaled
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

PANEL_ROWS = 128  # that an adjoint is computed for at a time, while the processor's cache has them


class Laplacian(LengthScaled):
    """``σ² exp(-Σ_j |x_j - z_j|/ℓ_j)``: a product of rough kernels of single columns, as in ``laplacian_kernel``.

    Steps along single columns, such as the splits of a decision tree, are cheap for it, and rotations of the columns are
    not. It suits tables whose columns have a meaning of their own.

    Parameters
    ----------
    length_scale, variance, length_scale_bounds, variance_bounds
        As those of ``RBF``. Absolute differences add up to more than a Euclidean distance, so length-scales are longer:
        the usual one is the number of features, where that of ``RBF`` is its root.

    Examples
    --------
    >>> from bayesvm.kernels import Laplacian
    >>> float(Laplacian(length_scale=2.0)([[0.0, 0.0]], [[2.0, 1.0]])[0, 0].round(4))
    0.2231
    """

    parameters = {  # noqa: RUF012  (never changed)
        "length_scale": replace(LENGTH_SCALE, prior=SharedLogNormal(power=1.0)),
        "variance": VARIANCE,
    }

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return LaplacianAgainst(
            _scaled(Z, inverse := self.inverse_scale(Z.shape[1])), inverse, self.checked_variance, np.dtype(dtype)
        )

    def recorded(self, X: Array, Z: Array) -> Recorded:
        """With ``A = adjoint · k`` (D15):

        ``∂/∂log ℓ_j = Σ A |x_j - z_j|/ℓ_j``, ``∂/∂log σ² = Σ A``, ``∂/∂z_mj = Σ_i A_im sign(x_ij - z_mj)/ℓ_j``.
        """
        inverse, value = self.inverse_scale(Z.shape[1]), self.against(Z, X.dtype)(X, Workspace())

        def pull(adjoint: Array) -> KernelGradient:
            A = adjoint * value
            rows, points = (_scaled(part, inverse).astype(A.dtype) for part in (X, Z))
            of_rows, of_points = np.zeros(rows.shape), np.zeros(points.shape)  # Σ A sign, over points and over rows
            for start in range(0, len(A), PANEL_ROWS):
                panel = slice(start, start + PANEL_ROWS)
                for j, (above, below) in enumerate(zip(rows[panel].T, points.T, strict=True)):
                    positive_part = A[panel] * (above[:, None] > below)
                    of_rows[panel, j] = positive_part.sum(axis=1)
                    of_points[:, j] += positive_part.sum(axis=0)
            of_rows = 2 * of_rows - A.sum(axis=1)[:, None]
            of_points = 2 * of_points - A.sum(axis=0)[:, None]
            along = np.einsum("ij,ij->j", of_rows, rows) - np.einsum("mj,mj->j", of_points, points)
            parameters = {"length_scale": along, "variance": np.array([A.sum(dtype=np.float64)])}
            return KernelGradient(parameters, of_points * inverse)

        return Recorded(value, pull)


@dataclass(frozen=True)
class LaplacianAgainst:
    """``σ² exp(-d)``, with distances in double precision, where differences lose nothing."""

    points: Array
    inverse_scale: Array
    variance: float
    dtype: np.dtype[np.floating]

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        distances = workspace.empty((len(X), len(self.points)), np.float64)
        cdist(_scaled(X, self.inverse_scale), self.points, "cityblock", out=distances)
        result: Array = workspace.empty(distances.shape, self.dtype)
        np.negative(distances, out=result, casting="same_kind")
        workspace.release(distances)
        np.exp(result, out=result)
        result *= self.variance
        return result


def _scaled(X: Array, inverse_scale: Array) -> Array:
    return np.clip(np.asarray(X, np.float64) * inverse_scale, -FARTHEST, FARTHEST)
