"""Preparation: encode the values of one column as numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bayesvm.data.texts import Spellings
from bayesvm.preparation.date_formats import EXAMPLES, DateFormat
from bayesvm.preparation.dates import DAYS, PARTS, DateColumn
from bayesvm.preparation.values import Row, Values, as_kind
from bayesvm.schema import each, either, flag, nothing, one_of, real, record, satisfying, text, whole

MISSING = "(missing)"
RARE = "(rare)"
EXPECTED_NEW = 0.05  # share of rows whose category is new, but not reported if training had rare ones
NONE_MISSING = "missing values, but had none in training"
# In files. Earlier versions call categories "levels", and fill in missing numbers unless ``fill`` is NaN.
NAMES = satisfying(each(text), "distinct names, at least one", lambda found, _: len(set(found)) == len(found) > 0)
COLUMN = either(
    record(
        {"name": text, "fill": either(nothing, real), "indicator": flag, "kind": one_of("number")}, {"complete": flag}
    ),
    record(
        {"name": text, "categories": NAMES, "rare": flag, "kind": one_of("category")},
        {"ignores_case": flag, "rare_checksums": either(nothing, each(whole))},
    ),
    record({"name": text, "levels": NAMES, "rare": flag, "kind": one_of("levels")}),
    record(
        {
            "name": text,
            "first": satisfying(text, "a day like 2024-04-03", lambda found, _: _is_day(found)),
            "parts": satisfying(
                each(one_of(*PARTS, DAYS)),
                "distinct parts, the last of them days",
                lambda found, _: len(set(found)) == len(found) and list(found[-1:]) == [DAYS],
            ),
            "kind": one_of("date"),
        },
        {"form": one_of(*EXAMPLES), "complete": flag},
    ),
)


def checksum(text: str) -> int:
    """A checksum of a category, which a model file may hold in place of its name."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def _is_day(found: str) -> bool:
    try:
        return str(np.datetime64(found, "D")) == found
    except ValueError:
        return False


