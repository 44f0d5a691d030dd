"""Estimators: missing values in training rows and in rows to predict (D33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.members import MemberMoments, MemberViews
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import RowNumbers, most_held, random_rows
from bayesvm.data.completion import (
    LEARNED_FROM,
    Completion,
    MeanAndVariance,
    MomentsOf,
    averaged,
    changes_at,
    incomplete,
)
from bayesvm.data.scaling import Scaler
from bayesvm.estimators.columns import input_names, recipe_of, report_left_out, use_recipe
from bayesvm.preparation import Recipe
from bayesvm.preparation.learning import SAMPLE
from bayesvm.preparation.missingness import informative

RARE = 1_000  # rows with missing values to add if a random choice of rows has none
WIDEST = 2_000  # most columns for which a completion is learned without a missing value in training


class RowsToComplete(Protocol):
    """Checked rows, in memory or elsewhere, that may have missing values."""

    @property
    def n_rows(self) -> int: ...

    def raw(self, numbers: RowNumbers) -> Any:
        """X of some rows, before completion."""
        ...

    def targets(self, numbers: RowNumbers) -> np.ndarray:
        """The encoded targets of some rows."""
        ...

    def marked(self, recipe: Recipe) -> Self:
        """The same rows, encoded with a recipe for numbers."""
        ...

    def incomplete(self) -> RowNumbers:
        """Indices of rows with missing values, if known without reading the table; otherwise empty."""
        ...

    def completed(self, missing: MissingValues) -> Self:
        """The same rows, without missing values."""
        ...


@dataclass(frozen=True)
class MissingValues:
    """The completion of the training rows, and their values before."""

    completion: Completion
    raw: Callable[[RowNumbers], Any]


def changes_of(missing: MissingValues | None, numbers: RowNumbers, moments: MomentsOf) -> list[MeanAndVariance] | None:
    """Changes of the moments of some rows by completions of their missing values; None without missing values."""
    if missing is None or missing.completion.unneeded:
        return None
    return changes_at(missing.completion, missing.raw(numbers), moments)


Rows = TypeVar("Rows", bound=RowsToComplete)


def completed(estimator: Any, rows: Rows) -> Rows:
    """Rows without missing values; the estimator learns how to complete them, unless an earlier fit did.

    If the target depends on which values are missing in an array, or in a table of numbers, features mark them.
    """
    if getattr(estimator, "completion_", None) is None:
        n_rows = rows.n_rows
        some = _some_rows(n_rows, LEARNED_FROM)
        X = rows.raw(some)
        if len(some) < n_rows and not len(incomplete(X)) and len(rare := rows.incomplete()):
            X = np.concatenate([X, rows.raw(rare[:RARE])])
        if len(incomplete(X)) and recipe_of(estimator) is None:
            recipe = _marking(estimator, rows)
            if recipe is not None:
                use_recipe(estimator, recipe)
                report_left_out(recipe, "X")
                rows, X = rows.marked(recipe), recipe.encoded_numbers(X)
        estimator.completion_ = learned_completion(X)
    completion = estimator.completion_
    return rows if completion is None else rows.completed(MissingValues(completion, rows.raw))


def _marking(estimator: Any, rows: RowsToComplete) -> Recipe | None:
    """The recipe that marks informative missing values; None if there are none."""
    some = _some_rows(rows.n_rows, min(SAMPLE, most_held(estimator.n_features_in_)))
    X, y, names = rows.raw(some), rows.targets(some), input_names(estimator)
    gone = {name: mask for name, mask in zip(names, np.isnan(X.T), strict=True) if mask.any()}
    found = informative(gone, y, X.__getitem__)
    named = hasattr(estimator, "feature_names_in_")
    return Recipe.marking(names, found, named=named, single=X.dtype == np.float32) if found else None


def _some_rows(n_rows: int, most: int) -> RowNumbers:
    return np.arange(n_rows) if n_rows <= most else random_rows(n_rows, most, np.random.default_rng(0))


def completion_of(estimator: Any) -> Completion:
    """How a fitted model completes missing values."""
    completion: Completion | None = getattr(estimator, "completion_", None)
    if completion is None:
        raise ValueError(
            "X has missing values, but this model has not learned to complete them: impute them, or fit it again"
        )
    return completion


def learned_completion(X: Any) -> Completion | None:
    """A completion learned from some rows; None for sparse rows, and for many columns without a missing value."""
    if hasattr(X, "tocsr") or (X.shape[1] > WIDEST and not len(incomplete(X))):
        return None
    return Completion.learned(X)


@dataclass
class Completing:
    """Completes and scales blocks of rows to predict, and keeps their missing values for the variance."""

    estimator: Any
    scaler: Scaler
    positions: list[RowNumbers] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)

    def moments(self, views: MemberViews, blocks: Iterable[Block], workspace: Workspace) -> list[MemberMoments]:
        """Moments of every member; for rows with missing values, over completions (D33)."""
        parts = views.moments(self._completed(blocks), workspace)
        if not self.rows:
            return parts
        which, X = np.concatenate(self.positions), np.concatenate(self.rows)

        def moments(X: Array) -> list[MeanAndVariance]:
            block = Block(self.scaler(X), np.zeros(len(X)), None)
            return [(part.mean, part.variance) for part in views.moments([block], Workspace())]

        found = []
        for part, (mean, variance) in zip(parts, averaged(completion_of(self.estimator), X, moments), strict=True):
            both = part.mean.copy(), part.variance.copy()
            both[1][which] = variance
            if self.estimator.fitted_.head.averages_completions:
                both[0][which] = mean
            found.append(part._replace(mean=both[0], variance=both[1]))
        return found

    def _completed(self, blocks: Iterable[Block]) -> Iterator[Block]:
        first = 0
        for block in blocks:
            X, rows = block.X, incomplete(block.X)
            if len(rows):
                self.positions.append(first + rows)
                self.rows.append(np.array(X[rows], np.float64))
                X = completion_of(self.estimator)(X)
            first += len(X)
            yield block._replace(X=self.scaler(X))
