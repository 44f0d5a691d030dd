"""Data: rank-to-normal scaling, from summaries of the columns that merge and are made in one pass.

A score is ``Φ⁻¹(rank)``. Groups of equal width in scores hold many rows in the middle of a column and few in the tails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Block
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import ROUNDING, STEEP, within_reach

MOST_VALUES = 4096  # of a column in a summary; more are grouped
GROUP_WIDTH = 0.005  # in scores; 0.2 % of the rows in the middle of a column
MOST_KNOTS = 512  # of a column in a scaler; np.interp slows down with more, and a model's file grows
KNOT_DISTANCE = 0.02  # in scores, if there are more values than that
STEEPEST = 1e300  # slope beyond the knots: it stays finite where values differ by the smallest numbers there are
OUTER_PART = 1 / 6  # of the rows: about those beyond one standard deviation on one side


@dataclass(frozen=True)
class QuantileScaler:
    """Straight lines from ``knots``, values of a column, to their ``scores``, column by column.

    They go on beyond the outermost knots, with the slopes ``outer[j] = (below, above)``, so that a far row stays far.
    The knots of column j are ``knots[starts[j]:starts[j + 1]]``; both they and their scores rise strictly.
    """

    knots: Array
    scores: Array
    starts: npt.NDArray[np.intp]
    outer: Array

    def __call__(self, X: npt.NDArray[Any], workspace: Workspace | None = None) -> Array:
        """The normal scores of the rows in double precision."""
        scaled: Array = (workspace or Workspace()).empty(X.shape, np.float64)
        with np.errstate(over="ignore"):
            for j, (knots, scores, slopes) in enumerate(self._columns()):
                scaled[:, j] = _broken_line(X[:, j], knots, scores, slopes)
        return within_reach(scaled) if self.steep else scaled

    @property
    def steep(self) -> bool:
        """Whether columns vary so little that another row may be out of reach."""
        return bool(self.outer.max() > STEEP)

    def inverse(self, scaled: Array) -> Array:
        """Back to the units of the columns."""
        X = np.empty(scaled.shape)
        for j, (knots, scores, slopes) in enumerate(self._columns()):
            X[:, j] = _broken_line(scaled[:, j], scores, knots, 1 / slopes)
        return X

    def _columns(self) -> Iterable[tuple[Array, Array, Array]]:
        inner = self.starts[1:-1]
        return zip(np.split(self.knots, inner), np.split(self.scores, inner), self.outer, strict=True)


def _broken_line(x: npt.NDArray[Any], knots: Array, heights: Array, slopes: Array) -> Array:
    """Straight from knot to knot and, beyond them, on with the slopes ``(below, above)``."""
    x = np.ascontiguousarray(x, np.float64)
    beyond = x - np.clip(x, knots[0], knots[-1])
    height: Array = np.interp(x, knots, heights)
    height += np.where(beyond < 0, slopes[0], slopes[1]) * beyond
    return height


class Ranked(NamedTuple):
    """Distinct values in rising order with their weights; a group of neighbours may stand as one value, its mean."""

    values: Array
    weight: Array

    @classmethod
    def of(cls, values: Array, weight: Array) -> Self:
        """Values in any order; equal ones become one."""
        distinct, place = np.unique(values, return_inverse=True)
        return cls(distinct, np.bincount(place, weight).astype(np.float64))  # of no rows it counts in integers

    def scores(self) -> Array:
        """``Φ⁻¹((weight below + half of the value's own) / total weight)``, the normal scores of mid-ranks."""
        reached = np.cumsum(self.weight)
        least = np.finfo(np.float64).epsneg  # a rank that rounds to 0 or 1 has a finite score all the same
        scores: Array = ndtri(np.clip((reached - self.weight / 2) / reached[-1], least, 1 - least))
        return scores

    def grouped(self, width: float) -> Self:
        """Neighbours whose scores round to the same multiple of ``width`` become one; a heavy value stays alone."""
        scores = self.scores()
        # The mean of a group beside a heavy value would move the edge of the step there; the outermost member stays.
        steps = np.diff(scores, prepend=-np.inf, append=np.inf) > width
        begins = (np.diff(np.rint(scores / width)) != 0) | steps[:-2] | steps[2:]
        edges = np.flatnonzero(np.concatenate(([True], begins, [True])))
        first, last = self.values[edges[:-1]], self.values[edges[1:] - 1]
        weight = np.add.reduceat(self.weight, edges[:-1])
        # From the first member on, because then a value that is alone stays what it was, to the last bit.
        distances = self.weight * (self.values - np.repeat(first, np.diff(edges)))
        mean = first + np.add.reduceat(distances, edges[:-1]) / weight
        return type(self)(np.minimum(mean, last), weight)

    def bounded(self) -> Self:
        """Itself, or groups if there are too many values."""
        return self if len(self.values) <= MOST_VALUES else self.grouped(GROUP_WIDTH)


@dataclass
class ColumnQuantiles:
    """Every column's distinct values and their weights, or groups of them; a weight of 2 is a row given twice.

    A scaler is exact for up to ``MOST_KNOTS`` distinct values. With more, whatever the order of the rows, a rank is off
    by less than 0.2 % of the rows, and by less than a tenth of a tail. Beside a gap in a column, where a rank says
    little, a score is off by less than 0.04. Rows that weigh as much as thousands of others blur their neighbours more.
    """

    columns: list[Ranked]

    @classmethod
    def of(cls, blocks: Iterable[Block], workspace: Workspace | None = None) -> ColumnQuantiles:  # noqa: ARG003
        """The quantiles of some blocks together."""
        return reduce(iadd, map(cls._of_block, blocks))

    @classmethod
    def _of_block(cls, block: Block) -> ColumnQuantiles:
        X = np.asarray(block.X, np.float64)
        weight = np.ones(len(X)) if block.weight is None else block.weight
        X, weight = X[weight > 0], weight[weight > 0]
        return cls([Ranked.of(column, weight).bounded() for column in X.T])

    def __iadd__(self, other: Self) -> Self:
        self.columns = [
            Ranked.of(*map(np.concatenate, zip(mine, theirs, strict=True))).bounded()
            for mine, theirs in zip(self.columns, other.columns, strict=True)
        ]
        return self

    def scaler(self) -> QuantileScaler:
        """Each value to the normal score of its mid-rank; a column that does not vary is only centred."""
        knots, scores, outer = zip(*map(_knots, self.columns), strict=True)
        starts = np.cumsum([0, *map(len, knots)])
        return QuantileScaler(np.concatenate(knots), np.concatenate(scores), starts, np.array(outer))


def _knots(column: Ranked) -> tuple[Array, Array, tuple[float, float]]:
    """Values, their scores, and the slopes below and above them."""
    if len(column.values) > MOST_KNOTS:
        column = column.grouped(KNOT_DISTANCE)
    values, weight = column
    if values[-1] - values[0] <= ROUNDING * np.abs(values).max():
        return values[:1], np.zeros(1), (1.0, 1.0)
    scores = column.scores()
    rise = np.diff(scores, prepend=-np.inf) > 0  # not where a weight is lost in rounding
    values, weight, scores = values[rise], weight[rise], scores[rise]
    above = _outer_slope(values[::-1], weight[::-1], scores[::-1])
    return values, scores, (_outer_slope(values, weight, scores), above)


def _outer_slope(values: Array, weight: Array, scores: Array) -> float:
    """Slope of the chord from the first value to where a sixth of the rows that have other values is passed.

    The outermost piece alone would be as steep or as flat as two rows happen to lie.
    """
    reached = np.cumsum(weight)
    inner = max(1, np.searchsorted(reached, reached[0] + OUTER_PART * (reached[-1] - reached[0])))
    with np.errstate(over="ignore"):
        slope = (scores[inner] - scores[0]) / (values[inner] - values[0])
    return min(float(slope), STEEPEST)
