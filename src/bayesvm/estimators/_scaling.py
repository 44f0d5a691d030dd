"""Estimators: which scalings there are by name, and which of them are worth trying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesvm.data.blocks import map_reduce
from bayesvm.data.memory import MemorySource
from bayesvm.data.quantiles import ColumnQuantiles
from bayesvm.data.scaling import ColumnMoments, ColumnScaler, Scaler

QUANTILE_ROWS = 2**17  # a random choice of so many fixes ranks to 0.15 % and costs less than a pass
SCALES = ("standard", "quantile", "common")
ALIKE = 0.1  # standard deviations by which the columns' own scales may differ from the common one without a trial


def fitted_scaler(name: str | None, raw: MemorySource) -> Scaler:
    """The scaling by that name, fitted to rows in one pass over blocks."""
    if name is None:
        return ColumnScaler()
    if name == "quantile":
        rng = np.random.default_rng(0)
        part = raw if raw.n_rows <= QUANTILE_ROWS else raw.subset(QUANTILE_ROWS, rng)
        return map_reduce(replace(part, scaler=ColumnScaler()), ColumnQuantiles.of).scaler()
    moments = map_reduce(replace(raw, scaler=ColumnScaler()), ColumnMoments.of)
    return moments.common_scaler() if name == "common" else moments.scaler()


def worth_trying(raw: MemorySource) -> dict[str, Scaler]:
    """All scalings, but not one that would do the same as another."""
    found = {name: fitted_scaler(name, raw) for name in SCALES}
    own, common = found["standard"], found["common"]
    if isinstance(own, ColumnScaler) and isinstance(common, ColumnScaler):
        ratio = np.ones(1) if own.scale is None or common.scale is None else own.scale / common.scale
        if np.abs(np.log(ratio)).max() < ALIKE:
            del found["common"]
    return found
