"""Estimators: numeric targets: checks, and the units in which the model learns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesvm.data.checks import Locate, is_number
from bayesvm.estimators._targets import TargetKind

LARGEST = 1e100  # its square is still finite
MOST_STRANGE = 0.5  # share of text that is not a number, below which the column counts as numeric
SMALLEST = 1e-100  # spread whose square is not zero
MIDDLE = 0.6745  # half of a standard normal distribution is within ± this deviation,
NEARLY_ALL = 1.6449  # and nine tenths within ± this one
WIDEST = 5.0  # largest ratio of the spread of nine tenths to the spread of the middle half


@dataclass(frozen=True)
class NumberEncoder:
    """Centres and scales numbers; a ``TargetEncoder``."""

    centre: float
    spread: float
    classes: ClassVar[np.ndarray] = np.empty(0)  # there are none

    def __call__(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Encode the numbers of some rows; weights are unchanged."""
        return (as_numbers(y, _in_y, "y") - self.centre) / self.spread, weight


@dataclass
class Numbers:
    """All targets and their weights, eight bytes each; can be added."""

    y: np.ndarray
    weight: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def __iadd__(self, other: Self) -> Self:
        self.y, self.weight = np.concatenate([self.y, other.y]), np.concatenate([self.weight, other.weight])
        return self


def as_numbers(y: Any, locate: Locate, name: str) -> np.ndarray:
    """Targets as floats; an error names the first row without a finite number."""
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has complex numbers; give real ones")
    if y.dtype.kind not in "iufb":
        y = y.astype(object)
        _require_no_text_among_numbers(y.ravel(), locate, name)
        for row, value in enumerate(y.ravel()):
            if isinstance(value, complex):
                raise ValueError(  # noqa: TRY004  (as scikit-learn does)
                    f"Complex data not supported: {locate(row)}: {name} is {value!r}; give real numbers"
                )
            if isinstance(value, str | bytes) or not _is_number(value):
                raise ValueError(
                    f"{locate(row)}: {name} is {value!r}, which is not a number. Regression needs a numeric target; "
                    "use BayesianSVC for classes"
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


def _require_no_text_among_numbers(values: np.ndarray, locate: Locate, name: str) -> None:
    """If most values are numbers written as text, name the first that is not."""
    texts = [row for row, value in enumerate(values) if isinstance(value, str)]
    strange = [row for row in texts if not is_number(values[row])]
    if strange and len(strange) < MOST_STRANGE * len(texts):
        raise ValueError(
            f"{locate(strange[0])}: {name} is {values[strange[0]]!r}, which is not a number, as "
            f"{len(texts) - len(strange):,} others are; correct it, or leave such rows out"
        )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None  # a missing value, which becomes NaN
    return True


def _in_y(row: int) -> str:
    return f"row {row}"


class NumberKind(TargetKind):
    """Numbers, at least two of them different."""

    def require(self, y: Any) -> None:
        if y is not None:
            as_numbers(y, _in_y, "y")

    def of(self, y: np.ndarray, weight: np.ndarray | None) -> Numbers:
        return Numbers(np.asarray(y, np.float64), np.ones(len(y)) if weight is None else np.asarray(weight, np.float64))

    def summarise(self, y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> Numbers:
        return self.of(as_numbers(y, locate, name), weight)

    def require_part(self, found: Numbers, name: str) -> None:
        """Nothing: later rows may differ."""

    def require_all(self, found: Numbers, name: str) -> None:
        """Nothing: the encoder checks all rows."""

    def encoder(self, estimator: Any, found: Numbers) -> tuple[NumberEncoder, np.ndarray]:
        """Centre and spread of the numbers, robust against outliers."""
        if not found.weight.any():
            raise ValueError("all sample weights are zero; some must be positive")
        y, weight = found.y[found.weight > 0], found.weight[found.weight > 0]
        if y.min() == y.max():
            raise ValueError(
                f"{type(estimator).__name__} needs at least two distinct values in y, but all {len(y)} rows have "
                f"{y[0]:g}"
            )
        centre, spread = centre_and_spread(y, weight)
        if spread < SMALLEST:
            raise ValueError(
                f"y varies by {spread:.1g} only, and its variance is rounded to zero; give it in a smaller unit"
            )
        return NumberEncoder(centre, spread), np.array([weight.sum()])


NUMBERS = NumberKind()


def centre_and_spread(y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """The median, and the standard deviation of a normal distribution with the same median absolute deviation.

    If half of the numbers are close together, the 90% quantile of the absolute deviations is used instead, up to a
    limit that excludes outliers; if nine tenths are equal, the mean absolute deviation.
    """
    centre = _quantile(y, weight, 0.5)
    deviation = np.abs(y - centre)
    middle, most = (_quantile(deviation, weight, q) / z for q, z in ((0.5, MIDDLE), (0.9, NEARLY_ALL)))
    spread = min(max(middle, most), WIDEST * middle) if middle > 0 else most
    return centre, float(spread if spread > 0 else np.average(deviation, weights=weight))


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The weighted quantile."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))])
