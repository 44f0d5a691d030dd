"""Data: write columns to a file in parts; the file appears only when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy.typing as npt

from bayesvm.atomic import naming, replacing
from bayesvm.data.tables.files import FORMATS
from bayesvm.extras import optional
from bayesvm.warn import warn_user

FORMULA = r"^[=+\-@\t\r]."  # the beginning of a cell that spreadsheet programs execute
NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"

WRITTEN = {suffix: kind for suffix, kind in FORMATS.items() if kind != "LIBSVM" and suffix != ".tsv"}

Part = Mapping[str, npt.NDArray[Any]]


@contextmanager
def writing_table(path: str | PathLike[str]) -> Iterator[Callable[[Part], None]]:
    """A function that appends rows, given as columns by name, to a Parquet, Arrow or CSV file.

    Until everything is written the file has a temporary name, so an existing file survives any failure.
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
                raise ValueError(f"no rows to write to {path}")
            with naming(path):
                writer.close()
                writer = None
        finally:
            if writer is not None:
                with suppress(OSError):  # a full disk rejects the last bytes of a file that will be removed anyway
                    writer.close()


class CsvWriter:
    """CSV with unchanged text, so labels stay the same; warns once if a spreadsheet program would execute some."""

    def __init__(self, sink: str | BinaryIO, schema: Any) -> None:
        self._writer = optional("pyarrow.csv", "tables").CSVWriter(sink, schema)
        pyarrow = optional("pyarrow", "tables")
        names = pyarrow.RecordBatch.from_pydict({name: [name] for name in schema.names})
        self._warned = _warned_of_formula(names)

    def write_batch(self, batch: Any) -> None:
        """Append rows."""
        self._warned = self._warned or _warned_of_formula(batch)
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the remaining rows."""
        self._writer.close()


def _warned_of_formula(batch: Any) -> bool:
    """Warn once if a text that is not a number begins like a formula; returns whether it warned."""
    types, compute = optional("pyarrow", "tables").types, optional("pyarrow.compute", "tables")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.dictionary if types.is_dictionary(column.type) else column
        if not (types.is_string(values.type) or types.is_large_string(values.type)):
            continue
        begins = compute.match_substring_regex(values, FORMULA)
        found = values.filter(compute.and_not(begins, compute.match_substring_regex(values, NUMBER)))
        if len(found):
            warn_user(
                f"column {name!r} contains {found[0].as_py()!r}, which spreadsheet programs execute as a formula; "
                "import the column as text, or write .parquet",
            )
            return True
    return False


def _writer(target: Path) -> Callable[[str, Any], Any]:
    kind = WRITTEN.get(target.suffix.lower())
    if kind is None:
        raise ValueError(f"{target.name}: the file name must end in one of {', '.join(WRITTEN)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    if kind == "CSV":
        return CsvWriter
    parquet = kind == "Parquet"
    writer: Callable[[str, Any], Any] = (
        optional("pyarrow.parquet", "tables").ParquetWriter if parquet else optional("pyarrow.ipc", "tables").new_file
    )
    return writer
