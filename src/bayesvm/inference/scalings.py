"""Inference: the scalings by name, and which of them are worth trying."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayesvm.data.blocks import BlockSource, at_most
from bayesvm.data.quantiles import quantile_scaler
from bayesvm.data.scaling import ColumnScaler, Scaler

QUANTILE_ROWS = 2**17  # a random sample of this size determines ranks to 0.15% and costs less than a pass
SCALES = ("standard", "quantile", "common")
ALIKE = 0.1  # relative difference of column scales from the common scale below which no trial is needed


def fitted_scalers(names: Iterable[str | None], raw: BlockSource) -> dict[str | None, Scaler]:
    """The scalings with these names, fitted in one pass over blocks."""
    found: dict[str | None, Scaler] = {}
    moments = None
    for name in names:
        if name is None:
            found[name] = ColumnScaler()
        elif name == "quantile":
            part = at_most(raw, QUANTILE_ROWS, np.random.default_rng(0))
            found[name] = quantile_scaler(part)
        else:
            moments = moments or raw.moments()
            found[name] = moments.common_scaler() if name == "common" else moments.scaler()
    return found


def worth_trying(raw: BlockSource) -> dict[str | None, Scaler]:
    """All scalings except those that are equivalent to another."""
    found = fitted_scalers(SCALES, raw)
    own, common = found["standard"], found["common"]
    if isinstance(own, ColumnScaler) and isinstance(common, ColumnScaler):
        ratio = np.ones(1) if own.scale is None or common.scale is None else own.scale / common.scale
        if np.abs(np.log(ratio)).max() < ALIKE:
            del found["common"]
    return found
