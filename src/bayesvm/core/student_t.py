"""Core: a multivariate t distribution fitted to rows: the background of one-class learning (D36)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayesvm.core.linalg import Array

FREEDOM = 5.0  # degrees of freedom: heavier tails than those of nearly all tables
LEAST_SHRINKAGE = 1e-3  # so that a column that is constant in training has positive width
SMALLEST_LEFT = 1e-12  # lower bound of 1 - βa and of the trace, which are zero if a direction has only one row


@dataclass(frozen=True)
class StudentT:
    """Mean m, and shape ``Σ = (1 - α) S + α τ I``: S is the covariance of the rows, τ the mean of its diagonal (D36).

    The eigenvectors of S are the columns of ``vectors``.
    """

    mean: Array
    values: Array  # eigenvalues of S
    vectors: Array
    shrinkage: float  # α
    total: float  # weight of the rows

    @classmethod
    def of(cls, rows: Array, weight: Array, shrinkage: float | None = None) -> StudentT:
        """Fit mean and covariance to weighted rows; the shrinkage defaults to that of Ledoit and Wolf.

        ``α = Σ p_i² |z_i z_iᵀ - S|² / |S - τ I|²``, with centred rows z and shares p of the weight: the variance of S
        relative to its distance from the shrinkage target (D36).
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
        """The term ``α τ`` added to every eigenvalue."""
        return self.shrinkage * float(self.values.mean())

    @property
    def shape(self) -> Array:
        """The eigenvalues of Σ."""
        return (1 - self.shrinkage) * self.values + self.target

    def log_density(self, rows: Array) -> Array:
        """The log density of every row."""
        along = (rows - self.mean) @ self.vectors
        return self._log_density(np.sum(along**2 / self.shape, axis=1), np.log(self.shape).sum())

    def log_density_left_out(self, rows: Array, weight: Array) -> Array:
        """The log density of every training row given the mean and covariance of the others, with fixed α (D36).

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

    def log_density_groups_left_out(self, rows: Array, weight: Array, groups: npt.NDArray[np.intp]) -> Array:
        """The same given all rows of other groups; ``groups`` has the number of every row's group (D36).

        In the eigenvectors, with a the rows less the mean: ``S₋ = (W S - Σ ω a aᵀ)/(W - Ω) - d dᵀ``, where
        ``d = -Σ ω a/(W - Ω)`` is the change of the mean, and Ω the weight of the group.
        """
        along = (rows - self.mean) @ self.vectors
        order = np.argsort(groups, kind="stable")
        found, eye = np.empty(len(rows)), np.eye(len(self.mean))
        for mine in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            a, own = along[mine], weight[mine]
            rest = max(self.total - float(own.sum()), SMALLEST_LEFT * self.total)
            moved = -(own @ a) / rest
            S = (self.total * np.diag(self.values) - (a * own[:, None]).T @ a) / rest - np.outer(moved, moved)
            target = self.shrinkage * max(float(np.trace(S)), SMALLEST_LEFT * self.values.sum()) / len(self.mean)
            values, vectors = np.linalg.eigh((1 - self.shrinkage) * S + target * eye)
            values = np.maximum(values, SMALLEST_LEFT * max(float(values[-1]), target))
            distance = np.sum(((a - moved) @ vectors) ** 2 / values, axis=1)
            found[mine] = self._log_density(distance, np.log(values).sum())
        return found

    def _log_density(self, distance: Array, log_determinant: Array | float) -> Array:
        n_features = len(self.mean)
        constant = gammaln((FREEDOM + n_features) / 2) - gammaln(FREEDOM / 2) - n_features / 2 * np.log(FREEDOM * np.pi)
        return np.asarray(constant - log_determinant / 2 - (FREEDOM + n_features) / 2 * np.log1p(distance / FREEDOM))

    def draws(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw ``n_rows`` random rows."""
        normal = rng.normal(size=(n_rows, len(self.mean))) * np.sqrt(self.shape)
        scale = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=n_rows))
        return np.asarray(self.mean + (normal @ self.vectors.T) * scale[:, None])

    def expected(self, rows: Array, column: int) -> Array:
        """The conditional mean of one column given the others: ``x - (Ω (x - m))_j / Ω_jj``, ``Ω = Σ⁻¹``."""
        row_of_inverse = (self.vectors[column] / self.shape) @ self.vectors.T
        return np.asarray(rows[:, column] - (rows - self.mean) @ row_of_inverse / row_of_inverse[column])
