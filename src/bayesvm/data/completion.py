"""Data: imputation of missing values from the other columns of the row, with a Gaussian copula (D33).

Every column is mapped to normal scores. The scores of a row are normal with a low-rank-plus-diagonal covariance, which
EM learns from rows that may themselves have missing values. Training uses the conditional mean of missing values. Their
remaining uncertainty, estimated from draws, increases the variance of f and, for numbers, changes its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from bayesvm.core.linalg import Array
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import random_rows
from bayesvm.data.repetition import uniforms

MeanAndVariance = tuple[Array, Array]  # of f at some rows, one column per function
MomentsOf = Callable[[Array], Sequence[MeanAndVariance]]  # of the members, at complete rows

LEARNED_FROM = 4_000  # rows
LEARNED_FROM_COMPLETE = 1_000  # rows, for the dependence of columns if none of them has a missing value
MOST_FACTORS, UPDATES = 12, 12  # factors of the covariance; updates of EM
MANY_COLUMNS = 500  # above which their dependence is not learned from complete rows
PRIOR_ROWS = 1.0  # weight of the prior that a loading is zero
SMALLEST_NOISE = 0.02  # lower bound of the variance of a score that the other columns do not explain
KNOTS, FEW_KNOTS = 513, 33  # of the distribution of a column; the second if a rough one suffices
DRAWS = 8
ROWS_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False)
class Completion:
    """The distribution of each column, and the dependence between their normal scores.

    Without loadings, columns are treated as independent.
    """

    knots: Array  # quantiles at the midpoints of equal shares, one column per column of the table
    loadings: Array  # D × q
    noise: Array  # variances of the scores that the factors do not explain
    unneeded: bool = False  # whether the training rows had no missing values

    @classmethod
    def learned(cls, X: npt.NDArray[Any]) -> Completion:
        """Learn from rows; columns without any value become zero."""
        with one_blas_thread():
            return cls._learned(np.asarray(X, np.float64))

    @classmethod
    def _learned(cls, X: Array) -> Completion:
        there = ~np.isnan(X)
        complete = bool(there.all())
        shares = _shares(FEW_KNOTS if complete else KNOTS)
        knots = np.zeros((len(shares), X.shape[1]))
        for column, (values, present) in enumerate(zip(X.T, there.T, strict=True)):
            if present.any():
                knots[:, column] = np.quantile(values[present], shares, method="hazen")
        plain = cls(knots, np.zeros((X.shape[1], 0)), np.ones(X.shape[1]), complete)
        if complete and X.shape[1] > MANY_COLUMNS:
            return plain
        if complete and len(X) > LEARNED_FROM_COMPLETE:
            X = X[random_rows(len(X), LEARNED_FROM_COMPLETE, np.random.default_rng(0))]
            there = np.ones(X.shape, bool)
        return plain._with_factors(np.where(there, plain._scores(X), 0.0), there)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Completion):
            return NotImplemented
        mine, theirs = ((each.knots, each.loadings, each.noise) for each in (self, other))
        return all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.knots.shape[1])

    def __call__(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Replace missing values by their conditional means; returns the rows unchanged if none is missing."""
        rows = incomplete(X)
        if not len(rows):
            return X
        completed = np.array(X)
        for some in _parts(rows):
            part, there, mean, _ = self._conditional(X[some])
            completed[some] = self._filled(part, there, mean @ self.loadings.T)
        return completed

    def draws(self, X: npt.NDArray[Any]) -> Iterator[Array]:
        """Yield the rows ``DRAWS`` times, completed at quasi-random points of the conditional distribution.

        The points of a row depend only on its values, not on its position or on other rows.
        """
        part, there, mean, covariance = self._conditional(X)
        root = np.linalg.cholesky(covariance)
        q = self.loadings.shape[1]
        shift = uniforms(np.where(there, part, 0.0) + 2.0 * ~there, q + self.n_features)
        for point in self._points:
            normal = ndtri(np.clip((point + shift) % 1, 1e-6, 1 - 1e-6))
            factors = mean + np.einsum("nqr,nr->nq", root, normal[:, :q])
            yield self._filled(part, there, factors @ self.loadings.T + np.sqrt(self.noise) * normal[:, q:])

    @cached_property
    def _points(self) -> Array:
        points: Array = qmc.Sobol(self.loadings.shape[1] + self.n_features, seed=0).random(DRAWS)
        return points

    def _scores(self, X: Array) -> Array:
        """Normal scores; tied values get the middle of their scores."""
        found = np.empty(X.shape)
        for column, knots in enumerate(self.knots.T):
            before, after = (np.searchsorted(knots, X[:, column], side) for side in ("left", "right"))
            share = (before + after) / (2 * len(knots))
            found[:, column] = ndtri(np.clip(share, 0.5 / len(knots), 1 - 0.5 / len(knots)))
        return found

    def _filled(self, X: Array, there: npt.NDArray[np.bool_], scores: Array) -> Array:
        """Fill missing values of the rows with the values of these scores."""
        filled, shares = X.copy(), _shares(len(self.knots))
        for column, knots in enumerate(self.knots.T):
            missing = ~there[:, column]
            if missing.any():
                filled[missing, column] = np.interp(ndtr(scores[missing, column]), shares, knots)
        return filled

    def _conditional(self, X: npt.NDArray[Any]) -> tuple[Array, npt.NDArray[np.bool_], Array, Array]:
        """The rows, a mask of observed values, and the conditional mean and covariance of their factors (D33)."""
        part = np.asarray(X, np.float64)
        there = ~np.isnan(part)
        return part, there, *_factors(np.where(there, self._scores(part), 0.0), there, self.loadings, self.noise)

    def _with_factors(self, scores: Array, there: npt.NDArray[np.bool_]) -> Completion:
        """EM for a factor model of rows with missing values (D33); ``scores`` are zero where values are missing."""
        n_features = scores.shape[1]
        q = min(n_features, MOST_FACTORS)
        present = there.astype(np.float64)
        both = present.T @ present
        variance = np.maximum(np.einsum("ij,ij->j", scores, scores) / np.maximum(np.diag(both), 1), 1e-12)
        correlation = (scores.T @ scores) / np.sqrt(np.outer(variance, variance)) / (both + 10 * PRIOR_ROWS)
        np.fill_diagonal(correlation, 1.0)
        values, vectors = np.linalg.eigh(correlation)
        start = vectors[:, ::-1][:, :q] * np.sqrt(np.maximum(values[::-1][:q] - values.clip(0).min(), 1e-4))
        loadings = start * np.sqrt(variance)[:, None]
        noise = np.maximum(variance - np.sum(loadings**2, axis=1), SMALLEST_NOISE)
        count, squares = np.maximum(present.sum(axis=0), 1), np.einsum("ij,ij->j", scores, scores)
        for _ in range(UPDATES):
            mean, covariance = _factors(scores, there, loadings, noise)
            second = (covariance + mean[:, :, None] * mean[:, None, :]).reshape(len(mean), -1)
            among = (present.T @ second).reshape(n_features, q, q)
            with_scores = scores.T @ mean
            loadings = np.linalg.solve(among + PRIOR_ROWS * np.eye(q), with_scores[:, :, None])[:, :, 0]
            explained = np.einsum("jq,jqr,jr->j", loadings, among, loadings)
            left = squares - 2 * np.sum(loadings * with_scores, axis=1) + explained
            noise = np.maximum(left / count, SMALLEST_NOISE)
        return replace(self, loadings=loadings, noise=noise)


