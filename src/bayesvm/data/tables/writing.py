"""Data: columns written to a file, part by part, which appears only when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bayesvm.atomic import naming, replacing
from bayesvm.extras import optional

Part = Mapping[str, npt.NDArray[Any]]


@contextmanager
def writing_table(path: str | PathLike[str]) -> Iterator[Callable[[Part], None]]:
    """A function that appends rows, columns by name, to a Parquet, Arrow or CSV file.

    Until all is written the file has another name, so that an old one stays whatever happens.
    """
    make = _writer(Path(path).resolve())
    pyarrow = optional("pyarrow", "tables")
    writer = None
    with replacing(path) as temporary:

        def append(part: Part) -> None:
            nonlocal writer
            batch = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in part.items()})
            with naming(path):
                writer = make(str(temporary), batch.schema) if writer is None else writer
                writer.write_batch(batch)

        try:
            yield append
            if writer is None:
                raise ValueError(f"there are no rows to write to {path}")
            with naming(path):
                writer.close()
                writer = None
        finally:
            _closed(writer)


def _writer(target: Path) -> Callable[[str, Any], Any]:
    writers: dict[str, Callable[[str, Any], Any]] = {
        ".parquet": lambda path, schema: optional("pyarrow.parquet", "tables").ParquetWriter(path, schema),
        ".arrow": lambda path, schema: optional("pyarrow.ipc", "tables").new_file(path, schema),
        ".feather": lambda path, schema: optional("pyarrow.ipc", "tables").new_file(path, schema),
        ".csv": lambda path, schema: optional("pyarrow.csv", "tables").CSVWriter(path, schema),
    }
    writers |= {".pq": writers[".parquet"], ".ipc": writers[".arrow"]}
    suffix = target.suffix.lower()
    if suffix not in writers:
        raise ValueError(f"{target.name}: the name must end in one of {', '.join(writers)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first")
    return writers[suffix]


def _closed(writer: Any) -> None:
    """Give the file back, even if a full disk refuses the last bytes of a file that will be removed anyway."""
    if writer is not None:
        with suppress(OSError):
            writer.close()
