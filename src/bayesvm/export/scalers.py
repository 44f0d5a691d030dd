"""Export: the scalings of the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvm.data.quantiles import QuantileScaler
from bayesvm.data.scaling import ColumnScaler
from bayesvm.export.graph import Value, where


def scaled(scaler: Any, rows: Value) -> Value:
    """The scaled rows."""
    return SCALERS[type(scaler)](scaler, rows)


def _columns(scaler: ColumnScaler, rows: Value) -> Value:
    if scaler.centre is None or scaler.scale is None:
        return rows
    return (rows - scaler.centre) / scaler.scale


def _quantiles(scaler: QuantileScaler, rows: Value) -> Value:
    """Straight lines between knots: the number of knots below each value by bisection, for all columns at once."""
    ends = [slice(*scaler.starts[j : j + 2]) for j in range(len(scaler.outer))]
    bits = int(max(np.diff(scaler.starts))).bit_length()
    width = 2**bits  # more than there are knots: 0 … n of them may lie below
    knots = np.full((len(ends), width), np.inf)
    anchors, heights, slopes = np.zeros(knots.shape), np.zeros(knots.shape), np.zeros(knots.shape)
    for j, (end, (below, above)) in enumerate(zip(ends, scaler.outer, strict=True)):
        x, y = scaler.knots[end], scaler.scores[end]
        n = len(x)
        knots[j, :n] = x
        # The line of a piece goes through its left knot; that of the first, which has none, through its right one.
        anchors[j, : n + 1], heights[j, : n + 1] = np.append(x[0], x), np.append(y[0], y)
        slopes[j, : n + 1] = np.concatenate([[below], np.diff(y) / np.diff(x), [above]])
    graph = rows.graph
    tables = [graph.constant(table.ravel(), np.float64) for table in (knots, anchors, heights, slopes)]
    first = graph.constant(np.arange(len(ends)) * width, np.int64)
    passed = first
    for step in (2**bit for bit in reversed(range(bits))):
        further = passed + step
        reached = rows.apply("GreaterOrEqual", tables[0].at(further - 1), dtype=np.bool_)
        passed = where(reached, further, passed)
    anchor, height, slope = (table.at(passed) for table in tables[1:])
    return height + slope * (rows - anchor)


SCALERS: dict[type, Callable[[Any, Value], Value]] = {ColumnScaler: _columns, QuantileScaler: _quantiles}
