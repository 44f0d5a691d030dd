"""Core: feature maps that turn a kernel or a linear model into a Bayesian linear model (D3), and their adjoints (D16).

``f(x) = phi(x)ᵀ beta + residual`` with ``beta ~ N(0, I)``. A map is *prepared* in an orthogonal basis
and a precision; what comes out of that is small, immutable and picklable, and sees only blocks of rows. To learn what a
map depends on, the features of a block are *recorded*, as kernels are. A sample that is searched on holds its features
(``HeldFeatures``), because every update of q needs them and only the kernel changes them.

Beside the points of its kernel a map may have *effects* (D26): kernels of one or two columns with points of their own.
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

    gram: Array  # the lower triangle of Σ phī phiᵀ, the rest of which is not used
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
        """Given the derivatives by every entry of Phi and of k(x,x)."""
        ...


class FeatureRecorder(Protocol):
    """Records the features of one block after the other."""

    def __call__(self, X: Array, constant: Constant = None) -> RecordedInducing: ...


@dataclass(frozen=True)
class InducingFeatures:
    """``phi(x) = L^-1 k(Z,x)`` with ``L Lᵀ = k(Z,Z)`` (D3), followed by the features of the effects (D26)."""

    kernel: Kernel
    inducing_points: Array
    whitening: Array  # L^-T, which every block is multiplied by, in some basis
    jitter: float = 0.0  # of the mean diagonal, that k(Z,Z) was given
    offset: float = 0.0  # that single precision subtracts from k(·,Z) before it rounds
    effects: tuple[Effect, ...] = ()
    learns_points: bool = True  # whether gradients are by the points, too; a search that keeps them saves the time

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
        return cls(kernel, inducing_points, inverse_transposed(factor), jitter, offset, effects, learns_points)

    def whitened_again(self) -> InducingFeatures:
        """The same features with all digits of double precision, for the jitter that they have."""
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
        """In single precision a kernel with an offset is split into that and the rest (D3).

        So what all points share does not drown what tells them apart.
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
        """``recorded`` for many blocks, in one precision; takes what ``Kernel.constant`` returned for each."""
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
        """Derivatives by θ, of the kernel and then of each effect's, and by Z if it is learned (D16)."""
        theta, points = self._own_gradient(total)
        others = [effect.features.gradient(of)[0] for effect, of in zip(self.effects, total.effects, strict=True)]
        return np.concatenate([theta, *others]), points

    def _own_gradient(self, total: FeatureGradient) -> tuple[Array, Array | None]:
        """The sums over rows, and the way through ``k(Z,Z) = L Lᵀ`` (D16).

        ``K̄mm = -½ L^-T (F + Fᵀ) L^-1``, F the lower triangle of the Gram sum with half its diagonal.
        """
        if total.kernel is None:
            raise TypeError("these sums are not those of inducing points")
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
    """A function of some columns that is added to f, with a kernel and points of its own (D26).

    One column or two; a categorical column in one-hot form counts as one, and all its columns are listed.
    """

    columns: tuple[int, ...]
    features: InducingFeatures  # of those columns alone

    def of(self, X: Array) -> Array:
        """The columns that it sees."""
        return X[:, self.columns]

    def with_kernel(self, kernel: Kernel) -> Effect:
        """The effect with another kernel."""
        return Effect(self.columns, InducingFeatures.build(kernel, self.features.inducing_points, np.float32))

    def against(self, dtype: npt.DTypeLike) -> _OfColumns:
        """Its kernel, prepared for blocks."""
        return _OfColumns(self.columns, self.features.kernel.against(self.features.inducing_points, dtype))


@dataclass(frozen=True)
class HeldFeatures:
    """A map whose features take the place of the rows: X is ``(phi, k(x,x))`` side by side."""

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
        """Derivatives by the logarithms of the prior variances, one per feature without the intercept (D16)."""
        if self.root.ndim != 1:
            raise TypeError("only a diagonal prior covariance has variances to learn")
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
    """The matrices of several kernels, as one."""

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
    """The features of a block with the kernel matrices they came from."""

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
