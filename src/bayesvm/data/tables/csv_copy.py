"""Data: CSV files, copied once into Arrow files, because parsing text again for every pass takes too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from bayesvm.data.checks import is_number
from bayesvm.data.tables.arrow_parts import ArrowPart, reading
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.schemas import TEXT_EXAMPLE, Schemas, require_distinct
from bayesvm.data.tables.working_copy import WorkingCopy
from bayesvm.extras import optional

_BLOCK_BYTES = 2**23  # of text, parsed at once; the types of columns are told from the first block


def csv_schemas(files: Sequence[SourceFile]) -> Schemas:
    """The columns of CSV files, which have distinct names, and the types that their first blocks show."""
    heads = [(file, _head(file)) for file in files]
    for file, schema in heads:
        require_distinct(schema.names, f"{file} has several columns of the name")
    return heads


def copy_csv(
    heads: Schemas,
    copy: WorkingCopy,
    wanted: Callable[[str], bool],
    exact: Collection[str | None],
    texts: Collection[str] = (),
    remedy: str = "",
) -> tuple[list[ArrowPart], Schemas]:
    """One Arrow file for each CSV file, with the wanted columns: numbers, text, what else there is; and all schemas.

    Columns named in ``exact`` keep the type that they seem to have, as targets should; those in ``texts`` are text.
    The schemas also have the columns that are not wanted, which are not read further than their first block.
    """
    pyarrow, ipc = optional("pyarrow", "tables"), optional("pyarrow.ipc", "tables")
    parts: list[ArrowPart] = []
    schemas = []
    for number, (file, head) in enumerate(heads):
        types = _types(head, list(filter(wanted, head.names)), exact, texts)
        types = types or dict.fromkeys(head.names[:1], pyarrow.string())  # so that the rows can be counted
        path = copy.folder / f"{number}.arrow"
        batches = _batches(file, types, remedy)
        with copy.writing(f"{number} of {len(heads)} files were done"), path.open("wb") as sink:
            first = next(batches)
            schema = pyarrow.schema([field.with_metadata(head.field(field.name).metadata) for field in first.schema])
            with ipc.new_file(sink, schema) as writer:
                writer.write_batch(first)
                for batch in batches:
                    writer.write_batch(batch)
        file.require_unchanged()
        parts.append(ArrowPart.of(file, path))
        read = {field.name: field for field in parts[-1].schema}
        schemas.append((file, pyarrow.schema([read.get(field.name, field) for field in head])))
    return parts, schemas


def text_names(file: SourceFile) -> list[str]:
    """The columns of a CSV file that can be read as text."""
    types = optional("pyarrow.types", "tables")
    return [field.name for field in _head(file) if not types.is_binary(field.type)]


def _open(file: SourceFile, types: dict[str, Any] | None = None) -> Any:
    csv = optional("pyarrow.csv", "tables")
    tabs = ".tsv" in (suffix.lower() for suffix in file.path.suffixes[-2:])
    return csv.open_csv(
        file.path,
        csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),  # with threads, errors do not tell the line
        csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True),
        csv.ConvertOptions(column_types=types, include_columns=list(types or ()), strings_can_be_null=True),
    )


def _head(file: SourceFile) -> Any:
    """Names and types of the columns as the first block has them; text columns carry an example of their text."""
    pyarrow = optional("pyarrow", "tables")
    with reading(file), _open(file) as reader:
        schema, first = reader.schema, next(iter(reader), None)
    try:
        names = schema.names
    except UnicodeDecodeError as error:
        raise ValueError(f"the first line of {file} is no text in UTF-8 ({error}); write it again in UTF-8") from error
    if all(is_number(name) for name in names):
        raise ValueError(
            f"the first line of {file} holds numbers ({', '.join(names[:3])}, …), where the names of the "
            "columns should stand; put a line of names above it"
        )
    fields = []
    for field in schema:
        example = None
        if pyarrow.types.is_string(field.type) and first is not None:
            texts = enumerate(first.column(field.name).to_pylist(), 2)  # after the line of names
            found = ((f"the text {text[:40]!r} (line {line})") for line, text in texts if text and not is_number(text))
            example = next(found, None)
        fields.append(field if example is None else field.with_metadata({TEXT_EXAMPLE: example}))
    return pyarrow.schema(fields)


def _types(
    schema: Any, names: Collection[str], exact: Collection[str | None], texts: Collection[str] = ()
) -> dict[str, Any]:
    """Numbers are read as floats, so that a column of whole numbers may have others further down."""
    pyarrow = optional("pyarrow", "tables")

    def chosen(name: str) -> Any:
        kind = schema.field(name).type
        if name in texts:
            return pyarrow.string()
        if name in exact:
            return kind
        number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_null(kind)
        return pyarrow.float64() if number else kind

    return {name: chosen(name) for name in names}


def _batches(file: SourceFile, types: dict[str, Any], remedy: str) -> Iterator[Any]:
    """Record batches, at least one; the first may be empty."""
    pyarrow = optional("pyarrow", "tables")
    try:
        with _open(file, types) as reader:
            yield pyarrow.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
    except pyarrow.ArrowInvalid as error:
        raise ValueError(_explained(file, str(error), remedy)) from error
    except OSError as error:
        raise OSError(f"{file} cannot be read: {error}. Write or copy it again, or leave it out") from error


def _explained(file: SourceFile, message: str, remedy: str) -> str:
    """Arrow counts columns, and lines as rows; people look for names and lines."""
    found = re.search(
        r"column #(\d+): Row #(\d+): CSV conversion error to (.*): invalid value (.*)", message, re.DOTALL
    )
    if found:
        column, line, kind, value = found.groups()
        name = _head(file).names[int(column)]
        return (
            f"{file}, line {line}, column {name!r}: {value[:60]} cannot be read as {kind}, which the lines above are. "
            f"Correct it, or leave the column out{remedy}"
        )
    line = re.search(r"Row #(\d+)", message)
    where = f", line {line[1]}" if line else ""
    return f"{file}{where} cannot be read: {message[:300]}. Correct it, or leave the file out"
