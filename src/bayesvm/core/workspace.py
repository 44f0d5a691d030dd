"""Core: memory that is reused within a block and between blocks.

Allocating an array of megabytes causes a page fault every 4 kB and evicts other data from the processor's caches. At
M = 64 and 256 this took a quarter as long as the arithmetic.
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
        """An uninitialised array in the smallest free buffer that can hold it."""
        size = prod(shape) * np.dtype(dtype).itemsize
        fits = [i for i, buffer in enumerate(self._free) if buffer.nbytes >= size]
        if fits:
            buffer = self._free.pop(min(fits, key=lambda i: self._free[i].nbytes))
        else:
            buffer = np.empty(max(size, 1), np.uint8)
        self._lent[buffer.ctypes.data] = buffer
        return buffer[:size].view(dtype).reshape(shape)

    def release(self, array: npt.NDArray[Any]) -> None:
        """Return an array before the reset."""
        self._free.append(self._lent.pop(array.ctypes.data))

    def reset(self) -> None:
        """Return all arrays."""
        self._free.extend(self._lent.values())
        self._lent.clear()
