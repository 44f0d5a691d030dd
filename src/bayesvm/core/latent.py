"""Core: latent functions and their marginals at rows (D3, D4).

Training, leave-one-out estimates, gradients and prediction all use this implementation. A ``LatentFunction`` holds one
function f with its posterior. A ``View`` holds functions that share a feature map, in the form that blocks of rows use:
small, immutable and picklable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features, PreparedFeatures
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Coordinates, Gaussian, Posterior
from bayesvm.core.products import times_upper
from bayesvm.core.workspace import Workspace


class Block(NamedTuple):
    """Some rows: inputs, targets as numbers, and weights unless all are one."""

    X: Array
    y: npt.NDArray[Any]
    weight: Array | None

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())

    @property
    def weights(self) -> Array:
        """The weights; ones if none were given."""
        return np.ones(len(self.y)) if self.weight is None else self.weight


@dataclass(frozen=True)
class LatentFunction:
    """``f = offset + phiᵀ beta + residual`` with ``beta ~ posterior``."""

    target: int  # index of the head's target that it is trained on
    offset: float  # c, the constant part of the prior mean (D11)
    posterior: Posterior
    prior: Gaussian | None = None  # of beta; None means N(0, I)

    @property
    def trained(self) -> bool:
        """Whether q differs from the prior."""
        q, prior = self.posterior, self.prior
        if not isinstance(q, Gaussian) or prior is None:
            return True
        return not np.array_equal(q.natural.precision, prior.natural.precision)

    def at(self, posterior: Posterior) -> Self:
        """The same function with another q."""
        return replace(self, posterior=posterior)


def full(function: LatentFunction) -> Gaussian:
    """The q of a function, which must have a full covariance."""
    if not isinstance(function.posterior, Gaussian):
        raise TypeError("this posterior has a diagonal covariance, but the step needs a full one")
    return function.posterior


class Marginals(NamedTuple):
    """Marginals of one function at the rows of a block, ``N(mean, explained + residual)``, with their features."""

    phi: Array
    prior_mean: Array | float  # prior mean of f: the offset
    mean: Array
    explained: Array  # t = phiᵀ S phi
    residual: Array  # r
    spread: Array | None = None  # Phi S, if an adjoint is needed

    @property
    def variance(self) -> Array:
        """``v = t + r``."""
        return self.explained + self.residual


class Moments(NamedTuple):
    """Mean and variance of f at rows, one column per function."""

    mean: Array
    variance: Array


@dataclass(frozen=True)
class View:
    """Latent functions that share a feature map (D4), in the coordinates that are cheapest for blocks.

    ``coordinates[k].basis`` maps the features to these coordinates; for a single function the features include it.
    """

    features: PreparedFeatures
    targets: tuple[int, ...]
    offsets: tuple[float, ...]
    coordinates: tuple[Coordinates, ...]

    @classmethod
    def of(
        cls,
        features: Features,
        functions: Sequence[LatentFunction],
        n_rows: int,
        dtype: npt.DTypeLike,
    ) -> tuple[Self, list[Coordinates]]:
        """The view for a pass over about ``n_rows`` rows, and the coordinates of its sums.

        For a single function the basis is folded into the features, which saves a matrix product.
        """
        where = [function.posterior.coordinates(n_rows) for function in functions]
        alone = len(functions) == 1
        prepared = features.prepared(where[0].basis if alone else None, dtype)
        rounded = tuple(replace(at, basis=None).astype(dtype) if alone else at.astype(dtype) for at in where)
        targets = tuple(function.target for function in functions)
        return cls(prepared, targets, tuple(function.offset for function in functions), rounded), where

    @classmethod
    def for_adjoints(cls, functions: Sequence[LatentFunction], dtype: npt.DTypeLike = np.float64) -> Self:
        """The view for marginals that ``pull_marginals`` can differentiate, given the features."""
        where = [full(function).adjoint_coordinates().astype(dtype) for function in functions]
        targets, offsets = zip(*((function.target, function.offset) for function in functions), strict=True)
        return cls(_no_features, targets, offsets, tuple(where))

    def marginals(self, X: Array, workspace: Workspace) -> Iterator[Marginals]:
        """Yield the marginals of one function at a time; arrays are valid until the next one."""
        phi, prior_variance = self.features(X, workspace)
        yield from self.marginals_of(X, phi, prior_variance, workspace)

    def marginals_of(
        self, X: Array, shared: Array, prior_variance: Array | None, workspace: Workspace
    ) -> Iterator[Marginals]:
        """``m = c + phiᵀ mu``, ``v = phiᵀ S phi + r``, ``r = k(x,x) - |phi|² ≥ 0`` (D3, D4), given the features."""
        residual = np.zeros(len(X))
        if prior_variance is not None:
            np.maximum(prior_variance - np.einsum("ij,ij->i", shared, shared), 0.0, out=residual)
        for offset, at in zip(self.offsets, self.coordinates, strict=True):
            phi, spread = shared, None
            if at.basis is not None:
                phi = np.matmul(shared, at.basis, out=workspace.empty(shared.shape, shared.dtype))
            mean = offset + (phi @ at.mean).astype(np.float64)
            if at.for_adjoint:
                spread = phi @ at.spread
                explained = np.einsum("ij,ij->i", spread, phi)
            else:
                explained = _explained(phi, at.spread, workspace)
            yield Marginals(phi, offset, mean, explained.astype(np.float64), residual, spread)
            if phi is not shared:
                workspace.release(phi)

    def spreads(self, X: Array, workspace: Workspace) -> Iterator[Array]:
        """``B = Phi root`` for every function, so that ``B Bᵀ`` has the entries ``φᵀ S φ'`` (D4)."""
        shared, _ = self.features(X, workspace)
        for at in self.coordinates:
            phi = shared if at.basis is None else shared @ at.basis
            yield phi @ at.spread if at.spread.ndim == 2 else phi * np.sqrt(at.spread)

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> Moments:
        """Mean and variance of every function at every row of the blocks."""
        parts = []
        for block in blocks:
            workspace.reset()
            at = [(m.mean, m.variance) for m in self.marginals(block.X, workspace)]
            parts.append([np.column_stack(column) for column in zip(*at, strict=True)])
        return Moments(*map(np.concatenate, zip(*parts, strict=True)))