def incomplete(X: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The rows with missing values; a sparse matrix has none."""
    if hasattr(X, "tocsr") or X.dtype.kind != "f":
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.isnan(X).any(axis=1))


def changes_at(completion: Completion | None, X: npt.NDArray[Any], moments: MomentsOf) -> list[MeanAndVariance] | None:
    """How ``averaged`` changes the moments at the completed rows, zero for complete rows; None if all rows are."""
    rows = incomplete(X)
    if completion is None or not len(rows):
        return None
    found = []
    pairs = zip(averaged(completion, X[rows], moments), moments(completion(X[rows])), strict=True)
    for after, before in pairs:
        change = np.zeros((2, len(X), *before[0].shape[1:]))
        change[:, rows] = np.subtract(after, before)
        found.append((change[0], change[1]))
    return found


def averaged(completion: Completion, X: npt.NDArray[Any], moments: MomentsOf) -> list[MeanAndVariance]:
    """Mean and variance of f at these rows over the draws, for each member (D33).

    They are the mean of the ``m_k``, and the mean of the ``v_k`` plus the variance of the ``m_k``.
    """
    parts = []
    for some in _parts(np.arange(len(X))):
        found = []
        for draws in zip(*(moments(draw) for draw in completion.draws(X[some])), strict=True):
            m, v = (np.stack(each) for each in zip(*draws, strict=True))
            found.append((m.mean(axis=0), v.mean(axis=0) + m.var(axis=0)))
        parts.append(found)
    joined = [map(np.concatenate, zip(*each, strict=True)) for each in zip(*parts, strict=True)]
    return [(m, v) for m, v in joined]


def _factors(scores: Array, there: npt.NDArray[np.bool_], loadings: Array, noise: Array) -> tuple[Array, Array]:
    """``(I + Λᵀ Ψ⁻¹ Λ)⁻¹`` over the observed columns, and the mean of the factors (D33)."""
    n_features, q = loadings.shape
    if there.all():  # all rows have the same covariance
        covariance = np.linalg.inv((loadings.T / noise) @ loadings + np.eye(q))
        return (scores / noise) @ loadings @ covariance, np.broadcast_to(covariance, (len(scores), q, q))
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(n_features, q * q)
    precision = ((there / noise) @ products).reshape(len(scores), q, q) + np.eye(q)
    covariance = np.linalg.inv(precision)
    return np.einsum("nqr,nr->nq", covariance, (scores / noise) @ loadings), covariance


def _shares(n_knots: int) -> Array:
    return np.asarray((np.arange(n_knots) + 0.5) / n_knots)


def _parts(rows: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    for first in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[first : first + ROWS_AT_ONCE]
