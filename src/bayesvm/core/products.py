"""Core: products with a triangular matrix (D3, D4: two per row) or with a triangular result (D16)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array

NEGLIGIBLE = 1e-15  # single precision loses digits below 1e-38; features are rarely below 1e-20
PANEL = 128  # columns; narrower panels skip more zeros, but narrow matrix products are slow


def times_upper(rows: Array, upper: Array, out: Array) -> Array:
    """``rows @ upper`` for an upper triangular matrix, skipping most products with its zeros.

    BLAS has a routine for this, but SciPy's wrapper holds the GIL, so threads would block each other.
    """
    for start in range(0, upper.shape[1], PANEL):
        panel = slice(start, start + PANEL)
        filled = slice(0, start + PANEL)
        np.matmul(rows[:, filled], upper[filled, panel], out=out[:, panel])
    return out


def times_lower(rows: Array, lower: Array, out: Array) -> Array:
    """``rows @ lower`` for a lower triangular matrix."""
    for start in range(0, lower.shape[1], PANEL):
        panel, filled = slice(start, start + PANEL), slice(start, None)
        np.matmul(rows[:, filled], lower[filled, panel], out=out[:, panel])
    return out


def lower_products(left: Array, right: Array) -> Array:
    """The lower triangle of ``leftᵀ right``; fills parts of the upper triangle where skipping them would cost more."""
    found = np.zeros((left.shape[1], right.shape[1]), left.dtype)
    for start in range(0, right.shape[1], PANEL):
        panel, filled = slice(start, start + PANEL), slice(start, None)
        np.matmul(left[:, filled].T, right[:, panel], out=found[filled, panel])
    return found


def mirrored(lower: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    triangle = np.tril(lower)
    return triangle + np.tril(lower, -1).T


def row_factors(values: Array, dtype: npt.DTypeLike) -> Array:
    """Row factors in the precision of blocks; in single precision, negligible factors become zero.

    Rows predicted with near certainty have such small factors that products with them are subnormal, and processors
    are up to ten times slower with subnormal numbers.
    """
    if np.dtype(dtype) == np.float64:
        return values
    return np.where(np.abs(values) < NEGLIGIBLE, 0.0, values).astype(dtype)
