"""Core: sums over rows (D4-D6), the only place where features, posteriors and bound meet.

A ``Machine`` tells one class from the rest. ``View`` is some machines as a block of rows sees them: they share one
feature map. ``block_statistics`` is pure and picklable, so that arrays in memory, files and cluster workers all run
this very function. Its results add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features, PreparedFeatures
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Coordinates, NaturalParameters, Posterior
from bayesvm.core.products import times_upper
from bayesvm.core.workspace import Workspace


class Block(NamedTuple):
    """Some rows: inputs, the numbers of their classes, and weights unless all are one."""

    X: Array
    y: npt.NDArray[np.integer]
    weight: Array | None

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())

    def signs(self, label: int) -> Array:
        """+1 for rows of that class, -1 for all others."""
        return np.where(self.y == label, 1.0, -1.0)


@dataclass(frozen=True)
class Machine:
    """One class against the rest: ``f = offset + phiᵀ beta + residual``, ``beta ~ posterior``."""

    label: int
    offset: float  # c, the prior mean of f (D11)
    posterior: Posterior


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
class Lens:
    """A machine in the coordinates in which a block is cheapest; ``rotation`` leads there from the view's features."""

    label: int
    offset: float
    rotation: Array | None
    mean: Array
    spread: Array


@dataclass(frozen=True)
class View:
    """One feature map and the machines that share it (D4)."""

    features: PreparedFeatures
    lenses: tuple[Lens, ...]

    @classmethod
    def of(
        cls, features: Features, machines: Sequence[Machine], n_rows: int, dtype: npt.DTypeLike
    ) -> tuple[Self, list[Coordinates]]:
        """The view for a pass over about ``n_rows`` rows, and the coordinates its sums are in.

        A single machine has its rotation folded into the features, which saves it a matrix product.
        """
        where = [machine.posterior.coordinates(n_rows) for machine in machines]
        alone = len(machines) == 1
        prepared = features.prepared(where[0].basis if alone else None, dtype)
        lenses = tuple(
            Lens(
                machine.label,
                machine.offset,
                None if alone or at.basis is None else at.basis.astype(dtype),
                at.mean.astype(dtype),
                at.spread.astype(dtype),
            )
            for machine, at in zip(machines, where, strict=True)
        )
        return cls(prepared, lenses), where

    def marginals(self, X: Array, workspace: Workspace) -> Iterator[Marginals]:
        """For each machine ``m = c + phiᵀ mu``, ``v = phiᵀ S phi + r``, ``r = k(x,x) - |phi|² ≥ 0`` (D3, D4).

        The features of one machine are the caller's to overwrite, until the next is asked for.
        """
        shared, prior_variance = self.features(X, workspace)
        residual = np.zeros(len(X))
        if prior_variance is not None:
            np.maximum(prior_variance - np.einsum("ij,ij->i", shared, shared), 0.0, out=residual)
        for lens in self.lenses:
            phi, scratch = shared, workspace.empty(shared.shape, shared.dtype)
            if lens.rotation is not None:
                phi = np.matmul(shared, lens.rotation, out=workspace.empty(shared.shape, shared.dtype))
            elif len(self.lenses) > 1:
                phi = workspace.empty(shared.shape, shared.dtype)
                np.copyto(phi, shared)
            mean = lens.offset + (phi @ lens.mean).astype(np.float64)
            if lens.spread.ndim == 2:
                times_upper(phi, lens.spread, out=scratch)
                explained = np.einsum("ij,ij->i", scratch, scratch)
            else:
                explained = np.square(phi, out=scratch) @ lens.spread
            workspace.release(scratch)
            yield Marginals(phi, mean, explained.astype(np.float64), residual)
            if phi is not shared:
                workspace.release(phi)

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> tuple[Array, Array]:
        """Mean and variance of f, a column for each machine, at every row of some blocks."""
        means, variances = [], []
        for block in blocks:
            workspace.reset()
            at = [(m.mean, m.variance) for m in self.marginals(block.X, workspace)]
            means.append(np.column_stack([mean for mean, _ in at]))
            variances.append(np.column_stack([variance for _, variance in at]))
        return np.concatenate(means), np.concatenate(variances)


