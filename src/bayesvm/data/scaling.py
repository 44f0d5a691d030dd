"""Data: column scaling, fitted as sums over blocks and applied to each block as it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.arena import Arena
from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Block

SCALER_BITS = 24
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # a column that varies by less, relative to its size, is constant


class Scaler(Protocol):
    """A strictly monotone map of every column."""

    def __call__(self, X: npt.NDArray[Any], arena: Arena | None = None) -> Array:
        """The scaled rows, in double precision and in memory of the arena; valid until its reset."""
        ...

    def inverse(self, scaled: Array) -> Array:
        """Back to the units of the columns."""
        ...


@dataclass(frozen=True)
class ColumnScaler:
    """``(x - centre) / scale``; without them the identity."""

    centre: Array | None = None
    scale: Array | None = None

    def __call__(self, X: npt.NDArray[Any], arena: Arena | None = None) -> Array:
        """The scaled rows in double precision; the rows themselves if there is nothing to scale."""
        if self.centre is None or self.scale is None:
            return X
        scaled: Array = (arena or Arena()).empty(X.shape, np.float64)
        np.subtract(X, self.centre, out=scaled)
        scaled /= self.scale
        return scaled

    def inverse(self, scaled: Array) -> Array:
        """Back to the units of the columns."""
        if self.centre is None or self.scale is None:
            return scaled
        return scaled * self.scale + self.centre


@dataclass
class ColumnMoments:
    """Weighted mean and sum of squared deviations of every column; merges as in Chan et al. 1983."""

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def of(cls, blocks: Iterable[Block], arena: Arena | None = None) -> ColumnMoments:  # noqa: ARG003
        """The moments of some blocks together."""
        return reduce(iadd, map(cls._of_block, blocks))

    @classmethod
    def _of_block(cls, block: Block) -> ColumnMoments:
        X = np.asarray(block.X, np.float64)
        weight = np.ones(len(X)) if block.weight is None else block.weight
        total = float(weight.sum())
        divisor = total or 1.0  # all rows of a block may have weight zero
        mean = weight @ X / divisor
        deviations = X - mean
        correction = weight @ deviations / divisor  # the mean's own rounding, which matters at 1e12
        squares = np.einsum("i,ij,ij->j", weight, deviations, deviations) - total * correction**2
        return cls(total, mean + correction, np.maximum(squares, 0.0))

    def __iadd__(self, other: Self) -> Self:
        total = self.weight + other.weight
        gap = other.mean - self.mean
        divisor = total or 1.0
        self.mean = self.mean + gap * (other.weight / divisor)
        self.squares = self.squares + other.squares + gap**2 * (self.weight * other.weight / divisor)
        self.weight = total
        return self

    def scaler(self) -> ColumnScaler:
        """To mean 0 and standard deviation 1; a column that does not vary is only centred."""
        deviation = self._deviation()
        return _rounded(self.mean, np.where(deviation == 0, 1.0, deviation))

    def common_scaler(self) -> ColumnScaler:
        """To mean 0, and all columns divided by the root of their mean variance: for columns that share a unit."""
        common = np.sqrt(np.mean(self._deviation() ** 2))
        return _rounded(self.mean, np.full_like(self.mean, common or 1.0))

    def _deviation(self) -> Array:
        """The standard deviations; zero where the mean's own rounding would explain them."""
        deviation = np.sqrt(self.squares / self.weight)
        return np.where(deviation <= ROUNDING * np.abs(self.mean), 0.0, deviation)


def _rounded(centre: Array, scale: Array) -> ColumnScaler:
    """To 24 bits of the scale, far finer than rows can tell but coarser than sums in another order differ.

    So a table has the same scaling wherever its rows lie, and tuning, which turns last bits into fourth digits, the
    same start.
    """
    mantissa, exponent = np.frexp(scale)
    bits = SCALER_BITS - exponent
    return ColumnScaler(
        np.ldexp(np.rint(np.ldexp(centre, bits)), -bits), np.ldexp(np.rint(np.ldexp(mantissa, SCALER_BITS)), -bits)
    )
