"""Core: the Matérn kernels of smoothness 1/2, 3/2 and 5/2 (D2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.parameters import LENGTH_SCALE, VARIANCE, Bounds
from bayesvm.core.kernels.stationary import Stationary


class Matern(Stationary):
    """Matérn: ``σ² exp(-a)``, ``σ² (1+a) exp(-a)`` or ``σ² (1+a+a²/3) exp(-a)`` with ``a = √(2ν) d``.

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        Length-scale in units of the scaled inputs: one for all features, or one per feature.
    variance : float
        Prior variance of f, σ².
    nu : {0.5, 1.5, 2.5}
        Smoothness: f has no, one or two derivatives.
    length_scale_bounds, variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    Raises
    ------
    ValueError
        If ``nu`` has any other value. Raised when the kernel is evaluated.

    See Also
    --------
    RBF : The infinitely smooth limit of large ``nu``.

    Examples
    --------
    >>> from bayesvm.kernels import Matern
    >>> float(Matern(length_scale=2.0, nu=0.5)([[0.0]], [[2.0]])[0, 0].round(4))
    0.3679
    """

    choices = {"nu": (0.5, 1.5, 2.5)}  # noqa: RUF012  (never changed)

    def __init__(
        self,
        length_scale: float | npt.ArrayLike = 1.0,
        variance: float = 1.0,
        nu: float = 1.5,
        length_scale_bounds: Bounds = LENGTH_SCALE.bounds,
        variance_bounds: Bounds = VARIANCE.bounds,
    ) -> None:
        super().__init__(length_scale, variance, length_scale_bounds, variance_bounds)
        self.nu = nu

    def profile(self, squared: Any) -> tuple[Any, Any]:
        if self.nu not in self.choices["nu"]:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")
        a = np.sqrt(2 * self.nu * squared)
        decay = np.exp(-a)
        if self.nu == 0.5:
            return decay, decay / a
        if self.nu == 1.5:
            return (1 + a) * decay, 3 * decay
        return (1 + a + a * a / 3) * decay, 5 / 3 * (1 + a) * decay
