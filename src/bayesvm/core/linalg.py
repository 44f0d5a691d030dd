"""Core: Cholesky factors with explicit errors, and their inverses.

All matrices are M×M and in double precision. This module does not access data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from bayesvm.warn import warn_user

Array = npt.NDArray[np.floating[Any]]

LARGEST_JITTER = 1e-2
OUT_OF_RANGE = (
    "values in X or kernel parameters are out of range; scale the inputs (scale='standard') or use precision='double'"
)


class NotPositiveDefiniteError(ValueError):
    """A matrix that must be positive definite is not; the message names the cause."""


class NotFiniteError(ValueError):
    """Values out of range led to infinity or NaN; the message names the remedy."""


class JitterWarning(UserWarning):
    """A matrix needed more jitter than usual; results correspond to a slightly noisier kernel."""


def cholesky(matrix: Array, *, what: str, jitter: float = 0.0) -> tuple[Array, float]:
    """Lower factor of ``matrix + jitter * mean(diag) * I``; multiplies the jitter by ten until the factor exists.

    Returns the factor and the jitter used, both relative to the mean of the diagonal.
    """
    scale = float(np.mean(np.diag(matrix))) if matrix.size else 1.0
    if not np.isfinite(matrix).all():
        raise NotFiniteError(f"{what} contains NaN or infinity; a kernel parameter or an input is out of range")
    tried = jitter
    while tried <= LARGEST_JITTER:
        try:
            shifted = matrix + tried * scale * np.eye(len(matrix))
            factor = linalg.cholesky(shifted, lower=True, check_finite=False)
        except linalg.LinAlgError:
            tried = max(10.0 * tried, 1e-12)
            continue
        if tried > max(jitter, 1e-10):
            warn_user(
                f"{what} is nearly singular: {tried:.0e} of its mean diagonal was added. "
                "The usual cause is inducing points too close together for the length-scale; "
                "use fewer of them, or a shorter length-scale.",
                JitterWarning,
            )
        return factor, tried
    raise NotPositiveDefiniteError(
        f"{what} is not positive definite even with {LARGEST_JITTER:g} of its mean diagonal added; "
        "check that the kernel is a covariance function with finite, positive parameters"
    )


def inverse_transposed(factor: Array) -> Array:
    """``factor^-T`` for a lower triangular factor with a positive diagonal."""
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
    return np.ascontiguousarray(np.tril(inverse).T)
