"""Estimators: the background of one class: a heavy-tailed distribution from which its rows are distinguished (D36)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.student_t import StudentT
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.tables import Table
from bayesvm.estimators._inputs import ArrayRows
from bayesvm.estimators._numbers import centre_and_spread
from bayesvm.estimators.groups import group_numbers
from bayesvm.inference.fitted import Fitted
from bayesvm.warn import warn_user

DISTANT, MOST_DISTANT = (
    300.0,
    0.01,
)  # spreads beyond which rows are left out of the fit, and the largest share of such rows
FEWEST, NEARLY_CONSTANT = 20, 0.5  # minimum rows, and maximum share of equal values, for a reliable spread


@dataclass(frozen=True)
class Background:
    """The distribution from which the rows are distinguished: a t distribution of standardised columns (D36)."""

    scaler: ColumnScaler
    density: StudentT
    left_out: np.ndarray  # leave-one-out log density of training rows

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray) -> Background:
        """The background of these rows."""
        scaler = ColumnMoments.of([Block(X, np.zeros(len(X)), weight)]).scaler()
        Z = scaler(X)
        density = StudentT.of(Z, weight)
        if not density.target > 0:
            raise ValueError(f"all {len(X)} rows are equal, so that any other row is an outlier; give rows that differ")
        return cls(scaler, density, density.log_density_left_out(Z, weight))

    def spread_over(self, n_rows: int, kept: np.ndarray) -> Background:
        """A copy with left-out densities for all given rows; NaN for unused rows."""
        left_out = np.full(n_rows, np.nan)
        left_out[kept] = self.left_out
        return replace(self, left_out=left_out)

    def grouped(self, outline: Any, rows: ArrayRows, groups: Any, X: Any) -> ArrayRows:
        """Group indices of all rows, with the given rows first. Drawn rows are independent, each with its own group.

        Sets the background of the outline to one with groups left out.
        """
        mine = np.flatnonzero(rows.y == 1)
        used = rows.given(mine)
        numbers = group_numbers(groups, X, used, len(self.left_out))
        weight = np.ones(len(mine)) if rows.weight is None else rows.weight[mine]
        left_out = self.left_out.copy()
        left_out[used] = self.density.log_density_groups_left_out(self.scaler(rows.X[mine]), weight, numbers)
        drawn = numbers.max() + 1 + np.arange(rows.n_rows - len(mine))
        outline.background_ = replace(self, left_out=left_out)
        return replace(rows, groups=np.concatenate([numbers, drawn]))

    def log_density(self, X: Any) -> np.ndarray:
        """Log density of the standardised columns, for rows in the units of the table."""
        return self.density.log_density(self.scaler(np.asarray(X, np.float64)))

    def draws(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Sampled rows in the units of the table."""
        return self.scaler.inverse(self.density.draws(n_rows, rng))

    def expected(self, X: np.ndarray, column: int) -> np.ndarray:
        """The expectation of a column given the others."""
        Z = self.scaler(X)
        replaced = Z.copy()
        replaced[:, column] = self.density.expected(Z, column)
        return self.scaler.inverse(replaced)[:, column]

    def state(self) -> dict[str, Any]:
        """Plain values for a file."""
        return vars(self.scaler) | vars(self.density) | {"left_out": self.left_out}

    @classmethod
    def from_state(cls, state: dict[str, Any] | None) -> Background:
        """The background from plain values."""
        if state is None:
            raise ValueError("a model of one class needs a background")
        density = StudentT(*(state[name] for name in ("mean", "values", "vectors", "shrinkage", "total")))
        if not (density.shape > 0).all():
            raise ValueError("the background has no width in some direction")
        return cls(ColumnScaler(state["centre"], state["scale"]), density, state["left_out"])


def of_training(fitted: Fitted) -> np.ndarray:
    """Which of the left-out rows are given rows, not background rows."""
    return fitted.left_out_y == 1


def numbers_of_training(fitted: Fitted) -> np.ndarray:
    """The indices of these rows in X, known after a fit."""
    if fitted.left_out_rows is None:
        raise ValueError("the indices of the rows left out are missing")
    return fitted.left_out_rows[of_training(fitted)]


def warn_of_few(n_rows: int, groups: np.ndarray | None, contamination: float) -> None:
    """Warn that no row is an outlier, because too few rows or groups were left out."""
    n, unit = (n_rows, "rows") if groups is None else (len(np.unique(groups)), "groups")
    least = int(np.ceil(1 / contamination)) - 1
    warn_user(
        f"{n} {unit} are too few for contamination={contamination:g}; predict will not flag any outliers. Give at "
        f"least {least} {unit}, or a larger contamination"
    )


def rows_to_learn_from(X: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The rows of positive weight, without a few that are so far away that the others would look equal (D36)."""
    kept = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    if len(kept) < 2:
        raise ValueError(f"two rows of weight above zero are needed; there are {len(kept)}")
    most = max(1.0, MOST_DISTANT * len(kept))
    if len(kept) < FEWEST:
        return kept
    own = np.ones(len(kept)) if weight is None else weight[kept]
    is_distant, place = np.zeros(len(kept), bool), None
    for column, values in enumerate(X[kept].T.astype(np.float64)):
        centre, spread = centre_and_spread(values, own)
        beyond = np.abs(values - centre) > DISTANT * spread
        # A column that is nearly constant has no spread to measure distances by.
        if beyond.any() and np.mean(values == centre) < NEARLY_CONSTANT:
            place = (int(kept[np.argmax(beyond)]), column) if place is None else place
            is_distant |= beyond
    if place is None or is_distant.sum() > most:
        return kept
    warn_user(
        f"{int(is_distant.sum())} of {len(kept):,} rows are left out of the fit, because a value is more than "
        f"{DISTANT:g} times the spread of its column away (first: row {place[0]}, column {place[1]}): with them, the "
        "other rows would look equal. They are outliers; correct or drop them to avoid this warning"
    )
    return kept[~is_distant]


def require_memory(X: Any) -> None:
    """Require rows in memory."""
    if isinstance(X, Table) or is_dask(X):
        raise TypeError(
            "BayesianOneClassSVM takes rows in memory: their background needs all columns at once. Take a sample of a "
            f"{type(X).__name__}, for example with open_table(…).rows(numbers) or X.sample(…).compute()"
        )
