"""Data: convert LIBSVM files to saved CSR matrices once. The only format that uses scikit-learn.

A line is ``label index:value index:value …``. Indices start at 1, unless there is an index 0 or the user says so.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bayesvm.data.checks import Locate, require_in_range, require_targets
from bayesvm.data.tables.column_reading import TableColumns
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.working_copy import WorkingCopy

_BLOCK_BYTES = 2**23  # of text, parsed at a time and saved as one matrix


class SparseRows(NamedTuple):
    """Rows in memory, with the interface of a record batch; X or y is None if it was not requested."""

    X: Any
    y: npt.NDArray[Any] | None
    num_rows: int

    def slice(self, start: int, length: int | None = None) -> SparseRows:
        """The rows from ``start`` on."""
        stop = self.num_rows if length is None else min(start + length, self.num_rows)
        return self.take(slice(start, stop), stop - start)

    def take(self, rows: Any, n_rows: int | None = None) -> SparseRows:
        """The rows with these numbers."""
        X, y = (None if part is None else part[rows] for part in (self.X, self.y))
        return SparseRows(X, y, len(rows) if n_rows is None else n_rows)


class LibsvmColumns(TableColumns):
    """The two columns of a LIBSVM file: all features together, which have no names, and the target."""

    sparse: ClassVar[bool] = True
    has_target: ClassVar[bool] = True

    def needed(self, *, features: bool, targets: bool) -> list[str]:
        return ["X"] * features + ["y"] * targets

    def features(self, chunks: Sequence[SparseRows], locate: Locate) -> Any:
        X = chunks[0].X if len(chunks) == 1 else sparse.vstack([part.X for part in chunks], format="csr")
        require_in_range(X, None, locate)
        return X

    def targets(self, chunks: Sequence[SparseRows], locate: Locate) -> npt.NDArray[Any]:
        y: npt.NDArray[Any] = np.concatenate([part.y for part in chunks])
        require_targets(np.isnan(y), None, locate)
        return y

    def weights(self, chunks: Sequence[SparseRows], locate: Locate) -> None:
        return None

    def with_features(self, names: tuple[str, ...]) -> LibsvmColumns:
        return self


@dataclass(frozen=True)
class LibsvmPart:
    """The working copy of a LIBSVM file: ``stem-0.npz`` with the first rows, ``stem-0.npy`` with their labels, ….

    ``shift`` is subtracted from the saved indices, because the first index is known only after all lines were read.
    """

    file: SourceFile
    stem: Path
    pieces: tuple[int, ...]
    n_features: int
    shift: int

    def read(self, pieces: Sequence[int], names: Sequence[str], rows_at_once: int) -> Iterator[tuple[int, SparseRows]]:
        starts = [0, *accumulate(self.pieces)]
        for piece in pieces:
            X = self._matrix(piece) if "X" in names else None
            y = np.load(f"{self.stem}-{piece}.npy") if "y" in names else None
            yield starts[piece], SparseRows(X, y, self.pieces[piece])

    def _matrix(self, piece: int) -> Any:
        saved: Any = sparse.load_npz(f"{self.stem}-{piece}.npz")
        shape = (saved.shape[0], self.n_features)
        return sparse.csr_matrix(
            (saved.data, saved.indices - saved.indices.dtype.type(self.shift), saved.indptr), shape
        )


def copy_libsvm(
    files: Sequence[SourceFile], n_features: int | None, zero_based: bool | None, copy: WorkingCopy
) -> tuple[list[LibsvmPart], LibsvmColumns]:
    """Save matrices for each LIBSVM file, and determine the width of the table."""
    stems, sizes, lowest, largest = [], [], [], []
    for number, file in enumerate(files):
        stem = copy.folder / str(number)
        with copy.writing(f"{number} of {len(files)} files were converted"):
            saved = [_save(f"{stem}-{piece}", *rows) for piece, rows in enumerate(_matrices(file))]
        file.require_unchanged()
        stems.append(stem)
        sizes.append(tuple(rows for rows, _, _ in saved))
        lowest.append(min((low for _, low, _ in saved), default=1))
        largest.append(max((high for _, _, high in saved), default=-1))
    shift = 0 if (min(lowest) == 0 if zero_based is None else zero_based) else 1
    if shift and min(lowest) == 0:
        file = files[int(np.argmin(lowest))]
        raise ValueError(f"{file} has the index 0, but zero_based=False (or the model) says that indices start at 1")
    width = max(largest) + 1 - shift if n_features is None else n_features
    for file, high in zip(files, largest, strict=True):
        if high + 1 - shift > width:
            raise ValueError(
                f"{file} has the index {high} (indices start at {shift}), but n_features={n_features}; "
                "use a larger n_features, or the file that matches it"
            )
    if width < 1:
        raise ValueError(f"no row of {files[0]} has a feature; set n_features if that is intended")
    parts = zip(files, stems, sizes, strict=True)
    columns = LibsvmColumns(None, width, np.dtype(np.float64))
    return [LibsvmPart(file, stem, rows, width, shift) for file, stem, rows in parts], columns


def _save(stem: str, X: Any, y: npt.NDArray[Any]) -> tuple[int, int, int]:
    """Save rows; returns their number, the smallest and the largest index."""
    low, high = (int(X.indices.min()), int(X.indices.max())) if X.nnz else (1, -1)
    if high < np.iinfo(np.int32).max and X.nnz < np.iinfo(np.int32).max:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    sparse.save_npz(f"{stem}.npz", X, compressed=False)
    np.save(f"{stem}.npy", y)
    return X.shape[0], low, high


def _matrices(file: SourceFile) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
    """Yield the rows and labels of some lines at a time."""
    openers = {".gz": gzip.open, ".bz2": bz2.open}
    opener: Any = openers.get(file.path.suffix.lower(), open)
    line = 1
    try:
        with opener(file.path, "rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                text = block + opened.readline()
                X, y = _parsed(file, text, line)
                if len(y):  # zero if all lines are comments
                    yield X, y
                line += text.count(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise OSError(
            f"{file} cannot be read: {error}. The file is corrupt or incomplete: write or copy it again, "
            "or leave it out"
        ) from error


def _parsed(file: SourceFile, text: bytes, first_line: int) -> Any:
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415  (most programs never need it)

    def parse(some: Sequence[bytes]) -> Any:
        return load_svmlight_file(BytesIO(b"".join(some)), zero_based=True)

    try:
        return parse([text])
    except (ValueError, OverflowError) as error:
        lines = text.splitlines(keepends=True)
        while len(lines) > 1:  # bisect until one bad line is left
            half = lines[: len(lines) // 2]
            try:
                parse(half)
            except (ValueError, OverflowError):
                lines = half
            else:
                lines, first_line = lines[len(half) :], first_line + len(half)
        raise ValueError(
            f"{file}, line {first_line}, does not have the LIBSVM format, label index:value …: {error}. "
            f"It begins with {lines[0][:60]!r}"
        ) from error
