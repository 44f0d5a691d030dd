"""Inference: screen for effects of one or two columns, using leave-one-out residuals (D26, D27).

A smooth kernel of all columns cannot model a jump in one of them. If the rows in a cell of a column, or of a pair of
columns, are systematically predicted too low or too high, an effect of this column or pair helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array

CELLS = 48  # per column
DISCRETE, DISCRETE_CELLS, PAIR_CELLS = 32, 24, 14  # per column in a pair; more if it has few values
POINTS, PAIR_POINTS = 48, 300  # inducing points per effect, of one column and of a pair
PRIOR_VARIANCES = (0.05, 0.3, 3.0)  # candidate prior variances of a cell's effect on the log odds
MARGIN = 3.0  # nats above the logarithm of the number of candidates: limits false admissions (D27)
MOST_EFFECTS = 5
MOST_POINTS = 320  # of all effects together
MOST_PAIRED = 40  # columns considered for pairs
SHORTLIST = 60  # candidates that are rescored after an admission

Cells = npt.NDArray[np.intp]


class Residuals(NamedTuple):
    """Leave-one-out residuals ``R = y - p`` and their variances ``W = p (1-p)``; one column per function."""

    difference: Array
    weight: Array


@dataclass(frozen=True)
class Factor:
    """A column, or the one-hot columns of a categorical column, with the cell of every row."""

    columns: tuple[int, ...]
    cells: Cells
    coarse: Cells  # cells for pairs

    @property
    def varies(self) -> bool:
        """Whether there is more than one cell."""
        return bool(self.cells.max() > 0)


@dataclass(frozen=True)
class Found:
    """An admitted effect: its columns, the cell of every row, and its expected gain in nats."""

    columns: tuple[int, ...]
    factors: int  # one, or two if it is a pair
    cells: Cells
    gain: float
    prior_variance: float

    @property
    def n_points(self) -> int:
        """The number of inducing points of the effect."""
        return int(min(self.cells.max() + 1, POINTS if self.factors == 1 else PAIR_POINTS))


def factors_of(X: Array) -> list[Factor]:
    """The columns; adjacent 0/1 columns with at most one 1 per row form one categorical column."""
    binary = [bool(np.isin(column, (0.0, 1.0)).all()) for column in X.T]
    groups: list[list[int]] = []
    taken: Array = np.zeros(len(X))
    for number in range(X.shape[1]):
        if binary[number] and groups and binary[groups[-1][-1]] and not (taken * X[:, number]).any():
            groups[-1].append(number)
            taken = taken + X[:, number]
        else:
            groups.append([number])
            taken = X[:, number] if binary[number] else np.zeros(len(X))
    return [factor for group in groups if (factor := _factor(X, group)).varies]


def _factor(X: Array, columns: list[int]) -> Factor:
    if len(columns) > 1:
        codes = np.where(X[:, columns].any(axis=1), 1 + X[:, columns].argmax(axis=1), 0)
        cells = np.unique(codes, return_inverse=True)[1].astype(np.intp)
        return Factor(tuple(columns), cells, cells)
    distinct, codes = np.unique(X[:, columns[0]], return_inverse=True)
    in_pairs = DISCRETE_CELLS if len(distinct) <= DISCRETE else PAIR_CELLS
    fine, coarse = (_merged(codes.astype(np.intp), len(distinct), most) for most in (CELLS, in_pairs))
    return Factor(tuple(columns), fine, coarse)


def _merged(codes: Cells, n_distinct: int, most: int) -> Cells:
    """Merge neighbouring distinct values into shared cells if there are too many.

    Uses quantiles of the distinct values: quantiles of the rows would coincide at a value that most rows have.
    """
    return codes if n_distinct <= most else codes * most // n_distinct


def screened(X: Array, residuals: Residuals) -> list[Found]:
    """The admitted effects, most useful first.

    Effects are admitted one at a time; each next one is scored on the residuals that remain. A pair must gain more than
    its two columns separately, by the threshold for a candidate.
    """
    factors = factors_of(X)
    if not factors:  # all columns are constant
        return []
    candidates: list[tuple[Factor, ...]] = [(factor,) for factor in factors]
    alone = [_score(factor.cells, residuals)[0] for factor in factors]
    paired = sorted(np.argsort(alone)[::-1][:MOST_PAIRED].tolist())
    candidates += list(combinations([factors[i] for i in paired], 2))
    price = np.log(len(candidates)) + MARGIN
    scored = [_found(candidate, residuals) for candidate in candidates]
    admitted, points = list[Found](), 0
    for _ in range(MOST_EFFECTS):
        order = np.argsort([-found.gain for found in scored])[:SHORTLIST]
        best = scored[order[0]]
        if best.gain < price or not _holds(best, residuals):
            candidates = [candidates[i] for i in order[1:]] if best.gain >= price else []
        else:
            admitted.append(best)
            points += best.n_points
            residuals = _without(best, residuals)
            candidates = [candidates[i] for i in order[1:]]
        if not candidates or points >= MOST_POINTS:
            break
        scored = [_found(candidate, residuals) for candidate in candidates]
    return admitted


def united(some: Sequence[Found], others: Sequence[Found]) -> list[Found]:
    """The union of both, without duplicates, limited by the points of effects."""
    columns = {found.columns for found in some}
    kept, points = list[Found](), 0
    for found in (*some, *(other for other in others if other.columns not in columns)):
        if points + found.n_points <= MOST_POINTS:
            kept.append(found)
            points += found.n_points
    return kept


def _found(candidate: tuple[Factor, ...], residuals: Residuals) -> Found:
    columns = tuple(column for factor in candidate for column in factor.columns)
    if len(candidate) == 1:
        gain, prior_variance = _score(candidate[0].cells, residuals)
        return Found(columns, 1, candidate[0].cells, gain, prior_variance)
    first, second = candidate
    joint = first.coarse * (second.coarse.max() + 1) + second.coarse
    cells = np.unique(joint, return_inverse=True)[1].astype(np.intp)
    gain, prior_variance = _score(cells, residuals)
    mains = sum(max(_score(factor.coarse, residuals)[0], 0.0) for factor in candidate)
    return Found(columns, 2, cells, gain - mains, prior_variance)


def _score(cells: Cells, residuals: Residuals) -> tuple[float, float]:
    """``½ Σ_cells [R²/(W + 1/a) - log(1 + aW)]``: log Bayes factor of cell effects ~ N(0, a) (D27), for the best a."""
    difference, weight = _sums(cells, residuals)
    scores = [0.5 * float(np.sum(difference**2 / (weight + 1 / a) - np.log1p(a * weight))) for a in PRIOR_VARIANCES]
    best = int(np.argmax(scores))
    return scores[best], PRIOR_VARIANCES[best]


def _sums(cells: Cells, residuals: Residuals, rows: npt.NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """R and W summed by cell, one column per function."""
    n_cells = int(cells.max()) + 1
    chosen = slice(None) if rows is None else rows
    difference, weight = (
        np.stack([np.bincount(cells[chosen], column, n_cells) for column in part[chosen].T], axis=1, dtype=np.float64)
        for part in residuals
    )
    return difference, weight


def _holds(found: Found, residuals: Residuals) -> bool:
    """Whether effects estimated on each half of the rows improve the other half."""
    half = np.arange(len(found.cells)) % 2 == 0
    sums = [_sums(found.cells, residuals, rows) for rows in (half, ~half)]
    gain = 0.0
    for (difference, weight), (other_difference, other_weight) in (sums, sums[::-1]):
        effect = difference / (weight + 1 / found.prior_variance)
        gain += float(np.sum(effect * other_difference - 0.5 * effect**2 * other_weight))
    return gain > MARGIN


def _without(found: Found, residuals: Residuals) -> Residuals:
    """The residuals after removing the effects of the cells by one Newton step of the log odds."""
    difference, weight = _sums(found.cells, residuals)
    effect = (difference / (weight + 1 / found.prior_variance))[found.cells]
    left = residuals.difference - residuals.weight * effect
    return Residuals(left, residuals.weight)
