"""Data: tables in files, streamed in batches of rows and never loaded as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import RowNumbers, taken
from bayesvm.data.checks import left_out_without_target
from bayesvm.data.memory import stacked
from bayesvm.data.tables.column_reading import ArrowColumns, Batch, TableColumns, cast_to
from bayesvm.data.tables.libsvm_copy import LibsvmPart
from bayesvm.data.tables.rows import FileRows
from bayesvm.data.tables.schemas import Schemas, common_schema, some_names
from bayesvm.warn import warn_user


class Table:
    """Rows in files, streamed again in every pass; created by ``open_table``. Rows are numbered from 0 over all files.

    Parameters
    ----------
    rows : FileRows
        The files and their parts.
    columns : TableColumns
        How features, target and weights are read from a part.

    Attributes
    ----------
    names : tuple of str or None
        Names of the features; None for LIBSVM.
    n_rows : int
        Number of rows.
    n_features : int
        Number of features.
    dtype : dtype
        float32 if it represents all features exactly, else float64.
    target : str or None
        Name of the target column.
    weight : str or None
        Name of the column of row weights.
    has_target : bool
        Whether the rows have targets.
    sparse : bool
        Whether ``X`` of a batch is a CSR matrix, as for LIBSVM.
    zero_based : bool or None
        Whether the indices of LIBSVM files start at 0; None for other formats.
    prepared_by : Recipe or None
        The recipe that computes the features from the columns, if there is one.
    copy_to : path or None
        The folder for working copies; None is the system's folder for temporary files.

    See Also
    --------
    bayesvm.open_table : Open a table.

    Examples
    --------
    >>> from bayesvm import open_table
    >>> with open_table("flights/*.parquet", target="late") as table:  # doctest: +SKIP
    ...     print(table.n_rows, table.names)
    ...     for batch in table.batches(10_000):
    ...         print(batch.X.shape, batch.y.mean())
    """

    def __init__(self, rows: FileRows, columns: TableColumns) -> None:
        self._rows, self._columns = rows, columns
        self.n_rows, self.n_features = rows.n_rows, columns.n_features
        self.names, self.dtype, self.sparse = columns.names, columns.dtype, columns.sparse
        self.target, self.weight, self.has_target = columns.target, columns.weight, columns.has_target
        self.prepared_by = columns.prepared_by
        self.copy_to = rows.copy_to
        first = rows.parts[0]
        self.zero_based = first.shift == 0 if isinstance(first, LibsvmPart) else None
        rows.require_some()

    def batches(self, n_rows: int, *, targets: bool = True) -> Iterator[Batch]:
        """Yield all rows in order, ``n_rows`` at a time across file boundaries; the last batch may have fewer.

        Parameters
        ----------
        n_rows : int
            Number of rows of a batch.
        targets : bool, default=True
            Whether to read targets and weights.

        Yields
        ------
        Batch
            ``X``, ``y`` and ``weight`` of some rows.

        Raises
        ------
        ValueError
            If a feature is infinite or above 1e100, a target is missing, or a weight is invalid; the message names the
            file, the row and the column.
        """
        if n_rows < 1:
            raise ValueError(f"n_rows must be 1 or more; got {n_rows}")
        held: list[Any] = []
        first = stop = 0
        for _, chunk in self._rows.chunks(self._columns.needed(features=True, targets=targets)):
            begin = 0
            while begin < chunk.num_rows:
                held.append(chunk.slice(begin, first + n_rows - stop))
                begin += held[-1].num_rows
                stop += held[-1].num_rows
                if stop == first + n_rows:
                    yield self._columns.batch(held, self._rows.locate(range(first, stop)), targets=targets)
                    held, first = [], stop
        if held:
            yield self._columns.batch(held, self._rows.locate(range(first, stop)), targets=targets)

    def targets(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.float64] | None]]:
        """Yield the targets and weights of all rows, some rows at a time; columnar formats read nothing else.

        Yields
        ------
        y : array
            Targets.
        weight : array of float or None
            Weights, if there are any.
        """
        if not self.has_target:
            raise ValueError("the table has no labels; name their column: open_table(…, target=…)")
        for first, chunk in self._rows.chunks(self._columns.needed(features=False, targets=True)):
            if chunk.num_rows:
                locate = self._rows.locate(range(first, first + chunk.num_rows))
                yield self._columns.targets([chunk], locate), self._columns.weights([chunk], locate)

    def rows(self, indices: RowNumbers) -> Batch:
        """Return the rows with these distinct numbers, in the given order.

        Takes one pass over the parts of files with such rows; up to 65,536 other rows are in memory at the same time.

        Parameters
        ----------
        indices : array of int
            Numbers of rows.

        Returns
        -------
        Batch
            ``X``, ``y`` and ``weight`` of these rows.
        """
        rising = np.asarray(indices)
        order = None if (np.diff(rising) > 0).all() else np.argsort(rising)
        rising = rising if order is None else rising[order]
        if len(rising) == 0 or rising[0] < 0 or rising[-1] >= self.n_rows or (np.diff(rising) == 0).any():
            raise IndexError(f"row numbers must be distinct, at least one, and between 0 and {self.n_rows - 1}")

        def found() -> Iterator[Batch]:
            for first, chunk in self._rows.chunks(self._columns.needed(features=True, targets=True), rising):
                begin, end = np.searchsorted(rising, (first, first + chunk.num_rows))
                if begin < end:
                    chosen = rising[begin:end]
                    yield self._columns.batch([chunk.take(chosen - first)], self._rows.locate(chosen), targets=True)

        batch = stacked(found(), len(rising))
        return batch if order is None else taken(batch, np.argsort(order))

    def columns(self, names: Sequence[str]) -> Iterator[Any]:
        """Return raw columns, features or others, as record batches with the same types.

        Parameters
        ----------
        names : sequence of str
            Names of the columns.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            The columns of some rows at a time.
        """
        for part in self._rows.parts:
            schema = getattr(part, "schema", None)
            if schema is None:
                raise ValueError(f"{part.file} is a LIBSVM file, which has no named columns")
            if unknown := [name for name in names if name not in schema.names]:
                has = "it has" if self._rows.copy is None else "what was read of it is"
                raise ValueError(f"{part.file} has no column {some_names(unknown)}; {has} {some_names(schema.names)}")
        parts: Any = self._rows.parts
        schema = common_schema([part.schema for part in parts], names)
        return (cast_to(schema, chunk) for _, chunk in self._rows.chunks(names))

    def with_features(self, names: Sequence[str]) -> Table:
        """Return the same rows with a selection of the table's features.

        Parameters
        ----------
        names : sequence of str
            Names of the features, in their new order.

        Returns
        -------
        Table
            The table with these features.
        """
        have = self.names or ()
        missing = [name for name in names if name not in have]
        if missing:
            raise ValueError(
                f"{self._rows.files[0]} has no column {missing[0]!r}"
                + (f" and lacks {len(missing) - 1} more" if len(missing) > 1 else "")
                + f" of the {len(names)} features that the model was fitted to; it has {', '.join(have[:10])}"
                + ("…" if len(have) > 10 else "")
            )
        return self if tuple(names) == have else type(self)(self._rows, self._columns.with_features(tuple(names)))

    def with_columns(self, columns: TableColumns) -> Table:
        """Return the same rows with other columns, or with columns that are read differently.

        Parameters
        ----------
        columns : TableColumns
            How to read the columns.

        Returns
        -------
        Table
            The table with these columns.
        """
        return Table(self._rows, columns)

    @property
    def spelled(self) -> Callable[[str], str] | None:
        """How targets of text are spelled; None means as in the files."""
        return getattr(self._columns, "spelled", None)

    def with_spelling(self, spelled: Callable[[str], str] | None) -> Self:
        """Return the same rows with another spelling of targets of text.

        Parameters
        ----------
        spelled : callable or None
            Maps a target to its spelling; None keeps all as they are.

        Returns
        -------
        Table
            The table with these targets.
        """
        if spelled is None or not isinstance(self._columns, ArrowColumns):
            return self
        return type(self)(self._rows, replace(self._columns, spelled=spelled))

    def subset(self, numbers: RowNumbers) -> Self:
        """Return some rows as a table.

        Parameters
        ----------
        numbers : array of int
            Increasing numbers of rows.

        Returns
        -------
        Table
            The table of these rows, which has no copy of them.
        """
        return self._of(self._rows.subset(numbers))

    def in_memory(self) -> Self:
        """Return the same rows, read once and kept in memory.

        Returns
        -------
        Table
            The table in memory.
        """
        return self._of(self._rows.in_memory(self._columns.needed(features=True, targets=True)))

    def labelled(self) -> Self:
        """Return the rows that have a target; a warning counts the others. The targets are read once.

        Returns
        -------
        Table
            The table itself if all rows have a target.
        """
        numbers = self.rows_with_target()
        return self if numbers is None else self.subset(numbers)

    def rows_with_target(self) -> RowNumbers | None:
        """Return the numbers of the rows that have a target; a warning counts the others.

        Returns
        -------
        array of int or None
            None if all rows have a target.
        """
        if not isinstance(self._columns, ArrowColumns) or not self.has_target:
            return None
        missing = [np.zeros(0, bool)]
        for _, chunk in self._rows.chunks(self._columns.needed(features=False, targets=True)):
            missing.append(self._columns.without_target(chunk))
        lost = np.concatenate(missing)
        if not lost.any():
            return None
        if lost.all():
            raise ValueError(f"{self._rows.files[0]}: no row has a value in column {self.target!r}")
        warn_user(left_out_without_target(lost, f"column {self.target!r}", self.where(int(np.argmax(lost)))))
        return np.flatnonzero(~lost)

    def _of(self, rows: FileRows) -> Self:
        """A table with the same columns and other rows."""
        return type(self)(rows, self._columns)

    @property
    def source(self) -> tuple[FileRows, Schemas]:
        """The rows, and the schema of each file, to read them in another way."""
        parts: Any = self._rows.parts
        return self._rows, [(part.file, part.schema) for part in parts]

    def where(self, row: int) -> str:
        """Return the file of a row and its number there, for messages.

        Parameters
        ----------
        row : int
            Number of the row in the table.

        Returns
        -------
        str
            For example ``"b.parquet, row 17"``.
        """
        return self._rows.where(row)

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that identify the rows and the selected columns.

        Returns
        -------
        dict
            Names, sizes and times of the files, and the columns.
        """
        return self._rows.fingerprint() | {
            "n_features": self.n_features,
            "columns": None if self.names is None else list(self.names),
            "target": self.target,
            "weight": self.weight,
        }

    def is_made_of(self, path: str | PathLike[str]) -> bool:
        """Return whether the table reads a file.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        bool
            Whether it is a file of the table.
        """
        return self._rows.is_made_of(path)

    def close(self) -> None:
        """Remove the working copy, if there is one."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        target = f", target {self.target!r}" if self.target else ""
        more = f" and {len(self._rows.files) - 1} more" if len(self._rows.files) > 1 else ""
        return (
            f"<Table of {self.n_rows:,} rows × {self.n_features:,} features ({self.dtype}){target}; "
            f"{self._rows.kind}: {self._rows.files[0].path.name}{more}>"
        )
