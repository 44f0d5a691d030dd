"""Core: leave-one-out and leave-group-out marginals of the training rows, from a single fit (D10, D24).

The site of one row, or the sites of a group of rows, are removed from q. Marginals come from ``latent``, sites from
``statistics``. The adjoint of the removal, which tuning needs, is also here (D17).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.heads.contract import Targets
from bayesvm.core.latent import Block, Marginals, View
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.statistics import Sites, sites_at
from bayesvm.core.workspace import Workspace

SMALLEST_SHARE = 1e-3  # lower bound of 1 - wt, the share of a row's precision that the other rows contribute


def effective_rows(weight: Array, group: Array | None = None) -> float:
    """``(Σ ω)² / Σ ω Ω``: the number of equally weighted rows that carry the same information (D23).

    Ω is the total weight of a row's group, the row included; without groups it is the row's own weight.
    """
    return float(weight.sum() ** 2 / np.sum(weight * (weight if group is None else group)))


class Cavities(NamedTuple):
    """Leave-one-out marginals of f, one column per function, with the rows' targets and weights.

    ``group_weight`` is the weight of a row together with its copies, if there are any.
    """

    mean: Array
    variance: Array
    y: npt.NDArray[Any]
    weight: Array
    group_weight: Array | None = None

    @property
    def effective_weight(self) -> Array:
        """The weights, scaled to sum to the effective number of rows (D23)."""
        return np.asarray(self.weight * (effective_rows(self.weight, self.group_weight) / self.weight.sum()))

    def take(self, which: Any) -> Cavities:
        """Select rows. Drops the group weights, which do not hold for a subset."""
        return Cavities(self.mean[which], self.variance[which], self.y[which], self.weight[which])

    @classmethod
    def joined(cls, parts: Iterable[Cavities]) -> Cavities:
        """Concatenate several parts. Drops the group weights, which hold within one part only."""
        return cls(*(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[:4]))


class LeftOut(NamedTuple):
    """The rows of one function, each without its own site (D10)."""

    site: Sites
    at: Marginals
    share: Array  # 1 - wt
    mean: Array
    variance: Array

    @classmethod
    def of(cls, site: Sites, at: Marginals) -> LeftOut:
        """``t₋ = t/(1-wt)``, ``m₋ = c + (m - c - tγ)/(1-wt)``, ``v₋ = t₋ + r``.

        ``at`` has the marginals of the final q, which contains the sites taken at the previous q. The prior mean c
        cancels, except where the floor applies: there m₋ shrinks towards c rather than towards zero.
        """
        t = at.explained
        share = np.maximum(1 - site.precision * t, SMALLEST_SHARE)
        mean = at.prior_mean + (at.mean - at.prior_mean - t * site.linear) / share
        return cls(site, at, share, mean, t / share + at.residual)

    def pull(self, by_mean: Array, by_variance: Array) -> tuple[Array, Array, Array]:
        """Map derivatives with respect to m₋ and v₋ to derivatives with respect to m, t and r, sites fixed (D17).

        With ``o = 1 - w t``: ``∂m₋/∂m = 1/o``, ``∂m₋/∂t = (w (m-c) - γ)/o²``, ``∂t₋/∂t = 1/o²``. Where o is clipped to
        its floor, the last two are ``-γ/o`` and ``1/o``.
        """
        w, gamma, centred = self.site.precision, self.site.linear, self.at.mean - self.at.prior_mean
        free = (by_mean * (w * centred - gamma) + by_variance) / self.share**2
        held = (by_variance - by_mean * gamma) / self.share
        return by_mean / self.share, np.where(self.share > SMALLEST_SHARE, free, held), by_variance


class RowMarginals(NamedTuple):
    """What held rows keep from a fit: their sites ``ω w`` and ``γ``, and their marginals; one column per function."""

    precision: Array
    linear: Array
    mean: Array
    explained: Array
    prior_mean: Array
    residual: Array

    @classmethod
    def joined(cls, parts: Iterable[RowMarginals]) -> RowMarginals:
        """Concatenate several stripes."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def left_out(self, rows: slice, phi: Array) -> list[LeftOut]:
        """The rows without their own sites, for every function; ``phi`` holds their features."""
        found = []
        for w, gamma, mean, t, c, r in zip(*(part[rows].T for part in self), strict=True):
            at = Marginals(phi, c, mean, t, r)
            found.append(LeftOut.of(Sites(at, np.zeros(0), w, gamma), at))
        return found

    def cavities(self, y: npt.NDArray[Any], weight: Array) -> Cavities:
        """All rows without their own sites."""
        left = self.left_out(slice(None), np.zeros((0, 0)))
        mean, variance = (np.column_stack(column) for column in zip(*((r.mean, r.variance) for r in left), strict=True))
        return Cavities(mean, variance, y, weight)


