"""Data: rank-to-normal scaling from rows in memory, column by column.

A score is ``Φ⁻¹(rank)``. Groups of equal width in scores hold many rows in the middle of a column and few in the tails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import HeldRows
from bayesvm.data.scaling import ROUNDING, STEEP, within_reach

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


def quantile_scaler(rows: HeldRows) -> QuantileScaler:
    """Each value to the normal score of its mid-rank; a column that does not vary is only centred.

    A weight of 2 is a row given twice. Exact for up to ``MOST_KNOTS`` distinct values of a column; with more, a rank is
    off by less than 0.2 % of the rows, and by less than a tenth of a tail. Beside a gap in a column, where a rank says
    little, a score is off by less than 0.04.
    """
    weight = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    counted = weight > 0

    def knots_of(column: npt.NDArray[Any]) -> tuple[Array, Array, tuple[float, float]]:
        values, place = np.unique(column[counted].astype(np.float64), return_inverse=True)
        return _knots(values, np.bincount(place, weight[counted]).astype(np.float64))

    knots, scores, outer = zip(*rows.map_columns(knots_of), strict=True)
    starts = np.cumsum([0, *map(len, knots)])
    return QuantileScaler(np.concatenate(knots), np.concatenate(scores), starts, np.array(outer))


def _knots(values: Array, weight: Array) -> tuple[Array, Array, tuple[float, float]]:
    """Distinct values that rise, or means of groups of them; their scores; and the slopes below and above them."""
    if len(values) > MOST_KNOTS:
        values, weight = _grouped(values, weight)
    if values[-1] - values[0] <= ROUNDING * np.abs(values).max():
        return values[:1], np.zeros(1), (1.0, 1.0)
    scores = _scores(weight)
    rise = np.diff(scores, prepend=-np.inf) > 0  # not where a weight is lost in rounding
    values, weight, scores = values[rise], weight[rise], scores[rise]
    upper_slope = _outer_slope(values[::-1], weight[::-1], scores[::-1])
    return values, scores, (_outer_slope(values, weight, scores), upper_slope)


def _scores(weight: Array) -> Array:
    """``Φ⁻¹((weight below + half of the value's own) / total weight)``, the normal scores of mid-ranks."""
    reached = np.cumsum(weight)
    least = np.finfo(np.float64).epsneg  # a rank that rounds to 0 or 1 has a finite score all the same
    scores: Array = ndtri(np.clip((reached - weight / 2) / reached[-1], least, 1 - least))
    return scores


def _grouped(values: Array, weight: Array) -> tuple[Array, Array]:
    """Neighbours whose scores round to the same multiple of ``KNOT_DISTANCE`` become one; a heavy value stays alone."""
    scores = _scores(weight)
    # The mean of a group beside a heavy value would move the edge of the step there; the outermost member stays.
    steps = np.diff(scores, prepend=-np.inf, append=np.inf) > KNOT_DISTANCE
    begins = (np.diff(np.rint(scores / KNOT_DISTANCE)) != 0) | steps[:-2] | steps[2:]
    edges = np.flatnonzero(np.concatenate(([True], begins, [True])))
    first, last = values[edges[:-1]], values[edges[1:] - 1]
    total = np.add.reduceat(weight, edges[:-1])
    # From the first member on, because then a value that is alone stays what it was, to the last bit.
    distances = weight * (values - np.repeat(first, np.diff(edges)))
    mean = first + np.add.reduceat(distances, edges[:-1]) / total
    return np.minimum(mean, last), total


def _outer_slope(values: Array, weight: Array, scores: Array) -> float:
    """Slope of the chord from the first value to where a sixth of the rows that have other values is passed.

    The outermost piece alone would be as steep or as flat as two rows happen to lie.
    """
    reached = np.cumsum(weight)
    inner = max(1, np.searchsorted(reached, reached[0] + OUTER_PART * (reached[-1] - reached[0])))
    with np.errstate(over="ignore"):
        slope = (scores[inner] - scores[0]) / (values[inner] - values[0])
    return min(float(slope), STEEPEST)
