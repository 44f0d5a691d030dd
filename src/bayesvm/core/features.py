"""Core: feature maps that turn a kernel or a linear model into a Bayesian linear model (D3), and their adjoints (D16).

``f(x) = phi(x)ᵀ beta + residual`` with ``beta ~ N(0, I)``. A map is *prepared* for an orthogonal basis and
a precision. The prepared map is small, immutable and picklable, and sees only blocks of rows. To learn the parameters
of a map, the features of a block are *recorded*, as kernels are. During a search the sample keeps its features
(``HeldFeatures``): every update of q needs them, and they change only with the kernel.

A map may also have *effects* (D26): kernels of one or two columns with inducing points of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from bayesvm.core.kernels.kernel import Kernel
from bayesvm.core.kernels.records import Constant, CrossKernel, KernelGradient, Recorded, added
from bayesvm.core.linalg import Array, cholesky, inverse_transposed
from bayesvm.core.products import lower_products, times_lower, times_upper
from bayesvm.core.workspace import Workspace

# Relative jitter on Kmm: the rounding error of a whitened row grows like eps / sqrt(jitter).
JITTER = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}


class PreparedFeatures(Protocol):
    """Features of a block in an orthogonal basis, stored in the workspace, and the prior variance of f at each row."""

    def __call__(self, X: Array, workspace: Workspace, /) -> tuple[Array, Array | None]:
        """``(Phi, k(x,x))``; ``None`` means that k(x,x) = |phi|², so the residual is zero."""
        ...


class Features(Protocol):
    """A feature map: its number of weights, and how to prepare it for blocks."""

    @property
    def n_weights(self) -> int: ...

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        """The map ``x -> basisᵀ phi(x)``; no basis means the identity."""
        ...


@dataclass
class FeatureGradient:
    """Sums over rows that carry an objective's derivatives from Phi and k(x,x) to the learned parameters (D16)."""

    gram: Array  # the lower triangle of Σ phī phiᵀ; the upper one is not used
    kernel: KernelGradient | None = None
    effects: list[FeatureGradient] = field(default_factory=list)  # of each effect

    def __iadd__(self, other: Self) -> Self:
        self.gram = self.gram + other.gram
        if self.kernel is not None and other.kernel is not None:
            self.kernel += other.kernel
        for mine, theirs in zip(self.effects, other.effects, strict=True):
            mine += theirs  # noqa: PLW2901  (in place)
        return self


class RecordedFeatures(Protocol):
    """``Phi`` and ``k(x,x)`` of one block, and their adjoint."""

    @property
    def phi(self) -> Array: ...

    @property
    def prior_variance(self) -> Array | None: ...

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        """The gradient, given the derivatives with respect to every entry of Phi and of k(x,x)."""
        ...


class FeatureRecorder(Protocol):
    """Records the features of block after block."""

    def __call__(self, X: Array, constant: Constant = None) -> RecordedInducing: ...


