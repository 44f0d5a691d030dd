"""Data: rank-to-normal scaling from rows in memory, column by column.

A score is ``Φ⁻¹(rank)``. Groups of equal width in scores have many rows in the middle of a column and few in the tails.
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

MOST_KNOTS = 512  # per column; more would slow down np.interp and enlarge model files
KNOT_DISTANCE = 0.02  # in scores, if there are more distinct values than that
STEEPEST = 1e300  # slope beyond the knots: finite even if values differ by the smallest representable numbers
OUTER_PART = 1 / 6  # share of rows: about those more than one standard deviation above (or below) the mean


@dataclass(frozen=True)
class QuantileScaler:
    """Piecewise linear maps from ``knots``, values of a column, to their ``scores``, one per column.

    They are extrapolated with the slopes ``outer[j] = (below, above)``, so distant rows remain distant. The knots of
    column j are ``knots[starts[j]:starts[j + 1]]``; knots and scores are strictly increasing.
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
        """Whether columns vary so little that scaled values of other rows may overflow."""
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
    """Linear interpolation between knots, extrapolated with the slopes ``(below, above)``."""
    x = np.ascontiguousarray(x, np.float64)
    beyond = x - np.clip(x, knots[0], knots[-1])
    height: Array = np.interp(x, knots, heights)
    height += np.where(beyond < 0, slopes[0], slopes[1]) * beyond
    return height


def quantile_scaler(rows: HeldRows) -> QuantileScaler:
    """Map each value to the normal score of its mid-rank; constant columns are only centred.

    A weight of 2 is equivalent to repeating the row. Exact for up to ``MOST_KNOTS`` distinct values of a column. With
    more, the error of a rank is less than 0.2% of the rows, and less than a tenth of a tail. Next to a gap in the
    values of a column, where ranks say little, the error of a score is less than 0.04.
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
    """Increasing distinct values, or means of groups of them; their scores; and the slopes below and above."""
    if len(values) > MOST_KNOTS:
        values, weight = _grouped(values, weight)
    if values[-1] - values[0] <= ROUNDING * np.abs(values).max():
        return values[:1], np.zeros(1), (1.0, 1.0)
    scores = _scores(weight)
    rise = np.diff(scores, prepend=-np.inf) > 0  # False where a weight is lost to rounding
    values, weight, scores = values[rise], weight[rise], scores[rise]
    upper_slope = _outer_slope(values[::-1], weight[::-1], scores[::-1])
    return values, scores, (_outer_slope(values, weight, scores), upper_slope)


def _scores(weight: Array) -> Array:
    """``Φ⁻¹((weight below + half of the value's own) / total weight)``, the normal scores of mid-ranks."""
    reached = np.cumsum(weight)
    least = np.finfo(np.float64).epsneg  # keeps the score finite if a rank rounds to 0 or 1
    scores: Array = ndtri(np.clip((reached - weight / 2) / reached[-1], least, 1 - least))
    return scores


def _grouped(values: Array, weight: Array) -> tuple[Array, Array]:
    """Merge neighbours whose scores round to the same multiple of ``KNOT_DISTANCE``; heavy values stay separate."""
    scores = _scores(weight)
    # A group next to a heavy value keeps its outermost member, because its mean would move the edge of the step.
    steps = np.diff(scores, prepend=-np.inf, append=np.inf) > KNOT_DISTANCE
    begins = (np.diff(np.rint(scores / KNOT_DISTANCE)) != 0) | steps[:-2] | steps[2:]
    edges = np.flatnonzero(np.concatenate(([True], begins, [True])))
    first, last = values[edges[:-1]], values[edges[1:] - 1]
    total = np.add.reduceat(weight, edges[:-1])
    # Sums are relative to the first member, so that a single value is unchanged to the last bit.
    distances = weight * (values - np.repeat(first, np.diff(edges)))
    mean = first + np.add.reduceat(distances, edges[:-1]) / total
    return np.minimum(mean, last), total


def _outer_slope(values: Array, weight: Array, scores: Array) -> float:
    """Slope of the chord from the first value to the point where a sixth of the rows with other values is passed.

    The slope of the outermost piece alone would depend on just two rows.
    """
    reached = np.cumsum(weight)
    inner = max(1, np.searchsorted(reached, reached[0] + OUTER_PART * (reached[-1] - reached[0])))
    with np.errstate(over="ignore"):
        slope = (scores[inner] - scores[0]) / (values[inner] - values[0])
    return min(float(slope), STEEPEST)
