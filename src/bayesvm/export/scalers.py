"""Export: the scalings of the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.quantiles import QuantileScaler
from bayesvm.data.scaling import LARGEST_SCALED, ColumnScaler
from bayesvm.export.graph import Value, clip, concatenated, where


def scaled(scaler: Any, rows: Value) -> Value:
    """The scaled rows, clipped to the same range."""
    value = SCALERS[type(scaler)](scaler, rows)
    return clip(value, -LARGEST_SCALED, LARGEST_SCALED) if scaler.steep else value


def _columns(scaler: ColumnScaler, rows: Value) -> Value:
    if scaler.centre is None or scaler.scale is None:
        return rows
    return (rows - scaler.centre) / scaler.scale


def _quantiles(scaler: QuantileScaler, rows: Value) -> Value:
    """Linear interpolation between knots; columns are grouped by their number of bisection steps."""
    n_knots = np.diff(scaler.starts)
    bits = np.array([int(n).bit_length() for n in n_knots])  # 0 … n knots may be below a value
    groups = [np.flatnonzero(bits == steps) for steps in np.unique(bits)]
    order = np.argsort(np.concatenate(groups))
    return concatenated([_broken_lines(scaler, columns, rows.columns(columns)) for columns in groups]).columns(order)


def _broken_lines(scaler: QuantileScaler, columns: npt.NDArray[np.intp], x: Value) -> Value:
    """Find the knots below each value by bisection, for all these columns at once."""
    bits = int(np.diff(scaler.starts)[columns].max()).bit_length()
    width = 2**bits
    knots = np.full((len(columns), width), np.inf)
    anchors, heights, slopes = np.zeros(knots.shape), np.zeros(knots.shape), np.zeros(knots.shape)
    for j, column in enumerate(columns):
        own = slice(*scaler.starts[column : column + 2])
        own_knots, scores, (lower_slope, upper_slope) = scaler.knots[own], scaler.scores[own], scaler.outer[column]
        n = len(own_knots)
        knots[j, :n] = own_knots
        # The line of a piece passes through its left knot; the first piece has none, and uses its right knot.
        anchors[j, : n + 1], heights[j, : n + 1] = np.append(own_knots[0], own_knots), np.append(scores[0], scores)
        slopes[j, : n + 1] = np.concatenate([[lower_slope], np.diff(scores) / np.diff(own_knots), [upper_slope]])
    knot, anchor, height, slope = (x.graph.constant(t.ravel(), np.float64) for t in (knots, anchors, heights, slopes))
    passed = x.graph.constant(np.arange(len(columns)) * width, np.int64)
    for step in (2**bit for bit in reversed(range(bits))):
        further = passed + step
        passed = where(x.apply("GreaterOrEqual", knot.at(further - 1), dtype=np.bool_), further, passed)
    return height.at(passed) + slope.at(passed) * (x - anchor.at(passed))


SCALERS: dict[type, Callable[[Any, Value], Value]] = {ColumnScaler: _columns, QuantileScaler: _quantiles}
