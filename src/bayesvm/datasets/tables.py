"""Datasets: real tables for experiments and benchmarks, from the folder that ``BAYESVM_DATA`` names.

Each is a Parquet file with columns ``x0`` … and ``y``. None comes with the library.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def load_table(name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Rows and labels of ``$BAYESVM_DATA/name.parquet``; needs pyarrow."""
    folder = os.environ.get("BAYESVM_DATA")
    if not folder:
        raise FileNotFoundError(
            f"the table {name!r} is looked for in the folder that the environment variable BAYESVM_DATA names, "
            "but it is not set"
        )
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in Path(folder).glob("*.parquet"))) or "no Parquet file"
        raise FileNotFoundError(f"{path} does not exist; in that folder there is {there}")
    from pyarrow import parquet  # noqa: PLC0415  (optional)

    table: Any = parquet.read_table(path)
    columns = [column for column in table.column_names if column != "y"]
    X = np.column_stack([table[column].to_numpy().astype(np.float64) for column in columns])
    return X, table["y"].to_numpy().astype(np.int64)
