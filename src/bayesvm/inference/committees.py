"""Inference: several fits that speak together (D28): how much weight each member has, and which ones are worth keeping.

Stacking (Yao, Vehtari, Simpson and Gelman, 2018): the weights are those whose mixture of leave-one-out predictions has
the lowest log loss.
"""

from __future__ import annotations

import numpy as np

from bayesvm.core.linalg import Array

MOST_MEMBERS = 4  # which bounds the time of predictions
LEAST_SHARE = 0.05  # members below it are dropped
STEPS = 200
PRIOR_ROWS, PRIOR_SHARE = 10.0, 0.1  # rows, and a share of all rows, that speak for equal weights


def stacked(losses: Array, weight: Array, least: float, most: int) -> Array:
    """Weights of members, zero for those that do not matter, from ``-log p(y)`` of every row (a column per member).

    EM for the weights of a mixture with known components: each step raises the likelihood. Members are dropped while
    one is below ``least`` or there are more than ``most``.
    """
    n_members = losses.shape[1]
    kept = np.arange(n_members)
    # Relative to the best member of each row, so that nothing underflows.
    density = np.exp(losses.min(axis=1, keepdims=True) - losses)
    rows = weight / weight.sum() * len(weight)
    while True:
        share = _mixture_weights(density[:, kept], rows)
        drop = int(np.argmin(share))
        if len(kept) == 1 or (share[drop] >= least and len(kept) <= most):
            break
        kept = np.delete(kept, drop)
    found = np.zeros(n_members)
    found[kept] = share
    return found


def _mixture_weights(density: Array, rows: Array) -> Array:
    n_members = density.shape[1]
    prior = (PRIOR_ROWS + PRIOR_SHARE * rows.sum()) / n_members
    share = np.full(n_members, 1 / n_members)
    for _ in range(STEPS):
        owned = density * share
        counts = rows @ (owned / owned.sum(axis=1, keepdims=True)) + prior
        share = counts / counts.sum()
    return share
