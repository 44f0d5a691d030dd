"""Preparation: data frames of pandas, polars and Arrow, read column by column through their own methods.

None of these libraries is imported, because a frame has its own methods. Only Arrow tables need pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesvm.preparation.values import (
    BYTES,
    HOUR,
    MICROSECONDS,
    NESTED,
    SECOND,
    RefusedError,
    Values,
    name_of,
    nothing,
    of_arrow,
    of_objects,
    read_texts,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Frame:
    """Columns in memory. ``named`` is false if all names are numbers; they are then x0, x1, …"""

    names: tuple[str, ...]
    n_rows: int
    column: Callable[[int], Values]
    take: Callable[[Any], Any]  # the rows with given indices, as a frame of the same library
    named: bool = True

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """The columns of a data frame; None for anything else."""
        if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas and compatible libraries
            return cls._of(list(X.columns), len(X), lambda i: _pandas(X.iloc[:, i]), lambda rows: X.iloc[rows])
        if hasattr(X, "get_columns") and hasattr(X, "schema"):
            return cls._of(list(X.columns), X.height, lambda i: _polars(X.to_series(i)), lambda rows: X[rows])
        if hasattr(X, "collect_schema"):
            raise TypeError("X is a lazy frame of polars: pass X.collect()")
        if hasattr(X, "column_names") and hasattr(X, "schema"):
            return cls._of(list(X.column_names), X.num_rows, lambda i: of_arrow(X.column(i)), X.take)
        return None

    @classmethod
    def _of(cls, labels: Sequence[Any], n_rows: int, column: Any, take: Any) -> Self:
        named = any(isinstance(label, str) for label in labels)
        strange = next((label for label in labels if not isinstance(label, str)), None) if named else None
        if strange is not None:
            raise TypeError(
                f"X has column names that are text, and the name {strange!r}: convert all names to text with "
                "X.columns = X.columns.astype(str)"
            )
        names = tuple(labels) if named else tuple(f"x{number}" for number in range(len(labels)))
        require_each_once(names)
        return cls(names, n_rows, column, take, named)

    def values(self, name: str) -> Values:
        """The values of a column; an error names the column."""
        try:
            return read_texts(self.column(self.names.index(name)))
        except RefusedError as error:
            raise TypeError(f"column {name!r} of X holds {error.what}: {error.remedy}, or drop it") from None


def require_each_once(names: Sequence[str]) -> None:
    """Require distinct names of columns."""
    seen: dict[str, int] = {}
    for number, name in enumerate(names):
        before = seen.setdefault(name, number)
        if before != number:
            raise ValueError(
                f"columns {before} and {number} of X (counted from 0) are both named {name!r}; rename one of them"
            )


def _pandas(series: Any) -> Values:
    kind = getattr(series.dtype, "kind", "O")
    if hasattr(series.dtype, "pyarrow_dtype"):
        return of_arrow(series.array.__arrow_array__())
    if hasattr(series, "cat"):
        codes = series.cat.codes.to_numpy()  # -1 if missing
        categories = [name_of(value) for value in series.cat.categories.tolist()]
        return _of_text(np.array([*categories, None], object)[codes], certain=True)
    if kind in "iufb":
        extension = not isinstance(series.dtype, np.dtype)
        numbers = series.to_numpy(np.float64, na_value=np.nan) if extension else series.to_numpy()
        return Values("number", numbers, certain=kind == "f")
    if kind == "M" or hasattr(series.dtype, "freq"):  # or periods
        plain = series if kind == "M" else series.dt.to_timestamp()
        plain = plain.dt.tz_localize(None) if plain.dt.tz is not None else plain
        return Values("time", plain.to_numpy(MICROSECONDS))
    if kind == "m":
        return Values("number", series.to_numpy("timedelta64[us]") / SECOND)
    if kind == "c":
        raise RefusedError("complex numbers", "use columns of their real and imaginary parts")
    objects = series.to_numpy(object)
    return of_objects(objects, series.isna().to_numpy(bool))


def _polars(series: Any) -> Values:
    kind = str(series.dtype).partition("(")[0]
    if kind in {"String", "Utf8", "Categorical", "Enum"}:
        return _of_text(np.array(series.to_list(), object), certain=kind in {"Categorical", "Enum"})
    if kind in {"Date", "Datetime"}:
        plain = series.dt.replace_time_zone(None) if getattr(series.dtype, "time_zone", None) else series
        return Values("time", plain.to_numpy().astype(MICROSECONDS))
    if kind == "Duration":
        return Values("number", series.to_numpy() / SECOND)
    if kind == "Time":
        return Values("number", series.cast(int).cast(float).to_numpy() / (HOUR / np.timedelta64(1, "ns")))
    if kind in {"List", "Array", "Struct"}:
        raise RefusedError(NESTED[0] + f" ({series.dtype})", NESTED[1])
    if kind == "Binary":
        raise RefusedError(*BYTES)
    if kind in {"Object", "Null"}:
        return of_objects(np.array(series.to_list(), object))
    exact = not series.null_count() and kind not in {"Boolean", "Decimal"}
    return Values("number", (series if exact else series.cast(float)).to_numpy(), certain=kind.startswith("Float"))


def _of_text(texts: Array, *, certain: bool) -> Values:
    return Values("text", texts, certain) if any(text is not None for text in texts) else nothing(len(texts))