@dataclass(frozen=True)
class NumberColumn:
    """Numbers and booleans. A missing value is NaN; with ``indicator``, a second feature marks it.

    Recipes of earlier versions replace it by ``fill``; NaN, with an indicator, and None keep it.
    """

    name: str
    fill: float | None = None
    indicator: bool = False
    kind: str = "number"
    complete: bool = False  # whether training had no missing value

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.name, f"{self.name} {MISSING}")[: 1 + self.indicator]

    @property
    def marks_missing(self) -> bool:
        """Whether missing values stay missing, and a feature marks them."""
        return self.indicator and self.fill is not None and not self.filled

    @property
    def filled(self) -> bool:
        """Whether a missing value is replaced, as in recipes of earlier versions."""
        return self.fill is not None and not np.isnan(self.fill)

    def encode(self, numbers: npt.NDArray[Any], out: npt.NDArray[Any]) -> tuple[str, ...]:
        """Fill in the features; returns what training did not have, for a warning."""
        if self.fill is None:
            out[:, 0] = numbers
            return (NONE_MISSING,) if self.complete and np.isnan(out[:, 0]).any() else ()
        missing = np.isnan(numbers)
        out[:, 0] = np.where(missing, self.fill, numbers)
        if self.indicator:
            out[:, 1] = missing
        return (
            (f"{NONE_MISSING}; they count as {self.fill:g}, the median",)
            if missing.any() and not self.indicator
            else ()
        )

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The values, from features."""
        return [None if np.isnan(row[0]) or (self.indicator and row[1]) else float(row[0]) for row in X]


@dataclass(frozen=True)
class CategoryColumn:
    """Text, one-hot encoded: one feature per category, most frequent first; for two categories, only the second.

    With ``rare``, all other categories share one feature. A missing value is a category, too. Text that is no category
    is read as the category that differs from it only by surrounding spaces or, with ``ignores_case``, by case.
    """

    name: str
    categories: tuple[str, ...]
    rare: bool = False
    kind: str = "category"
    ignores_case: bool = False
    rare_checksums: tuple[int, ...] | None = field(
        default=None, compare=False
    )  # checksums of the rare ones in training

    @property
    def shown(self) -> tuple[str, ...]:
        """The categories, with one for all rare ones."""
        return (*self.categories, RARE) if self.rare else self.categories

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.name}={category}" for category in self.shown[1 if len(self.shown) == 2 else 0 :])

    @property
    def unknown(self) -> str:
        """How categories not seen in training are encoded."""
        if self.rare:
            return "rare"
        return self.categories[0] if len(self.categories) == 2 else "none of the known categories"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """Features of each category, one row per category, with a last row for all other text."""
        rows = np.eye(len(self.categories) + 1, len(self.shown), dtype=np.float32)
        return rows[:, 1:] if len(self.shown) == 2 else rows

    @cached_property
    def _numbers(self) -> dict[str | None, int]:
        numbers: dict[str | None, int] = {category: number for number, category in enumerate(self.categories)}
        return numbers | {None: numbers.get(MISSING, len(numbers))}

    def _number(self, text: str) -> int:
        """The number of the category that a text spells in another way, or of all other text."""
        return self._numbers.get(self._spellings(text), len(self.categories))

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self.categories, self.ignores_case)

    def encode(self, texts: npt.NDArray[Any], out: npt.NDArray[Any]) -> tuple[str, ...]:
        """Fill in the features from text (None if missing); returns what training did not have, for a warning."""
        other, numbers = len(self.categories), self._numbers
        listed = texts.tolist()
        numbers = numbers | {text: self._number(text) for text in set(listed).difference(numbers)}
        found = np.fromiter(map(numbers.__getitem__, listed), np.intp, len(listed))
        out[:] = self.features[found]
        strange = Counter(listed[row] or MISSING for row in np.flatnonzero(found == other))
        if self.rare:
            new_rows = sum(count for text, count in strange.items() if not self._was_rare(text))
            if self.rare_checksums is None or new_rows <= EXPECTED_NEW * len(listed):
                return ()
            strange = Counter({text: count for text, count in strange.items() if not self._was_rare(text)})
        new = [text for text in strange if text not in {MISSING, RARE}]
        return (
            *((f"{NONE_MISSING}; they count as {self.unknown}",) if MISSING in strange else ()),
            *((f"categories not seen in training; they count as {self.unknown}",) if new else ()),
        )

    def _was_rare(self, text: str) -> bool:
        """Whether a text was a rare category in training."""
        return checksum(text) in self._rare or checksum(text.strip().casefold()) in self._rare

    @cached_property
    def _rare(self) -> frozenset[int]:
        return frozenset(self.rare_checksums or ())

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The categories, from features; None if no feature is set."""
        if len(self.shown) == 2:
            return [self.shown[int(row[0] > 0.5)] for row in X]
        return [self.shown[int(row.argmax())] if row.any() else None for row in X]


Column = NumberColumn | CategoryColumn | DateColumn
VALUES = {NumberColumn: "number", CategoryColumn: "text", DateColumn: "time"}  # the kind of values that each encodes


def values_for(column: Column, values: Values, row: Row | None = None) -> npt.NDArray[Any]:
    """The values that a column encodes."""
    dates = DateFormat(column.form) if isinstance(column, DateColumn) else None
    return as_kind(values, VALUES[type(column)], row, dates)


def column_state(column: Column) -> dict[str, Any]:
    """A column as plain values, for files."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(column).items()}


def column_from(state: dict[str, Any]) -> Column:
    """The column for a state."""
    if state["kind"] == "number":
        fill = state["fill"]
        missing = np.nan if state["indicator"] else None
        return NumberColumn(**state | {"fill": missing if fill is None or np.isnan(fill) else float(fill)})
    if state["kind"] == "date":
        return DateColumn(**state | {"parts": tuple(state["parts"])})
    categories = state["categories" if "categories" in state else "levels"]
    checksums = state.get("rare_checksums")
    return CategoryColumn(
        state["name"],
        tuple(categories),
        state["rare"],
        ignores_case=state.get("ignores_case", False),
        rare_checksums=None if checksums is None else tuple(map(int, checksums)),
    )
