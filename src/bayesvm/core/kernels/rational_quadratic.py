"""Core: the rational quadratic kernel (D2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.parameters import LENGTH_SCALE, VARIANCE, Bounds, LogNormal, Parameter, positive
from bayesvm.core.kernels.stationary import Stationary

ALPHA = Parameter(LogNormal(1.0, 1.5), (1e-2, 1e2))


class RationalQuadratic(Stationary):
    """``σ² (1 + d²/2α)^-α``: a mixture of RBF kernels with different length-scales, which is narrower for larger α.

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        Length-scale in units of the scaled inputs: one for all features, or one per feature.
    variance : float
        Prior variance of f, σ².
    alpha : float
        Shape parameter α; large values approach ``RBF``.
    length_scale_bounds, variance_bounds, alpha_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    RBF : The limit of large ``alpha``.

    Examples
    --------
    >>> from bayesvm.kernels import RationalQuadratic
    >>> float(RationalQuadratic(length_scale=2.0, alpha=0.5)([[0.0]], [[2.0]])[0, 0].round(4))
    0.7071
    """

    parameters = Stationary.parameters | {"alpha": ALPHA}

    def __init__(
        self,
        length_scale: float | npt.ArrayLike = 1.0,
        variance: float = 1.0,
        alpha: float = 1.0,
        length_scale_bounds: Bounds = LENGTH_SCALE.bounds,
        variance_bounds: Bounds = VARIANCE.bounds,
        alpha_bounds: Bounds = ALPHA.bounds,
    ) -> None:
        super().__init__(length_scale, variance, length_scale_bounds, variance_bounds)
        self.alpha = alpha
        self.alpha_bounds = alpha_bounds

    def profile(self, squared: Any) -> tuple[Any, Any]:
        alpha = float(positive("alpha", self.alpha))
        beyond = np.log1p(squared / (2 * alpha))  # a power of 1 + d²/2α would lose digits for large α
        return np.exp(-alpha * beyond), np.exp(-(alpha + 1) * beyond)
