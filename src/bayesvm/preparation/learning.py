"""Preparation: learn a recipe from some rows: the kind of each column, its categories, and columns to leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import random_rows
from bayesvm.data.checks import is_number
from bayesvm.data.tables.column_reading import LARGEST_EXACT, warn_if_rounded, warn_of_rounding
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.rows import FileRows
from bayesvm.data.tables.schemas import EXACT_IN_FLOAT32, PANDAS_INDEX, TEXT_EXAMPLE, is_text
from bayesvm.data.texts import Spellings, merging
from bayesvm.extras import optional
from bayesvm.preparation.date_formats import COMPACT, TWINS, DateFormat, are_compact, best_format
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import MISSING, RARE, CategoryColumn, Column, NumberColumn, checksum, values_for
from bayesvm.preparation.frames import Frame
from bayesvm.preparation.missingness import informative
from bayesvm.preparation.opening import Opened
from bayesvm.preparation.recipe import Recipe
from bayesvm.preparation.values import Row, Values, as_kind, joined, of_arrow, refusal_of
from bayesvm.warn import ReadingNote, warn_user

SAMPLE = 200_000  # rows to learn a recipe from
MOST_CATEGORIES = 50  # per column; the others are rare
MOST_RARE = 5_000  # rare categories that a recipe remembers, to recognise new ones
RARE_SHARE, RARE_ROWS = 500, 5  # a category with fewer than one row in 500, or fewer than 5, is rare
MISTAKES = 0.2  # share of the distinct values below which text in a column of numbers looks like mistakes
FEW_TEXTS = 50  # text with at most this many distinct values is never treated as an identifier
LEAST_INDEXED = 20  # rows from which sorted integers are treated as an index
SOME_TEXTS = 200  # distinct texts that show whether a column has dates
SOME_DATES = 0.5  # share of dates among the distinct texts from which a column is treated as dates


def learn(
    opened: Opened,
    special: Collection[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    target: str | None = None,
    random_state: int = 0,
) -> Recipe:
    """Learn a recipe for all columns of files except the ``special`` ones (target and weight).

    ``columns`` names the columns to use, ``drop`` those to leave out, ``categories`` those whose numbers are
    categories, and ``keep`` those to use although they look like an index or an identifier. A feature marks missing
    values that are informative about the ``target``.
    """
    file, schema = opened.schemas[0]
    opened.require_columns([*special, *(columns or ()), *drop, *categories, *keep])
    names = [
        n
        for n in dict.fromkeys(columns or schema.names)
        if n not in {*special, *drop} and not PANDAS_INDEX.fullmatch(n)
    ]
    opened.require_same_columns([*names, *special])
    for name in names:
        require_one_kind(opened, name)
    rows = _sample(opened, random_state)
    read = names if target is None else [*names, target]
    sample = [chunk for _, chunk in rows.chunks(read)] if names else []
    found, medians, left_out = _learned(
        names,
        lambda name: joined([of_arrow(chunk.column(name)) for chunk in sample]),
        categories,
        keep,
        rows.where,
        None if target is None else joined([of_arrow(chunk.column(target)) for chunk in sample]).array,
    )
    left_out = dict.fromkeys(drop, "as requested") | left_out
    if not found:
        raise ValueError(f"{file} has no columns left to learn from ({_reasons(left_out)})")
    numbers = [column.name for column in found if isinstance(column, NumberColumn)]
    for name in numbers:
        for chunk in sample:
            warn_if_rounded(chunk.column(name), name)
    single = all(str(each.field(name).type) in EXACT_IN_FLOAT32 for _, each in opened.schemas for name in numbers)
    single &= not any(isinstance(column, DateColumn) for column in found)
    return Recipe(found, left_out, single=single, medians=medians, seen=tuple(names))


def learn_frame(frame: Frame, y: npt.NDArray[Any] | None = None, *, random_state: int = 0) -> Recipe:
    """Learn a recipe for all columns of a data frame; ``y`` is the target, if there is one."""
    chosen: Any = slice(None)
    if frame.n_rows > SAMPLE:
        chosen = random_rows(frame.n_rows, SAMPLE, np.random.default_rng(random_state))
    numbers = np.arange(frame.n_rows)[chosen]

    def some(name: str) -> Values:
        values = frame.values(name)
        if values.note:
            warn_user(f"column {name!r}: {values.note}", ReadingNote)
        array = values.array
        whole = values.kind == "number" and array.dtype.kind in "iu" and array.size
        if whole and max(int(array.max()), -int(array.min())) > LARGEST_EXACT:
            warn_of_rounding(name)
        return values._replace(array=values.array[chosen])

    found, medians, left_out = _learned(
        frame.names, some, (), (), lambda number: f"row {numbers[number]}", None if y is None else y[chosen]
    )
    if not found:
        raise ValueError(f"X has no columns left to learn from ({_reasons(left_out)})")
    return Recipe(found, left_out, medians=medians, seen=frame.names, named=frame.named)


def _reasons(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:12])


def require_one_kind(opened: Opened, name: str) -> None:
    """Require that a column holds numbers, categories or dates, the same in all files."""
    kinds = [(file, _kind_of(file, schema.field(name))) for file, schema in opened.schemas]
    (one, first), *_ = found = [(file, kind) for file, kind in kinds if kind != "nothing"] or kinds
    for other, second in found:
        if second != first:
            raise TypeError(
                f"column {name!r} holds {first} in {one}, but {second} in {other}; convert it to one kind, or leave it "
                "out"
            )


def _kind_of(file: SourceFile, field: Any) -> str:
    types = optional("pyarrow.types", "tables")
    kind = field.type
    if types.is_null(kind):
        return "nothing"
    if types.is_dictionary(kind) or is_text(kind):
        return "category"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "date"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return "number"
    if types.is_duration(kind) or types.is_time(kind):
        return "number"
    error = refusal_of(kind)
    example = (field.metadata or {}).get(TEXT_EXAMPLE)
    such_as = f", such as {example.decode()}" if example else ""
    raise TypeError(
        f"column {field.name!r} of {file} holds {error.what}{such_as}: {error.remedy}, or leave it out "
        f"(--drop {field.name})"
    )


def _sample(opened: Opened, random_state: int) -> FileRows:
    """Some rows, whose types may differ between files."""
    rows = opened.rows
    if rows.n_rows > SAMPLE:
        rows = rows.subset(random_rows(rows.n_rows, SAMPLE, np.random.default_rng(random_state)))
    return rows


def _learned(
    names: Sequence[str],
    values_of: Callable[[str], Values],
    categories: Collection[str],
    keep: Collection[str],
    row: Row,
    y: npt.NDArray[Any] | None,
) -> tuple[tuple[Column, ...], tuple[float, ...], dict[str, str]]:
    """The columns, medians of their features, and reasons to leave out others; ``row`` names a row in messages."""
    found: dict[str, Column] = {}
    medians: dict[str, list[float]] = {}
    missing: dict[str, npt.NDArray[np.bool_]] = {}  # of numbers
    held: dict[str, npt.NDArray[Any]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        values = values_of(name)
        column = _column(name, values, asked=name in categories, kept=name in keep, row=row)
        if isinstance(column, str):
            left_out[name] = column
        else:
            found[name] = column
            features = np.zeros((len(values.array), len(column.names)))
            held[name] = values_for(column, values)
            column.encode(held[name], features)
            medians[name] = np.nanmedian(features, axis=0).tolist()
            if isinstance(column, NumberColumn) and not column.complete:
                missing[name] = np.isnan(features[:, 0])

    def some_features(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        parts = [np.zeros((len(rows), len(column.names))) for column in found.values()]
        for column, part in zip(found.values(), parts, strict=True):
            column.encode(held[column.name][rows], part)
        return np.hstack(parts)

    for name in [] if y is None else informative(missing, y, some_features):
        found[name] = NumberColumn(name, np.nan, indicator=True)
        medians[name].append(float(np.median(missing[name])))
    return tuple(found.values()), tuple(median for each in medians.values() for median in each), left_out


def _column(name: str, values: Values, *, asked: bool, kept: bool, row: Row) -> Column | str:
    """The column, or the reason to leave it out."""
    if values.kind == "nothing":
        return "no value in any row"
    form = None if asked else _dates_in(name, values, row)
    if form is not None:
        values = Values("time", as_kind(values, "time", row, form))
    certain = kept or values.certain
    if values.kind == "text" or asked:
        explicit = asked or values.certain or values.kind != "text"
        return _category(name, as_kind(values, "text"), certain=certain, asked=asked, explicit=explicit, row=row)
    return _scale(name, values, certain=certain, form=form or DateFormat(), row=row)


def _scale(name: str, values: Values, *, certain: bool, form: DateFormat, row: Row) -> Column | str:
    """A column of numbers or times, or the reason to leave it out."""
    missing = np.isnat(values.array) if values.kind == "time" else np.isnan(values.array)
    held = values.array[~missing]
    if not len(held):
        return "no value in any row"
    if (held == held[0]).all():
        if not missing.any():
            return f"the same value in all rows ({held[0] if values.kind == 'time' else format(held[0], 'g')})"
        return _category(
            name, as_kind(values, "text"), certain=True, asked=True, explicit=True, row=row
        )  # present or missing
    if values.kind == "time":
        return DateColumn.learned(name, values.array, form.name)
    if not certain and not missing.any() and (what := _index_in(held)):
        return f"{what}: an index?"
    return NumberColumn(name, complete=not missing.any())


def _index_in(numbers: npt.NDArray[Any]) -> str:
    """Describe integers that increase or decrease from row to row, or permute a range with few gaps; else empty."""
    numbers = numbers.astype(np.float64)
    if len(numbers) < LEAST_INDEXED or not np.isfinite(numbers).all() or (numbers % 1).any():
        return ""
    steps = np.diff(numbers)
    if (steps > 0).all() or (steps < 0).all():
        return "distinct whole numbers in order"
    permuted = np.ptp(numbers) < 1.5 * len(numbers) and len(np.unique(numbers)) == len(numbers)
    return "distinct whole numbers that fill a range" if permuted else ""


def _dates_in(name: str, values: Values, row: Row) -> DateFormat | None:
    """The format of a column of dates, None for other columns; a mixture with other text is an error."""
    if values.kind == "number":
        return _compact_dates_in(name, values)
    if values.kind != "text":
        return None
    texts = values.array.tolist()
    distinct = list(dict.fromkeys(text for text in texts if text is not None))
    if not distinct or best_format(distinct[:: 1 + len(distinct) // SOME_TEXTS])[1] < SOME_DATES:
        return None
    form = DateFormat.of(distinct)
    if form is None:
        best, share = best_format(distinct)
        if share < SOME_DATES:
            return None
        date, other = (next(text for text in distinct if best.holds(text) is held) for held in (True, False))
        raise ValueError(
            f"column {name!r} holds dates, such as {date!r}, but also {other!r} ({row(texts.index(other))}); write all "
            "of them like 2024-04-03, or leave the column out. If the other text stands for a missing value, name it: "
            "missing= (--missing)"
        )
    if form.is_ambiguous(distinct):
        example = next(text for text in distinct if form.time(text) != DateFormat(TWINS[form.name]).time(text))
        warn_user(
            f"column {name!r} has dates such as {example!r}, of which day and month may be interchanged: it is read as "
            f"{form.time(example).astype('datetime64[D]')}, like {form.example}. If that is wrong, write the dates "
            "like 2024-04-03"
        )
    return form


def _compact_dates_in(name: str, values: Values) -> DateFormat | None:
    """Whether numbers are dates such as 20240403; reported because they could also be quantities."""
    if values.certain or values.array.dtype.kind not in "iuf":
        return None
    distinct = np.unique(values.array)
    distinct = distinct[~np.isnan(distinct)] if distinct.dtype.kind == "f" else distinct
    if not are_compact(distinct[:FEW_TEXTS].tolist()) or not are_compact(distinct.tolist()):
        return None
    form = DateFormat(COMPACT)
    example = str(int(distinct[0]))
    warn_user(
        f"column {name!r}: the whole numbers such as {example} are read as dates "
        f"({form.time(example).astype('datetime64[D]')}); to keep them as categories, use categories= (--categories)",
        ReadingNote,
    )
    return form


def _category(
    name: str, texts: npt.NDArray[Any], *, certain: bool, asked: bool, explicit: bool, row: Row
) -> Column | str:
    """A categorical column, or the reason to leave it out; the spellings of ``explicit`` categories are not merged."""
    found = Counter(MISSING if text is None else text for text in texts.tolist())
    ignores_case, merged = False, dict[str, str]()
    if not explicit:
        spellings, merged = Spellings.of({text: count for text, count in found.items() if text != MISSING})
        ignores_case = spellings.ignores_case
        for text, common in merged.items():
            found[common] += found.pop(text)
    distinct = np.array(sorted(found), object)
    counts = np.array([found[text] for text in distinct])
    doubt = "" if asked else _doubt_about_numbers(distinct, texts, row)
    if len(distinct) == 1:
        return f"the same value in all rows ({distinct[0]})"
    if len(distinct) > max(FEW_TEXTS, len(texts) // 2) and not certain:
        return f"nearly all texts are distinct ({len(distinct):,} in {len(texts):,} rows): {doubt or 'an identifier?'}"
    if doubt:
        warn_user(f"column {name!r} is treated as categorical: {doubt}")
    if merged:
        warn_user(merging(merged, f"column {name!r}"), ReadingNote)
    few = int(np.clip(len(texts) // RARE_SHARE, min(RARE_ROWS, counts.max()), counts.max()))
    frequent = counts >= few
    if frequent.sum() > MOST_CATEGORIES:
        frequent[np.argsort(counts, kind="stable")[:-MOST_CATEGORIES]] = False
    order = np.argsort(-counts[frequent], kind="stable")
    kept = tuple(str(category) for category in distinct[frequent][order] if category != RARE)
    rare = [checksum(text.strip().casefold() if ignores_case else text) for text in distinct[~frequent]]
    return CategoryColumn(
        name,
        kept,
        not frequent.all() or RARE in distinct,
        ignores_case=ignores_case,
        rare_checksums=tuple(rare) if len(rare) <= MOST_RARE else None,
    )


def _doubt_about_numbers(distinct: Any, texts: npt.NDArray[Any], row: Row) -> str:
    """A note if most of the texts are numbers: the others may be mistakes, or mean a missing value."""
    others = [text for text in distinct if text != MISSING and not is_number(text)]
    if not others or len(others) > MISTAKES * len(distinct):
        return ""
    place = row(texts.tolist().index(others[0])) if others[0] in set(texts.tolist()) else "other spelling"
    return (
        f"nearly all values are numbers, except {', '.join(map(repr, others[:3]))} ({place}). If it stands for a "
        "missing value, leave the cell empty, or name it with missing= (--missing)"
    )
