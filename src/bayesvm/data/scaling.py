"""Data: column scaling, fitted as sums over blocks and applied to each block as it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

SCALER_BITS = 24
ROUNDING = 8 * float(
    np.finfo(np.float64).eps
)  # a column that varies by less than this, relative to its magnitude, is constant
LARGEST_SCALED = 1e100  # of a scaled value: the product of two fits into a double, with room for kernel variances
STEEP = 1e20  # a scaling factor above which valid inputs (at most 1e100) could overflow


class Scaler(Protocol):
    """A strictly monotone map of every column."""

    def __call__(self, X: npt.NDArray[Any], workspace: Workspace | None = None) -> Array:
        """The scaled rows in double precision, in workspace memory; valid until its reset."""
        ...

    def inverse(self, scaled: Array) -> Array:
        """Back to the units of the columns."""
        ...


def equal_scalers(one: Scaler, other: Scaler) -> bool:
    """Whether both scale every row identically; scalers are dataclasses of arrays."""
    mine, theirs = vars(one), vars(other)
    return type(one) is type(other) and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def within_reach(scaled: Array) -> Array:
    """Clip values, infinities included, to ``LARGEST_SCALED`` in place; no row needs to be farther away."""
    return np.clip(scaled, -LARGEST_SCALED, LARGEST_SCALED, out=scaled)


@dataclass(frozen=True)
class ColumnScaler:
    """``(x - centre) / scale``; the identity if both are None."""

    centre: Array | None = None
    scale: Array | None = None

    def __call__(self, X: npt.NDArray[Any], workspace: Workspace | None = None) -> Array:
        """The scaled rows in double precision; the unchanged rows if there is no scaling."""
        if self.centre is None or self.scale is None:
            return X
        scaled: Array = (workspace or Workspace()).empty(X.shape, np.float64)
        np.subtract(X, self.centre, out=scaled)
        if not self.steep:
            scaled /= self.scale
            return scaled
        with np.errstate(over="ignore"):
            scaled /= self.scale
        return within_reach(scaled)

    @property
    def steep(self) -> bool:
        """Whether columns vary so little that scaled values of other rows may overflow."""
        return self.scale is not None and bool(self.scale.min() < 1 / STEEP)

    def inverse(self, scaled: Array) -> Array:
        """Back to the units of the columns."""
        if self.centre is None or self.scale is None:
            return scaled
        return scaled * self.scale + self.centre


@dataclass
class ColumnMoments:
    """Weighted mean and root of the sum of squared deviations of every column; merged as in Chan et al. 1983.

    The root is stored because squares would underflow for a column in units of 1e-200.
    """

    weight: float
    mean: Array
    root: Array

    @classmethod
    def of(cls, blocks: Iterable[Block], workspace: Workspace | None = None) -> ColumnMoments:  # noqa: ARG003
        """The moments of all rows of the blocks."""
        return reduce(iadd, map(cls._of_block, blocks))

    @classmethod
    def _of_block(cls, block: Block) -> ColumnMoments:
        X = np.asarray(block.X, np.float64)
        weight = np.ones(len(X)) if block.weight is None else block.weight
        total = float(weight.sum())
        divisor = total or 1.0  # all rows of a block may have weight zero
        mean = weight @ X / divisor
        deviations = X - mean
        correction = weight @ deviations / divisor  # corrects rounding of the mean, which matters at 1e12
        largest = np.maximum(deviations.max(axis=0, initial=0.0), -deviations.min(axis=0, initial=0.0))
        unit = np.ldexp(1.0, np.maximum(np.frexp(largest)[1], -1000))  # powers of two cause no rounding
        deviations /= unit
        squares = np.einsum("i,ij,ij->j", weight, deviations, deviations) - total * (correction / unit) ** 2
        return cls(total, mean + correction, np.sqrt(np.maximum(squares, 0.0)) * unit)

    def __iadd__(self, other: Self) -> Self:
        total = self.weight + other.weight
        gap = other.mean - self.mean
        divisor = total or 1.0
        self.mean = self.mean + gap * (other.weight / divisor)
        apart = np.abs(gap) * np.sqrt(self.weight * other.weight / divisor)
        self.root = np.hypot(np.hypot(self.root, other.root), apart)
        self.weight = total
        return self

    def scaler(self) -> ColumnScaler:
        """Scale to mean 0 and standard deviation 1; constant columns are only centred."""
        deviation = self._deviation()
        return _rounded(self.mean, np.where(deviation == 0, 1.0, deviation))

    def common_scaler(self) -> ColumnScaler:
        """Centre, and divide all columns by the root of their mean variance: for columns in the same unit."""
        deviation = self._deviation()
        largest = float(deviation.max()) or 1.0
        common = largest * float(np.sqrt(np.mean((deviation / largest) ** 2)))
        return _rounded(self.mean, np.full_like(self.mean, common or 1.0))

    def _deviation(self) -> Array:
        """The standard deviations; zero where rounding of the mean would explain them."""
        deviation = self.root / np.sqrt(self.weight)
        return np.where(deviation <= ROUNDING * np.abs(self.mean), 0.0, deviation)


def _rounded(centre: Array, scale: Array) -> ColumnScaler:
    """Round to 24 bits of the scale: far more precise than the data, but coarser than differences in summation order.

    So the scaling does not depend on where the rows are stored. Tuning amplifies differences in the last bits to the
    fourth digit, and thus gets the same start.
    """
    mantissa, exponent = np.frexp(scale)
    bits = SCALER_BITS - exponent
    return ColumnScaler(
        np.ldexp(np.rint(np.ldexp(centre, bits)), -bits), np.ldexp(np.rint(np.ldexp(mantissa, SCALER_BITS)), -bits)
    )
