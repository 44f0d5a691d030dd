"""Core: sums over rows (D4-D6), the only place where features, posterior and bound meet.

``View`` is q as a block of rows sees it; ``block_statistics`` is pure and picklable, so that arrays in memory,
files and cluster workers all run this very function. Its results add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.arena import Arena
from bayesvm.core.features import Features, PreparedFeatures
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Coordinates, NaturalParameters, Posterior


class Block(NamedTuple):
    """Some rows: inputs, labels ±1, and weights unless all are one."""

    X: Array
    y: Array
    weight: Array | None

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


class Marginals(NamedTuple):
    """f at the rows of a block: ``N(mean, explained + residual)``, and the features it came from."""

    phi: Array
    mean: Array
    explained: Array  # t = phiᵀ S phi
    residual: Array  # r

    @property
    def variance(self) -> Array:
        """``v = t + r``."""
        return self.explained + self.residual


@dataclass(frozen=True)
class View:
    """Features and posterior, in the coordinates in which a block is cheapest (D4)."""

    features: PreparedFeatures
    mean: Array
    spread: Array

    @classmethod
    def of(
        cls, features: Features, posterior: Posterior, n_rows: int, dtype: npt.DTypeLike
    ) -> tuple[Self, Coordinates]:
        """The view for a pass over about ``n_rows`` rows, and the coordinates its sums are in."""
        where = posterior.coordinates(n_rows)
        prepared = features.prepared(where.basis, dtype)
        return cls(prepared, where.mean.astype(dtype), where.spread.astype(dtype)), where

    def marginals(self, X: Array, arena: Arena) -> Marginals:
        """``m = phiᵀ mu``, ``v = phiᵀ S phi + r``, ``r = k(x,x) - |phi|² ≥ 0`` (D3, D4)."""
        phi, prior_variance = self.features(X, arena)
        mean = phi @ self.mean
        scratch: Array = arena.empty(phi.shape, phi.dtype)
        if self.spread.ndim == 2:
            np.matmul(phi, self.spread, out=scratch)
            explained = np.einsum("ij,ij->i", scratch, scratch)
            norms = np.einsum("ij,ij->i", phi, phi)
        else:
            np.square(phi, out=scratch)
            explained, norms = (scratch @ np.column_stack([self.spread, np.ones_like(self.spread)])).T
        residual = np.zeros(len(phi)) if prior_variance is None else np.maximum(prior_variance - norms, 0.0)
        return Marginals(phi, mean.astype(np.float64), explained.astype(np.float64), residual)

    def moments(self, blocks: Iterable[Block]) -> tuple[Array, Array]:
        """Mean and variance of f at every row of some blocks."""
        arena, means, variances = Arena(), [], []
        for block in blocks:
            arena.reset()
            at = self.marginals(block.X, arena)
            means.append(at.mean)
            variances.append(at.variance)
        return np.concatenate(means), np.concatenate(variances)


@dataclass
class Statistics:
    """Sums over rows: of B, of ``w phi phiᵀ`` (its diagonal only, for a mean field) and of ``g phi``."""

    bound: float
    curvature: Array
    linear: Array
    weight: float

    def __iadd__(self, other: Self) -> Self:
        self.bound += other.bound
        self.curvature += other.curvature
        self.linear += other.linear
        self.weight += other.weight
        return self

    def target(self, where: Coordinates, scale: float) -> NaturalParameters:
        """``P̂ = I + Σ w phi phiᵀ`` and ``ĥ = Σ g phi`` in the weights' own coordinates (D6)."""
        precision, linear = self.curvature * scale, self.linear * scale
        if where.basis is not None:
            precision, linear = where.basis @ precision @ where.basis.T, where.basis @ linear
            precision = 0.5 * (precision + precision.T)
        precision[np.diag_indices_from(precision)] += 1.0
        return NaturalParameters(precision, linear)


def block_statistics(blocks: Iterable[Block], *, view: View, likelihood: Likelihood) -> Statistics:
    """The sums of D6 over some blocks. A row's weight ω multiplies its B, w and g."""
    width = len(view.mean)
    total = Statistics(0.0, np.zeros((width, width)), np.zeros(width), 0.0)
    arena = Arena()
    for block in blocks:
        arena.reset()
        at = view.marginals(block.X, arena)
        local = likelihood.update(at.mean, at.variance, block.y)
        bound, w, g = _weighted(block.weight, local.bound, local.precision, local.linear)
        phi = at.phi
        total.bound += float(bound.sum())
        total.linear += g.astype(phi.dtype) @ phi
        phi *= np.sqrt(w).astype(phi.dtype)[:, None]
        # One buffer on both sides: NumPy calls SYRK, which is half the work.
        total.curvature += np.matmul(phi.T, phi, out=arena.empty((width, width), phi.dtype))
        total.weight += block.total_weight
    return total


def block_gradient(blocks: Iterable[Block], *, view: View, likelihood: Likelihood) -> Statistics:
    """The same for a mean field: ``Σ w phi²`` weight by weight, and ``Σ ∂B/∂m phi`` in place of ``Σ g phi``."""
    width = len(view.mean)
    total = Statistics(0.0, np.zeros(width), np.zeros(width), 0.0)
    arena = Arena()
    for block in blocks:
        arena.reset()
        at = view.marginals(block.X, arena)
        local = likelihood.update(at.mean, at.variance, block.y)
        slope = local.linear - local.precision * at.mean  # ∂B/∂m = g - w m (D5)
        bound, w, gradient = _weighted(block.weight, local.bound, local.precision, slope)
        phi = at.phi
        total.bound += float(bound.sum())
        total.linear += gradient.astype(phi.dtype) @ phi
        total.curvature += w.astype(phi.dtype) @ np.square(phi, out=phi)
        total.weight += block.total_weight
    return total


def _weighted(weight: Array | None, *terms: Array) -> tuple[Array, ...]:
    return terms if weight is None else tuple(weight * term for term in terms)