def block_marginals(
    blocks: Iterable[Block], workspace: Workspace, *, before: View, final: View, head: Targets, likelihood: Likelihood
) -> RowMarginals:
    """Sites at the q ``before`` and marginals of the ``final`` q, which contains them (D10)."""
    parts = []
    for block in blocks:
        workspace.reset()
        found = []
        for target, then, now in zip(final.targets, *_both(before, final, block.X, workspace), strict=True):
            site = sites_at(block, then, head.target(block.y, target), likelihood)
            columns = (
                site.precision,
                site.linear,
                now.mean,
                now.explained,
                now.prior_mean,
                now.residual,
            )
            found.append([np.broadcast_to(column, len(block.y)) for column in columns])
        parts.append(RowMarginals(*(np.column_stack(column) for column in zip(*found, strict=True))))
    return RowMarginals.joined(parts)


def _both(before: View, final: View, X: Array, workspace: Workspace) -> tuple[Iterable[Marginals], Iterable[Marginals]]:
    """The marginals of two views; computes the features once if both share them."""
    if before.features is not final.features:
        return before.marginals(X, workspace), final.marginals(X, workspace)
    given = (X, *before.features(X, workspace), workspace)
    return before.marginals_of(*given), final.marginals_of(*given)


def block_cavities(
    blocks: Iterable[Block], workspace: Workspace, *, before: View, final: View, head: Targets, likelihood: Likelihood
) -> Cavities:
    """Leave out every row with its full weight; ``before`` is the view of the q at which the sites were taken (D10)."""
    parts = []
    for block in blocks:
        rows = block_marginals([block], workspace, before=before, final=final, head=head, likelihood=likelihood)
        parts.append(rows.cavities(block.y.copy(), block.weights.copy()))
    return Cavities.joined(parts)


def without_group(spread: Array, centred: Array, w: Array, gamma: Array) -> tuple[Array, Array]:
    """``m₋ - c`` and ``t₋`` of a group's rows once all their sites are removed from q (D24).

    With ``T = B Bᵀ``, B the ``spread``, and W = diag(w): ``m₋ - c = (I - TW)^-1 (m - c - Tγ)``,
    ``t₋ = diag (I - TW)^-1 T``. The singular values s of ``W^½ B = U s Vᵀ`` give both for groups of any size:
    ``(I - TW)^-1 = I + B V s/(1-s²) Uᵀ W^½``. Where the group contributes nearly all of the precision, 1 - s² is
    clipped to a floor, and so are the eigenvalues of I - TW.
    """
    root = np.sqrt(w)
    U, s, Vt = np.linalg.svd(root[:, None] * spread, full_matrices=False)
    held = np.minimum(s**2, 1 - SMALLEST_SHARE)
    grown = held / (1 - held)
    alone = centred - spread @ (spread.T @ gamma)
    along = spread @ Vt.T  # B V
    mean = alone + along @ (grown / np.maximum(s, np.finfo(s.dtype).tiny) * (U.T @ (root * alone)))
    explained = np.einsum("ij,ij->i", spread, spread) + along**2 @ grown
    return mean, explained
