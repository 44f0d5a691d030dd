"""Core: joint samples of latent functions at some rows, from the posterior of a fitted model (D4, D25, D30)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features, InducingFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.linalg import Array, cholesky
from bayesvm.core.members import Member
from bayesvm.core.workspace import Workspace

RELATIVE_JITTER = 1e-9


def drawn_members(shares: Sequence[float], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The member of each of ``n`` draws, chosen according to the shares."""
    if len(shares) == 1:
        return np.zeros(n, np.intp)
    reached = np.cumsum(shares)
    return np.searchsorted(reached, rng.random(n), side="right").clip(max=len(shares) - 1)


def joint_samples(members: Sequence[Member], X: Array, chosen: npt.NDArray[np.intp], rng: np.random.Generator) -> Array:
    """One draw of f at scaled rows per entry of ``chosen``, of shape (n, rows, functions).

    If a member has leaves, rows of the same leaf are drawn jointly. Different leaves share only the mean below them.
    """
    samples = np.zeros((len(chosen), len(X), len(members[0].functions)))
    for number, member in enumerate(members):
        mine = np.flatnonzero(chosen == number)
        if len(mine):
            samples[mine] = _member_samples(member, member.rows(X), len(mine), rng)
    return samples


def _member_samples(member: Member, X: Array, n: int, rng: np.random.Generator) -> Array:
    if member.leaves is None:
        return _samples(member.features, member.functions, X, n, rng)
    draws = _samples(member.features, member.functions, X, n, rng, residual=False)
    for leaf, rows in member.leaves.groups(X):
        draws[:, rows] += _samples(leaf.features, leaf.functions, X[rows], n, rng)
    return draws


def _samples(
    features: Features,
    functions: Sequence[LatentFunction],
    X: Array,
    n: int,
    rng: np.random.Generator,
    *,
    residual: bool = True,
) -> Array:
    if residual and isinstance(features, InducingFeatures) and features.whitening.dtype == np.float32:
        features = features.whitened_again()  # else rounding would dominate the residual covariance
    phi, prior_variance = features.prepared(None, np.float64)(X, Workspace())
    factor = None
    if residual and prior_variance is not None and isinstance(features, InducingFeatures):
        covariance = features.covariance(X) - phi @ phi.T
        scale = float(np.mean(prior_variance))
        factor, _ = cholesky(covariance / scale + RELATIVE_JITTER * np.eye(len(X)), what="the residual covariance")
        factor *= np.sqrt(scale)
    return np.stack([_draws(function, phi, factor, n, rng) for function in functions], axis=-1)


def _draws(function: LatentFunction, phi: Array, residual: Array | None, n: int, rng: np.random.Generator) -> Array:
    q = function.posterior
    weights = q.mean + q.spread(rng.standard_normal((n, len(q.mean))))
    draws: Array = function.offset + weights @ phi.T
    if residual is not None:
        draws += rng.standard_normal((n, len(phi))) @ residual.T
    return draws
