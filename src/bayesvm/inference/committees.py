"""Inference: averages of several fits (D28): their weights, which to keep, and how to sharpen their links.

Stacking (Yao, Vehtari, Simpson and Gelman, 2018) chooses the weights whose mixture of leave-one-out predictions has the
lowest log loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from bayesvm.core.cavities import Cavities
from bayesvm.core.linalg import Array

MOST_MEMBERS = 6  # limits the prediction time
LEAST_SHARE = 0.04  # members with less weight are dropped
PRIOR_ROWS = 50.0  # weight of the prior for equal weights; few rows cannot distinguish similar members
SHARPEST = np.log(2.0)  # largest change of links, as a logarithm
DEVIATION = 0.2  # prior standard deviation of this logarithm


def stacked(losses: Array, weight: Array, least: float, most: int) -> Array:
    """Weights of members, zero for those dropped, from ``-log p(y)`` of every row (one column per member).

    ``weight`` sums to the effective number of rows, which determines the influence of the prior. Members are dropped
    while one is below ``least`` or explains no row, or while there are more than ``most``.
    """
    n_members = losses.shape[1]
    kept = np.arange(n_members)
    # Relative to the best member of each row, to prevent underflow.
    density = np.exp(losses.min(axis=1, keepdims=True) - losses)
    while True:
        share = _mixture_weights(density[:, kept], weight)
        drop = int(np.argmin(share))
        # A member that explains no row gets only its prior weight.
        by_prior = PRIOR_ROWS / (weight.sum() + PRIOR_ROWS)
        explains = share[drop] - by_prior / len(kept) > 0.05 * (1 - by_prior) / len(kept)
        if len(kept) == 1 or (explains and share[drop] >= least and len(kept) <= most):
            break
        kept = np.delete(kept, drop)
    found = np.zeros(n_members)
    found[kept] = share
    return found


def _mixture_weights(density: Array, rows: Array) -> Array:
    """Weights w that maximise ``Σ_i ω_i log Σ_k w_k p_ik + (n₀/K) Σ_k log w_k``, which is concave."""
    n_members = density.shape[1]
    prior = PRIOR_ROWS / n_members

    def loss(logits: Array) -> tuple[float, Array]:
        log_share = log_softmax(logits)
        share = np.exp(log_share)
        mixed = density @ share
        by_share = (rows / mixed) @ density + prior / share
        gradient = share * (by_share - share @ by_share)
        return -float(rows @ np.log(mixed) + prior * log_share.sum()), -gradient

    found = minimize(loss, np.zeros(n_members), jac=True, method="L-BFGS-B").x
    return np.asarray(softmax(found))


def sharpened(links: Sequence[Any], left_out: Sequence[Cavities], weights: Array) -> list[Any]:
    """The links, sharpened by the factor that calibrates the average of the members (D28).

    An average of calibrated predictions is underconfident where they differ.
    """

    def loss(log_factor: float) -> float:
        each = [
            link.sharpened(np.exp(log_factor)).row_losses(left.mean, left.variance, left.y)
            for link, left in zip(links, left_out, strict=True)
        ]
        losses = -logsumexp(-np.column_stack(each), axis=1, b=weights)
        return float(left_out[0].effective_weight @ losses) + 0.5 * (log_factor / DEVIATION) ** 2

    found = minimize_scalar(loss, bounds=(-SHARPEST, SHARPEST), method="bounded", options={"xatol": 1e-2})
    return [link.sharpened(float(np.exp(found.x))) for link in links]
