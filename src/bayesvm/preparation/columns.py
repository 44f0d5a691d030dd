"""Preparation: how the values of one column become numbers, text by scikit-learn's one-hot encoder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import OneHotEncoder

from bayesvm.data.tables.column_reading import numbers_of
from bayesvm.extras import optional
from bayesvm.schema import each, either, flag, one_of, real, record, satisfying, text

MISSING = "(missing)"
RARE = "(rare)"
# In files.
LEVELS = satisfying(each(text), "distinct names, at least one", lambda found, _: len(set(found)) == len(found) > 0)
COLUMN = either(
    record({"name": text, "fill": real, "indicator": flag, "kind": one_of("number")}),
    record({"name": text, "levels": LEVELS, "rare": flag, "kind": one_of("levels")}),
)


@dataclass(frozen=True)
class NumberColumn:
    """Numbers; a missing one becomes ``fill``, and a second feature says so if that happened in training.

    A ``fill`` of NaN leaves a gap a gap, which whoever reads the features refuses.
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
        """Fill the features from an Arrow column; whether something is missing that never was."""
        numbers = numbers_of(column)
        missing = np.isnan(numbers)
        out[:, 0] = np.where(missing, self.fill, numbers)
        if self.indicator:
            out[:, 1] = missing
        return bool(missing.any()) and not self.indicator and not np.isnan(self.fill)

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The values that features stand for."""
        return [None if self.indicator and row[1] else float(row[0]) for row in X]

    def state(self) -> dict[str, Any]:
        """As plain values, for files."""
        return asdict(self)


@dataclass(frozen=True)
class LevelColumn:
    """Text: a feature for each level, the most frequent first; of two levels, for the second only.

    With ``rare``, all other levels share one. A missing value is a level like others.
    """

    name: str
    levels: tuple[str, ...]
    rare: bool = False
    kind: str = "levels"

    @property
    def _settings(self) -> tuple[str, ...]:
        return (*self.levels, RARE) if self.rare else self.levels

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features that it becomes."""
        settings = self._settings
        return tuple(f"{self.name}={level}" for level in (settings[1:] if len(settings) == 2 else settings))

    @property
    def unknown(self) -> str:
        """What a level counts as that training had not."""
        if self.rare:
            return "rare"
        return self.levels[0] if len(self.levels) == 2 else "none of the known ones"

    @cached_property
    def encoder(self) -> OneHotEncoder:
        """scikit-learn's, made again from the levels: those seen once in what it is fitted to are the rare ones."""
        seen = [*self.levels, *self.levels, *([RARE] if self.rare else [])]
        return OneHotEncoder(
            categories=[np.array(self._settings, object)],
            drop="if_binary",
            min_frequency=2 if self.rare else None,
            sparse_output=False,
            dtype=np.float32,
        ).fit(np.array(seen, object)[:, None])

    def encode(self, column: Any, out: npt.NDArray[Any]) -> bool:
        """Fill the features from an Arrow column; whether there is a level that never was and has no place."""
        # Only distinct texts become Python objects and are looked up.
        coded = texts_of(column).dictionary_encode()
        distinct = np.array(coded.dictionary.to_pylist(), object)
        if not len(distinct):
            return False
        known = np.isin(distinct, np.array(self.levels, object))
        # Unknown levels count as rare, or else as the most frequent of two, or as none of many.
        features = self.encoder.transform(np.where(known, distinct, RARE if self.rare else self.levels[0])[:, None])
        if not self.rare and len(self.levels) > 2:
            features[~known] = 0.0
        out[:] = features[coded.indices.to_numpy()]
        return not self.rare and not known.all()

    def decoded(self, X: npt.NDArray[Any]) -> list[Any]:
        """The levels that features stand for; None if none of them."""
        if len(self._settings) == 2:
            return [self._settings[int(row[0] > 0.5)] for row in X]
        return [self._settings[int(row.argmax())] if row.any() else None for row in X]

    def state(self) -> dict[str, Any]:
        """As plain values, for files."""
        return asdict(self) | {"levels": list(self.levels)}


Column = NumberColumn | LevelColumn


def texts_of(column: Any) -> Any:
    """An Arrow column as text, missing values as a level of their own."""
    decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
    if str(decoded.type) in {"double", "float", "halffloat"}:
        decoded = optional("pyarrow", "tables").array(decoded.to_numpy(zero_copy_only=False), from_pandas=True)
    return decoded.cast("string").fill_null(MISSING)


def column_from(state: dict[str, Any]) -> Column:
    """The column whose state this is."""
    if state["kind"] == "number":
        return NumberColumn(**state)
    return LevelColumn(**(state | {"levels": tuple(state["levels"])}))
