"""Preparation: a recipe learned from some rows: what kind a column is, which categories count, what is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from bayesvm.data.blocks import random_rows
from bayesvm.data.checks import is_number
from bayesvm.data.tables.column_reading import numbers_of
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.schemas import EXACT_IN_FLOAT32, PANDAS_INDEX, TEXT_EXAMPLE, is_text
from bayesvm.extras import optional
from bayesvm.preparation.encoding import MISSING, RARE, CategoryColumn, Column, NumberColumn, texts_of
from bayesvm.preparation.opening import Opened
from bayesvm.preparation.recipe import Recipe
from bayesvm.warn import warn_user

SAMPLE = 200_000  # rows that a recipe is learned from
MOST_CATEGORIES = 50  # of a column; the others are rare
RARE_SHARE, RARE_ROWS = 500, 5  # a category is rare if it has fewer rows than one in 500, or than 5
MISTAKES = 0.2  # share of the distinct texts, below which they seem to be mistakes in a column of numbers
FEW_TEXTS = 50  # distinct ones, with which text is never taken for an identifier


def learn(
    opened: Opened,
    special: Collection[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    random_state: int = 0,
) -> Recipe:
    """The recipe for all columns but the ``special`` ones (target and weight).

    ``columns`` names those to use, ``drop`` those to leave out, ``categories`` those whose numbers are names.
    """
    file, schema = opened.schemas[0]
    opened.require_columns([*special, *(columns or ()), *drop, *categories])
    names = [
        n
        for n in dict.fromkeys(columns or schema.names)
        if n not in {*special, *drop} and not PANDAS_INDEX.fullmatch(n)
    ]
    opened.require_same_columns([*names, *special])
    kinds = {name: "category" if name in categories else _kind(opened, name) for name in names}
    sample = _sample(opened, names, random_state) if names else []
    left_out = dict.fromkeys(drop, "as asked for")
    found: list[Column] = []
    for name in names:
        chunks = [chunk.column(name) for chunk in sample]
        is_category = kinds[name] == "category"
        made = _category(name, chunks, asked=name in categories) if is_category else _number(name, chunks)
        if isinstance(made, str):
            left_out[name] = made
        else:
            found.append(made)
    if not found:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:12])
        raise ValueError(f"no column of {file} is left to learn from ({reasons})")
    numbers = [column.name for column in found if isinstance(column, NumberColumn)]
    single = all(str(each.field(name).type) in EXACT_IN_FLOAT32 for _, each in opened.schemas for name in numbers)
    return Recipe(tuple(found), left_out, single=single)


def _kind(opened: Opened, name: str) -> str:
    """Whether it holds a number or a category, the same in all files."""
    kinds = {file: _kind_of(file, schema.field(name)) for file, schema in opened.schemas}
    meaningful = {kind for kind in kinds.values() if kind != "nothing"}
    if len(meaningful) > 1:
        (one, first), (other, second) = [(file, kind) for file, kind in kinds.items() if kind != "nothing"][:2]
        raise TypeError(
            f"column {name!r} holds {first} in {one}, but {second} in {other}; make it of one kind, or leave it out"
        )
    return next(iter(meaningful), "number")


def _kind_of(file: SourceFile, field: Any) -> str:
    types = optional("pyarrow.types", "tables")
    kind = field.type
    if types.is_null(kind):
        return "nothing"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return "number"
    if types.is_dictionary(kind) or is_text(kind):
        return "category"
    if types.is_temporal(kind):
        what, remedy = f"dates or times ({kind})", "write numbers, such as the hour, the weekday or days since a date"
    elif types.is_nested(kind):
        what, remedy = f"several values in each row ({kind})", "make one column of each of them"
    elif types.is_binary(kind) or types.is_large_binary(kind):
        what, remedy = "text that is not in UTF-8", "write the file again in UTF-8"
        raise TypeError(
            f"column {field.name!r} of {file} holds {what}: {remedy}, or leave it out (--drop {field.name})"
        )
    else:
        what, remedy = f"values of the type {kind}", "write numbers or text"
    example = (field.metadata or {}).get(TEXT_EXAMPLE)
    such_as = f", such as {example.decode()}" if example else ""
    raise TypeError(
        f"column {field.name!r} of {file} holds {what}{such_as}, which have no scale by themselves: {remedy}; "
        f"or leave it out (--drop {field.name})"
    )


def _sample(opened: Opened, names: Sequence[str], random_state: int) -> list[Any]:
    """Some rows, in record batches, whose types may differ as those of the files do."""
    rows = opened.rows
    if rows.n_rows > SAMPLE:
        rows = rows.subset(random_rows(rows.n_rows, SAMPLE, np.random.default_rng(random_state)))
    return [chunk for _, chunk in rows.chunks(names)]


def _number(name: str, chunks: Sequence[Any]) -> Column | str:
    """The column, or why it is left out."""
    numbers = np.concatenate([numbers_of(chunk).astype(np.float64) for chunk in chunks])
    missing = np.isnan(numbers)
    if missing.all():
        return "no value in any row"
    held = numbers[~missing]
    if not missing.any() and (held == held[0]).all():
        return f"the same value in all rows ({held[0]:g})"
    return NumberColumn(name, float(np.median(held)), bool(missing.any()))


def _category(name: str, chunks: Sequence[Any], *, asked: bool) -> Column | str:
    """The column, or why it is left out."""
    texts = np.concatenate([np.array(texts_of(chunk).to_pylist(), object) for chunk in chunks])
    distinct, counts = np.unique(texts, return_counts=True)
    doubt = "" if asked else _doubt_about_numbers(distinct)
    if len(distinct) == 1:
        return f"the same value in all rows ({distinct[0]})"
    if len(distinct) > max(FEW_TEXTS, len(texts) // 2):
        return f"nearly every row has its own text ({len(distinct):,} in {len(texts):,} rows): an identifier?{doubt}"
    if doubt:
        warn_user(f"column {name!r} is taken for categories{doubt}")
    few = int(np.clip(len(texts) // RARE_SHARE, min(RARE_ROWS, counts.max()), counts.max()))
    frequent = counts >= few
    if frequent.sum() > MOST_CATEGORIES:
        frequent[np.argsort(counts, kind="stable")[:-MOST_CATEGORIES]] = False
    order = np.argsort(-counts[frequent], kind="stable")
    kept = tuple(str(category) for category in distinct[frequent][order] if category != RARE)
    return CategoryColumn(name, kept, not frequent.all() or RARE in distinct)


def _doubt_about_numbers(distinct: Any) -> str:
    """That most of the texts are numbers, if they are: then the others are mistakes, or stand for a missing value."""
    others = [text for text in distinct if text != MISSING and not is_number(text)]
    if not others or len(others) > MISTAKES * len(distinct):
        return ""
    return (
        f": nearly all of it are numbers, but not {', '.join(map(repr, others[:3]))} (an empty cell is a missing value)"
    )
