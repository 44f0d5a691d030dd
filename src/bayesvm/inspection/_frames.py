"""Inspection: rows and columns of arrays, sparse matrices and data frames, and copies with some columns replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def rows_of(X: Any, which: npt.NDArray[np.intp]) -> Any:
    """Some rows, with the type of X; rows of a sparse matrix become an array."""
    if hasattr(X, "iloc"):
        return X.iloc[which]
    if hasattr(X, "toarray"):
        return X[which].toarray()
    return X[which]


def column_of(X: Any, number: int) -> npt.NDArray[Any]:
    """All values of a column."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, number])
    return (X[:, [number]].toarray() if hasattr(X, "toarray") else np.asarray(X[:, number])).reshape(-1)


def with_columns(X: Any, numbers: Sequence[int], values: Sequence[Any]) -> Any:
    """A copy with other values in some columns: one value for all rows, or one per row."""
    columns = {
        number: np.full(X.shape[0], value) if np.ndim(value) == 0 else np.asarray(value)
        for number, value in zip(numbers, values, strict=True)
    }
    if hasattr(X, "isetitem"):  # pandas
        X = X.copy()
        for number, column in columns.items():
            X.isetitem(number, column)
        return X
    if hasattr(X, "replace_column"):  # polars
        X = X.clone()
        for number, column in columns.items():
            old = X.to_series(number)
            X.replace_column(number, type(old)(old.name, column))
        return X
    X = np.array(X, dtype=np.result_type(X, *columns.values()))
    for number, column in columns.items():
        X[:, number] = column
    return X


def typical(X: Any, number: int) -> Any:
    """The median of a numeric column, otherwise the most frequent value."""
    column = column_of(X, number)
    if holds_numbers(column):
        return float(np.nanmedian(column.astype(float)))
    values, counts = np.unique(column.astype(str), return_counts=True)
    return values[counts.argmax()]


def holds_numbers(column: npt.NDArray[Any]) -> bool:
    """Whether the values are numbers, including numbers with dtype object."""
    if column.dtype == object:
        return all(isinstance(value, int | float | np.number) for value in column.flat)
    return column.dtype.kind in "iufb"


def as_rows(X: Any) -> Any:
    """X itself, or as an array; an error unless it has rows and columns."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, got shape {tuple(X.shape)}")
    return X
