"""Core: sums over rows (D5, D6), from marginals and the bound of a likelihood.

Each function is pure and picklable, so arrays in memory, files and cluster workers all run the same code. Results are
additive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from bayesvm.core.features import PreparedFeatures
from bayesvm.core.heads.contract import Targets
from bayesvm.core.latent import Block, Marginals, View
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Coordinates, NaturalParameters
from bayesvm.core.products import row_factors
from bayesvm.core.workspace import Workspace


@dataclass
class Statistics:
    """Sums over rows for one function: of B, ``w phi phiᵀ`` (for a mean field its diagonal) and ``γ phi``."""

    bound: float
    curvature: Array
    linear: Array
    weight: float

    @classmethod
    def zero(cls, *shape: int) -> Self:
        """The sums over no rows; ``shape`` is the shape of the curvature."""
        return cls(0.0, np.zeros(shape), np.zeros(shape[0]), 0.0)

    def __iadd__(self, other: Self) -> Self:
        self.bound += other.bound
        self.curvature += other.curvature
        self.linear += other.linear
        self.weight += other.weight
        return self

    def target(self, where: Coordinates, scale: float, prior: NaturalParameters | None) -> NaturalParameters:
        """``P̂ = P₀ + Σ w phi phiᵀ``, ``ĥ = h₀ + Σ γ phi`` in the original coordinates (D6); no prior means N(0, I)."""
        precision, linear = self.curvature * scale, self.linear * scale
        if where.basis is not None:
            precision, linear = where.basis @ precision @ where.basis.T, where.basis @ linear
            precision = 0.5 * (precision + precision.T)
        if prior is None:
            precision[np.diag_indices_from(precision)] += 1
            return NaturalParameters(precision, linear)
        precision += prior.precision
        linear += prior.linear
        return NaturalParameters(precision, linear)


@dataclass
class JointStatistics:
    """The statistics of several functions from one pass."""

    each: list[Statistics]

    def __iadd__(self, other: Self) -> Self:
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.__iadd__(theirs)
        return self


class Sites(NamedTuple):
    """The rows of one function as Gaussian factors of q (D5), multiplied by the row weights."""

    at: Marginals
    bound: Array  # ω B
    precision: Array  # ω w
    linear: Array  # γ = ω (g - w c), the linear term around the prior mean


def sites(block: Block, view: View, head: Targets, likelihood: Likelihood, workspace: Workspace) -> Iterator[Sites]:
    """The sites of the rows of a block, one function at a time. The weight ω of a row multiplies its B, w and g."""
    for target, at in zip(view.targets, view.marginals(block.X, workspace), strict=True):
        yield sites_at(block, at, head.target(block.y, target), likelihood)


def sites_at(block: Block, at: Marginals, target: Array, likelihood: Likelihood) -> Sites:
    """The sites of one function, given its marginals."""
    local = likelihood.update(at.mean, at.variance, target)
    bound, w, g = local.bound, local.precision, local.linear
    if block.weight is not None:
        bound, w, g = block.weight * bound, block.weight * w, block.weight * g
    return Sites(at, bound, w, g - w * at.prior_mean)


def block_statistics(
    blocks: Iterable[Block], workspace: Workspace, *, view: View, head: Targets, likelihood: Likelihood
) -> JointStatistics:
    """The sums of D6 over the blocks."""
    total = JointStatistics([Statistics.zero(len(at.mean), len(at.mean)) for at in view.coordinates])
    for block in blocks:
        workspace.reset()
        for site, sums in zip(sites(block, view, head, likelihood, workspace), total.each, strict=True):
            sums.bound += float(site.bound.sum())
            _add_sums(sums, site, site.at.phi, workspace)
            sums.weight += block.total_weight
    return total


def block_transfer(
    blocks: Iterable[Block],
    workspace: Workspace,
    *,
    view: View,
    head: Targets,
    likelihood: Likelihood,
    features: PreparedFeatures,
    width: int,
    offsets: Sequence[float],
) -> JointStatistics:
    """The sums of D6 in *other* features with ``width`` weights, using the sites of this view (D18).

    They give an initial q for the other features and prior means that keeps what the old ones learned.
    """
    total = JointStatistics([Statistics.zero(width, width) for _ in view.targets])
    for block in blocks:
        workspace.reset()
        phi, _ = features(block.X, workspace)
        found = zip(view.offsets, offsets, sites(block, view, head, likelihood, workspace), total.each, strict=True)
        for before, after, site, sums in found:
            _add_sums(sums, site._replace(linear=site.linear + site.precision * (before - after)), phi, workspace)
            sums.weight += block.total_weight
    return total


def block_gradient(
    blocks: Iterable[Block], workspace: Workspace, *, view: View, head: Targets, likelihood: Likelihood
) -> JointStatistics:
    """The sums for a mean field: ``Σ w phi²`` for each weight, and ``Σ ∂B/∂m phi`` in place of ``Σ γ phi``."""
    total = JointStatistics([Statistics.zero(len(at.mean)) for at in view.coordinates])
    for block in blocks:
        workspace.reset()
        for site, sums in zip(sites(block, view, head, likelihood, workspace), total.each, strict=True):
            at, phi = site.at, site.at.phi
            slope = site.linear - site.precision * (at.mean - at.prior_mean)  # ∂B/∂m = g - w m (D5)
            squares = np.square(phi, out=workspace.empty(phi.shape, phi.dtype))
            sums.bound += float(site.bound.sum())
            sums.linear += slope.astype(phi.dtype) @ phi
            sums.curvature += site.precision.astype(phi.dtype) @ squares
            sums.weight += block.total_weight
            workspace.release(squares)
    return total


def _add_sums(sums: Statistics, site: Sites, phi: Array, workspace: Workspace) -> None:
    """Add ``Σ w phi phiᵀ`` and ``Σ γ phi``."""
    sums.linear += row_factors(site.linear, phi.dtype) @ phi
    root = row_factors(np.sqrt(site.precision), phi.dtype)
    scaled = np.multiply(phi, root[:, None], out=workspace.empty(phi.shape, phi.dtype))
    # With the same buffer on both sides, NumPy calls SYRK, which halves the work.
    square = np.matmul(scaled.T, scaled, out=workspace.empty(sums.curvature.shape, phi.dtype))
    sums.curvature += square
    workspace.release(square)
    workspace.release(scaled)
