"""Data: files of columns, read piece by piece: the row groups of Parquet, the record batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from bayesvm.data.tables.files import SourceFile
from bayesvm.extras import optional

_BUFFERED_BYTES = 2**25  # of all columns together


class Part(Protocol):
    """One file of a table, in pieces that can be read one without the other."""

    @property
    def file(self) -> SourceFile:
        """The file that the user gave, for messages."""
        ...

    @property
    def pieces(self) -> tuple[int, ...]:
        """Number of rows in each piece."""
        ...

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        """Some columns of some pieces: the number of the first row in the file, and rows with ``num_rows``, ``slice``
        and ``take`` like those of a record batch.
        """
        ...


@dataclass(frozen=True)
class ParquetPart:
    """A Parquet file. It is open only while it is read."""

    file: SourceFile
    pieces: tuple[int, ...]
    schema: Any

    @classmethod
    def of(cls, file: SourceFile) -> Self:
        """Only the footer is read."""
        with reading(file), _parquet(file, 1) as parquet:
            groups = range(parquet.num_row_groups)
            sizes = tuple(parquet.metadata.row_group(group).num_rows for group in groups)
            return cls(file, sizes, _checked(file, sizes, parquet.schema_arrow))

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        self.file.require_unchanged()
        starts = [0, *accumulate(self.pieces)]
        with reading(self.file):
            parquet = _parquet(self.file, len(names))
        with parquet:
            for group in pieces:
                first = starts[group]
                where = f", row group {group} (rows {first} to {starts[group + 1] - 1})"
                with reading(self.file, where):
                    for batch in parquet.iter_batches(rows_at_once, [group], list(names), use_threads=False):
                        self.file.require_unchanged()
                        yield first, _plain(batch)
                        first += batch.num_rows
                require_all_rows(f"{self.file}{where}", first, starts[group + 1])


def _parquet(file: SourceFile, n_columns: int) -> Any:
    # Without a buffer of a given size, whole column chunks are read at once, and a row group can be as large as a file.
    buffer_size = int(np.clip(_BUFFERED_BYTES // max(n_columns, 1), 2**14, 2**18))
    return optional("pyarrow.parquet", "tables").ParquetFile(
        file.path, buffer_size=buffer_size, pre_buffer=False, page_checksum_verification=True
    )


@dataclass(frozen=True)
class ArrowPart:
    """An Arrow IPC file (Feather, version 2); it may be the working copy of another file.

    It is not mapped into memory: a mapped file that somebody cuts short kills the process that reads it.
    """

    file: SourceFile
    data: SourceFile  # what is read
    pieces: tuple[int, ...]
    schema: Any

    @classmethod
    def of(cls, file: SourceFile, copy: Path | None = None) -> Self:
        """Rows are counted on one column, because compressed batches cannot be opened without being unpacked."""
        data = file if copy is None else SourceFile.at(copy)
        with reading(data), _opened(data) as opened:
            schema = optional("pyarrow.ipc", "tables").open_file(opened).schema
            if not schema.names:
                return cls(file, data, (), schema)
            reader = _arrow(opened, [0])
            sizes = tuple(reader.get_batch(piece).num_rows for piece in range(reader.num_record_batches))
            return cls(file, data, sizes, _checked(data, sizes, schema))

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        self.data.require_unchanged()
        starts = [0, *accumulate(self.pieces)]
        with _opened(self.data) as opened:
            with reading(self.data):
                reader = _arrow(opened, [self.schema.get_field_index(name) for name in names])
            for piece in pieces:
                where = f", record batch {piece} (rows {starts[piece]} to {starts[piece + 1] - 1})"
                with reading(self.data, where):
                    batch = _plain(reader.get_batch(piece))
                self.data.require_unchanged()
                require_all_rows(f"{self.data}{where}", batch.num_rows, self.pieces[piece])
                yield starts[piece], batch


def arrow_parts(kind: str, files: Sequence[SourceFile]) -> list[ParquetPart | ArrowPart]:
    """The files of a table that are read as they are."""
    return [ParquetPart.of(file) if kind == "Parquet" else ArrowPart.of(file) for file in files]


@dataclass(frozen=True)
class HeldPart:
    """An Arrow table in memory, as if it were a file; ``file`` is what messages call it."""

    file: SourceFile
    table: Any

    @property
    def pieces(self) -> tuple[int, ...]:
        """All rows are one."""
        return (self.table.num_rows,)

    @property
    def schema(self) -> Any:
        """Of all columns."""
        return _without_views(self.table.schema)

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self.table.select(list(names)).to_batches(max_chunksize=rows_at_once):
            yield first, _plain(batch)
            first += batch.num_rows


def _checked(file: SourceFile, sizes: Sequence[int], schema: Any) -> Any:
    """The schema that a part of the table has, if names, types and numbers of rows are not damaged."""
    if min(sizes, default=0) < 0:
        raise OSError(f"{file} cannot be read: a part of it has {min(sizes)} rows. Write or copy it again")
    str(schema)  # raises if a name is no text
    return _without_views(schema)


def _plain(batch: Any) -> Any:
    """A record batch that is safe to use: damaged offsets would otherwise be followed to anywhere in memory."""
    batch.validate(full=True)
    schema = _without_views(batch.schema)
    if schema.equals(batch.schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return optional("pyarrow", "tables").RecordBatch.from_arrays(columns, schema=schema)


def _without_views(schema: Any) -> Any:
    """Text as polars saves it cannot be taken row by row; other text can."""
    return optional("pyarrow", "tables").schema(
        [field.with_type(_without_view(field.type)) for field in schema], schema.metadata
    )


def _without_view(kind: Any) -> Any:
    """The same type with ordinary text and bytes for views, at any depth."""
    pyarrow = optional("pyarrow", "tables")
    types, name, plain = pyarrow.types, str(kind), kind
    if name == "string_view":
        plain = pyarrow.large_string()
    elif name == "binary_view":
        plain = pyarrow.large_binary()
    elif "_view" not in name:
        pass
    elif types.is_dictionary(kind):
        plain = pyarrow.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    elif types.is_struct(kind):
        plain = pyarrow.struct([field.with_type(_without_view(field.type)) for field in kind])
    elif types.is_map(kind):
        plain = pyarrow.map_(_without_view(kind.key_type), _without_view(kind.item_type), kind.keys_sorted)
    elif types.is_fixed_size_list(kind):
        plain = pyarrow.list_(kind.value_field.with_type(_without_view(kind.value_type)), kind.list_size)
    elif name.startswith(("list", "large_list")):  # also views of lists
        plain = pyarrow.large_list(kind.value_field.with_type(_without_view(kind.value_type)))
    return plain


def _opened(file: SourceFile) -> Any:
    with file.path.open("rb") as opened:
        start = opened.read(6)
    if start[:4] == b"FEA1":
        raise ValueError(
            f"{file} is a Feather file of version 1, which is no longer read; convert it with "
            "pandas.read_feather(path).to_parquet(new_path)"
        )
    if start != b"ARROW1":
        raise ValueError(
            f"{file} is no Arrow file, or an empty or damaged one; if it is an Arrow stream, write it with "
            "pyarrow.ipc.new_file instead of new_stream"
        )
    return optional("pyarrow", "tables").OSFile(str(file.path))


def _arrow(opened: Any, fields: list[int]) -> Any:
    ipc = optional("pyarrow.ipc", "tables")
    return ipc.open_file(opened, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False))


@contextmanager
def reading(file: SourceFile, where: str = "") -> Iterator[None]:
    """Say which file, and which part of it, could not be read; or that it was changed meanwhile."""
    arrow_error = optional("pyarrow", "tables").ArrowException
    try:
        yield
    except PermissionError as error:
        raise PermissionError(f"{file}{where} cannot be read: you have no permission to") from error
    except MemoryError as error:
        raise MemoryError(f"{file}{where} does not fit into memory, or its sizes are damaged: {error}") from error
    except (arrow_error, OSError, UnicodeDecodeError) as error:
        file.require_unchanged()
        raise OSError(
            f"{file}{where} cannot be read: {error}. The file is damaged, not whole or no such file: write or copy it "
            "again (text in UTF-8), or leave it out"
        ) from error


def require_all_rows(what: str, found: int, expected: int) -> None:
    """As many rows as were counted when the table was opened."""
    if found != expected:
        raise OSError(
            f"{what}: {expected} rows were counted by open_table, but {found} are read; the file was changed since. "
            "Call open_table again"
        )
