"""Preparation: one column as plain NumPy values, from any source: numbers, text, or times.

This module and ``frames`` convert data frames and record batches to these values once; all other code is independent of
pandas, polars and Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isnan
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.data.number_formats import NumberFormat
from bayesvm.data.tables.column_reading import numbers_of
from bayesvm.data.texts import DOUBTFUL_TEXTS, missing_among
from bayesvm.extras import optional
from bayesvm.preparation.date_formats import COMPACT, DateFormat

MICROSECONDS = "datetime64[us]"
DAY, HOUR, SECOND = np.timedelta64(1, "D"), np.timedelta64(1, "h"), np.timedelta64(1, "s")
MOST_CODES = 50  # distinct whole numbers in text that are codes
EXACT = 2.0**53  # integers up to this are exact floats
# Descriptions of unsupported values, and remedies.
NESTED = "several values in each row", "split them into columns"
BYTES = "bytes, not text", "decode them as UTF-8"

Row = Callable[[int], str]  # the name of a row in messages: "row 7", or "t.csv, line 9"


class Values(NamedTuple):
    """A column: numbers with NaN, objects that are text or None, or times (without time zone) with NaT."""

    kind: str  # "number", "text", "time", or "nothing" if all values are missing
    array: npt.NDArray[Any]
    certain: bool = False  # whether the type excludes an identifier: categories, floats of a data frame
    note: str = ""  # how text was read, if it was not read as it is


class RefusedError(TypeError):
    """Unsupported values; ``what`` describes them, ``remedy`` says what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what, self.remedy = what, remedy


def of_arrow(column: Any) -> Values:
    """The values of an Arrow array, chunked or not."""
    types = optional("pyarrow.types", "tables")
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    kind = column.type
    if types.is_null(kind):
        return nothing(len(column))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return Values("number", numbers_of(column))
    if types.is_dictionary(kind) or str(kind) in {"string", "large_string", "string_view"}:
        return Values("text", _arrow_texts(column))
    if types.is_timestamp(kind) or types.is_date(kind):
        return Values("time", _arrow_times(column))
    if types.is_duration(kind):
        return Values("number", numbers_of(column))
    if types.is_time(kind):
        microseconds = column.cast(optional("pyarrow", "tables").time64("us"), safe=False).cast("int64")
        return Values("number", numbers_of(microseconds) / 3.6e9)
    raise refusal_of(kind)


def refusal_of(kind: Any) -> RefusedError:
    """The error for an unsupported Arrow type."""
    types = optional("pyarrow.types", "tables")
    if types.is_nested(kind):
        what, remedy = NESTED
        return RefusedError(f"{what} ({kind})", remedy)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return RefusedError(*BYTES)
    return RefusedError(f"values of the type {kind}", "write numbers or text")


def _arrow_texts(column: Any) -> npt.NDArray[Any]:
    """Text as objects, created once per distinct text."""
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    found = np.array([*encoded.dictionary.cast("string").to_pylist(), None], object)
    texts: npt.NDArray[Any] = found[encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)]
    return texts


def _arrow_times(column: Any) -> npt.NDArray[Any]:
    if getattr(column.type, "tz", None) is not None:
        column = optional("pyarrow.compute", "tables").local_timestamp(column)
    plain = column.cast(optional("pyarrow", "tables").timestamp("us"), safe=False)
    times: npt.NDArray[Any] = plain.to_numpy(zero_copy_only=False).astype(MICROSECONDS)
    return times


def of_objects(objects: npt.NDArray[Any], missing: npt.NDArray[Any] | None = None) -> Values:
    """The values of Python objects; ``missing`` marks missing values, by default None and NaN."""
    if missing is None:
        missing = are_missing(objects)
    held = objects[~missing]
    kinds = set(map(type, held.tolist()))
    if not kinds:
        return nothing(len(objects))
    if all(issubclass(kind, str) for kind in kinds):
        texts = objects.copy()
        texts[missing] = None
        return Values("text", texts)
    if all(issubclass(kind, Number | np.bool_) and not issubclass(kind, complex) for kind in kinds):
        numbers = np.full(len(objects), np.nan)
        numbers[~missing] = held.astype(np.float64)
        return Values("number", numbers)
    if all(issubclass(kind, time | timedelta) for kind in kinds):
        numbers = np.full(len(objects), np.nan)
        numbers[~missing] = [_length(value) for value in held]
        return Values("number", numbers)
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        times = np.full(len(objects), np.datetime64("NaT"), MICROSECONDS)
        times[~missing] = [_plain_time(value) for value in held]
        return Values("time", times)
    if all(issubclass(kind, str | Number | np.bool_) for kind in kinds):
        texts = np.full(len(objects), None, object)
        texts[~missing] = [name_of(value) for value in held]
        return Values("text", texts)
    if any(issubclass(kind, list | tuple | dict | set | frozenset | np.ndarray) for kind in kinds):
        raise RefusedError(*NESTED)
    if any(issubclass(kind, bytes) for kind in kinds):
        raise RefusedError(*BYTES)
    names = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise RefusedError(f"values of the type {names}", "write all of them as numbers, as text, or as dates")


