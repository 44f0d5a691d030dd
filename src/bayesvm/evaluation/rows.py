"""Evaluation: the common base of predictions: values per row, optionally with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class RowPredictions:
    """Base of dataclasses whose fields are arrays with one value per row, or None."""

    _of_all_rows: ClassVar[tuple[str, ...]] = ()  # other fields
    y: Any
    weight: Floats | None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def weight_or_ones(self) -> Floats:
        return np.ones(self.n_rows) if self.weight is None else self.weight

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the fields with one value per row.

        Returns
        -------
        tuple of str
            Names, in the order of the fields.
        """
        return tuple(f.name for f in fields(cls) if f.name not in cls._of_all_rows)  # type: ignore[arg-type]

    def take(self, rows: npt.ArrayLike) -> Self:
        """Return the predictions for some rows.

        Parameters
        ----------
        rows : array-like
            Indices of the rows, or a mask.

        Returns
        -------
        Predictions or RegressionPredictions
            The predictions for these rows.
        """
        chosen = np.asarray(rows)
        values = {name: getattr(self, name) for name in self.columns()}
        changed = {name: each[chosen] for name, each in values.items() if each is not None}
        return replace(self, **changed)  # type: ignore[type-var]

    def counted(self) -> Self:
        """Return the predictions without the rows of weight zero.

        Returns
        -------
        Predictions or RegressionPredictions
            The predictions for the other rows.
        """
        return self if self.weight is None or self.weight.all() else self.take(self.weight > 0)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate predictions.

        Parameters
        ----------
        parts : sequence of predictions
            Predictions for the same classes, all with weights or all without.

        Returns
        -------
        Predictions or RegressionPredictions
            The predictions for the rows of all parts.
        """
        columns = {name: [getattr(part, name) for part in parts] for name in cls.columns()}
        together = {name: np.concatenate(each) for name, each in columns.items() if each[0] is not None}
        return replace(parts[0], **together)  # type: ignore[type-var]


def per_row(name: str, values: Any, n_rows: int) -> Floats:
    """Check that there is one finite number per row, and that weights are not negative."""
    numbers = np.asarray(values, np.float64)
    if numbers.shape != (n_rows,):
        raise ValueError(f"{name} must have one number for each of the {n_rows} rows; got shape {numbers.shape}")
    bad = ~np.isfinite(numbers) | ((numbers < 0) & (name == "weight"))
    if bad.any():
        row = int(np.argmax(bad))
        what = "finite and not negative" if name == "weight" else "finite"
        raise ValueError(f"{name} must be {what}; {bad.sum()} rows are not (first: row {row}, {numbers[row]:g})")
    return numbers


def checked_columns(columns: dict[str, Any], n_rows: int) -> dict[str, Floats]:
    """The given columns, each checked by ``per_row``; some weights must be positive."""
    checked = {name: per_row(name, values, n_rows) for name, values in columns.items() if values is not None}
    if "weight" in checked and not checked["weight"].any():
        raise ValueError("all rows have weight zero, so there is nothing to evaluate; some weights must be positive")
    return checked
