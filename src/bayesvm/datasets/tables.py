"""Datasets: real tables as Parquet files with columns ``x0`` … and ``y``; whole, by name, or some rows of a large one.

``load_table`` reads from the folder that ``BAYESVM_DATA`` names. No table comes with the library.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesvm.extras import optional

FeaturesAndLabels = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


def load_table(name: str) -> FeaturesAndLabels:
    """Load rows and labels of ``$BAYESVM_DATA/name.parquet``. Needs pyarrow.

    The column ``y`` holds integer labels; all other columns are features. For other names, text and tables larger than
    the memory, use ``open_table``.

    Parameters
    ----------
    name : str
        Name of the file, without its ending.

    Returns
    -------
    X : array of shape (n_rows, n_features)
        The features, in double precision.
    y : array of shape (n_rows,)
        The labels.

    Raises
    ------
    FileNotFoundError
        If ``BAYESVM_DATA`` is not set, or the folder has no such file.

    See Also
    --------
    load_rows : Load some rows of a large file.
    bayesvm.open_table : Open a table that is larger than the memory.

    Examples
    --------
    >>> from bayesvm.datasets import load_table
    >>> X, y = load_table("heart_raetsch")  # doctest: +SKIP
    """
    folder = os.environ.get("BAYESVM_DATA")
    if not folder:
        raise FileNotFoundError(
            f"the table {name!r} was not found, because the environment variable BAYESVM_DATA is not set; set it to "
            "the folder of the table"
        )
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in Path(folder).glob("*.parquet"))) or "no Parquet file"
        raise FileNotFoundError(f"{path} does not exist; the folder contains {there}")
    return read_table(path)


def read_table(path: Path) -> FeaturesAndLabels:
    """Rows and labels of a Parquet file, in float64 and int64."""
    table = optional("pyarrow.parquet", "datasets").read_table(path)
    columns = [column for column in table.column_names if column != "y"]
    X = np.column_stack([table[column].to_numpy().astype(np.float64) for column in columns])
    return X, table["y"].to_numpy().astype(np.int64)


def load_rows(path: str | Path, start: int, stop: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Load rows ``start`` to ``stop`` (excluded) of a Parquet file, with memory for these rows only.

    Parameters
    ----------
    path : path
        The file. The column ``y`` holds labels; all other columns are features.
    start, stop : int
        The first row, and the one after the last.

    Returns
    -------
    X : array of shape (stop - start, n_features)
        The features, in single precision.
    y : array of shape (stop - start,)
        The labels.

    Raises
    ------
    IndexError
        If the file has fewer rows.

    See Also
    --------
    fetch_susy, fetch_higgs : Fetch large files.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_susy, load_rows
    >>> X, y = load_rows(fetch_susy(), 0, 100_000)  # doctest: +SKIP
    """
    with optional("pyarrow.parquet", "datasets").ParquetFile(path) as file:
        n_rows = file.metadata.num_rows
        if not 0 <= start <= stop <= n_rows:
            raise IndexError(f"rows {start} to {stop} do not exist: {path} has the rows 0 to {n_rows}")
        columns = [column for column in file.schema_arrow.names if column != "y"]
        X = np.empty((stop - start, len(columns)), np.float32)
        y = np.empty(stop - start, np.int8)
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        begins = np.cumsum([0, *sizes])
        touched = [group for group in range(len(sizes)) if begins[group] < stop and begins[group + 1] > start]
        row = int(begins[touched[0]]) if touched else stop
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=touched):
            # The first and the last batch may contain other rows.
            first, last = max(start - row, 0), min(stop - row, batch.num_rows)
            if first < last:
                rows = slice(row + first - start, row + last - start)
                for number, column in enumerate(columns):
                    X[rows, number] = batch.column(column)[first:last].to_numpy(zero_copy_only=False)
                y[rows] = batch.column("y")[first:last].to_numpy(zero_copy_only=False)
            row += batch.num_rows
    return X, y


_BATCH_ROWS = 65_536
