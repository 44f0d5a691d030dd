"""Scaling: the generated rows of `collisions`, written to files part by part, never in memory as a whole."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from experiments.registry.problems import collisions

D = 18
PART = 2**19  # rows, each part with a seed of its own
GROUP = 2**17  # rows of a row group
TEST_SEED = 10**6


def write_parquet(path, n_rows):
    """One Parquet file, snappy, with the columns x0 … x17 and y."""
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(D)] + [("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="snappy") as file:
        for X, y in parts(n_rows):
            columns = [pa.array(np.ascontiguousarray(column)) for column in (*X.T, y)]
            file.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=GROUP)
    forget(path)


def write_arrays(path, n_rows):
    """The same rows as X.npy and y.npy in a folder."""
    Path(path).mkdir(exist_ok=True)
    X = np.lib.format.open_memmap(Path(path) / "X.npy", "w+", np.float32, (n_rows, D))
    y = np.lib.format.open_memmap(Path(path) / "y.npy", "w+", np.int8, (n_rows,))
    start = 0
    for part, labels in parts(n_rows):
        X[start : start + len(labels)], y[start : start + len(labels)] = part, labels
        start += len(labels)


def parts(n_rows):
    for seed, start in enumerate(range(0, n_rows, PART)):
        data = collisions(min(PART, n_rows - start), seed)
        yield data.X, data.y


def fresh(n_rows):
    """Rows that no training file has, with their true probabilities."""
    return collisions(n_rows, TEST_SEED)


def forget(path):
    """Take a file out of the system's cache, so that the first pass over it reads from disk."""
    with Path(path).open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
