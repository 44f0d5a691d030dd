"""Data: which columns of a table are features, label and weight, and how record batches become arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.data.checks import Locate, require_labels, require_usable, require_weights, require_whole_text
from bayesvm.data.tables.files import SourceFile
from bayesvm.extras import optional

# Arrow's names of the types whose every value is also a float32.
SMALL = {"null", "bool", "int8", "uint8", "int16", "uint16", "halffloat", "float"}
_PLAIN = {"double", "float", "halffloat", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
PANDAS_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
_CACHED_BYTES = 2**18  # rows are filled column by column, so a strip of them should stay in the processor's cache

Schemas = Sequence[tuple[SourceFile, Any]]  # files with their pyarrow schemas


class Batch(NamedTuple):
    """Rows one after the other: features, raw labels (or None), row weights (or None)."""

    X: Any  # an array, or a SciPy matrix in CSR format
    y: npt.NDArray[Any] | None
    weight: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read, and the types that their values get."""

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    target: str | None
    label_dtype: np.dtype[Any] | None
    weight: str | None
    sparse: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.names)

    @property
    def has_labels(self) -> bool:
        """Whether there is a label in each row."""
        return self.target is not None

    def needed(self, *, features: bool, labels: bool) -> list[str]:
        """The columns to read."""
        of_labels = [name for name in (self.weight, self.target) if name is not None]
        return [*(self.names if features else ()), *(of_labels if labels else ())]

    def with_features(self, names: tuple[str, ...]) -> Columns:
        """Some of the features, in this order."""
        return replace(self, names=names)

    def joined(self, batches: Sequence[Any], locate: Locate, *, labels: bool) -> Batch:
        """Record batches one after the other as new arrays."""
        X = np.empty((sum(batch.num_rows for batch in batches), len(self.names)), self.dtype)
        strip = max(512, _CACHED_BYTES // (len(self.names) * X.itemsize))
        first = 0
        for batch in batches:
            columns = [numbers_of(batch.column(name)) for name in self.names]
            rows = X[first : first + batch.num_rows]
            for start in range(0, len(rows), strip):
                some = slice(start, start + strip)
                for number, column in enumerate(columns):
                    rows[some, number] = column[some]
            first += batch.num_rows
        require_usable(X, self.names, locate)
        if not labels:
            return Batch(X, None, None)
        y = None if self.target is None else self.labels(batches, locate)
        return Batch(X, y, self.weights(batches, locate))

    def labels(self, batches: Sequence[Any], locate: Locate) -> npt.NDArray[Any]:
        """The labels in record batches, none of them missing."""
        columns = [_without_null_categories(batch.column(self.target)) for batch in batches]
        if any(column.null_count for column in columns):
            missing = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
            require_labels(np.concatenate(missing), self.target, locate)
        y = np.concatenate([_labels(column, self.label_dtype) for column in columns])
        require_whole_text(y, self.target, locate)
        if y.dtype.kind == "f":
            require_labels(np.isnan(y), self.target, locate)
        return y

    def weights(self, batches: Sequence[Any], locate: Locate) -> npt.NDArray[np.float64] | None:
        """The weights in record batches, if there are any."""
        if self.weight is None:
            return None
        parts = [numbers_of(batch.column(self.weight)) for batch in batches]
        weight = np.concatenate(parts).astype(np.float64)
        require_weights(weight, self.weight, locate)
        return weight


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """A column of numbers, without a copy if nothing is missing; NaN where something is."""
    if str(column.type) not in _PLAIN:
        column = column.cast("float64")  # bools and decimals
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, also as categories."""
    types = optional("pyarrow.types", "tables")
    value = kind.value_type if types.is_dictionary(kind) else kind
    return str(value) in {"string", "large_string"}  # views have been cast


def common_type(kinds: Iterable[Any]) -> Any:
    """One Arrow type for the values of a column whose files differ: of numbers, the wider; else text."""
    pyarrow = optional("pyarrow", "tables")
    types = pyarrow.types
    values = [kind.value_type if types.is_dictionary(kind) else kind for kind in kinds]
    distinct = list(dict.fromkeys(value for value in values if not types.is_null(value)))
    if len(distinct) <= 1:
        return distinct[0] if distinct else pyarrow.null()
    if not any(map(is_text, distinct)):
        try:
            schemas = [pyarrow.schema([("", value)]) for value in distinct]
            return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
        except (pyarrow.ArrowTypeError, pyarrow.ArrowInvalid):
            pass
    return pyarrow.large_string()


def _without_null_categories(column: Any) -> Any:
    """A category may itself be missing, which is not counted among the missing values of its rows."""
    categories = getattr(column, "dictionary", None)
    return column.dictionary_decode() if categories is not None and categories.null_count else column


def _labels(column: Any, dtype: np.dtype[Any] | None) -> npt.NDArray[Any]:
    """A column of labels without nulls."""
    if dtype is None or dtype.kind != "U":
        decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
        return numbers_of(decoded).astype(dtype)
    # Text becomes Python objects once for each distinct label, not once for each row.
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    found = [str(label) for label in coded.dictionary.to_pylist()]
    # Text that an array of text cannot hold stays as it is, to be refused with its row.
    texts = np.array(found, dtype=object if any(text.endswith("\0") for text in found) else str)
    labels: npt.NDArray[Any] = texts[coded.indices.to_numpy()]
    return labels


def choose_columns(schemas: Schemas, target: str | None, columns: Sequence[str] | None, weight: str | None) -> Columns:
    """The features, the label and the weight in files that all have them."""
    file, schema = schemas[0]
    require_distinct(schema.names, f"{file} has several columns of the name")
    special = [name for name in (target, weight) if name is not None]
    if columns is None:
        names = [name for name in schema.names if name not in special and not PANDAS_INDEX.fullmatch(name)]
    else:
        names = list(columns)
    require_distinct(names + special, "among columns, target and weight, a column may stand once, but not so")
    missing = [name for name in [*names, *special] if name not in schema.names]
    if missing:
        raise ValueError(no_column(file, schema, missing))
    if not names:
        raise ValueError(f"no column of {file} is left as a feature; it has {some_names(schema.names)}")
    used = None if columns is None else {*names, *special}
    for other, other_schema in schemas[1:]:
        require_same_names(file, schema, other, other_schema, used)
    types = {name: [(other, each.field(name)) for other, each in schemas] for name in [*names, *special]}
    for name in [*names, *([weight] if weight else [])]:
        for other, field in types[name]:
            require_numbers(other, field)
    small = all(str(field.type) in SMALL for name in names for _, field in types[name])
    return Columns(
        tuple(names),
        np.dtype(np.float32 if small else np.float64),
        target,
        None if target is None else label_dtype_of(types[target]),
        weight,
    )


def no_column(file: SourceFile, schema: Any, missing: Sequence[str]) -> str:
    """What to say of names that no column has."""
    one = len(schema.names) == 1 and any(mark in schema.names[0] for mark in ";\t|")
    hint = ". Is another separator meant? Commas are read, and tabs in .tsv files" if one else ""
    return f"{file} has no column {some_names(missing)}; it has {some_names(schema.names)}{hint}"


def require_distinct(names: Sequence[str], complaint: str) -> None:
    """No name stands twice."""
    seen: set[str] = set()
    twice = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        raise ValueError(f"{complaint} {some_names(twice)}")


def require_same_names(file: SourceFile, schema: Any, other: SourceFile, other_schema: Any, used: Any) -> None:
    """All columns of both files count, or those that are used."""
    require_distinct(other_schema.names, f"{other} has several columns of the name")
    here, there = set(schema.names), set(other_schema.names)
    lacks, beyond = [n for n in schema.names if n not in there], [n for n in other_schema.names if n not in here]
    if used is not None:
        lacks, beyond = [name for name in lacks if name in used], []
    if lacks or beyond:
        what = [f"has no column {some_names(lacks)}"] if lacks else []
        what += [f"has {some_names(beyond)}, which {file} has not"] if beyond else []
        remedy = "leave out the file" + ("" if used else ", or name the columns that all files have with columns=[…]")
        raise ValueError(f"{other} {' and '.join(what)}; {remedy}")


def require_numbers(file: SourceFile, field: Any) -> None:
    """The type of a column is one that becomes a float."""
    types = optional("pyarrow.types", "tables")
    kind = field.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return
    if types.is_null(kind):  # a file without rows may know no types; where there are rows, they are told as missing
        return
    if types.is_temporal(kind):
        remedy = "turn it into numbers, such as days since a date"
    elif types.is_nested(kind):
        remedy = "make one column of numbers of each of its parts"
    else:
        remedy = "encode it as numbers (sklearn.preprocessing.OneHotEncoder)"
    example = (field.metadata or {}).get(EXAMPLE)
    raise TypeError(
        f"column {field.name!r} of {file} is no column of numbers: its type is {kind}"
        f"{f', and it holds {example.decode()}' if example else ''}; {remedy}, "
        "or leave it out: name the features with columns=[…]"
    )


def label_dtype_of(fields: Iterable[tuple[SourceFile, Any]]) -> np.dtype[Any]:
    """One type for the labels of all files."""
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
                f"the target {field.name!r} of {file} is of the type {kind}; labels must be numbers, bools or text"
            )
        word = {"U": "text", "b": "bools"}.get(dtype.kind, "numbers")
        before = found.get(word, (file, dtype))
        found[word] = (before[0], np.result_type(before[1], dtype) if word == "numbers" else dtype)
        if len(found) > 1:
            (first, (one, _)), (second, (another, _)) = found.items()
            raise TypeError(
                f"the target {field.name!r} holds {first} in {one}, but {second} in {another}; "
                "make the labels of one kind"
            )
    return next(iter(found.values()))[1] if found else np.dtype(np.float64)


EXAMPLE = b"bayesvm.example"  # key of a field's metadata: a value that is no number, and where it is


def some_names(names: Sequence[str], most: int = 12) -> str:
    """For messages: as many as one reads."""
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def common_schema(schemas: Sequence[Any], names: Sequence[str]) -> Any:
    """Types that columns of several files can share."""
    return optional("pyarrow", "tables").schema(
        [(name, common_type(schema.field(name).type for schema in schemas)) for name in names]
    )


def cast_to(schema: Any, batch: Any) -> Any:
    """Columns of a record batch as the types that they have in all files."""
    pyarrow = optional("pyarrow", "tables")
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
            columns.append(decoded.cast(field.type))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise TypeError(
                f"column {field.name!r} has different types in the files, and {column.type} cannot become "
                f"{field.type} ({error}); write it with one type"
            ) from error
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)