def _no_features(*_: Any) -> tuple[Array, Array | None]:
    raise TypeError("a view for adjoints cannot compute features; pass it recorded ones")


def _explained(phi: Array, spread: Array, workspace: Workspace) -> Array:
    """``phiᵀ S phi`` for every row (D4)."""
    scratch = workspace.empty(phi.shape, phi.dtype)
    if spread.ndim == 2:
        times_upper(phi, spread, out=scratch)
        explained: Array = np.einsum("ij,ij->i", scratch, scratch)
    else:
        explained = np.square(phi, out=scratch) @ spread
    workspace.release(scratch)
    return explained


def pull_marginals(mean: Array, at: Marginals, by_mean: Array, by_explained: Array, by_residual: Array | None) -> Array:
    """``phī = m̄ mu + 2 t̄ S phi - 2 r̄ phi``: the adjoint of ``View.marginals_of`` (D16). Omits r if r̄ is None.

    ``mean`` is mu. The view must come from ``for_adjoints``.
    """
    if at.spread is None:
        raise TypeError("these marginals do not support adjoints")
    dtype = at.phi.dtype
    phi_bar: Array = np.outer(by_mean.astype(dtype), mean)
    scratch = (2 * by_explained).astype(dtype)[:, None] * at.spread
    phi_bar += scratch
    if by_residual is not None:
        phi_bar -= np.multiply((2 * by_residual).astype(dtype)[:, None], at.phi, out=scratch)
    return phi_bar
