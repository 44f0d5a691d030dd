"""Preparation: how the values of one column become numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.tables.column_reading import numbers_of
from bayesvm.extras import optional
from bayesvm.schema import each, either, flag, one_of, real, record, satisfying, text

MISSING = "(missing)"
RARE = "(rare)"
# In files. Earlier ones call categories "levels".
NAMES = satisfying(each(text), "distinct names, at least one", lambda found, _: len(set(found)) == len(found) > 0)
COLUMN = either(
    record({"name": text, "fill": real, "indicator": flag, "kind": one_of("number")}),
    record({"name": text, "categories": NAMES, "rare": flag, "kind": one_of("category")}),
    record({"name": text, "levels": NAMES, "rare": flag, "kind": one_of("levels")}),
)


@dataclass(frozen=True)
class NumberColumn:
    """Numbers; a missing one becomes ``fill``, and a second feature says so if that happened in training.

    With a ``fill`` of NaN a missing value stays missing, and whatever reads the features refuses it.
    """

    name: str
    fill: float
    indicator: bool = False
    kind: str = "number"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features that it becomes."""
        return (self.name, f"{self.name} {MISSING}")[: 1 + self.indicator]

    def encode(self, column: Any, out: npt.NDArray[Any]) -> bool:
        """Fill the features from an Arrow column; True if values are missing and none were in training."""
        numbers = numbers_of(column)
        missing = np.isnan(numbers)
        out[:, 0] = np.where(missing, self.fill, numbers)
        if self.indicator:
            out[:, 1] = missing
        return bool(missing.any()) and not self.indicator and not np.isnan(self.fill)

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The values that features stand for."""
        return [None if self.indicator and row[1] else float(row[0]) for row in X]


@dataclass(frozen=True)
class CategoryColumn:
    """Text: a feature for each category, the most frequent first; of two categories, for the second only.

    With ``rare``, all other categories share one. A missing value is a category like others.
    """

    name: str
    categories: tuple[str, ...]
    rare: bool = False
    kind: str = "category"

    @property
    def shown(self) -> tuple[str, ...]:
        """The categories, the rare ones as one of them."""
        return (*self.categories, RARE) if self.rare else self.categories

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features that it becomes."""
        return tuple(f"{self.name}={category}" for category in self.shown[1 if len(self.shown) == 2 else 0 :])

    @property
    def unknown(self) -> str:
        """What a category counts as that was not seen in training."""
        if self.rare:
            return "rare"
        return self.categories[0] if len(self.categories) == 2 else "none of the known ones"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """A row for each category, and a last one for all other text."""
        rows = np.eye(len(self.categories) + 1, len(self.shown), dtype=np.float32)
        return rows[:, 1:] if len(self.shown) == 2 else rows

    def encode(self, column: Any, out: npt.NDArray[Any]) -> bool:
        """Fill the features from an Arrow column; True if a category was not seen in training and has no feature."""
        numbers = optional("pyarrow.compute", "tables").index_in(
            texts_of(column), optional("pyarrow", "tables").array(self.categories, "string")
        )
        other = len(self.categories)
        numbers = numbers.fill_null(other).to_numpy(zero_copy_only=False)
        out[:] = self.features[numbers]
        return not self.rare and bool((numbers == other).any())

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The categories that features stand for; None if none of them."""
        if len(self.shown) == 2:
            return [self.shown[int(row[0] > 0.5)] for row in X]
        return [self.shown[int(row.argmax())] if row.any() else None for row in X]


Column = NumberColumn | CategoryColumn


def texts_of(column: Any) -> Any:
    """An Arrow column as text, missing values as a category of their own."""
    decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
    if str(decoded.type) in {"double", "float", "halffloat"}:
        decoded = optional("pyarrow", "tables").array(decoded.to_numpy(zero_copy_only=False), from_pandas=True)
    return decoded.cast("string").fill_null(MISSING)


def column_state(column: Column) -> dict[str, Any]:
    """A column as plain values, for files."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(column).items()}


def column_from(state: dict[str, Any]) -> Column:
    """The column whose state this is."""
    if state["kind"] == "number":
        return NumberColumn(**state)
    categories = state["categories" if "categories" in state else "levels"]
    return CategoryColumn(state["name"], tuple(categories), state["rare"])
