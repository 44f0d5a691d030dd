"""Core: what a fit would say of a training row had it not seen it, from that one fit (D10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Block, View
from bayesvm.core.workspace import Workspace

SMALLEST_SHARE = 1e-3  # of a row's precision that the others must have given; 1 - wt is at least this


def effective_rows(weight: Array, group: Array | None = None) -> float:
    """``(Σ ω)² / Σ ω Ω``: as many rows of equal weight say as much (D23).

    Ω is the weight of a row's group, of which each row is a member; without groups, its own.
    """
    return float(weight.sum() ** 2 / np.sum(weight * (weight if group is None else group)))


class Cavities(NamedTuple):
    """Leave-one-out marginals of f, a column for each machine, with the rows' classes and weights.

    ``group_weight`` is the weight of a row and its copies, if there are copies.
    """

    mean: Array
    variance: Array
    y: npt.NDArray[np.integer]
    weight: Array
    group_weight: Array | None = None

    @property
    def effective_weight(self) -> Array:
        """The weights in proportion, with the effective number of rows as their sum (D23)."""
        return np.asarray(self.weight * (effective_rows(self.weight, self.group_weight) / self.weight.sum()))


def block_cavities(
    blocks: Iterable[Block], workspace: Workspace, *, sites: View, final: View, likelihood: Likelihood
) -> Cavities:
    """``t₋ = t/(1-wt)``, ``m₋ = (m - tg)/(1-wt)``, ``v₋ = t₋ + r`` (D10).

    The final q contains each row's site as it was at the q before, seen through ``sites``. A row is left out with all
    its weight.
    """
    parts = []
    for block in blocks:
        workspace.reset()
        weight = np.ones(len(block.y)) if block.weight is None else block.weight.copy()
        means, variances = [], []
        pairs = zip(final.lenses, sites.marginals(block.X, workspace), final.marginals(block.X, workspace), strict=True)
        for lens, before, after in pairs:
            local = likelihood.update(before.mean, before.variance, block.signs(lens.label))
            w, g, t = weight * local.precision, weight * local.linear, after.explained
            others = np.maximum(1 - w * t, SMALLEST_SHARE)
            c = lens.offset  # it cancels unless the floor was needed, where m₋ is then drawn to c and not to zero
            means.append(c + (after.mean - c - t * (g - w * c)) / others)
            variances.append(t / others + after.residual)
        parts.append(Cavities(np.column_stack(means), np.column_stack(variances), block.y.copy(), weight))
    return joined(parts)


def joined(parts: Iterable[Cavities]) -> Cavities:
    """Several one after the other; what is known of groups does not go beyond one part."""
    return Cavities(*(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[:4]))
