"""Data: validation of values read from tables; errors name the file, the row and the column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST_VALUE = 1e100

Locate = Callable[[int], str]  # row of the current arrays -> its file and row in the file


def require_in_range(X: Any, names: tuple[str, ...] | None, locate: Locate) -> None:
    """Require finite numbers of plausible size in ``X``, an array (missing values allowed) or a CSR matrix."""
    missing = not hasattr(X, "tocoo")
    if not is_in_range(X, missing=missing):
        row, column, affected, what, remedy = first_out_of_range(X, missing=missing)
        name = column if names is None else repr(names[column])
        raise ValueError(f"{locate(row)}, column {name}: {what}{_also(affected)}. {remedy}")


def is_in_range(X: Any, *, missing: bool = False) -> bool:
    """Whether all numbers in ``X``, an array or a CSR matrix, are finite and of plausible size, or missing."""
    values = X.data if hasattr(X, "tocoo") else X
    if not values.size:
        return True
    # A NaN anywhere makes the maximum NaN, and comparisons with NaN are False.
    low, high = (
        (np.fmin.reduce(values, None), np.fmax.reduce(values, None)) if missing else (values.min(), values.max())
    )
    return bool(max(float(high), -float(low)) <= LARGEST_VALUE) or (missing and bool(np.isnan(high)))


def require_weights(weight: npt.NDArray[np.float64], name: str, locate: Locate) -> None:
    """Require finite, nonnegative row weights."""
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{locate(row)}, column {name!r}: the weight {weight[row]:g}{_also(int(bad.sum()))}. "
            "Weights must be finite and not negative: correct them, or drop the rows"
        )


class MissingTargetError(ValueError):
    """Rows have no target."""


def require_targets(missing: npt.NDArray[np.bool_], name: str | None, locate: Locate) -> None:
    """Require a target in every row."""
    if missing.any():
        column = "" if name is None else f", column {name!r}"
        raise MissingTargetError(
            f"{locate(int(np.argmax(missing)))}{column}: the target is missing{_also(int(missing.sum()))}. "
            "Fill the targets, or drop the rows without one"
        )


def left_out_without_target(missing: npt.NDArray[np.bool_], name: str, first: str) -> str:
    """The message about rows that are dropped because they have no target; ``first`` locates the first of them."""
    n_missing, n_rows = int(missing.sum()), len(missing)
    rows = "1 row is" if n_missing == 1 else f"{n_missing:,} rows are"
    return f"{rows} left out of {n_rows:,}, because there is no value in {name} (first: {first})"


def require_whole_text(targets: npt.NDArray[Any], name: str | None, locate: Locate) -> None:
    """Reject text labels that end in NUL: NumPy's text arrays drop it, which would merge different labels."""
    if targets.dtype.kind != "O":
        return
    for row, text in enumerate(targets.flat):
        if isinstance(text, str) and text.endswith("\0"):
            column = "" if name is None else f", column {name!r}"
            raise ValueError(
                f"{locate(row)}{column}: the label {text!r} ends in a NUL character, which NumPy drops, "
                f"so it would become {text.rstrip(chr(0))!r}; remove or replace the NUL characters"
            )


def first_out_of_range(X: Any, *, missing: bool = False) -> tuple[int, int, int, str, str]:
    """Describe the first invalid value in ``X``, an array or a CSR matrix that has at least one.

    Returns its row and column, the number of rows with such values, a description of the problem, and a remedy.
    """
    if hasattr(X, "tocoo"):
        entries = X.tocoo()
        bad_entries = np.flatnonzero(~(np.abs(entries.data) <= LARGEST_VALUE))
        row, column, value = entries.row[bad_entries[0]], entries.col[bad_entries[0]], entries.data[bad_entries[0]]
        affected = len(np.unique(entries.row[bad_entries]))
    else:
        bad = ~(np.abs(X, dtype=np.float64) <= LARGEST_VALUE) & ~(missing & np.isnan(X))
        row, column = np.argwhere(bad)[0]
        value, affected = X[row, column], int(bad.any(axis=1).sum())
    if np.isnan(value):
        what, remedy = "a missing value or NaN", "Impute it (sklearn.impute.SimpleImputer) or drop the row"
    elif np.isinf(value):
        what, remedy = "infinity", "Replace infinite values or drop the row"
    else:
        what, remedy = f"a value too large ({value:g}; at most {LARGEST_VALUE:g})", "Rescale the column"
    return int(row), int(column), affected, what, remedy


def _also(affected: int) -> str:
    return f"; {affected - 1} more rows of this batch are affected" if affected > 1 else ""


def is_number(text: str) -> bool:
    """Whether a text can be parsed as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
