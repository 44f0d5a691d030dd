"""Data: columnar files, read piece by piece: row groups of Parquet, record batches of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from bayesvm.data.tables.files import SourceFile
from bayesvm.extras import optional

_BUFFERED_BYTES = 2**25  # of all columns together


class Part(Protocol):
    """One file of a table, in pieces that can be read independently."""

    @property
    def file(self) -> SourceFile:
        """The file that the user specified, for messages."""

    @property
    def pieces(self) -> tuple[int, ...]:
        """The number of rows in each piece."""

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        """Yield some columns of some pieces: the number of the first row in the file, and rows with ``num_rows``,
        ``slice`` and ``take`` as in a record batch.
        """


@dataclass(frozen=True)
class FilePart(ABC):
    """A columnar file, open only while it is read; it may be the working copy of another file."""

    file: SourceFile
    data: SourceFile  # the file that is actually read
    pieces: tuple[int, ...]
    schema: Any
    piece_name: ClassVar[str]

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        self.data.require_unchanged()
        starts = [0, *accumulate(self.pieces)]
        with ExitStack() as stack:
            with reading(self.data):
                batches_of = self._opened(stack, names, rows_at_once)
            for piece in pieces:
                first, stop = starts[piece], starts[piece + 1]
                where = f", {self.piece_name} {piece} (rows {first} to {stop - 1})"
                with reading(self.data, where):
                    for batch in batches_of(piece):
                        self.data.require_unchanged()
                        yield first, _plain(batch)
                        first += batch.num_rows
                if first != stop:
                    counted, found = self.pieces[piece], first - starts[piece]
                    raise OSError(
                        f"{self.data}{where}: open_table counted {counted} rows, but {found} were read; "
                        "the file has changed since. Call open_table again"
                    )

    @abstractmethod
    def _opened(self, stack: ExitStack, names: Sequence[str], rows_at_once: int) -> Callable[[int], Iterable[Any]]:
        """Open the file for the lifetime of the stack; the function returns the record batches of a piece."""


class ParquetPart(FilePart):
    """A Parquet file in row groups."""

    piece_name = "row group"

    @classmethod
    def of(cls, file: SourceFile) -> Self:
        """Open a file; reads only the footer."""
        with reading(file), _parquet(file, 1) as parquet:
            groups = range(parquet.num_row_groups)
            sizes = tuple(parquet.metadata.row_group(group).num_rows for group in groups)
            return cls(file, file, sizes, _checked(file, sizes, parquet.schema_arrow))

    def _opened(self, stack: ExitStack, names: Sequence[str], rows_at_once: int) -> Callable[[int], Iterable[Any]]:
        parquet = stack.enter_context(_parquet(self.data, len(names)))
        return lambda piece: parquet.iter_batches(rows_at_once, [piece], list(names), use_threads=False)


class ArrowPart(FilePart):
    """An Arrow IPC file (Feather, version 2) in record batches.

    It is not memory-mapped: truncating a mapped file kills the process that reads it.
    """

    piece_name = "record batch"

    @classmethod
    def of(cls, file: SourceFile, copy: Path | None = None) -> Self:
        """Open a file; counts rows from one column, because opening a compressed batch decompresses it."""
        data = file if copy is None else SourceFile.at(copy)
        with reading(data), _arrow_file(data) as opened:
            schema = optional("pyarrow.ipc", "tables").open_file(opened).schema
            if not schema.names:
                return cls(file, data, (), schema)
            reader = _arrow_reader(opened, [0])
            sizes = tuple(reader.get_batch(piece).num_rows for piece in range(reader.num_record_batches))
            return cls(file, data, sizes, _checked(data, sizes, schema))

    def _opened(self, stack: ExitStack, names: Sequence[str], rows_at_once: int) -> Callable[[int], Iterable[Any]]:
        opened = stack.enter_context(_arrow_file(self.data))
        reader = _arrow_reader(opened, [self.schema.get_field_index(name) for name in names])
        return lambda piece: [reader.get_batch(piece)]


@dataclass(frozen=True)
class HeldPart:
    """An Arrow table in memory with the interface of a file; ``file`` is its name in messages."""

    file: SourceFile
    table: Any

    @property
    def pieces(self) -> tuple[int, ...]:
        return (self.table.num_rows,)

    @property
    def schema(self) -> Any:
        """The schema of all columns."""
        return _without_views(self.table.schema)

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self.table.select(list(names)).to_batches(max_chunksize=rows_at_once):
            yield first, _plain(batch)
            first += batch.num_rows


def arrow_parts(kind: str, files: Sequence[SourceFile]) -> list[FilePart]:
    """The files of a table in formats that are read without a copy."""
    return [ParquetPart.of(file) if kind == "Parquet" else ArrowPart.of(file) for file in files]


def _parquet(file: SourceFile, n_columns: int) -> Any:
    # Without a buffer size, whole column chunks are read at once, and a row group can be as large as the file.
    buffer_size = int(np.clip(_BUFFERED_BYTES // max(n_columns, 1), 2**14, 2**18))
    return optional("pyarrow.parquet", "tables").ParquetFile(
        file.path, buffer_size=buffer_size, pre_buffer=False, page_checksum_verification=True
    )


def _checked(file: SourceFile, sizes: Sequence[int], schema: Any) -> Any:
    """The schema of a file; raises if names, types or numbers of rows are corrupt."""
    if min(sizes, default=0) < 0:
        raise OSError(f"{file} cannot be read: one of its parts has {min(sizes)} rows. Write or copy it again")
    str(schema)  # raises if a name is not valid text
    return _without_views(schema)


def _plain(batch: Any) -> Any:
    """A validated record batch: corrupt offsets could otherwise point anywhere in memory."""
    batch.validate(full=True)
    schema = _without_views(batch.schema)
    if schema.equals(batch.schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return optional("pyarrow", "tables").RecordBatch.from_arrays(columns, schema=schema)


def _without_views(schema: Any) -> Any:
    """Replace view types (used by polars), whose rows cannot be selected, by ordinary types."""
    return optional("pyarrow", "tables").schema(
        [field.with_type(_without_view(field.type)) for field in schema], schema.metadata
    )


def _without_view(kind: Any) -> Any:
    """The same type with views of text and bytes replaced by ordinary ones, at any depth."""
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
    elif name.startswith(("list", "large_list")):  # including list views
        plain = pyarrow.large_list(kind.value_field.with_type(_without_view(kind.value_type)))
    return plain


def _arrow_file(file: SourceFile) -> Any:
    with file.path.open("rb") as opened:
        start = opened.read(6)
    if start[:4] == b"FEA1":
        raise ValueError(
            f"{file} is a Feather file of version 1, which is not supported; convert it with "
            "pandas.read_feather(path).to_parquet(new_path)"
        )
    if start != b"ARROW1":
        raise ValueError(
            f"{file} is not an Arrow file, or it is empty or corrupt; if it is an Arrow stream, write it with "
            "pyarrow.ipc.new_file instead of new_stream"
        )
    return optional("pyarrow", "tables").OSFile(str(file.path))


def _arrow_reader(opened: Any, fields: list[int]) -> Any:
    ipc = optional("pyarrow.ipc", "tables")
    return ipc.open_file(opened, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False))


@contextmanager
def reading(file: SourceFile, where: str = "") -> Iterator[None]:
    """Turn errors into ones that name the file and the part that could not be read, or that the file has changed."""
    arrow_error = optional("pyarrow", "tables").ArrowException
    try:
        yield
    except PermissionError as error:
        raise PermissionError(f"{file}{where} cannot be read: permission denied") from error
    except MemoryError as error:
        raise MemoryError(f"{file}{where} does not fit into memory, or its sizes are corrupt: {error}") from error
    except (arrow_error, OSError, UnicodeDecodeError) as error:
        file.require_unchanged()
        raise OSError(
            f"{file}{where} cannot be read: {error}. The file is corrupt, incomplete or of another format: write or "
            "copy it again (text in UTF-8), or leave it out"
        ) from error
