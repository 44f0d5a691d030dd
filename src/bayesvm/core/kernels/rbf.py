"""Core: the squared exponential kernel (D2), and its accurate difference from the variance if it is flat (D3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev, Polynomial

from bayesvm.core.kernels.distances import AffineDistances
from bayesvm.core.kernels.parameters import positive
from bayesvm.core.kernels.records import CrossKernel
from bayesvm.core.kernels.stationary import Stationary
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

FLAT = 0.5  # share of the variance; if the mean of k(Z,Z) exceeds it, single precision needs the offset (D3)

# A polynomial for expm1(t)/t on [-1, 0], accurate to 1e-8. exp(t) - 1 would lose its digits to rounding.
_EXPM1 = Chebyshev.interpolate(lambda t: np.expm1(t) / t, 7, domain=[-1, 0]).convert(kind=Polynomial).coef


class RBF(Stationary):
    """``σ² exp(-d²/2)``: squared exponential (D2).

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        Length-scale in units of the scaled inputs: one for all features, or one per feature.
    variance : float
        Prior variance of f, σ².
    length_scale_bounds, variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    Laplacian : A kernel of sums of absolute differences.
    Matern : For rougher functions.
    RationalQuadratic : For functions with several length-scales.

    Examples
    --------
    >>> from bayesvm.kernels import RBF
    >>> float(RBF(length_scale=2.0, variance=3.0)([[0.0]], [[2.0]])[0, 0].round(4))
    1.8196
    """

    def profile(self, squared: Any) -> tuple[Any, Any]:
        value = np.exp(-0.5 * squared)
        return value, value

    def offset(self, matrix: Array) -> float:
        variance = float(positive("variance", self.variance))
        return variance if matrix.mean() > FLAT * variance else 0.0

    def minus_offset(self, offset: float, Z: Array, dtype: npt.DTypeLike) -> CrossKernel:
        return RBFMinusVariance(self._distances(Z, dtype, slope=-0.5), offset)


@dataclass(frozen=True)
class RBFMinusVariance:
    """``σ² exp(-d²/2) - σ²``, for length-scales so long that the kernel is close to σ² everywhere (D3)."""

    exponent: AffineDistances  # -d²/2
    variance: float

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        t = self.exponent.clamp(self.exponent(X, workspace))
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
