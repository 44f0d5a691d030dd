"""Core: products of a block with a triangular matrix, of which D3 and D4 have two a row."""

from __future__ import annotations

import numpy as np

from bayesvm.core.linalg import Array

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
