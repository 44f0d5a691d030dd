"""Estimators: missing values of rows to learn from and of rows to predict (D33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.members import MemberMoments, MemberViews
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import RowNumbers, random_rows
from bayesvm.data.completion import LEARNED_FROM, Completion, incomplete, spread, spread_at
from bayesvm.data.scaling import Scaler

WIDEST = 2_000  # columns whose distributions are kept although nothing is missing in training

Rows = TypeVar("Rows", bound=Any)


@dataclass(frozen=True)
class MissingValues:
    """How rows to learn from were completed, and what they were before."""

    completion: Completion
    rows: Callable[[RowNumbers], Any]  # with their missing values

    def spread(self, numbers: RowNumbers, means: Callable[[Array], Sequence[Array]]) -> list[Array] | None:
        """How far means at these rows vary with what is missing; None if nothing is."""
        return spread_at(self.completion, self.rows(numbers), means)


def completed(estimator: Any, rows: Rows, *, first: bool = True) -> Rows:
    """Rows in memory without missing values; the estimator learns how, unless it knows it from an earlier part."""
    X = rows.X
    if first:
        estimator.completion_ = learned_completion(X)
    completion = estimator.completion_
    if completion is None or not len(incomplete(X)):
        return rows
    return replace(rows, X=completion(X), missing=MissingValues(completion, X.__getitem__))


def learned_completion(X: Any) -> Completion | None:
    """From some of the rows; None for sparse ones and for many columns without a missing value."""
    if hasattr(X, "tocsr") or (X.shape[1] > WIDEST and not len(incomplete(X))):
        return None
    if len(X) > LEARNED_FROM:
        X = X[random_rows(len(X), LEARNED_FROM, np.random.default_rng(0))]
    return Completion.learned(X)


@dataclass
class Completing:
    """Blocks of rows to predict: completed and scaled, and what is missing remembered for the variance."""

    completion: Completion | None
    scaler: Scaler
    positions: list[RowNumbers] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)

    def moments(self, views: MemberViews, blocks: Iterable[Block], workspace: Workspace) -> list[MemberMoments]:
        """Of every member; missing values widen the variance."""
        parts = views.moments(self._completed(blocks), workspace)
        if not self.rows:
            return parts
        which, X = np.concatenate(self.positions), np.concatenate(self.rows)

        def means(X: Array) -> list[Array]:
            return [part.mean for part in views.moments([Block(self.scaler(X), np.zeros(len(X)), None)], Workspace())]

        found = []
        for part, more in zip(parts, spread(self._known, X, means), strict=True):
            variance = part.variance.copy()
            variance[which] += more
            found.append(part._replace(variance=variance))
        return found

    @property
    def _known(self) -> Completion:
        if self.completion is None:
            raise ValueError("this model does not know how to complete missing values")
        return self.completion

    def _completed(self, blocks: Iterable[Block]) -> Iterator[Block]:
        first = 0
        for block in blocks:
            X, rows = block.X, incomplete(block.X)
            if len(rows):
                self.positions.append(first + rows)
                self.rows.append(np.array(X[rows], np.float64))
                X = self._known(X)
            first += len(X)
            yield block._replace(X=self.scaler(X))
