"""Core: a multivariate t distribution around some rows: the background of one-class learning (D36)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bayesvm.core.linalg import Array

FREEDOM = 5.0  # degrees of freedom: tails that are heavier than those of nearly all tables
LEAST_SHRINKAGE = 1e-3  # so that a column that is constant in training has some width
SMALLEST_LEFT = 1e-12  # of 1 - βa and of the trace, which are zero if a row is all there is of a direction


@dataclass(frozen=True)
class StudentT:
    """Mean m, and shape ``Σ = (1 - α) S + α τ I``: S the covariance of the rows, τ the mean of its diagonal (D36).

    The eigenvectors of S are the columns of ``vectors``.
    """

    mean: Array
    values: Array  # eigenvalues of S
    vectors: Array
    shrinkage: float  # α
    total: float  # weight of the rows

    @classmethod
    def of(cls, rows: Array, weight: Array, shrinkage: float | None = None) -> StudentT:
        """The distribution with mean and covariance of weighted rows; by default with the shrinkage of Ledoit and Wolf.

        ``α = Σ p_i² |z_i z_iᵀ - S|² / |S - τ I|²``, z centred and p the shares of the weight: the variance of S over
        its distance to what it is drawn to (D36).
        """
        total = float(weight.sum())
        share = weight / total
        centred = rows - share @ rows
        values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
        values = np.maximum(values, 0.0)
        if shrinkage is None:
            along = (centred @ vectors) ** 2
            spread = along.sum(axis=1) ** 2 - 2 * along @ values + values @ values
            apart = np.sum((values - values.mean()) ** 2)
            ratio = share**2 @ spread / apart if apart > 0 else 1.0
            shrinkage = float(np.clip(ratio, LEAST_SHRINKAGE, 1.0))
        return cls(share @ rows, values, vectors, shrinkage, total)

    @property
    def target(self) -> float:
        """What is added to every eigenvalue: ``α τ``."""
        return self.shrinkage * float(self.values.mean())

    @property
    def shape(self) -> Array:
        """The eigenvalues of Σ."""
        return (1 - self.shrinkage) * self.values + self.target

    def log_density(self, rows: Array) -> Array:
        """Of every row."""
        along = (rows - self.mean) @ self.vectors
        return self._log_density(np.sum(along**2 / self.shape, axis=1), np.log(self.shape).sum())

    def log_density_left_out(self, rows: Array, weight: Array) -> Array:
        """Of every training row under the mean and covariance of the others; α is held (D36).

        ``Σ₋ = A - β u uᵀ``, ``A = (1-α) κ S + α τ₋ I``, ``κ = W/(W-ω)``, ``β = (1-α) κ² ω/W``, ``u = x - m``.
        """
        along = (rows - self.mean) @ self.vectors
        rest = np.maximum(self.total - weight, 1e-12 * self.total)
        kappa = self.total / rest
        beta = (1 - self.shrinkage) * kappa**2 * weight / self.total
        trace = kappa * self.values.sum() - kappa**2 * weight / self.total * np.sum(along**2, axis=1)
        target = self.shrinkage * np.maximum(trace, SMALLEST_LEFT * self.values.sum()) / len(self.mean)
        spectrum = (1 - self.shrinkage) * kappa[:, None] * self.values + target[:, None]
        a = np.sum(along**2 / spectrum, axis=1)
        left = np.maximum(1 - beta * a, SMALLEST_LEFT)
        return self._log_density(kappa**2 * a / left, np.log(spectrum).sum(axis=1) + np.log(left))

    def _log_density(self, distance: Array, log_determinant: Array | float) -> Array:
        n_features = len(self.mean)
        constant = gammaln((FREEDOM + n_features) / 2) - gammaln(FREEDOM / 2) - n_features / 2 * np.log(FREEDOM * np.pi)
        return np.asarray(constant - log_determinant / 2 - (FREEDOM + n_features) / 2 * np.log1p(distance / FREEDOM))

    def draws(self, n_rows: int, rng: np.random.Generator) -> Array:
        """So many rows at random."""
        normal = rng.normal(size=(n_rows, len(self.mean))) * np.sqrt(self.shape)
        scale = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=n_rows))
        return np.asarray(self.mean + (normal @ self.vectors.T) * scale[:, None])

    def expected(self, rows: Array, column: int) -> Array:
        """The mean of one column given all others of each row: ``x - (Ω (x - m))_j / Ω_jj``, ``Ω = Σ⁻¹``."""
        row_of_inverse = (self.vectors[column] / self.shape) @ self.vectors.T
        return np.asarray(rows[:, column] - (rows - self.mean) @ row_of_inverse / row_of_inverse[column])