@dataclass(frozen=True)
class InducingFeatures:
    """``phi(x) = L^-1 k(Z,x)`` with ``L Lᵀ = k(Z,Z)`` (D3), followed by the features of the effects (D26)."""

    kernel: Kernel
    inducing_points: Array
    whitening: Array  # L^-T in some basis; every block is multiplied by it
    jitter: float = 0.0  # added to k(Z,Z), relative to its mean diagonal
    offset: float = 0.0  # subtracted from k(·,Z) in single precision, before rounding
    effects: tuple[Effect, ...] = ()
    learns_points: bool = True  # whether gradients include the points; a search with fixed points saves that time

    @classmethod
    def build(
        cls,
        kernel: Kernel,
        inducing_points: Array,
        dtype: npt.DTypeLike = np.float64,
        effects: tuple[Effect, ...] = (),
        *,
        learns_points: bool = True,
    ) -> InducingFeatures:
        """Factor ``k(Z,Z)`` with the jitter that the precision of the blocks requires."""
        matrix = kernel(inducing_points)
        offset = kernel.offset(matrix)
        jitter = JITTER[np.dtype(dtype)]
        if offset and np.dtype(dtype) == np.float32:
            # Rounding errors are relative to the difference from the offset. Powers of two keep the jitter constant
            # when a gradient step changes the kernel slightly.
            apart = 2.0 ** np.ceil(np.log2(max(1 - float(matrix.mean()) / offset, 1e-9)))
            jitter = max(jitter * apart, JITTER[np.dtype(np.float64)])
        factor, jitter = cholesky(matrix, what="the kernel matrix of the inducing points", jitter=jitter)
        return cls(kernel, inducing_points, inverse_transposed(factor), jitter, offset, effects, learns_points)

    def whitened_again(self) -> InducingFeatures:
        """The same features in full double precision, with the same jitter."""
        points = np.asarray(self.inducing_points, np.float64)
        factor, _ = cholesky(self.kernel(points), what="the kernel matrix of the inducing points", jitter=self.jitter)
        return replace(self, whitening=inverse_transposed(factor))

    @property
    def n_weights(self) -> int:
        return len(self.inducing_points) + sum(effect.features.n_weights for effect in self.effects)

    def diagonal(self, X: Array) -> Array:
        """The prior variance of f at every row, effects included."""
        total = self.kernel.diagonal(X)
        for effect in self.effects:
            total = total + effect.features.kernel.diagonal(effect.of(X))
        return total

    def covariance(self, X: Array) -> Array:
        """The prior covariance of f between rows, effects included."""
        total = self.kernel(X)
        for effect in self.effects:
            total += effect.features.kernel(effect.of(X))
        return total

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        """In single precision, split a kernel that has an offset into the offset and the difference from it (D3).

        This keeps the common part of all points from hiding their differences in rounding.
        """
        kernel, Z = self.kernel, self.inducing_points
        split = bool(self.offset) and np.dtype(dtype) == np.float32
        cross = kernel.minus_offset(self.offset, Z, dtype) if split else kernel.against(Z, dtype)
        whitening = self.whitening
        if self.effects:
            cross = _SideBySide(cross, tuple(effect.against(dtype) for effect in self.effects))
            whitening = block_diag(whitening, *(effect.features.whitening for effect in self.effects))
        if basis is not None:
            whitening = whitening @ basis
        # Effects have no offset.
        shared = (self.offset * whitening[: len(Z)].sum(axis=0)).astype(dtype) if split else None
        return _PreparedInducing(self.diagonal, cross, whitening.astype(dtype), shared)

    def recorded(self, X: Array) -> RecordedFeatures:
        return self.recorder(np.float64)(X)

    def recorder(self, dtype: npt.DTypeLike) -> FeatureRecorder:
        """``recorded`` for many blocks in one precision; takes what ``Kernel.constant`` returned for each block."""
        kernel, whitening = self.kernel.recorder(self.inducing_points, dtype), self.whitening.astype(dtype)
        effects = [effect.features.recorder(dtype) for effect in self.effects]
        split = self.prepared(None, dtype) if self.offset and np.dtype(dtype) == np.float32 else None

        def recorded(X: Array, constant: Constant = None) -> RecordedInducing:
            own, phi = kernel(X, constant), np.empty((len(X), self.n_weights), dtype)
            first = len(whitening)
            if split is None:
                times_upper(own.value, whitening, out=phi[:, :first])
            else:
                phi[:] = split(X, Workspace())[0]
            parts = [recorder(effect.of(X)) for recorder, effect in zip(effects, self.effects, strict=True)]
            for part in parts:
                phi[:, first : first + part.phi.shape[1]] = part.phi
                first += part.phi.shape[1]
            return RecordedInducing(self, X, phi, self.diagonal(X), own, parts)

        return recorded

    def gradient(self, total: FeatureGradient) -> tuple[Array, Array | None]:
        """Derivatives with respect to θ, first of the kernel, then of each effect, and to Z if it is learned (D16)."""
        theta, points = self._own_gradient(total)
        others = [effect.features.gradient(of)[0] for effect, of in zip(self.effects, total.effects, strict=True)]
        return np.concatenate([theta, *others]), points

    def _own_gradient(self, total: FeatureGradient) -> tuple[Array, Array | None]:
        """The sums over rows, and the path through ``k(Z,Z) = L Lᵀ`` (D16).

        ``K̄mm = -½ L^-T (F + Fᵀ) L^-1``, F the lower triangle of the Gram sum with half its diagonal.
        """
        if total.kernel is None:
            raise TypeError("these sums do not belong to inducing-point features")
        Z, kernel = self.inducing_points, self.kernel
        lower = np.tril(total.gram)
        lower[np.diag_indices_from(lower)] *= 0.5
        adjoint = -0.5 * self.whitening @ (lower + lower.T) @ self.whitening.T
        among = kernel.recorded(Z, Z)
        jitter = kernel.pull_diagonal(Z, np.full(len(Z), self.jitter * np.trace(adjoint) / len(Z)))
        parameters = added(added(total.kernel.parameters, among.pull(adjoint)), jitter)
        by_points = None if total.kernel.points is None else total.kernel.points + 2 * among.pull_points(adjoint)
        return kernel.by_theta(parameters), by_points


