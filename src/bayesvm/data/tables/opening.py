"""Data: open tables in files, of every format."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike

from bayesvm.data.tables.arrow_parts import arrow_parts
from bayesvm.data.tables.csv_copy import copy_csv
from bayesvm.data.tables.csv_dialect import CsvOptions, options_given, require_csv
from bayesvm.data.tables.csv_files import look_at
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.data.tables.libsvm_copy import copy_libsvm
from bayesvm.data.tables.rows import FileRows, copying
from bayesvm.data.tables.schemas import choose_columns
from bayesvm.data.tables.table import Table


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
    """Open a table in one or more files: Parquet, Arrow (Feather), CSV or LIBSVM, by the extension of the name.

    Parameters
    ----------
    source : a file, a folder, a pattern such as ``"part-*.parquet"``, or a list of files
        The files of a folder or pattern are read in the order of their names.
    target : name of the column of labels
        None for rows to predict, and for LIBSVM, whose files hold the label.
    columns : names of the features
        Default: all columns of the first file except target, weight, and an unnamed index saved by pandas.
    weight : name of a column of row weights
    n_features : number of features of LIBSVM files
        Default: determined by the largest index. Set it for rows to predict, which may lack the last features.
    zero_based : whether indices of LIBSVM files start at 0
        Default: they start at 1, unless there is an index 0. Set it for rows to predict, which may lack the first
        feature.
    sep : separator of CSV files: a character such as ``";"``, or ``" "`` for runs of spaces
    decimal : decimal mark of CSV files, ``"."`` or ``","``
    encoding : encoding of CSV files, such as ``"cp1252"``
        Default of these three: detected in each file, and reported if unusual.
    missing : texts of CSV files that mean missing values, in addition to empty cells, ``?``, ``NA``, ``-`` and the like
    header : whether the first row of CSV files has the column names; if not, they are c1, c2, …
    copy_to : a folder for the working copy
        CSV and LIBSVM files are parsed once, into a temporary copy that is fast to read. It takes about 8 bytes per
        value and is removed when the table is closed or the program ends. Default: the system's temporary folder.
    verbose : 1 reports copies of 10 MB or more on stderr

    Examples
    --------
    >>> from bayesvm import BayesianSVC, open_table
    >>> table = open_table("flights/*.parquet", target="late")  # doctest: +SKIP
    >>> model = BayesianSVC().fit(table)  # doctest: +SKIP
    >>> model.predict_to(open_table("new.parquet"), "predictions.parquet")  # doctest: +SKIP

    A file with missing values written as -999 and without column names:

    >>> table = open_table("sensors.csv", target="c5", missing=["-999"], header=False)  # doctest: +SKIP
    """
    kind, files = find_files(source)
    if kind == "LIBSVM":
        given = {"target": target, "columns": columns, "weight": weight}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"LIBSVM files have a label and numbered features: leave out {name}={value!r}")
    elif n_features is not None or zero_based is not None:
        raise ValueError(
            f"n_features and zero_based apply to LIBSVM files; {files[0]} is {kind}: select features with columns=[…]"
        )
    csv: CsvOptions = {"sep": sep, "decimal": decimal, "encoding": encoding, "missing": missing, "header": header}
    if kind != "CSV":
        require_csv(csv, f"{files[0]} is {kind}")
    if kind in {"Parquet", "Arrow"}:
        found = arrow_parts(kind, files)
        chosen = choose_columns([(part.file, part.schema) for part in found], target, columns, weight)
        return Table(FileRows(kind, files, found, copy_to=copy_to), chosen)
    with copying(kind, files, copy_to, verbose) as copy:
        if kind == "LIBSVM":
            parts, made = copy_libsvm(files, n_features, zero_based, copy)
            return Table(FileRows(kind, files, parts, copy, copy_to=copy_to), made)
        looked = [look_at(file, csv) for file in files]
        heads = [(each.file, each.schema) for each in looked]
        names = choose_columns(heads, target, columns, weight).needed(features=True, targets=True)
        copied, schemas = copy_csv(looked, copy, names.__contains__, [target])
        lines = tuple(csv_file.first_line for csv_file in looked)
        rows = FileRows(kind, files, copied, copy, reading=options_given(csv), copy_to=copy_to, lines=lines)
        return Table(rows, choose_columns(schemas, target, columns, weight))
