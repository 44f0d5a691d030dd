"""Data: determine features, target and weight of a table, and their types, from the schemas of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bayesvm.data.tables.column_reading import ArrowColumns
from bayesvm.data.tables.files import SourceFile
from bayesvm.extras import optional
from bayesvm.suggest import did_you_mean

EXACT_IN_FLOAT32 = {"null", "bool", "int8", "uint8", "int16", "uint16", "halffloat", "float"}  # Arrow's type names
PANDAS_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
TEXT_EXAMPLE = b"bayesvm.example"  # metadata key of a field: a value that is not a number, and its location

Schemas = Sequence[tuple[SourceFile, Any]]  # files with their pyarrow schemas


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text or categorical text."""
    types = optional("pyarrow.types", "tables")
    value = kind.value_type if types.is_dictionary(kind) else kind
    return str(value) in {"string", "large_string"}  # views were cast before


def is_number(kind: Any) -> bool:
    """Whether values of an Arrow type can be converted to floats; true for columns without any value."""
    types = optional("pyarrow.types", "tables")
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
        or types.is_duration(kind)
    )


def common_type(kinds: Iterable[Any]) -> Any:
    """A common Arrow type for a column with different types: the wider one for numbers, else text."""
    pyarrow = optional("pyarrow", "tables")
    values = [kind.value_type if pyarrow.types.is_dictionary(kind) else kind for kind in kinds]
    try:
        schemas = [pyarrow.schema([("", value)]) for value in values]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pyarrow.ArrowTypeError, pyarrow.ArrowInvalid):
        return pyarrow.large_string()


def choose_columns(
    schemas: Schemas, target: str | None, columns: Sequence[str] | None, weight: str | None
) -> ArrowColumns:
    """The features, the target and the weight, which all files must have."""
    file, schema = schemas[0]
    require_distinct(schema.names, f"{file} has several columns named", "rename one of them")
    special = [name for name in (target, weight) if name is not None]
    if columns is None:
        names = [name for name in schema.names if name not in special and not PANDAS_INDEX.fullmatch(name)]
    else:
        names = list(columns)
    require_distinct(names + special, "columns, target and weight list a column more than once:")
    missing = [name for name in [*names, *special] if name not in schema.names]
    if missing:
        raise ValueError(no_column(file, schema, missing))
    if not names:
        raise ValueError(f"no column of {file} remains as a feature; it has {some_names(schema.names)}")
    used = None if columns is None else {*names, *special}
    for other, other_schema in schemas[1:]:
        require_same_names(file, schema, other, other_schema, used)
    types = {name: [(other, each.field(name)) for other, each in schemas] for name in [*names, *special]}
    for name in [*names, *([weight] if weight else [])]:
        for other, field in types[name]:
            require_numbers(other, field)
    small = all(str(field.type) in EXACT_IN_FLOAT32 for name in names for _, field in types[name])
    dtype = np.dtype(np.float32 if small else np.float64)
    return ArrowColumns(
        tuple(names), len(names), dtype, target, weight, None if target is None else target_dtype(types[target])
    )


def no_column(file: SourceFile, schema: Any, missing: Sequence[str]) -> str:
    """The message for unknown column names."""
    one = len(schema.names) == 1 and any(mark in schema.names[0] for mark in ",;\t| ")
    hint = ". If the separator is wrong, specify it with sep= (--sep)" if one else ""
    near = did_you_mean(missing[0], schema.names) if len(missing) == 1 else ""
    near = f" ({near})" if near.endswith("?") else ""
    return f"{file} has no column {some_names(missing)}{near}; it has {some_names(schema.names)}{hint}"


def require_distinct(names: Sequence[str], complaint: str, remedy: str = "") -> None:
    """Require distinct names; with a remedy, the error has the positions of the first duplicate, counted from 1."""
    positions: dict[str, list[int]] = {}
    for number, name in enumerate(names, 1):
        positions.setdefault(name, []).append(number)
    twice = {name: found for name, found in positions.items() if len(found) > 1}
    if twice:
        name, found = next(iter(twice.items()))
        where = f": {name!r} is column {' and column '.join(map(str, found))}; {remedy}" if remedy else ""
        raise ValueError(f"{complaint} {some_names(list(twice))}{where}")


def require_same_names(file: SourceFile, schema: Any, other: SourceFile, other_schema: Any, used: Any) -> None:
    """Require the same names in both files: of all columns, or of those that are used."""
    require_distinct(other_schema.names, f"{other} has several columns named", "rename one of them")
    here, there = set(schema.names), set(other_schema.names)
    lacks, beyond = [n for n in schema.names if n not in there], [n for n in other_schema.names if n not in here]
    if used is not None:
        lacks, beyond = [name for name in lacks if name in used], []
    if lacks or beyond:
        what = [f"has no column {some_names(lacks)}"] if lacks else []
        what += [f"has {some_names(beyond)}, which {file} lacks"] if beyond else []
        remedy = "leave out the file" + ("" if used else ", or name the columns that all files have with columns=[…]")
        raise ValueError(f"{other} {' and '.join(what)}; {remedy}")


def require_numbers(file: SourceFile, field: Any) -> None:
    """Require a column type that can be converted to floats."""
    types = optional("pyarrow.types", "tables")
    kind = field.type
    if is_number(kind):  # files without rows may have no types; otherwise the values are reported as missing
        return
    if types.is_temporal(kind):
        remedy = "convert it to numbers, such as days since a date"
    elif types.is_nested(kind):
        remedy = "convert each of its parts to a numeric column"
    elif "binary" in str(kind):
        remedy = "write text or numbers instead of bytes"
    else:
        remedy = "encode it as numbers (sklearn.preprocessing.OneHotEncoder)"
    example = (field.metadata or {}).get(TEXT_EXAMPLE)
    raise TypeError(
        f"column {field.name!r} of {file} is not numeric: its type is {kind}"
        f"{f', and it contains {example.decode()}' if example else ''}; {remedy}, "
        "or leave it out: select the features with columns=[…]"
    )


def target_dtype(fields: Iterable[tuple[SourceFile, Any]]) -> np.dtype[Any]:
    """A common type for the targets of all files."""
    types = optional("pyarrow.types", "tables")
    found: dict[str, tuple[SourceFile, np.dtype[Any]]] = {}
    for file, field in fields:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_null(kind):
            continue
        dtype: np.dtype[Any]
        if is_text(kind):
            dtype = np.dtype(str)
        elif types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
            dtype = np.dtype(kind.to_pandas_dtype())
        elif types.is_decimal(kind):
            dtype = np.dtype(np.float64)
        else:
            raise TypeError(
                f"the target {field.name!r} of {file} has type {kind}; labels must be numbers, bools or text"
            )
        word = {"U": "text", "b": "bools"}.get(dtype.kind, "numbers")
        before = found.get(word, (file, dtype))
        found[word] = (before[0], np.result_type(before[1], dtype) if word == "numbers" else dtype)
        if len(found) > 1:
            (first, (one, _)), (second, (another, _)) = found.items()
            raise TypeError(
                f"the target {field.name!r} has {first} in {one}, but {second} in {another}; use labels of one kind"
            )
    return next(iter(found.values()))[1] if found else np.dtype(np.float64)


def some_names(names: Sequence[str], most: int = 12) -> str:
    """The first few names, for messages."""
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def common_schema(schemas: Sequence[Any], names: Sequence[str]) -> Any:
    """A schema with common types for columns of several files."""
    return optional("pyarrow", "tables").schema(
        [(name, common_type(schema.field(name).type for schema in schemas)) for name in names]
    )
