"""Core: the Gaussian q(beta) in natural parameters, its step (D6), its KL term (D9), its coordinates.

Two families share one interface: ``Gaussian`` with a full precision matrix, and ``DiagonalGaussian``
for linear models so wide that an M×M matrix is out of the question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import OUT_OF_RANGE, Array, NotPositiveDefiniteError, cholesky, inverse_transposed

DIAGONALISE_FROM = 100  # rows per weight from which an eigendecomposition per pass pays for itself


@dataclass(frozen=True)
class Coordinates:
    """A basis of the weights in which a block sees the posterior.

    With ``phi' = basisᵀ phi`` the posterior has mean ``mean``, and ``phiᵀ S phi`` is
    ``Σ_j spread_j phi'_j²`` for a vector ``spread``, ``|phi'ᵀ spread|²`` for a matrix, upper triangular (D4). Adjoints
    need ``S phi``: for them the spread is S itself.
    """

    basis: Array | None
    mean: Array
    spread: Array
    for_adjoint: bool = False

    def astype(self, dtype: npt.DTypeLike) -> Coordinates:
        """In the precision of blocks."""
        basis = None if self.basis is None else self.basis.astype(dtype)
        return replace(self, basis=basis, mean=self.mean.astype(dtype), spread=self.spread.astype(dtype))


class Posterior(Protocol):
    """What blocks and the objective need to know about q."""

    @property
    def mean(self) -> Array: ...

    def coordinates(self, n_rows: int) -> Coordinates:
        """A basis for a pass over about so many rows."""
        ...

    def spread(self, draws: Array) -> Array:
        """Standard normal draws, a row each, turned into draws from N(0, S)."""
        ...


@dataclass(frozen=True)
class NaturalParameters:
    """Precision ``P`` and ``h = P mu``; the target ``(P̂, ĥ)`` of a step is of this kind too."""

    precision: Array
    linear: Array


@dataclass(frozen=True)
class Gaussian:
    """``N(mu, S)`` with ``P = S^-1 = factor factorᵀ`` and ``S = root rootᵀ``."""

    natural: NaturalParameters
    factor: Array
    root: Array
    covariance: Array
    mean: Array

    @classmethod
    def from_natural(cls, natural: NaturalParameters) -> Gaussian:
        """Factor the precision once; everything else follows by matrix products."""
        factor, _ = cholesky(natural.precision, what="the precision of the posterior")
        root = inverse_transposed(factor)
        return cls(natural, factor, root, root @ root.T, root @ (root.T @ natural.linear))

    @classmethod
    def prior(cls, n_weights: int) -> Gaussian:
        """``N(0, I)``."""
        one, zero = np.eye(n_weights), np.zeros(n_weights)
        return cls(NaturalParameters(one, zero), one, one, one, zero)

    def spread(self, draws: Array) -> Array:
        return draws @ self.root.T

    def moved(self, target: NaturalParameters, rho: float) -> Gaussian:
        """``P ← (1-ρ)P + ρP̂`` and ``h ← (1-ρ)h + ρĥ`` (D6)."""
        return Gaussian.from_natural(
            NaturalParameters(
                (1 - rho) * self.natural.precision + rho * target.precision,
                (1 - rho) * self.natural.linear + rho * target.linear,
            )
        )

    def slope_towards(self, target: NaturalParameters) -> float:
        """``dELBO/dρ`` at ρ = 0 on the way to the target: ``gᵀSg + ½ tr (S(P̂-P))²`` (D12).

        With ``g = ĥ - P̂ mu``. It is never negative, zero only at the optimum, and half of it
        estimates what a full step gains, as half the Newton decrement does.
        """
        gradient = self.root.T @ (target.linear - target.precision @ self.mean)
        change = self.covariance @ (target.precision - self.natural.precision)
        return float(gradient @ gradient + 0.5 * np.sum(change * change.T))

    def divergence_from(self, other: Gaussian) -> float:
        """``KL(self || other)``: from the prior, the second part of the ELBO (D9); of a step, its size (D12)."""
        trace = np.sum(other.natural.precision * self.covariance)
        gap = other.factor.T @ (self.mean - other.mean)
        log_det = 2 * np.log(np.diag(self.factor) / np.diag(other.factor)).sum()
        return float(0.5 * (trace + gap @ gap - len(gap) + log_det))

    def adjoint_coordinates(self) -> Coordinates:
        """The weights' own, with the covariance in full."""
        return Coordinates(None, self.mean, self.covariance, for_adjoint=True)

    def coordinates(self, n_rows: int) -> Coordinates:
        """The eigenvectors of P when many rows follow, so that a row's variance costs O(M) (D4).

        In that basis the sums of a pass are graded like P itself, so that rounding them in single precision is
        harmless; what is left is the rounding of the features, which whitening enlarges.
        """
        if n_rows < DIAGONALISE_FROM * len(self.mean):
            return Coordinates(None, self.mean, self.root)
        values, vectors = np.linalg.eigh(self.natural.precision)
        if values[0] <= 0:
            raise NotPositiveDefiniteError(f"the precision of the posterior is lost in rounding: {OUT_OF_RANGE}")
        return Coordinates(vectors, vectors.T @ self.mean, 1 / values)


@dataclass(frozen=True)
class DiagonalGaussian:
    """``N(mean, diag(variance))``: mean field over weights."""

    mean: Array
    variance: Array

    def spread(self, draws: Array) -> Array:
        return draws * np.sqrt(self.variance)

    def kl_from_prior(self) -> float:
        """D9 with a diagonal S."""
        return float(0.5 * np.sum(self.variance + self.mean**2 - 1 - np.log(self.variance)))

    def coordinates(self, n_rows: int) -> Coordinates:
        return Coordinates(None, self.mean, self.variance)


@dataclass(frozen=True)
class CompactGaussian:
    """``N(mean, root rootᵀ)`` with an upper triangular root in single precision: all that predictions need.

    For models with thousands of posteriors, whose matrices in five forms would not fit into memory.
    """

    mean: Array
    root: Array

    @classmethod
    def of(cls, q: Gaussian) -> Self:
        """What predictions need of a posterior."""
        return cls(q.mean, q.root.astype(np.float32))

    def spread(self, draws: Array) -> Array:
        return draws @ self.root.T

    def coordinates(self, n_rows: int) -> Coordinates:
        return Coordinates(None, self.mean, self.root)

    def full(self) -> Gaussian:
        """The posterior from which training can go on: ``P = root^-T root^-1``."""
        inverse = inverse_transposed(self.root.T.astype(np.float64))
        precision = inverse.T @ inverse
        return Gaussian.from_natural(NaturalParameters(precision, precision @ self.mean))
