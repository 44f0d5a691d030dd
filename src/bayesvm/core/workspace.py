"""Core: memory that is used again, within a block and from block to block.

A new array of megabytes costs a page fault every 4 kB and pushes others out of the processor's caches; at
M = 64 and 256 that took as long as a quarter of the arithmetic.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt


class Workspace:
    """Uninitialised arrays, each valid until it is released or the workspace is reset."""

    def __init__(self) -> None:
        self._free: list[npt.NDArray[np.uint8]] = []
        self._lent: dict[int, npt.NDArray[np.uint8]] = {}

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array with arbitrary content, in the smallest free buffer that holds it."""
        size = prod(shape) * np.dtype(dtype).itemsize
        fits = [i for i, buffer in enumerate(self._free) if buffer.nbytes >= size]
        if fits:
            buffer = self._free.pop(min(fits, key=lambda i: self._free[i].nbytes))
        else:
            buffer = np.empty(max(size, 1), np.uint8)
        self._lent[buffer.ctypes.data] = buffer
        return buffer[:size].view(dtype).reshape(shape)

    def release(self, array: npt.NDArray[Any]) -> None:
        """Take an array back before the reset."""
        self._free.append(self._lent.pop(array.ctypes.data))

    def reset(self) -> None:
        """Take all arrays back."""
        self._free.extend(self._lent.values())
        self._lent.clear()