def are_missing(objects: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which Python objects are None or NaN."""
    return np.array([value is None or (isinstance(value, float) and isnan(value)) for value in objects.tolist()], bool)


def _length(value: time | timedelta) -> float:
    """A time of day in hours, a duration in seconds."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600


def _plain_time(value: Any) -> np.datetime64:
    """A time without its time zone, on the local clock of that zone."""
    plain = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    return np.datetime64(plain, "us")


def nothing(n_rows: int) -> Values:
    """A column without any value."""
    return Values("nothing", np.full(n_rows, None, object))


def name_of(value: Any) -> str:
    """A value as the name of a category; integers have no decimal point, as in files.

    >>> name_of(10115.0), name_of(1.5), name_of(True), name_of("x")
    ('10115', '1.5', 'true', 'x')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating | Decimal):
        number = float(value)
        return str(int(number)) if abs(number) < EXACT and number.is_integer() else str(value)
    return str(value)


def read_texts(values: Values) -> Values:
    """Text of a data frame, read as in CSV files: texts that mean a missing value, and numbers in one format.

    At most 50 distinct whole numbers in plain digits stay text: somebody converted codes to text.
    """
    if values.kind != "text" or values.certain:
        return values
    texts = values.array.tolist()
    distinct = {text: text.strip() for text in dict.fromkeys(texts) if text is not None}
    missing = missing_among(set(distinct.values()))
    held = {text: short for text, short in distinct.items() if short not in missing}
    lost = sorted(distinct.keys() - held.keys())
    doubtful = DOUBTFUL_TEXTS.intersection(map(str.strip, lost))
    said = [f"{', '.join(map(repr, lost[:3]))} read as missing"] if doubtful else []
    form = NumberFormat.of(held.values())
    codes = form == NumberFormat() and len(held) <= MOST_CODES and all(map(str.isdigit, held.values()))
    if form is None or codes:
        if not lost:
            return values
        kept = np.array([text if text in held else None for text in texts], object)
        return Values("text", kept, note="; ".join(said)) if held else nothing(len(texts))
    numbers = dict(zip(held, form.numbers(held.values()).tolist(), strict=True))
    first = next(iter(held))
    said.append(f"text read as numbers ({first!r} is {numbers[first]:.15g})")
    return Values("number", np.array([numbers.get(text, np.nan) for text in texts]), note="; ".join(said))


def joined(parts: Sequence[Values]) -> Values:
    """The concatenated values of parts; parts without any value match all others."""
    kinds = {part.kind for part in parts} - {"nothing"}
    kind = min(kinds, default="nothing")
    return Values(kind, np.concatenate([as_kind(part, kind) for part in parts]))


def as_kind(values: Values, kind: str, row: Row | None = None, dates: DateFormat | None = None) -> npt.NDArray[Any]:
    """The values converted to another kind, if possible: numbers to names, text in the format ``dates`` to times."""
    if kind in {values.kind, "nothing"}:
        return values.array
    row, n_rows = row or _row, len(values.array)
    if values.kind == "nothing":
        empty = {"number": np.full(n_rows, np.nan), "time": np.full(n_rows, np.datetime64("NaT"), MICROSECONDS)}
        return empty.get(kind, values.array)
    if kind == "text":
        return _names(values.array)
    if kind == "number" and values.kind == "text":
        stripped = [None if text is None else text.strip() for text in values.array.tolist()]
        form = NumberFormat.of({text for text in stripped if text is not None})
        if form is not None:
            return form.numbers(stripped)
        bad = next(n for n, text in enumerate(stripped) if text is not None and NumberFormat.of([text]) is None)
        raise TypeError(f"holds text ({values.array[bad]!s}, {row(bad)})")
    if kind == "time" and (values.kind == "text" or (dates or DateFormat()).name == COMPACT):
        texts = values.array if values.kind == "text" else _names(values.array)
        return times_of(texts, row, dates or DateFormat())
    where = int(np.argmin(are_missing(values.array) if values.kind == "text" else _missing(values.array)))
    raise TypeError(f"holds {values.kind} ({values.array[where]!s}, {row(where)})")


def _row(number: int) -> str:
    return f"row {number}"


def _names(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers or times as names, None if missing."""
    distinct, codes = np.unique(array, return_inverse=True)
    missing = _missing(distinct)
    values = [None if gone else name_of(value) for gone, value in zip(missing, distinct.tolist(), strict=True)]
    texts: npt.NDArray[Any] = np.array(values, object)[codes]
    return texts


def _missing(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    missing: npt.NDArray[np.bool_] = np.isnat(array) if array.dtype.kind == "M" else np.isnan(array)
    return missing


def times_of(texts: npt.NDArray[Any], row: Row, form: DateFormat) -> npt.NDArray[Any]:
    """Dates in one format, or in ISO format, as local times; time zones are ignored."""
    iso = DateFormat()
    parsed: dict[Any, Any] = {None: np.datetime64("NaT")}
    for number, text in enumerate(texts.tolist()):
        if text not in parsed:
            parsed[text] = form.time(text)
            if np.isnat(parsed[text]):
                parsed[text] = iso.time(text)
            if np.isnat(parsed[text]):
                raise ValueError(f"holds {text!r} ({row(number)}), which is not a date like {form.example}")
    return np.array([parsed[text] for text in texts.tolist()], MICROSECONDS)
