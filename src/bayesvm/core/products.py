"""Core: products with a triangular matrix, of which D3 and D4 have two a row, or with a triangular result (D16)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array

NEGLIGIBLE = 1e-15  # single precision begins to lose digits at 1e-38, and features are rarely below 1e-20
PANEL = 128  # columns; fewer save more of the zeros, but matrix products of few columns are slow


def times_upper(rows: Array, upper: Array, out: Array) -> Array:
    """``rows @ upper`` for an upper triangular matrix, without most of the products with its zeros.

    BLAS has a routine for it, but SciPy's holds the interpreter's lock, so that threads would wait for each other.
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
    """The lower triangle of ``leftᵀ right``; of the other triangle, only what is cheaper to compute than to avoid."""
    found = np.zeros((left.shape[1], right.shape[1]), left.dtype)
    for start in range(0, right.shape[1], PANEL):
        panel, filled = slice(start, start + PANEL), slice(start, None)
        np.matmul(left[:, filled].T, right[:, panel], out=found[filled, panel])
    return found


def mirrored(lower: Array) -> Array:
    """The symmetric matrix whose lower triangle is given."""
    triangle = np.tril(lower)
    return triangle + np.tril(lower, -1).T


def row_factors(values: Array, dtype: npt.DTypeLike) -> Array:
    """Factors of rows in the precision of blocks; in single precision, zero where they are negligible.

    A row that is predicted with near certainty has factors so small that products with them are subnormal numbers,
    with which processors are up to ten times as slow.
    """
    if np.dtype(dtype) == np.float64:
        return values
    return np.where(np.abs(values) < NEGLIGIBLE, 0.0, values).astype(dtype)
