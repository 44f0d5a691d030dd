"""Data: tables in files as a stream of row batches. They are never in memory as a whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bayesvm.data.tables.columns import Batch, Columns, choose_columns
from bayesvm.data.tables.csv_copy import copy_csv
from bayesvm.data.tables.files import Paths, SourceFile, find_files
from bayesvm.data.tables.formats import ArrowPart, ParquetPart, Part
from bayesvm.data.tables.libsvm_copy import SparseColumns, copy_libsvm
from bayesvm.data.tables.working_copy import WorkingCopy
from bayesvm.data.usable import Locate

_VALUES_AT_ONCE = 2**21  # read from a file; the rows are as many as that allows, so that wide tables fit, too
_MOST_ROWS_AT_ONCE = 2**16


def open_table(
    source: Paths,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
) -> Table:
    """A table in one or more files: Parquet, Arrow (Feather), CSV or LIBSVM, told apart by their names.

    Parameters
    ----------
    source : a file, a folder, a pattern such as ``"part-*.parquet"``, or a list of files
        Files of a folder or pattern come in the order of their names.
    target : name of the column of labels
        None for rows to predict, and for LIBSVM, whose files hold the label.
    columns : names of the features
        Default: all columns but target, weight, and an unnamed index that pandas saved; as the first file has them.
    weight : name of a column of row weights
    n_features : number of features of LIBSVM files
        Default: as many as the largest index says. Rows to predict may lack the last features, so give it there.
    zero_based : whether indices of LIBSVM files count from 0
        Default: from 1, unless there is an index 0. Rows to predict may lack the first feature: then say it.
    copy_to : a folder for the working copy
        CSV and LIBSVM are parsed once, into a temporary copy that is fast to read. It takes about 8 bytes a value, and
        is removed when the table is closed or the program ends. Default: the system's folder of temporary files.
    verbose : 1 says on stderr when a copy is made

    Examples
    --------
    >>> from bayesvm import BayesianSVC, open_table
    >>> table = open_table("flights/*.parquet", target="late")  # doctest: +SKIP
    >>> model = BayesianSVC().fit(table)  # doctest: +SKIP
    >>> model.predict_to(open_table("new.parquet"), "predictions.parquet")  # doctest: +SKIP
    """
    kind, files = find_files(source)
    if kind == "LIBSVM":
        given = {"target": target, "columns": columns, "weight": weight}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"LIBSVM files hold a label and numbered features: leave out {name}={value!r}")
    elif n_features is not None or zero_based is not None:
        raise ValueError(
            f"n_features and zero_based are for LIBSVM files; {files[0]} is {kind}: choose features with columns=[…]"
        )
    parts: Sequence[Part]
    layout: Columns | SparseColumns
    if kind in {"Parquet", "Arrow"}:
        found = [ParquetPart.of(file) if kind == "Parquet" else ArrowPart.of(file) for file in files]
        layout = choose_columns([(part.file, part.schema) for part in found], target, columns, weight)
        return Table(kind, files, found, layout, None)
    copy = WorkingCopy(copy_to)
    try:
        with _told(kind, files, copy, verbose):
            if kind == "CSV":
                parts, layout = copy_csv(files, target, columns, weight, copy)
            else:
                parts, layout = copy_libsvm(files, n_features, zero_based, copy)
        return Table(kind, files, parts, layout, copy)
    except BaseException:
        copy.remove()
        raise


@contextmanager
def _told(kind: str, files: Sequence[SourceFile], copy: WorkingCopy, verbose: int) -> Iterator[None]:
    began = time.perf_counter()
    if verbose:
        size = sum(file.size for file in files) / 1e6
        sys.stderr.write(f"copying {len(files)} {kind} file(s) for fast reading, {size:,.1f} MB, to {copy.folder}\n")
    yield
    if verbose:
        sys.stderr.write(f"copied: {copy.n_bytes / 1e6:,.1f} MB in {time.perf_counter() - began:.1f} s\n")


class Table:
    """Rows in files, read again in every pass. Rows are numbered from 0 through all files; ``open_table`` makes it.

    Attributes
    ----------
    names : names of the features; None for LIBSVM
    n_rows, n_features : the shape
    dtype : float32 if all features fit into it without loss, else float64
    target, weight : names of these columns, or None
    has_labels : whether batches have labels
    sparse : whether ``X`` of a batch is a CSR matrix: for LIBSVM
    """

    def __init__(
        self,
        kind: str,
        files: Sequence[SourceFile],
        parts: Sequence[Part],
        layout: Columns | SparseColumns,
        copy: WorkingCopy | None,
    ) -> None:
        self._kind, self._files, self._parts, self._layout, self._copy = kind, files, parts, layout, copy
        self._starts = np.cumsum([0, *(sum(part.pieces) for part in parts)])  # of the files, among all rows
        self.n_rows = int(self._starts[-1])
        self.n_features = layout.n_features
        self.names, self.dtype = layout.names, layout.dtype
        self.target, self.weight, self.has_labels = layout.target, layout.weight, layout.has_labels
        self.sparse = isinstance(layout, SparseColumns)
        if not self.n_rows:
            others = f" and the {len(files) - 1} other files have" if len(files) > 1 else " has"
            raise ValueError(f"there is nothing to read: {files[0]}{others} no rows")

    def batches(self, n_rows: int, *, labels: bool = True) -> Iterator[Batch]:
        """All rows in order, ``n_rows`` at a time wherever the files are cut; the last batch may have fewer.

        Features that are missing, infinite or above 1e100, missing labels and bad weights are errors that tell the
        place.
        """
        if n_rows < 1:
            raise ValueError(f"batches of {n_rows} rows were asked for; there must be 1 or more")
        held: list[Any] = []
        first = stop = 0
        for _, chunk in self._chunks(self._layout.needed(features=True, labels=labels)):
            begin = 0
            while begin < chunk.num_rows:
                held.append(chunk.slice(begin, first + n_rows - stop))
                begin += held[-1].num_rows
                stop += held[-1].num_rows
                if stop == first + n_rows:
                    yield self._layout.joined(held, self._locate(range(first, stop)), labels=labels)
                    held, first = [], stop
        if held:
            yield self._layout.joined(held, self._locate(range(first, stop)), labels=labels)

    def labels(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.float64] | None]]:
        """The labels and weights of all rows, some rows at a time; nothing else is read where columns lie apart."""
        if not self.has_labels:
            raise ValueError("the table has no labels; name their column: open_table(…, target=…)")
        for first, chunk in self._chunks(self._layout.needed(features=False, labels=True)):
            if chunk.num_rows:
                locate = self._locate(range(first, first + chunk.num_rows))
                yield self._layout.labels([chunk], locate), self._layout.weights([chunk], locate)

    def rows(self, indices: npt.NDArray[np.intp], n_rows_at_once: int = _MOST_ROWS_AT_ONCE) -> Batch:
        """The rows with these numbers, each once, in the order given.

        One pass over the parts of files that hold such rows; up to ``n_rows_at_once`` others are in memory with them.
        """
        rising = np.asarray(indices)
        order = None if (np.diff(rising) > 0).all() else np.argsort(rising)
        rising = rising if order is None else rising[order]
        if len(rising) == 0 or rising[0] < 0 or rising[-1] >= self.n_rows or (np.diff(rising) == 0).any():
            raise IndexError(f"rows are asked for by distinct numbers, at least one, of 0 to {self.n_rows - 1}")
        X: Any = [] if self.sparse else np.empty((len(rising), self.n_features), self.dtype)
        ys: list[Any] = []
        weights: list[Any] = []
        for first, chunk in self._chunks(self._layout.needed(features=True, labels=True), n_rows_at_once, rising):
            begin, end = np.searchsorted(rising, (first, first + chunk.num_rows))
            if begin < end:
                chosen = rising[begin:end]
                found = self._layout.joined([chunk.take(chosen - first)], self._locate(chosen), labels=True)
                if self.sparse:
                    X.append(found.X)
                else:
                    X[slice(begin, end) if order is None else order[begin:end]] = found.X
                ys.append(found.y)
                weights.append(found.weight)
        back: Any = slice(None) if order is None else np.argsort(order)
        y = None if ys[0] is None else np.concatenate(ys)[back]
        weight = None if weights[0] is None else np.concatenate(weights)[back]
        return Batch(sparse.vstack(X, format="csr")[back] if self.sparse else X, y, weight)

    def with_features(self, names: Sequence[str]) -> Table:
        """The same rows with these features, in this order, of those that the table has."""
        have = self.names or ()
        missing = [name for name in names if name not in have]
        if missing:
            raise ValueError(
                f"{self._files[0]} has no column {missing[0]!r}"
                + (f" and lacks {len(missing) - 1} more" if len(missing) > 1 else "")
                + f" of the {len(names)} features that the model was fitted to; it has {', '.join(have[:10])}"
                + ("…" if len(have) > 10 else "")
            )
        return (
            self
            if tuple(names) == have
            else Table(self._kind, self._files, self._parts, self._layout.with_features(tuple(names)), self._copy)
        )

    def where(self, row: int) -> str:
        """The file and the row in it: ``"b.parquet, row 17"``."""
        if not 0 <= row < self.n_rows:
            raise IndexError(f"there is no row {row}; the table has the rows 0 to {self.n_rows - 1}")
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return f"{self._parts[part].file}, row {row - self._starts[part]}"

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that are equal only for the same files and the same choice of columns."""
        return {
            "format": self._kind,
            "files": [[file.path.name, file.size, file.modified] for file in self._files],
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "columns": None if self.names is None else list(self.names),
            "target": self.target,
            "weight": self.weight,
        }

    def is_made_of(self, path: str | PathLike[str]) -> bool:
        """Whether it reads that file."""
        return Path(path).resolve() in {file.path.resolve() for file in self._files}

    def close(self) -> None:
        """Remove the working copy, if there is one."""
        if self._copy is not None:
            self._copy.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        target = f", target {self.target!r}" if self.target else ""
        more = f" and {len(self._files) - 1} more" if len(self._files) > 1 else ""
        return (
            f"<Table of {self.n_rows:,} rows × {self.n_features:,} features ({self.dtype}){target}; "
            f"{self._kind}: {self._files[0].path.name}{more}>"
        )

    def _chunks(
        self,
        names: Sequence[str],
        rows_at_once: int = _MOST_ROWS_AT_ONCE,
        wanted: npt.NDArray[np.intp] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Rows as the files are cut, with the number of the first; only pieces with wanted rows (in rising order)."""
        rows_at_once = min(rows_at_once, max(256, _VALUES_AT_ONCE // len(names)))
        for part, first in zip(self._parts, self._starts, strict=False):
            if self._copy is not None:
                self._copy.require_present()
            pieces: Sequence[int] = range(len(part.pieces))
            if wanted is not None:
                edges = np.searchsorted(wanted, first + np.cumsum([0, *part.pieces]))
                pieces = np.flatnonzero(np.diff(edges)).tolist()
            if pieces:
                for row, chunk in part.read(pieces, names, rows_at_once):
                    yield int(first) + row, chunk

    def _locate(self, rows: range | npt.NDArray[np.intp]) -> Locate:
        def place(row: int) -> str:
            number = int(rows[row])
            return self.where(number) + (f" (row {number} of all)" if len(self._parts) > 1 else "")

        return place
