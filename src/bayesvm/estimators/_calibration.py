"""Estimators: leave-one-out from one fit, and the link that is fitted to it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayesvm.core.leave_one_out import Cavities, block_cavities, joined
from bayesvm.core.linalg import OUT_OF_RANGE, NotFiniteError
from bayesvm.core.links import PLAIN_LINKS, Normalised, calibrated, refined
from bayesvm.core.statistics import View
from bayesvm.data.blocks import BlockSource, at_most
from bayesvm.data.repetition import group_weights
from bayesvm.estimators._prediction import probabilities
from bayesvm.inference.objective import Model
from bayesvm.inference.training import Trained

LOO_ROWS = 20_000  # a random choice of so many rows stands for all, beyond that
FEW_LOO_ROWS = 2_000  # in a fit that somebody asked to stop


def cavities(
    model: Model,
    source: BlockSource,
    trained: Trained,
    rng: np.random.Generator,
    *,
    copies: bool,
    few: bool = False,
) -> tuple[Cavities, np.ndarray]:
    """Leave-one-out marginals of all rows, or of a random choice, and which rows of the table they are.

    With ``copies`` a row leaves with all rows that equal it: their sites are alike, so their weights add up (D10).
    """
    part = at_most(source, FEW_LOO_ROWS if few else LOO_ROWS, rng)
    sites, _ = View.of(model.features, trained.before, part.n_rows, model.dtype)
    final, _ = View.of(model.features, trained.machines, part.n_rows, model.dtype)
    work = partial(block_cavities, sites=sites, final=final, likelihood=model.likelihood)
    if not copies:
        return joined(part.map(work)), part.numbers
    group = group_weights(source, part)
    weight = np.ones(part.n_rows) if part.weights is None else part.weights
    return joined(part.weighted(group).map(work))._replace(weight=weight, group_weight=group), part.numbers


def fitted_link(name: str, cavity: Cavities) -> Any:
    """The link by that name; ``calibrated`` is fitted to the leave-one-out marginals."""
    if not (np.isfinite(cavity.mean).all() and np.isfinite(cavity.variance).all()):
        raise NotFiniteError(f"leave-one-out predictions are not finite: {OUT_OF_RANGE}")
    if name == "calibrated":
        return refined(calibrated(cavity), cavity)
    return Normalised(PLAIN_LINKS[name]) if cavity.mean.shape[1] > 1 else PLAIN_LINKS[name]


def decision(link: Any, cavity: Cavities) -> np.ndarray:
    """Scores or logits of the leave-one-out marginals."""
    if cavity.mean.shape[1] > 1:
        return link.logits(cavity.mean, cavity.variance)
    return link.score(cavity.mean[:, 0], cavity.variance[:, 0])


def mean_log_loss(link: Any, cavity: Cavities) -> float:
    """Of the leave-one-out marginals under a link."""
    right = probabilities(decision(link, cavity))[np.arange(len(cavity.y)), cavity.y]
    return float(np.average(-np.log(np.maximum(right, 1e-300)), weights=cavity.weight))


def capped(cavity: Cavities, rng: np.random.Generator) -> Cavities:
    """At most ``LOO_ROWS`` of them, at random: what a stream remembers for its calibration."""
    if len(cavity.y) <= LOO_ROWS:
        return cavity
    keep = np.sort(rng.choice(len(cavity.y), LOO_ROWS, replace=False))
    return Cavities(cavity.mean[keep], cavity.variance[keep], cavity.y[keep], cavity.weight[keep])
