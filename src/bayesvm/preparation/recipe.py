"""Preparation: the recipe, which describes how the columns of a table become features."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.preparation.encoding import (
    COLUMN,
    NONE_MISSING,
    Column,
    NumberColumn,
    column_from,
    column_state,
    values_for,
)
from bayesvm.preparation.frames import Frame
from bayesvm.preparation.values import Row, Values, of_arrow
from bayesvm.schema import each, either, flag, nothing, real, record, size, text
from bayesvm.warn import warn_user

Strange = dict[tuple[str, str], None]  # columns and values not seen in training, in order

# In files, for D features.
RECIPE = record(
    {"columns": each(COLUMN), "left_out": record({}, others=text)},
    {
        "numbered": either(nothing, size("D")),
        "single": flag,
        "zero_based": either(nothing, flag),
        "medians": either(nothing, each(real)),
        "seen": either(nothing, each(text)),
        "named": flag,
    },
)


@dataclass(frozen=True)
class Recipe:
    """The columns in the order of their features; ``left_out`` holds the reasons why other columns are not used.

    ``numbered`` is the number of features of LIBSVM files, which are sparse and have indices instead of names;
    ``zero_based`` is whether these count from 0, or None if unknown. ``medians`` are the medians of the features; a
    missing number stays missing. ``seen`` are the names of all columns that the recipe was learned from, in order (None
    in files of earlier versions); unless ``named``, they are generated: x0, x1, ….
    """

    columns: tuple[Column, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    numbered: int | None = None
    single: bool = False  # whether single precision is lossless
    zero_based: bool | None = None
    medians: tuple[float, ...] | None = None
    seen: tuple[str, ...] | None = None
    named: bool = True

    @classmethod
    def plain(cls, names: Sequence[str]) -> Recipe:
        """A recipe for numbers without missing values, which stay unchanged."""
        return cls(tuple(NumberColumn(str(name)) for name in names))

    @classmethod
    def marking(cls, names: Sequence[str], marked: Collection[str], *, named: bool, single: bool) -> Recipe:
        """A recipe for numbers, which stay unchanged; a feature marks the missing values of each ``marked`` column."""
        some = frozenset(marked)
        columns = [NumberColumn(name, np.nan if name in some else None, indicator=name in some) for name in names]
        return cls(tuple(columns), seen=tuple(names), named=named, single=single)

    @property
    def of_numbers(self) -> bool:
        """Whether all columns are numbers and are used, so that arrays of them can be encoded."""
        plain = all(isinstance(column, NumberColumn) for column in self.columns)
        return plain and self.numbered is None and self.inputs == tuple(self.needed)

    @property
    def of_arrays(self) -> bool:
        """The same, without names, and with missing values that stay missing."""
        plain = all(isinstance(column, NumberColumn) and not column.filled for column in self.columns)
        return plain and self.of_numbers and not self.named

    @property
    def marked(self) -> list[str]:
        """Columns whose missing values a feature marks, because they are informative about the target."""
        return [column.name for column in self.columns if isinstance(column, NumberColumn) and column.marks_missing]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        if self.numbered is not None:
            return tuple(f"x{number}" for number in range(1, self.numbered + 1))
        return tuple(name for column in self.columns for name in column.names)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Indices of the features of each column."""
        if self.numbered is not None:
            return {name: [number] for number, name in enumerate(self.names)}
        return {column.name: list(range(span.start, span.stop)) for column, span in self._spans}

    @cached_property
    def _spans(self) -> list[tuple[Column, slice]]:
        ends = list(accumulate((len(column.names) for column in self.columns), initial=0))
        return [(column, slice(*ends[i : i + 2])) for i, column in enumerate(self.columns)]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the features."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All columns that the recipe was learned from, including those that are left out."""
        if self.numbered is not None:
            return self.names
        return tuple(self.needed) if self.seen is None else self.seen

    @property
    def needed(self) -> list[str]:
        """The columns that a table must have."""
        return [column.name for column in self.columns]

    def encoded(self, batches: Sequence[Any], row: Row | None = None) -> npt.NDArray[Any]:
        """The features of consecutive record batches, with a warning about values not seen in training.

        ``row`` names a row of the batches in messages.
        """
        X = np.empty((sum(batch.num_rows for batch in batches), len(self.names)), self.dtype)
        first, unseen = 0, Strange()
        for batch in batches:
            rows = X[first : first + batch.num_rows]
            name_row = None if row is None else partial(_later, row, first)
            unseen |= self._fill(rows, partial(_of_batch, batch), name_row)
            first += batch.num_rows
        self._report(unseen)
        return X

    def encoded_frame(self, frame: Frame) -> npt.NDArray[Any]:
        """The features of a data frame, with a warning about values not seen in training."""
        X = np.empty((frame.n_rows, len(self.names)), self.dtype)
        self._report(self._fill(X, frame.values))
        return X

    def encoded_numbers(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The features of an array of the columns, with a warning about values not seen in training."""
        numbers = {name: Values("number", column) for name, column in zip(self.inputs, X.T, strict=True)}
        found = np.empty((len(X), len(self.names)), self.dtype)
        self._report(self._fill(found, numbers.__getitem__))
        return found

    def _fill(self, X: npt.NDArray[Any], values_of: Callable[[str], Values], row: Row | None = None) -> Strange:
        """Fill in the features of some rows; return columns and their values that training did not have."""
        unseen = Strange()
        for column, span in self._spans:
            try:
                values = values_for(column, values_of(column.name), row)
            except (TypeError, ValueError) as error:
                was = f"was learned as {column.kind}s" if column.kind != "category" else "was learned as categories"
                raise type(error)(f"column {column.name!r} {was}, but {error}") from error
            unseen |= dict.fromkeys((column.name, what) for what in column.encode(values, X[:, span]))
        return unseen

    def _report(self, unseen: Strange) -> None:
        for name, what in unseen:
            how = "; they are completed from the other columns" if what == NONE_MISSING else ""
            warn_user(f"column {name!r} has {what}{how}")

    def decoded(self, X: npt.NDArray[Any]) -> dict[str, list[Any]]:
        """The values of the columns, from features; None for missing values."""
        if self.numbered is not None:
            return {name: X[:, number].tolist() for number, name in enumerate(self.names)}
        return {column.name: column.decoded(X[:, span]) for column, span in self._spans}

    def state(self) -> dict[str, Any]:
        """The recipe as plain values, for files."""
        return {
            "columns": list(map(column_state, self.columns)),
            "left_out": dict(self.left_out),
            "numbered": self.numbered,
            "single": self.single,
            "zero_based": self.zero_based,
            "medians": None if self.medians is None else list(self.medians),
            "seen": None if self.seen is None else list(self.seen),
            "named": self.named,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Recipe:
        """The recipe for a state."""
        lists = {"medians", "seen"} & state.keys()
        plain = {name: None if state[name] is None else tuple(state[name]) for name in lists}
        recipe = cls(**(state | plain | {"columns": tuple(map(column_from, state["columns"]))}))
        if unknown := set(recipe.needed) - set(recipe.inputs):
            raise ValueError(f"the recipe needs the column {min(unknown)!r}, but was not learned from it")
        return recipe


def _later(row: Row, first: int, number: int) -> str:
    return row(first + number)


def _of_batch(batch: Any, name: str) -> Values:
    return of_arrow(batch.column(name))