@dataclass
class Statistics:
    """One machine's sums over rows: of B, ``w phi phiᵀ`` (for a mean field its diagonal) and ``(g - w c) phi``."""

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

    def target(self, where: Coordinates, scale: float, prior: NaturalParameters) -> NaturalParameters:
        """``P̂ = P₀ + Σ w phi phiᵀ``, ``ĥ = h₀ + Σ (g - w c) phi`` in the weights' own coordinates (D6)."""
        precision, linear = self.curvature * scale, self.linear * scale
        if where.basis is not None:
            precision, linear = where.basis @ precision @ where.basis.T, where.basis @ linear
            precision = 0.5 * (precision + precision.T)
        precision += prior.precision
        linear += prior.linear
        return NaturalParameters(precision, linear)


@dataclass
class MachineSums:
    """The statistics of several machines."""

    each: list[Statistics]

    def __iadd__(self, other: Self) -> Self:
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.__iadd__(theirs)
        return self


def block_statistics(
    blocks: Iterable[Block], workspace: Workspace, *, view: View, likelihood: Likelihood
) -> MachineSums:
    """The sums of D6 over some blocks. A row's weight ω multiplies its B, w and g."""
    widths = [len(lens.mean) for lens in view.lenses]
    total = MachineSums([Statistics(0.0, np.zeros((width, width)), np.zeros(width), 0.0) for width in widths])
    for block in blocks:
        workspace.reset()
        for lens, at, sums in zip(view.lenses, view.marginals(block.X, workspace), total.each, strict=True):
            local = likelihood.update(at.mean, at.variance, block.signs(lens.label))
            bound, w, g = _weighted(block.weight, local.bound, local.precision, local.linear)
            phi = at.phi
            sums.bound += float(bound.sum())
            sums.linear += (g - w * lens.offset).astype(phi.dtype) @ phi
            phi *= np.sqrt(w).astype(phi.dtype)[:, None]
            # One buffer on both sides: NumPy calls SYRK, which is half the work.
            square = np.matmul(phi.T, phi, out=workspace.empty(sums.curvature.shape, phi.dtype))
            sums.curvature += square
            sums.weight += block.total_weight
            workspace.release(square)
    return total


def block_transfer(
    blocks: Iterable[Block],
    workspace: Workspace,
    *,
    view: View,
    likelihood: Likelihood,
    features: PreparedFeatures,
    width: int,
    offsets: Sequence[float],
) -> MachineSums:
    """The sums of D6 in *other* features, of ``width`` weights, with the sites that rows have in this view (D18).

    The q they make is a start for the other features, and prior means, that knows what the old ones had learned.
    """
    total = MachineSums([Statistics(0.0, np.zeros((width, width)), np.zeros(width), 0.0) for _ in view.lenses])
    for block in blocks:
        workspace.reset()
        phi, _ = features(block.X, workspace)
        seen = zip(view.lenses, offsets, view.marginals(block.X, workspace), total.each, strict=True)
        for lens, offset, at, sums in seen:
            local = likelihood.update(at.mean, at.variance, block.signs(lens.label))
            w, g = _weighted(block.weight, local.precision, local.linear)
            scaled = np.multiply(
                phi, np.sqrt(w).astype(phi.dtype)[:, None], out=workspace.empty((len(phi), width), phi.dtype)
            )
            sums.linear += (g - w * offset).astype(phi.dtype) @ phi
            sums.curvature += np.matmul(scaled.T, scaled)
            sums.weight += block.total_weight
            workspace.release(scaled)
    return total


def block_gradient(blocks: Iterable[Block], workspace: Workspace, *, view: View, likelihood: Likelihood) -> MachineSums:
    """The same for a mean field: ``Σ w phi²`` weight by weight, and ``Σ ∂B/∂m phi`` in place of ``Σ g phi``."""
    widths = [len(lens.mean) for lens in view.lenses]
    total = MachineSums([Statistics(0.0, np.zeros(width), np.zeros(width), 0.0) for width in widths])
    for block in blocks:
        workspace.reset()
        for lens, at, sums in zip(view.lenses, view.marginals(block.X, workspace), total.each, strict=True):
            local = likelihood.update(at.mean, at.variance, block.signs(lens.label))
            slope = local.linear - local.precision * at.mean  # ∂B/∂m = g - w m (D5)
            bound, w, gradient = _weighted(block.weight, local.bound, local.precision, slope)
            phi = at.phi
            sums.bound += float(bound.sum())
            sums.linear += gradient.astype(phi.dtype) @ phi
            sums.curvature += w.astype(phi.dtype) @ np.square(phi, out=phi)
            sums.weight += block.total_weight
    return total


def _weighted(weight: Array | None, *terms: Array) -> tuple[Array, ...]:
    return terms if weight is None else tuple(weight * term for term in terms)
