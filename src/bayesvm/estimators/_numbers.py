"""Estimators: targets that are numbers: what is wrong with them, and the units in which they are learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesvm.data.checks import Locate
from bayesvm.estimators._targets import TargetKind

LARGEST = 1e100  # whose square is still a number
MIDDLE = 0.6745  # of a normal law, the deviation that half of it is within; and
NEARLY_ALL = 1.6449  # nine tenths
WIDEST = 5.0  # times by which the range of nine tenths may exceed that of the middle half


@dataclass(frozen=True)
class NumberEncoder:
    """Numbers in units of their own spread, from their centre; a ``TargetEncoder``."""

    centre: float
    spread: float
    classes: ClassVar[np.ndarray] = np.empty(0)  # there are none

    def __call__(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """The numbers of some rows; the weights stay."""
        return (as_numbers(y, _in_y, "y") - self.centre) / self.spread, weight


@dataclass
class Numbers:
    """All targets and their weights, eight bytes each; adds up."""

    y: np.ndarray
    weight: np.ndarray

    @property
    def n_rows(self) -> int:
        """All of them."""
        return len(self.y)

    def __iadd__(self, other: Self) -> Self:
        self.y, self.weight = np.concatenate([self.y, other.y]), np.concatenate([self.weight, other.weight])
        return self


def as_numbers(y: Any, locate: Locate, name: str) -> np.ndarray:
    """Targets as floats; an error names the first row that is not a finite number."""
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has complex numbers; give real ones")
    if y.dtype.kind not in "iufb":
        y = y.astype(object)
        for row, value in enumerate(y.ravel()):
            if isinstance(value, complex):
                raise ValueError(  # noqa: TRY004  (as scikit-learn does)
                    f"Complex data not supported: {locate(row)}: {name} is {value!r}; give real numbers"
                )
            if isinstance(value, str | bytes) or not _is_number(value):
                raise ValueError(
                    f"{locate(row)}: {name} is {value!r}, which is no number. A regressor predicts numbers; for labels "
                    "use BayesianSVC"
                )
    numbers = y.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(numbers.ravel()) <= LARGEST))
    if len(wrong):
        row, value = int(wrong[0]), numbers.ravel()[wrong[0]]
        what = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}"
        remedy = f"beyond ±{LARGEST:g}; give it in a larger unit" if np.isfinite(value) else "leave such rows out"
        also = f"; so are {len(wrong) - 1} more rows" if len(wrong) > 1 else ""
        raise ValueError(f"{locate(row)}: {name} is {what}{also}; {remedy}")
    return numbers


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None  # a missing value, which becomes NaN
    return True


def _in_y(row: int) -> str:
    return f"row {row}"


class NumberKind(TargetKind):
    """Numbers, of which there must be two that differ."""

    def require(self, y: Any) -> None:
        if y is not None:
            as_numbers(y, _in_y, "y")

    def of(self, y: np.ndarray, weight: np.ndarray | None) -> Numbers:
        return Numbers(np.asarray(y, np.float64), np.ones(len(y)) if weight is None else np.asarray(weight, np.float64))

    def summarise(self, y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> Numbers:
        return self.of(as_numbers(y, locate, name), weight)

    def require_part(self, found: Numbers, name: str) -> None:
        """More rows may still differ."""

    def require_all(self, found: Numbers, name: str) -> None:
        """What a table has is checked by the encoder, too."""

    def encoder(self, estimator: Any, found: Numbers) -> tuple[NumberEncoder, np.ndarray]:
        """Centre and spread of the numbers, which a few outliers do not move."""
        if not found.weight.any():
            raise ValueError("all sample weights are zero; some must be positive")
        y, weight = found.y[found.weight > 0], found.weight[found.weight > 0]
        if y.min() == y.max():
            raise ValueError(
                f"{type(estimator).__name__} needs numbers in y that differ, but all {len(y)} rows have {y[0]:g}"
            )
        return NumberEncoder(*centre_and_spread(y, weight)), np.array([weight.sum()])


NUMBERS = NumberKind()


def centre_and_spread(y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """The median, and the spread of a normal law with the same median deviation.

    Where half of the numbers are close together, the deviation that nine tenths are within counts, up to a limit that
    keeps outliers out; and where nine tenths are equal, the mean deviation.
    """
    centre = _quantile(y, weight, 0.5)
    deviation = np.abs(y - centre)
    middle, most = (_quantile(deviation, weight, q) / z for q, z in ((0.5, MIDDLE), (0.9, NEARLY_ALL)))
    spread = min(max(middle, most), WIDEST * middle) if middle > 0 else most
    return centre, float(spread if spread > 0 else np.average(deviation, weights=weight))


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The smallest number that so much of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))])
