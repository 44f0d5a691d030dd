"""Data: convert CSV files to Arrow files once, because parsing text in every pass would be too slow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from bayesvm.data.number_formats import NumberFormat
from bayesvm.data.tables.arrow_parts import ArrowPart
from bayesvm.data.tables.column_reading import warn_of_rounding
from bayesvm.data.tables.csv_files import WITHOUT_NAMES, CsvColumn, CsvFile, not_as_before
from bayesvm.data.tables.schemas import Schemas, some_names
from bayesvm.data.tables.working_copy import WorkingCopy
from bayesvm.extras import optional
from bayesvm.warn import ReadingNote, warn_user

_IF_VALUES = f"; if the first line has values instead of names, {WITHOUT_NAMES}"
_MOST_SHOWN = 5  # columns listed in a note


def copy_csv(
    files: Sequence[CsvFile],
    copy: WorkingCopy,
    wanted: Callable[[str], bool],
    exact: Collection[str | None],
    texts: Collection[str] = (),
    remedy: str = "",
    verbatim: Collection[str] = (),
) -> tuple[list[ArrowPart], Schemas]:
    """Convert each CSV file to an Arrow file with the requested columns, and return all schemas.

    Columns in ``exact`` keep their detected type, as targets should. Columns in ``texts`` are read as text; those also
    in ``verbatim`` keep spaces and any text that is not empty. The schemas include the columns that are not requested,
    of which only the first block is read.
    """
    pyarrow, ipc = optional("pyarrow", "tables"), optional("pyarrow.ipc", "tables")
    parts: list[ArrowPart] = []
    schemas = []
    chosen = [[column for column in csv.columns if wanted(column.name)] for csv in files]
    _report(files, [[column for column in columns if column.name not in texts] for columns in chosen], exact)
    for number, (csv, used) in enumerate(zip(files, chosen, strict=True)):
        columns, as_text = used, set(texts)
        if not used:  # use the first one to count the rows
            columns = list(csv.columns[:1])
            as_text = set(csv.names)
        schema = pyarrow.schema([column.field.with_type(_type(column, exact, as_text)) for column in columns])
        path = copy.folder / f"{number}.arrow"
        with (
            copy.writing(f"{number} of {len(files)} files were converted"),
            path.open("wb") as sink,
            ipc.new_file(sink, schema) as writer,
        ):
            for batch in _batches(csv, columns, schema, as_text, remedy, verbatim):
                writer.write_batch(batch)
        csv.file.require_unchanged()
        parts.append(ArrowPart.of(csv.file, path))
        read = {field.name: field for field in parts[-1].schema}
        schemas.append((csv.file, pyarrow.schema([read.get(field.name, field) for field in csv.schema])))
    return parts, schemas


def _type(column: CsvColumn, exact: Collection[str | None], texts: Collection[str]) -> Any:
    """The type of a column. Numbers are read as floats: a column of integers may have fractions further down."""
    pyarrow, kind = optional("pyarrow", "tables"), column.kind
    if column.name in texts:
        return pyarrow.string()
    if column.refused:
        raise ValueError(column.refused)
    if column.name in exact:
        return kind
    number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_null(kind)
    return pyarrow.float64() if number else kind


def _batches(
    csv: CsvFile,
    columns: Sequence[CsvColumn],
    schema: Any,
    texts: Collection[str],
    remedy: str,
    verbatim: Collection[str],
) -> Iterator[Any]:
    """The record batches of some columns."""
    pyarrow = optional("pyarrow", "tables")
    forms = {column.name: column.form for column in columns if column.form is not None and column.name not in texts}
    types = {
        column.written: pyarrow.string() if column.name in forms else kind
        for column, kind in zip(columns, schema.types, strict=True)
    }
    row = csv.first_line
    try:
        with csv.reader(types) as reader:
            for batch in reader:
                made = [
                    _without_empty(values)
                    if column.name in verbatim
                    else _without(
                        csv.missing_numbers,
                        _read(values, column, forms.get(column.name), f"{csv.file}, line ", row, remedy),
                    )
                    for column, values in zip(columns, batch.columns, strict=True)
                ]
                yield pyarrow.RecordBatch.from_arrays(made, schema=schema)
                row += batch.num_rows
    except pyarrow.ArrowInvalid as error:
        raise ValueError(csv.explained(str(error), remedy)) from error
    except UnicodeDecodeError as error:
        raise ValueError(csv.not_decoded(error)) from error
    except OSError as error:
        raise OSError(f"{csv.file} cannot be read: {error}. Write or copy it again, or leave it out") from error


def _without_empty(texts: Any) -> Any:
    """Unchanged texts, with null for empty ones."""
    pyarrow, compute = optional("pyarrow", "tables"), optional("pyarrow.compute", "tables")
    return compute.if_else(compute.equal(texts, ""), pyarrow.scalar(None, pyarrow.string()), texts)


def _without(numbers: Sequence[float], values: Any) -> Any:
    """A column with null for some numbers, -999.0 as well as -999; other columns are unchanged."""
    pyarrow, compute = optional("pyarrow", "tables"), optional("pyarrow.compute", "tables")
    kind = values.type
    if not numbers or not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        return values
    found = compute.is_in(values.cast("float64", safe=False), pyarrow.array(numbers, pyarrow.float64()))
    return compute.if_else(found, pyarrow.scalar(None, kind), values)


def _read(values: Any, column: CsvColumn, form: NumberFormat | None, file: str, row: int, remedy: str) -> Any:
    """Text without surrounding spaces, with null for missing values; if a number format is given, numbers."""
    pyarrow, compute = optional("pyarrow", "tables"), optional("pyarrow.compute", "tables")
    if not pyarrow.types.is_string(values.type):
        return values
    if form is None:
        texts = compute.utf8_trim_whitespace(values)
        is_missing = compute.is_in(texts, pyarrow.array(sorted(column.missing)))
        return compute.if_else(is_missing, pyarrow.scalar(None, pyarrow.string()), texts)
    encoded = values.dictionary_encode()  # process each distinct text once, not every row
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    held = [None if text in column.missing else text for text in texts]
    try:
        numbers = form.numbers(held)
    except ValueError as error:
        bad = next(k for k, text in enumerate(held) if text is not None and not form.holds(text))
        line = row + compute.index(encoded.indices, bad).as_py()
        where = f"{file}{line}, column {column.name!r}"
        raise ValueError(not_as_before(where, repr(texts[bad]), f"a number {form}", remedy)) from error
    return pyarrow.array(numbers, pyarrow.float64(), from_pandas=True).take(encoded.indices)


def _report(files: Sequence[CsvFile], chosen: Sequence[Sequence[CsvColumn]], exact: Collection[str | None]) -> None:
    """Report how files that are not plain CSV are read, each kind of difference once for all files."""
    found: dict[str, list[str]] = {}
    for csv, columns in zip(files, chosen, strict=True):
        converted = {
            column.name: f"{column.example!r} is {column.form.numbers([column.example])[0]:.15g}"
            for column in columns
            if column.form is not None and column.form != NumberFormat(csv.dialect.decimal)
        }
        zeros = {column.name: f"{column.leading_zeros!r}" for column in columns if column.leading_zeros}
        doubtful = {column.name: " ".join(map(repr, sorted(column.doubtful))) for column in columns if column.doubtful}
        notes = {
            "": ", ".join(csv.differences),
            "numbers read as column names: ": some_names(csv.doubtful_names, 5) + _IF_VALUES
            if csv.doubtful_names
            else "",
            "texts read as numbers: ": _some(converted),
            "leading zeros dropped, unless the column is in categories (--categories): ": _some(zeros),
            "texts read as missing values: ": _some(doubtful),
        }
        for what, note in notes.items():
            if note:
                found.setdefault(what + note, []).append(str(csv.file))
        for column in columns:
            if column.is_rounded and column.name not in exact:
                warn_of_rounding(column.name)
    unused = [set(csv.unused_missing()) for csv in files if csv.options.get("missing")]
    if unused and (nowhere := sorted(set.intersection(*unused))):
        others = f" or {len(files) - 1} more files" if len(files) > 1 else ""
        warn_user(
            f"no value of {files[0].file}{others} is {some_names(nowhere, 5)}, given as a missing value with missing= "
            "(--missing)"
        )
    for note, names in found.items():
        others = f" and {len(names) - 1} more files" if len(names) > 1 else ""
        warn_user(f"{names[0]}{others}: {note}", ReadingNote)


def _some(details: Mapping[str, str]) -> str:
    """Details of the first few columns."""
    shown = [f"{name!r} ({detail})" for name, detail in list(details.items())[:_MOST_SHOWN]]
    more = f", … ({len(details) - _MOST_SHOWN} more)" if len(details) > _MOST_SHOWN else ""
    return ", ".join(shown) + more
