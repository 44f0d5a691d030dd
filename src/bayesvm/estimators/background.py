"""Estimators: the background of one class: a heavy-tailed distribution from which its rows are distinguished (D36)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.student_t import StudentT
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.tables import Table
from bayesvm.inference.fitted import Fitted


@dataclass(frozen=True)
class Background:
    """The distribution from which the rows are distinguished: a t distribution of standardised columns (D36)."""

    scaler: ColumnScaler
    density: StudentT
    left_out: np.ndarray  # leave-one-out log density of training rows

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray) -> Background:
        """Around these rows."""
        scaler = ColumnMoments.of([Block(X, np.zeros(len(X)), weight)]).scaler()
        Z = scaler(X)
        density = StudentT.of(Z, weight)
        if not density.target > 0:
            raise ValueError(f"all {len(X)} rows are equal, so that any other row is an outlier; give rows that differ")
        return cls(scaler, density, density.log_density_left_out(Z, weight))

    def log_density(self, X: Any) -> np.ndarray:
        """Of rows in the units of the table, as a density of standardised columns."""
        return self.density.log_density(self.scaler(np.asarray(X, np.float64)))

    def draws(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Rows in the units of the table."""
        return self.scaler.inverse(self.density.draws(n_rows, rng))

    def expected(self, X: np.ndarray, column: int) -> np.ndarray:
        """A column as the others let expect it."""
        Z = self.scaler(X)
        replaced = Z.copy()
        replaced[:, column] = self.density.expected(Z, column)
        return self.scaler.inverse(replaced)[:, column]

    def state(self) -> dict[str, Any]:
        """What a file holds of it."""
        return vars(self.scaler) | vars(self.density) | {"left_out": self.left_out}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Background:
        """Back from a file."""
        density = StudentT(*(state[name] for name in ("mean", "values", "vectors", "shrinkage", "total")))
        if not (density.shape > 0).all():
            raise ValueError("the background has no width in some direction")
        return cls(ColumnScaler(state["centre"], state["scale"]), density, state["left_out"])


def of_training(fitted: Fitted) -> np.ndarray:
    """Which of the rows left out are rows that were given, and not of the background."""
    return fitted.left_out_y == 1


def numbers_of_training(fitted: Fitted) -> np.ndarray:
    """The numbers of those rows in X; a fit knows them, and there is no stream."""
    if fitted.left_out_rows is None:
        raise ValueError("the model does not know which rows were left out")
    return fitted.left_out_rows[of_training(fitted)]


def require_memory(X: Any) -> None:
    """Neither a table in files nor a Dask collection."""
    if isinstance(X, Table) or is_dask(X):
        raise TypeError(
            "BayesianOneClassSVM takes rows in memory: their background needs all columns at once. Take a sample of a "
            f"{type(X).__name__}, for example with open_table(…).rows(numbers) or X.sample(…).compute()"
        )
