"""Core: feature maps that turn a kernel or a linear model into a Bayesian linear model (D3), and their adjoints (D16).

``f(x) = phi(x)ᵀ beta + residual`` with ``beta ~ N(0, I)``. A map is *prepared* in an orthogonal basis
and a precision; what comes out of that is small, immutable and picklable, and sees only blocks of rows. To learn what a
map depends on, the features of a block are *recorded*, as kernels are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.kernel import CrossKernel, Kernel, KernelGradient, Recorded, added
from bayesvm.core.linalg import Array, cholesky, inverse_transposed
from bayesvm.core.products import times_upper
from bayesvm.core.workspace import Workspace

# Relative jitter on Kmm: a whitened row's rounding error grows like eps / sqrt(jitter).
JITTER = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}


class PreparedFeatures(Protocol):
    """Features of a block in some orthogonal basis, in the workspace, and the prior variance of f at each row."""

    def __call__(self, X: Array, workspace: Workspace, /) -> tuple[Array, Array | None]:
        """``(Phi, k(x,x))``; ``None`` says that k(x,x) = |phi|², so that the residual is zero."""
        ...


class Features(Protocol):
    """A feature map: how many weights it has, and how to prepare it for blocks."""

    @property
    def n_weights(self) -> int: ...

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        """The map ``x -> basisᵀ phi(x)``; no basis means the identity."""
        ...


@dataclass
class FeatureGradient:
    """Sums over rows of what an objective's derivative by Phi and k(x,x) means for what is learned (D16)."""

    gram: Array  # Σ phī phiᵀ
    kernel: KernelGradient | None = None

    def __iadd__(self, other: Self) -> Self:
        self.gram = self.gram + other.gram
        if self.kernel is not None and other.kernel is not None:
            self.kernel += other.kernel
        return self


class RecordedFeatures(Protocol):
    """``Phi`` and ``k(x,x)`` of one block in double precision, and their adjoint."""

    @property
    def phi(self) -> Array: ...

    @property
    def prior_variance(self) -> Array | None: ...

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        """Given the derivatives by every entry of Phi and of k(x,x)."""
        ...


@dataclass(frozen=True)
class InducingFeatures:
    """``phi(x) = L^-1 k(Z,x)`` with ``L Lᵀ = k(Z,Z)`` (D3)."""

    kernel: Kernel
    inducing_points: Array
    whitening: Array  # L^-T, which every block is multiplied by, in some basis
    jitter: float = 0.0  # of the mean diagonal, that k(Z,Z) was given
    offset: float = 0.0  # that single precision subtracts from k(·,Z) before it rounds

    @classmethod
    def build(cls, kernel: Kernel, inducing_points: Array, dtype: npt.DTypeLike = np.float64) -> InducingFeatures:
        """Factor ``k(Z,Z)`` with the jitter that the precision of the blocks asks for."""
        matrix = kernel(inducing_points)
        offset = kernel.offset(matrix)
        jitter = JITTER[np.dtype(dtype)]
        if offset and np.dtype(dtype) == np.float32:
            # Rounding is relative to the difference from the offset. In powers of two, so that the jitter stays what
            # it is when a gradient moves the kernel a little.
            apart = 2.0 ** np.ceil(np.log2(max(1 - float(matrix.mean()) / offset, 1e-9)))
            jitter = max(jitter * apart, JITTER[np.dtype(np.float64)])
        factor, jitter = cholesky(matrix, what="the kernel matrix of the inducing points", jitter=jitter)
        return cls(kernel, inducing_points, inverse_transposed(factor), jitter, offset)

    @property
    def n_weights(self) -> int:
        return len(self.inducing_points)

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        """In single precision a kernel with an offset is split into that and the rest (D3).

        So what all points share does not drown what tells them apart.
        """
        kernel, Z = self.kernel, self.inducing_points
        whitening = self.whitening if basis is None else self.whitening @ basis
        if not (self.offset and np.dtype(dtype) == np.float32):
            return _PreparedInducing(kernel, kernel.against(Z, dtype), whitening.astype(dtype), None)
        shared = (self.offset * whitening.sum(axis=0)).astype(dtype)
        return _PreparedInducing(kernel, kernel.minus_offset(self.offset, Z, dtype), whitening.astype(dtype), shared)

    def recorded(self, X: Array) -> RecordedFeatures:
        rows = np.asarray(X, np.float64)
        cross = self.kernel.recorded(rows, self.inducing_points)
        return _RecordedInducing(self, rows, cross, cross.value @ self.whitening, self.kernel.diagonal(rows))

    def gradient(self, total: FeatureGradient) -> tuple[Array, Array]:
        """Derivatives by the kernel's θ and by Z: the sums over rows, and the way through ``k(Z,Z) = L Lᵀ`` (D16).

        ``K̄mm = -½ L^-T (F + Fᵀ) L^-1``, F the lower triangle of the Gram sum with half its diagonal.
        """
        if total.kernel is None:
            raise TypeError("these sums are not those of inducing points")
        Z, kernel = self.inducing_points, self.kernel
        lower = np.tril(total.gram)
        lower[np.diag_indices_from(lower)] *= 0.5
        adjoint = -0.5 * self.whitening @ (lower + lower.T) @ self.whitening.T
        among = kernel.recorded(Z, Z).pull(adjoint)
        jitter = kernel.pull_diagonal(Z, np.full(len(Z), self.jitter * np.trace(adjoint) / len(Z)))
        parameters = added(added(total.kernel.parameters, among.parameters), jitter)
        return kernel.by_theta(parameters), total.kernel.points + 2 * among.points