@dataclass(frozen=True)
class Effect:
    """A function of one or two columns that is added to f, with its own kernel and inducing points (D26).

    A one-hot encoded categorical column counts as one column; all of its one-hot columns are listed.
    """

    columns: tuple[int, ...]
    features: InducingFeatures  # of these columns only

    def of(self, X: Array) -> Array:
        """The columns that the effect depends on."""
        return X[:, self.columns]

    def with_kernel(self, kernel: Kernel) -> Effect:
        """The effect with another kernel."""
        return Effect(self.columns, InducingFeatures.build(kernel, self.features.inducing_points, np.float32))

    def against(self, dtype: npt.DTypeLike) -> _OfColumns:
        """Its kernel, prepared for blocks."""
        return _OfColumns(self.columns, self.features.kernel.against(self.features.inducing_points, dtype))


@dataclass(frozen=True)
class HeldFeatures:
    """A map for rows that are stored as features: X is ``(phi, k(x,x))`` side by side."""

    n_weights: int

    def prepared(self, basis: Array | None, dtype: npt.DTypeLike) -> PreparedFeatures:
        return _PreparedHeld(self.n_weights, None if basis is None else basis.astype(dtype))


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
        """Derivatives with respect to the log prior variances, one per feature, intercept excluded (D16)."""
        if self.root.ndim != 1:
            raise TypeError("prior variances can be learned only for a diagonal prior covariance")
        width = self.n_weights - self.intercept
        return 0.5 * np.diag(total.gram)[:width]


@dataclass(frozen=True)
class _PreparedInducing:
    diagonal: Callable[[Array], Array]
    cross: CrossKernel
    whitening: Array
    shared: Array | None  # features that all rows have in common

    @cached_property
    def triangular(self) -> bool:
        """Whether the features are in their original basis."""
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
        return phi, self.diagonal(X)


@dataclass(frozen=True)
class _OfColumns:
    """A kernel of some columns."""

    columns: tuple[int, ...]
    cross: CrossKernel

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        return self.cross(X[:, self.columns], workspace)


@dataclass(frozen=True)
class _SideBySide:
    """The matrices of several kernels, concatenated."""

    first: CrossKernel
    others: tuple[CrossKernel, ...]

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        parts = [cross(X, workspace) for cross in (self.first, *self.others)]
        joined = workspace.empty((len(X), sum(part.shape[1] for part in parts)), parts[0].dtype)
        np.concatenate(parts, axis=1, out=joined)
        for part in parts:
            workspace.release(part)
        return joined


@dataclass(frozen=True)
class _PreparedHeld:
    n_weights: int
    basis: Array | None

    def __call__(self, X: Array, workspace: Workspace, /) -> tuple[Array, Array | None]:
        phi, prior_variance = X[:, : self.n_weights], X[:, self.n_weights].astype(np.float64)
        return phi if self.basis is None else phi @ self.basis, prior_variance


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
class RecordedInducing:
    """The features of a block with the kernel matrices that produced them."""

    features: InducingFeatures
    X: Array
    phi: Array
    prior_variance: Array
    kernel: Recorded
    effects: Sequence[RecordedInducing]

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        """The adjoint of ``X -> Phi, k(x,x)`` (D16)."""
        features, dtype = self.features, phi_bar.dtype
        own = slice(0, len(features.inducing_points))
        unwhitened = features.whitening.T.astype(dtype)
        adjoint = times_lower(phi_bar[:, own], unwhitened, out=np.empty((len(phi_bar), own.stop), dtype))
        parameters = added(self.kernel.pull(adjoint), features.kernel.pull_diagonal(self.X, variance_bar))
        points = self.kernel.pull_points(adjoint) if features.learns_points else None
        pulled = FeatureGradient(lower_products(phi_bar[:, own], self.phi[:, own]), KernelGradient(parameters, points))
        first = own.stop
        for part in self.effects:
            pulled.effects.append(part.pull(phi_bar[:, first : first + part.phi.shape[1]], variance_bar))
            first += part.phi.shape[1]
        return pulled


@dataclass(frozen=True)
class _RecordedLinear:
    phi: Array
    prior_variance: None = None

    def pull(self, phi_bar: Array, variance_bar: Array) -> FeatureGradient:
        return FeatureGradient(phi_bar.T @ self.phi)
