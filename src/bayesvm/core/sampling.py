"""Core: joint samples of latent functions at some rows, from the posterior of a fitted model (D4, D25)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import InducingFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.linalg import Array, cholesky
from bayesvm.core.members import Member, MemberViews
from bayesvm.core.workspace import Workspace

RELATIVE_JITTER = 1e-9


def drawn_members(views: MemberViews, X: Array, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The member that each of ``n`` draws takes a row's f from, by their shares; of shape (n, rows)."""
    if len(views.views) == 1:
        return np.zeros((n, len(X)), np.intp)
    reached = np.cumsum(views.shares(X), axis=0)  # members × rows
    drawn = (rng.random(n)[:, None, None] >= reached[None, :, :]).sum(axis=1)
    return np.asarray(drawn.clip(max=len(views.views) - 1))


def joint_samples(
    members: Sequence[Member],
    views: MemberViews,
    X: Array,
    n: int,
    rng: np.random.Generator,
    chosen: npt.NDArray[np.intp] | None = None,
) -> Array:
    """``n`` draws of f at scaled rows, of shape (n, rows, functions).

    With several members, each draw takes a row's f from one of them: ``chosen``, or drawn by their shares. Rows whose f
    comes from the same member, or from members with the same parent, are drawn jointly.
    """
    if len(members) == 1:
        return _member_samples(members[0], X, n, rng, {})
    chosen = drawn_members(views, X, n, rng) if chosen is None else chosen
    samples = np.zeros((n, len(X), len(members[0].functions)))
    parents: dict[int, Array] = {}
    for number, member in enumerate(members):
        mine = chosen == number
        is_parent = any(other.parent == number for other in members)
        if mine.any() or is_parent:
            found = _member_samples(member, X, n, rng, parents)
            samples[mine] = found[mine]
            if is_parent:
                parents[number] = _member_samples(member, X, n, rng, parents, residual=False)
    return samples


def _member_samples(
    member: Member, X: Array, n: int, rng: np.random.Generator, parents: dict[int, Array], *, residual: bool = True
) -> Array:
    X = member.rows(X)
    phi, prior_variance = member.features.prepared(None, np.float64)(X, Workspace())
    factor = None
    if residual and prior_variance is not None and isinstance(member.features, InducingFeatures):
        covariance = member.features.covariance(X) - phi @ phi.T
        scale = float(np.mean(prior_variance))
        factor, _ = cholesky(covariance / scale + RELATIVE_JITTER * np.eye(len(X)), what="the residual covariance")
        factor *= np.sqrt(scale)
    draws = np.stack([_draws(function, phi, factor, n, rng) for function in member.functions], axis=-1)
    return draws if member.parent is None else draws + parents[member.parent]


def _draws(function: LatentFunction, phi: Array, residual: Array | None, n: int, rng: np.random.Generator) -> Array:
    q = function.posterior
    weights = q.mean + q.spread(rng.standard_normal((n, len(q.mean))))
    draws: Array = function.offset + weights @ phi.T
    if residual is not None:
        draws += rng.standard_normal((n, len(phi))) @ residual.T
    return draws
