"""Preparation: the recipe, which knows every column of a table and the features that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.preparation.encoding import COLUMN, Column, NumberColumn, column_from, column_state
from bayesvm.schema import each, either, flag, nothing, record, size, text
from bayesvm.warn import warn_user

# In files, for D features.
RECIPE = record(
    {"columns": each(COLUMN), "left_out": record({}, others=text)},
    {"numbered": either(nothing, size("D")), "single": flag, "zero_based": either(nothing, flag)},
)


@dataclass(frozen=True)
class Recipe:
    """Columns in the order of the features that they become; ``left_out`` says why others are not used.

    ``numbered``: the features of LIBSVM files, which have numbers for names and are sparse; ``zero_based``: whether
    these count from 0, which other rows may not tell; None: unknown.
    """

    columns: tuple[Column, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    numbered: int | None = None
    single: bool = False  # whether single precision loses nothing
    zero_based: bool | None = None

    @classmethod
    def plain(cls, names: Sequence[str]) -> Recipe:
        """Numbers as they are, none missing."""
        return cls(tuple(NumberColumn(str(name), np.nan) for name in names))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        if self.numbered is not None:
            return tuple(f"x{number}" for number in range(1, self.numbered + 1))
        return tuple(name for column in self.columns for name in column.names)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Which features every column becomes, by their numbers."""
        if self.numbered is not None:
            return {name: [number] for number, name in enumerate(self.names)}
        return {column.name: list(range(span.start, span.stop)) for column, span in self._spans}

    @cached_property
    def _spans(self) -> list[tuple[Column, slice]]:
        ends = list(accumulate((len(column.names) for column in self.columns), initial=0))
        return [(column, slice(*ends[i : i + 2])) for i, column in enumerate(self.columns)]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the features."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def needed(self) -> list[str]:
        """The columns that a table must have."""
        return [column.name for column in self.columns]

    def encoded(self, batches: Sequence[Any]) -> npt.NDArray[Any]:
        """The features of record batches one after the other; values not seen in training are reported."""
        X = np.empty((sum(batch.num_rows for batch in batches), len(self.names)), self.dtype)
        first, unseen = 0, set[str]()
        for batch in batches:
            rows = X[first : first + batch.num_rows]
            unseen |= {c.name for c, span in self._spans if c.encode(batch.column(c.name), rows[:, span])}
            first += batch.num_rows
        for column in self.columns:
            if column.name in unseen:
                what = (
                    f"missing values, and none were missing in training; they count as {column.fill:g}, the median"
                    if isinstance(column, NumberColumn)
                    else f"categories not seen in training; they count as {column.unknown}"
                )
                warn_user(f"column {column.name!r} has {what}")
        return X

    def decoded(self, X: npt.NDArray[Any]) -> dict[str, list[Any]]:
        """Features back to the values of the columns; None where a value is missing."""
        if self.numbered is not None:
            return {name: X[:, number].tolist() for number, name in enumerate(self.names)}
        return {column.name: column.decoded(X[:, span]) for column, span in self._spans}

    def state(self) -> dict[str, Any]:
        """As plain values, for files."""
        return {
            "columns": list(map(column_state, self.columns)),
            "left_out": dict(self.left_out),
            "numbered": self.numbered,
            "single": self.single,
            "zero_based": self.zero_based,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Recipe:
        """The recipe whose state this is."""
        return cls(**(state | {"columns": tuple(map(column_from, state["columns"]))}))
