"""Data: tables in files as a stream of row batches. They are never in memory as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesvm.data.blocks import RowNumbers, taken
from bayesvm.data.checks import left_out_without_target
from bayesvm.data.memory import stacked
from bayesvm.data.tables.arrow_parts import arrow_parts
from bayesvm.data.tables.column_reading import ArrowColumns, Batch, TableColumns, cast_to
from bayesvm.data.tables.csv_copy import copy_csv
from bayesvm.data.tables.csv_dialect import CsvOptions, options_given, require_csv
from bayesvm.data.tables.csv_files import look_at
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.data.tables.libsvm_copy import LibsvmPart, copy_libsvm
from bayesvm.data.tables.rows import FileRows, copying
from bayesvm.data.tables.schemas import Schemas, choose_columns, common_schema, some_names
from bayesvm.warn import warn_user


def open_table(
    source: Paths,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = (),
    header: bool = True,
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
    sep : separator of CSV files: a character such as ``";"``, or ``" "`` for runs of spaces
    decimal : decimal mark of CSV files, ``"."`` or ``","``
    encoding : encoding of CSV files, such as ``"cp1252"``
        Default of these three: detected in each file, and reported if it is not the usual.
    missing : texts of CSV files that are missing values, beside empty cells, ``?``, ``NA``, ``-`` and the like
    header : whether the first row of CSV files has the names of the columns; if not, they are c1, c2, …
    copy_to : a folder for the working copy
        CSV and LIBSVM are parsed once, into a temporary copy that is fast to read. It takes about 8 bytes a value, and
        is removed when the table is closed or the program ends. Default: the system's folder of temporary files.
    verbose : 1 says on stderr when a copy of 10 MB or more is made

    Examples
    --------
    >>> from bayesvm import BayesianSVC, open_table
    >>> table = open_table("flights/*.parquet", target="late")  # doctest: +SKIP
    >>> model = BayesianSVC().fit(table)  # doctest: +SKIP
    >>> model.predict_to(open_table("new.parquet"), "predictions.parquet")  # doctest: +SKIP

    A file whose missing values are written as -999 and whose columns have no names:

    >>> table = open_table("sensors.csv", target="c5", missing=["-999"], header=False)  # doctest: +SKIP
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
    csv: CsvOptions = {"sep": sep, "decimal": decimal, "encoding": encoding, "missing": missing, "header": header}
    if kind != "CSV":
        require_csv(csv, f"{files[0]} is {kind}")
    if kind in {"Parquet", "Arrow"}:
        found = arrow_parts(kind, files)
        chosen = choose_columns([(part.file, part.schema) for part in found], target, columns, weight)
        return Table(FileRows(kind, files, found), chosen)
    with copying(kind, files, copy_to, verbose) as copy:
        if kind == "LIBSVM":
            parts, made = copy_libsvm(files, n_features, zero_based, copy)
            return Table(FileRows(kind, files, parts, copy), made)
        looked = [look_at(file, csv) for file in files]
        heads = [(each.file, each.schema) for each in looked]
        names = choose_columns(heads, target, columns, weight).needed(features=True, targets=True)
        copied, schemas = copy_csv(looked, copy, names.__contains__, [target])
        rows = FileRows(kind, files, copied, copy, reading=options_given(csv))
        return Table(rows, choose_columns(schemas, target, columns, weight))


class Table:
    """Rows in files, read again in every pass. Rows are numbered from 0 through all files; ``open_table`` makes it.

    Attributes
    ----------
    names : names of the features; None for LIBSVM
    n_rows, n_features : the shape
    dtype : float32 if all features fit into it without loss, else float64
    target, weight : names of these columns, or None
    has_target : whether rows have targets
    sparse : whether ``X`` of a batch is a CSR matrix: for LIBSVM
    zero_based : whether indices of LIBSVM files count from 0; None for other formats
    prepared_by : what makes the features of the columns, if they are more than read
    """

    def __init__(self, rows: FileRows, columns: TableColumns) -> None:
        self._rows, self._columns = rows, columns
        self.n_rows, self.n_features = rows.n_rows, columns.n_features
        self.names, self.dtype, self.sparse = columns.names, columns.dtype, columns.sparse
        self.target, self.weight, self.has_target = columns.target, columns.weight, columns.has_target
        self.prepared_by = columns.prepared_by
        first = rows.parts[0]
        self.zero_based = first.shift == 0 if isinstance(first, LibsvmPart) else None
        rows.require_some()

    def batches(self, n_rows: int, *, targets: bool = True) -> Iterator[Batch]:
        """All rows in order, ``n_rows`` at a time wherever the files are cut; the last batch may have fewer.

        Features that are missing, infinite or above 1e100, missing targets and bad weights are errors that tell the
        place.
        """
        if n_rows < 1:
            raise ValueError(f"batches of {n_rows} rows were asked for; there must be 1 or more")
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
        """The targets and weights of all rows, some rows at a time; nothing else is read where columns lie apart."""
        if not self.has_target:
            raise ValueError("the table has no labels; name their column: open_table(…, target=…)")
        for first, chunk in self._rows.chunks(self._columns.needed(features=False, targets=True)):
            if chunk.num_rows:
                locate = self._rows.locate(range(first, first + chunk.num_rows))
                yield self._columns.targets([chunk], locate), self._columns.weights([chunk], locate)

    def rows(self, indices: RowNumbers) -> Batch:
        """The rows with these numbers, each once, in the order given.

        One pass over the parts of files that hold such rows; up to 65,536 others are in memory with them.
        """
        rising = np.asarray(indices)
        order = None if (np.diff(rising) > 0).all() else np.argsort(rising)
        rising = rising if order is None else rising[order]
        if len(rising) == 0 or rising[0] < 0 or rising[-1] >= self.n_rows or (np.diff(rising) == 0).any():
            raise IndexError(f"rows are asked for by distinct numbers, at least one, of 0 to {self.n_rows - 1}")

        def found() -> Iterator[Batch]:
            for first, chunk in self._rows.chunks(self._columns.needed(features=True, targets=True), rising):
                begin, end = np.searchsorted(rising, (first, first + chunk.num_rows))
                if begin < end:
                    chosen = rising[begin:end]
                    yield self._columns.batch([chunk.take(chosen - first)], self._rows.locate(chosen), targets=True)

        batch = stacked(found(), len(rising))
        return batch if order is None else taken(batch, np.argsort(order))

    def columns(self, names: Sequence[str]) -> Iterator[Any]:
        """Columns as the files have them, in record batches of the same types; features, or any others."""
        for part in self._rows.parts:
            schema = getattr(part, "schema", None)
            if schema is None:
                raise ValueError(f"{part.file} has no named columns: it is a LIBSVM file")
            if unknown := [name for name in names if name not in schema.names]:
                has = "it has" if self._rows.copy is None else "what was read of it is"
                raise ValueError(f"{part.file} has no column {some_names(unknown)}; {has} {some_names(schema.names)}")
        parts: Any = self._rows.parts
        schema = common_schema([part.schema for part in parts], names)
        return (cast_to(schema, chunk) for _, chunk in self._rows.chunks(names))

    def with_features(self, names: Sequence[str]) -> Table:
        """The same rows with these features, in this order, of those that the table has."""
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
        """The same rows, of which other columns are read, or in another way."""
        return Table(self._rows, columns)

    def subset(self, numbers: RowNumbers) -> Self:
        """The rows with these rising numbers, as a table of their own."""
        return self._of(self._rows.subset(numbers))

    def in_memory(self) -> Self:
        """The same rows, read once and kept in memory."""
        return self._of(self._rows.in_memory(self._columns.needed(features=True, targets=True)))

    def labelled(self) -> Self:
        """The rows that have a target. The others are left out, which is reported; the targets are read once."""
        numbers = self.rows_with_target()
        return self if numbers is None else self.subset(numbers)

    def rows_with_target(self) -> RowNumbers | None:
        """Numbers of the rows that have a target; if others have none, this is reported; None: all have one."""
        if not isinstance(self._columns, ArrowColumns) or not self.has_target:
            return None
        missing = [np.zeros(0, bool)]
        for _, chunk in self._rows.chunks(self._columns.needed(features=False, targets=True)):
            missing.append(self._columns.without_target(chunk))
        lost = np.concatenate(missing)
        if not lost.any():
            return None
        if lost.all():
            raise ValueError(f"{self._rows.files[0]}: no row has a value in the column {self.target!r}")
        warn_user(left_out_without_target(lost, f"column {self.target!r}", self.where(int(np.argmax(lost)))))
        return np.flatnonzero(~lost)

    def _of(self, rows: FileRows) -> Self:
        """The same columns of other rows."""
        return type(self)(rows, self._columns)

    @property
    def source(self) -> tuple[FileRows, Schemas]:
        """Its rows, and the columns that each file has, to be read in another way."""
        parts: Any = self._rows.parts
        return self._rows, [(part.file, part.schema) for part in parts]

    def where(self, row: int) -> str:
        """The file and the row in it: ``"b.parquet, row 17"``."""
        return self._rows.where(row)

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that are equal only for the same rows and the same choice of columns."""
        return self._rows.fingerprint() | {
            "n_features": self.n_features,
            "columns": None if self.names is None else list(self.names),
            "target": self.target,
            "weight": self.weight,
        }

    def is_made_of(self, path: str | PathLike[str]) -> bool:
        """Whether it reads that file."""
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
