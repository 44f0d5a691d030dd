"""Core: what a fit would say of training rows had it not seen them, from that one fit (D10, D24).

The site of one row, or the sites of a group of rows, are removed from q. Marginals come from ``latent``, sites from
``statistics``; the adjoint of the removal is here, too, for tuning (D17).
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

SMALLEST_SHARE = 1e-3  # of a row's precision that the others must have given; 1 - wt is at least this


def effective_rows(weight: Array, group: Array | None = None) -> float:
    """``(Σ ω)² / Σ ω Ω``: as many rows of equal weight say as much (D23).

    Ω is the weight of a row's group, of which each row is a member; without groups, its own.
    """
    return float(weight.sum() ** 2 / np.sum(weight * (weight if group is None else group)))


class Cavities(NamedTuple):
    """Leave-one-out marginals of f, a column for each function, with the rows' targets and weights.

    ``group_weight`` is the weight of a row and its copies, if there are copies.
    """

    mean: Array
    variance: Array
    y: npt.NDArray[Any]
    weight: Array
    group_weight: Array | None = None

    @property
    def effective_weight(self) -> Array:
        """The weights in proportion, with the effective number of rows as their sum (D23)."""
        return np.asarray(self.weight * (effective_rows(self.weight, self.group_weight) / self.weight.sum()))

    def take(self, which: Any) -> Cavities:
        """Some of the rows; what is known of groups does not hold for a part."""
        return Cavities(self.mean[which], self.variance[which], self.y[which], self.weight[which])

    @classmethod
    def joined(cls, parts: Iterable[Cavities]) -> Cavities:
        """Several one after the other; what is known of groups does not go beyond one part."""
        return cls(*(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[:4]))


class LeftOut(NamedTuple):
    """One function's rows, each without its own site (D10)."""

    site: Sites
    at: Marginals
    share: Array  # 1 - wt
    mean: Array
    variance: Array

    @classmethod
    def of(cls, site: Sites, at: Marginals) -> LeftOut:
        """``t₋ = t/(1-wt)``, ``m₋ = c + (m - c - tγ)/(1-wt)``, ``v₋ = t₋ + r``.

        The final q, which ``at`` sees, contains each row's site as it was at the q before. The prior mean c cancels
        unless the floor was needed, where m₋ is then drawn to c and not to zero.
        """
        t = at.explained
        share = np.maximum(1 - site.precision * t, SMALLEST_SHARE)
        mean = at.prior_mean + (at.mean - at.prior_mean - t * site.linear) / share
        return cls(site, at, share, mean, t / share + at.residual)

    def pull(self, by_mean: Array, by_variance: Array) -> tuple[Array, Array, Array]:
        """Derivatives by m, t and r of the marginals, from those by m₋ and v₋, sites held (D17).

        With ``o = 1 - w t``: ``∂m₋/∂m = 1/o``, ``∂m₋/∂t = (w (m-c) - γ)/o²``, ``∂t₋/∂t = 1/o²``; where o is held at its
        floor, ``-γ/o`` and ``1/o``.
        """
        w, gamma, centred = self.site.precision, self.site.linear, self.at.mean - self.at.prior_mean
        free = (by_mean * (w * centred - gamma) + by_variance) / self.share**2
        held = (by_variance - by_mean * gamma) / self.share
        return by_mean / self.share, np.where(self.share > SMALLEST_SHARE, free, held), by_variance


class RowMarginals(NamedTuple):
    """What rows that are held keep of a fit: sites, ``ω w`` and ``γ``, and marginals, a column for each function."""

    precision: Array
    linear: Array
    mean: Array
    explained: Array
    prior_mean: Array
    residual: Array

    @classmethod
    def joined(cls, parts: Iterable[RowMarginals]) -> RowMarginals:
        """Those of several stripes one after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def left_out(self, rows: slice, phi: Array) -> list[LeftOut]:
        """Every function's rows without their own sites; ``phi`` are their features."""
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
    """The marginals of two views; the features once, if they share them."""
    if before.features is not final.features:
        return before.marginals(X, workspace), final.marginals(X, workspace)
    given = (X, *before.features(X, workspace), workspace)
    return before.marginals_of(*given), final.marginals_of(*given)


def block_cavities(
    blocks: Iterable[Block], workspace: Workspace, *, before: View, final: View, head: Targets, likelihood: Likelihood
) -> Cavities:
    """Every row left out with all its weight; ``before`` sees the q at which the rows' sites were taken (D10)."""
    parts = []
    for block in blocks:
        rows = block_marginals([block], workspace, before=before, final=final, head=head, likelihood=likelihood)
        parts.append(rows.cavities(block.y.copy(), block.weights.copy()))
    return Cavities.joined(parts)


def without_group(spread: Array, centred: Array, w: Array, gamma: Array) -> tuple[Array, Array]:
    """``m₋ - c`` and ``t₋`` of a group's rows after all their sites are removed from q (D24).

    With ``T = B Bᵀ``, B the ``spread``, and W = diag(w): ``m₋ - c = (I - TW)^-1 (m - c - Tγ)``,
    ``t₋ = diag (I - TW)^-1 T``. The singular values s of ``W^½ B = U s Vᵀ`` give both for groups of any size:
    ``(I - TW)^-1 = I + B V s/(1-s²) Uᵀ W^½``. Where the group gave nearly all of the precision, 1 - s² has a floor,
    and with it the eigenvalues of I - TW.
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
