"""Core: Cholesky factors that either succeed or explain themselves, and their inverses.

Everything here is in double precision and of size M×M; nothing here sees data.
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
    """Numbers out of range made infinity or NaN; the message names the remedy."""


class JitterWarning(UserWarning):
    """A matrix needed more jitter than usual; results are those of a slightly noisier kernel."""


def cholesky(matrix: Array, *, what: str, jitter: float = 0.0) -> tuple[Array, float]:
    """Lower factor of ``matrix + jitter * mean(diag) * I``, with ten times the jitter until it exists.

    Returns the factor and the jitter used, both relative to the mean of the diagonal.
    """
    scale = float(np.mean(np.diag(matrix))) if matrix.size else 1.0
    if not np.isfinite(matrix).all():
        raise NotFiniteError(f"{what} holds NaN or infinity; a kernel parameter or an input is out of range")
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
                "Inducing points too close together for the length-scale are the usual cause; "
                "fewer of them, or a shorter length-scale, avoid it.",
                JitterWarning,
            )
        return factor, tried
    raise NotPositiveDefiniteError(
        f"{what} is not positive definite even with {LARGEST_JITTER:g} of its mean diagonal added; "
        "is the kernel a covariance function with finite, positive parameters?"
    )


def inverse_transposed(factor: Array) -> Array:
    """``factor^-T`` for a lower triangular factor with a positive diagonal."""
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
    return np.ascontiguousarray(np.tril(inverse).T)
