"""Data: all or some rows of one or more files, numbered from 0 and read in pieces."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bayesvm.data.blocks import RowNumbers
from bayesvm.data.checks import Locate
from bayesvm.data.tables.arrow_parts import Part
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.working_copy import WorkingCopy

_VALUES_AT_ONCE = 2**21  # read from a file at a time; determines the number of rows, so that wide tables fit, too
MOST_ROWS_AT_ONCE = 2**16
REPORTED_FROM = 10.0  # megabytes


@dataclass(frozen=True)
class FileRows:
    """Rows in files. ``kept`` has the increasing numbers of the selected rows; None means all.

    ``held`` are chunks of rows that were already read and are kept in memory. ``reading`` has the options that the user
    set for reading the files, as plain values, because other options give other rows.
    """

    kind: str
    files: Sequence[SourceFile]
    parts: Sequence[Part]
    copy: WorkingCopy | None = None
    kept: RowNumbers | None = None
    held: Sequence[tuple[int, Any]] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    copy_to: str | PathLike[str] | None = None  # a folder for working copies; None is the system's
    lines: tuple[int, ...] = ()  # of CSV files, the line of the first row

    @cached_property
    def _starts(self) -> RowNumbers:
        """The number of the first row of each file, among all rows."""
        return np.cumsum([0, *(sum(part.pieces) for part in self.parts)])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self._starts[-1]) if self.kept is None else len(self.kept)

    def require_some(self) -> None:
        """Raise an error if the table has no rows."""
        if not self.n_rows:
            others = f" and the {len(self.files) - 1} other files have" if len(self.files) > 1 else " has"
            raise ValueError(f"nothing to read: {self.files[0]}{others} no rows")

    def subset(self, numbers: RowNumbers) -> FileRows:
        """The rows with these increasing numbers, renumbered from 0."""
        return replace(self, kept=numbers if self.kept is None else self.kept[numbers], held=None)

    def chunks(self, names: Sequence[str], wanted: RowNumbers | None = None) -> Iterator[tuple[int, Any]]:
        """Yield some columns, in the pieces of the files, with the number of the first row; skips unwanted pieces."""
        if self.held is not None:
            for first, chunk in self.held:
                yield first, chunk.select(list(names)) if hasattr(chunk, "select") else chunk
            return
        rows_at_once = min(MOST_ROWS_AT_ONCE, max(256, _VALUES_AT_ONCE // len(names)))
        needed = wanted if self.kept is None else self.kept if wanted is None else self.kept[wanted]
        for part, start in zip(self.parts, self._starts, strict=False):
            if self.copy is not None:
                self.copy.require_present()
            pieces: Sequence[int] = range(len(part.pieces))
            if needed is not None:
                edges = np.searchsorted(needed, start + np.cumsum([0, *part.pieces]))
                pieces = np.flatnonzero(np.diff(edges)).tolist()
            if pieces:
                for row, chunk in part.read(pieces, names, rows_at_once):
                    yield from self._chosen(int(start) + row, chunk)

    def _chosen(self, first: int, chunk: Any) -> Iterator[tuple[int, Any]]:
        """The selected rows of a chunk, with the number of the first among the selected rows."""
        if self.kept is None:
            yield first, chunk
            return
        begin, end = np.searchsorted(self.kept, (first, first + chunk.num_rows))
        if begin < end:
            whole = end - begin == chunk.num_rows
            yield int(begin), chunk if whole else chunk.take(self.kept[begin:end] - first)

    def in_memory(self, names: Sequence[str]) -> FileRows:
        """The same rows, read once and kept in memory, with these columns."""
        return replace(self, held=tuple(self.chunks(names)))

    def where(self, row: int) -> str:
        """The file and the row in it: ``"b.parquet, row 17"``, or the line of a CSV file: ``"b.csv, line 19"``."""
        if not 0 <= row < self.n_rows:
            raise IndexError(f"there is no row {row}; the table has rows 0 to {self.n_rows - 1}")
        number = self._given(row)
        part = int(np.searchsorted(self._starts, number, side="right")) - 1
        within = number - self._starts[part]
        place = f"line {within + self.lines[part]}" if self.lines else f"row {within}"
        return f"{self.parts[part].file}, {place}"

    def _given(self, row: int) -> int:
        """The number of a row of the selection among all rows of the files."""
        return int(row if self.kept is None else self.kept[row])

    def locate(self, rows: range | RowNumbers) -> Locate:
        """A function that locates one of these rows in messages."""

        def place(row: int) -> str:
            number = int(rows[row])
            return self.where(number) + (f" (row {self._given(number)} of all)" if len(self.parts) > 1 else "")

        return place

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that identify the files and rows."""
        return {
            "format": self.kind,
            "files": [[file.path.name, file.size, file.modified] for file in self.files],
            "n_rows": self.n_rows,
            "rows": None if self.kept is None else crc32(np.ascontiguousarray(self.kept).tobytes()),
            **({"reading": dict(self.reading)} if self.reading else {}),
        }

    def is_made_of(self, path: str | PathLike[str]) -> bool:
        """Whether it reads that file."""
        return Path(path).resolve() in {file.path.resolve() for file in self.files}

    def close(self) -> None:
        """Remove the working copy, if there is one."""
        if self.copy is not None:
            self.copy.remove()


@contextmanager
def copying(
    kind: str, files: Sequence[SourceFile], copy_to: str | PathLike[str] | None, verbose: int
) -> Iterator[WorkingCopy]:
    """A working copy to fill, removed on failure; ``verbose`` reports large ones on stderr."""
    copy = WorkingCopy(copy_to)
    began = time.perf_counter()
    size = sum(file.size for file in files) / 1e6
    reported = verbose and size >= REPORTED_FROM
    try:
        if reported:
            sys.stderr.write(
                f"copying {len(files)} {kind} file(s) for fast reading, {size:,.1f} MB, to {copy.folder}\n"
            )
        yield copy
        if reported:
            sys.stderr.write(f"copied: {copy.n_bytes / 1e6:,.1f} MB in {time.perf_counter() - began:.1f} s\n")
    except BaseException:
        copy.remove()
        raise
