"""Core: the Gaussian q(beta) in natural parameters: its step (D6), KL term (D9) and coordinates.

Two families share one interface: ``Gaussian`` has a full precision matrix; ``DiagonalGaussian`` is for linear models
that are too wide for an M×M matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import OUT_OF_RANGE, Array, NotPositiveDefiniteError, cholesky, inverse_transposed

DIAGONALISE_FROM = 100  # rows per weight from which an eigendecomposition per pass pays off


@dataclass(frozen=True)
class Coordinates:
    """A basis of the weights, and the posterior in that basis as blocks use it.

    With ``phi' = basisᵀ phi`` the posterior has mean ``mean``, and ``phiᵀ S phi`` is
    ``Σ_j spread_j phi'_j²`` for a vector ``spread``, ``|phi'ᵀ spread|²`` for a matrix, upper triangular (D4). Adjoints
    need ``S phi``; for them the spread is S itself.
    """

    basis: Array | None
    mean: Array
    spread: Array
    for_adjoint: bool = False

    def astype(self, dtype: npt.DTypeLike) -> Coordinates:
        """The coordinates in the precision of blocks."""
        basis = None if self.basis is None else self.basis.astype(dtype)
        return replace(self, basis=basis, mean=self.mean.astype(dtype), spread=self.spread.astype(dtype))


class Posterior(Protocol):
    """What blocks and the objective need from q."""

    @property
    def mean(self) -> Array: ...

    def coordinates(self, n_rows: int) -> Coordinates:
        """A basis for a pass over about ``n_rows`` rows."""
        ...

    def spread(self, draws: Array) -> Array:
        """Transform standard normal draws, one per row, into draws from N(0, S)."""
        ...


@dataclass(frozen=True)
class NaturalParameters:
    """Precision ``P`` and ``h = P mu``; the target ``(P̂, ĥ)`` of a step has the same form."""

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
        """Factor the precision once; matrix products give everything else."""
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

        Here ``g = ĥ - P̂ mu``. The slope is nonnegative and zero only at the optimum. Like half the Newton decrement,
        half of it estimates the gain of a full step.
        """
        gradient = self.root.T @ (target.linear - target.precision @ self.mean)
        change = self.covariance @ (target.precision - self.natural.precision)
        return float(gradient @ gradient + 0.5 * np.sum(change * change.T))

    def divergence_from(self, other: Gaussian) -> float:
        """``KL(self || other)``: from the prior, the second term of the ELBO (D9); of a step, its size (D12)."""
        trace = np.sum(other.natural.precision * self.covariance)
        gap = other.factor.T @ (self.mean - other.mean)
        log_det = 2 * np.log(np.diag(self.factor) / np.diag(other.factor)).sum()
        return float(0.5 * (trace + gap @ gap - len(gap) + log_det))

    def adjoint_coordinates(self) -> Coordinates:
        """The original coordinates of the weights, with the full covariance."""
        return Coordinates(None, self.mean, self.covariance, for_adjoint=True)

    def coordinates(self, n_rows: int) -> Coordinates:
        """The eigenvectors of P if there are many rows; the variance of a row then costs O(M) (D4).

        In this basis the sums of a pass are graded like P, so rounding them to single precision is harmless. What
        remains is the rounding of the features, which whitening amplifies.
        """
        if n_rows < DIAGONALISE_FROM * len(self.mean):
            return Coordinates(None, self.mean, self.root)
        values, vectors = np.linalg.eigh(self.natural.precision)
        if values[0] <= 0:
            raise NotPositiveDefiniteError(f"the precision of the posterior is lost to rounding: {OUT_OF_RANGE}")
        return Coordinates(vectors, vectors.T @ self.mean, 1 / values)


@dataclass(frozen=True)
class DiagonalGaussian:
    """``N(mean, diag(variance))``: a mean-field posterior of the weights."""

    mean: Array
    variance: Array

    def spread(self, draws: Array) -> Array:
        return draws * np.sqrt(self.variance)

    def kl_from_prior(self) -> float:
        """``KL(q || N(0, I))``: D9 with a diagonal S."""
        return float(0.5 * np.sum(self.variance + self.mean**2 - 1 - np.log(self.variance)))

    def coordinates(self, n_rows: int) -> Coordinates:
        return Coordinates(None, self.mean, self.variance)


@dataclass(frozen=True)
class CompactGaussian:
    """``N(mean, root rootᵀ)`` with an upper triangular root in single precision: enough for predictions.

    For models with thousands of posteriors, whose full matrices (in five forms each) would not fit into memory.
    """

    mean: Array
    root: Array

    @classmethod
    def of(cls, q: Gaussian) -> Self:
        """The part of a posterior that predictions need."""
        return cls(q.mean, q.root.astype(np.float32))

    def spread(self, draws: Array) -> Array:
        return draws @ self.root.T

    def coordinates(self, n_rows: int) -> Coordinates:
        return Coordinates(None, self.mean, self.root)

    def full(self) -> Gaussian:
        """The full posterior, from which training can resume: ``P = root^-T root^-1``."""
        inverse = inverse_transposed(self.root.T.astype(np.float64))
        precision = inverse.T @ inverse
        return Gaussian.from_natural(NaturalParameters(precision, precision @ self.mean))