@dataclass(frozen=True)
class LinearFeatures:
    """``phi(x) = rootᵀ (x, 1)`` with ``root rootᵀ`` the prior covariance; the residual is zero."""

    root: Array  # a vector stands for a diagonal matrix; the intercept comes last
    intercept: bool

    @property
    def n_weights(self) -> int:
        return int(self.root.shape[-1])

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        if basis is None:
            return _PreparedLinear(self.root.astype(dtype), self.intercept)
        rotated = self.root[:, None] * basis if self.root.ndim == 1 else self.root @ basis
        return _PreparedLinear(rotated.astype(dtype), self.intercept)

    def recorded(self, X: Array) -> RecordedFeatures:
        phi, _ = self.prepared(None, np.float64)(X, Workspace())
        return _RecordedLinear(phi)

    def gradient(self, total: FeatureGradient) -> Array:
        """Derivatives by the logarithms of the prior variances, one per feature without the intercept (D16)."""
        if self.root.ndim != 1:
            raise TypeError("only a diagonal prior covariance has variances to learn")
        width = self.n_weights - self.intercept
        return 0.5 * np.diag(total.gram)[:width]


@dataclass(frozen=True)
class _PreparedInducing:
    kernel: Kernel
    cross: CrossKernel
    whitening: Array
    shared: Array | None  # features that all rows have in common

    @cached_property
    def triangular(self) -> bool:
        """Whether the features are in their own basis."""
        return not np.tril(self.whitening, -1).any()

    def __call__(self, X: Array, workspace: Workspace, /) -> tuple[Array, Array | None]:
        kernel_matrix = self.cross(X, workspace)
        product = times_upper if self.triangular else np.matmul
        phi: Array = product(
            kernel_matrix, self.whitening, out=workspace.empty(kernel_matrix.shape, kernel_matrix.dtype)
        )
        workspace.release(kernel_matrix)
        if self.shared is not None:
            phi += self.shared
        return phi, self.kernel.diagonal(X)


@dataclass(frozen=True)
class _PreparedLinear:
    root: Array  # a vector stands for a diagonal matrix
    intercept: bool

    def __call__(self, X: Array, workspace: Workspace, /) -> tuple[Array, Array | None]:
        rows, width = np.asarray(X, self.root.dtype), X.shape[1]
        phi: Array = workspace.empty((len(X), self.root.shape[-1]), self.root.dtype)
        if self.root.ndim == 1:
            np.multiply(rows, self.root[:width], out=phi[:, :width])
            phi[:, width:] = self.root[width:]
        else:
            np.matmul(rows, self.root[:width], out=phi)
            if self.intercept:
                phi += self.root[width]
        return phi, None


@dataclass(frozen=True)
class _RecordedInducing:
    features: InducingFeatures
    X: Array
    cross: Recorded
    phi: Array
    prior_variance: Array

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        kernel = self.cross.pull(phi_bar @ self.features.whitening.T)
        diagonal = self.features.kernel.pull_diagonal(self.X, variance_bar)
        kernel.parameters = added(kernel.parameters, diagonal)
        return FeatureGradient(phi_bar.T @ self.phi, kernel)


@dataclass(frozen=True)
class _RecordedLinear:
    phi: Array
    prior_variance: None = None

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        return FeatureGradient(phi_bar.T @ self.phi)
