"""Preparation: encode a column of dates or times as numeric parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesvm.preparation.date_formats import ISO
from bayesvm.preparation.values import DAY, MICROSECONDS

Array = npt.NDArray[Any]


def _units(times: Array, unit: str) -> Array:
    """Whole units since the start of 1970."""
    return times.astype(f"datetime64[{unit}]").astype(np.int64)


PARTS = {
    "year": lambda times: _units(times, "Y") + 1970,
    "month": lambda times: _units(times, "M") % 12 + 1,
    "day of week": lambda times: (_units(times, "D") + 3) % 7 + 1,  # Monday is 1
    "hour": lambda times: _units(times, "h") % 24,
}
DAYS = "days"  # since the first day of training, with a fraction


@dataclass(frozen=True)
class DateColumn:
    """Dates or times, encoded as the parts that vary in training and the days since the first day of training.

    >>> import numpy as np
    >>> column = DateColumn.learned("when", np.array(["2024-01-31", "2024-02-05"], "datetime64[us]"))
    >>> column.names
    ('when (month)', 'when (day of week)', 'when (days)')
    """

    name: str
    first: str
    parts: tuple[str, ...]
    kind: str = "date"
    form: str = ISO  # of dates in text
    complete: bool = False  # whether training had no missing value

    @classmethod
    def learned(cls, name: str, times: Array, form: str = ISO) -> Self:
        """Learn the parts from some times, at least two of them different."""
        held = times[~np.isnat(times)]
        varying = tuple(part for part, number in PARTS.items() if np.ptp(number(held)))
        return cls(
            name, str(held.min().astype("datetime64[D]")), (*varying, DAYS), form=form, complete=len(held) == len(times)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.name} ({part})" for part in self.parts)

    def encode(self, times: Array, out: Array) -> tuple[str, ...]:
        """Fill in the features, NaN for a missing time; returns what training did not have, for a warning."""
        missing = np.isnat(times)
        times = np.where(missing, np.datetime64(self.first, "us"), times)
        for number, part in enumerate(self.parts):
            values = (times - np.datetime64(self.first, "us")) / DAY if part == DAYS else PARTS[part](times)
            out[:, number] = np.where(missing, np.nan, values)
        return ("missing values, but had none in training",) if self.complete and missing.any() else ()

    def on_days(self, days: Array) -> tuple[Array, list[str]]:
        """The features of some days, counted from the first day, and these days as text."""
        times = (np.datetime64(self.first, "D") + days.astype(np.int64)).astype(MICROSECONDS)
        features = np.empty((len(times), len(self.parts)))
        self.encode(times, features)
        return features, [_written(time) for time in times]

    def decoded(self, X: Array) -> list[Any]:
        """The dates, with a time unless it is midnight; None if missing."""
        days = np.asarray(X[:, self.parts.index(DAYS)], np.float64)
        missing = np.isnan(days)
        microseconds = np.round(np.where(missing, 0, days) * (DAY / np.timedelta64(1, "us"))).astype("timedelta64[us]")
        times = np.datetime64(self.first, "us") + microseconds
        return [None if gone else _written(time) for gone, time in zip(missing, times, strict=True)]


def _written(time: np.datetime64) -> str:
    """A time as ISO text, without midnight."""
    day = time.astype("datetime64[D]")
    return str(
        day if day == time else time.astype("datetime64[s]" if time == time.astype("datetime64[s]") else MICROSECONDS)
    )
