"""Core: the covariance functions (D2): stationary, linear, constant. Sums and the contract are in ``kernel.py``."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from bayesvm.core.cross_kernels import (
    AffineDistances,
    ConstantAgainst,
    CrossKernel,
    FlatRBFAgainst,
    LinearAgainst,
    MaternAgainst,
    RBFAgainst,
)
from bayesvm.core.kernel import LENGTH_SCALES, VARIANCES, Bounds, Kernel, Sum, positive
from bayesvm.core.kernel_adjoints import ByParameter, Recorded, RecordedConstant, RecordedDistance, RecordedLinear
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

FLAT = 0.5  # of the variance, that the mean of k(Z,Z) must exceed for single precision to need help (D3)

__all__ = ["RBF", "Constant", "Kernel", "Linear", "Matern", "Sum", "positive"]


class _Stationary(Kernel):
    """A function of ``d² = Σ_j (x_j - z_j)² / ℓ_j²`` times a variance."""

    def __init__(
        self,
        length_scale: float | npt.ArrayLike = 1.0,
        variance: float = 1.0,
        length_scale_bounds: Bounds = LENGTH_SCALES,
        variance_bounds: Bounds = VARIANCES,
    ) -> None:
        self.length_scale = length_scale
        self.variance = variance
        self.length_scale_bounds = length_scale_bounds
        self.variance_bounds = variance_bounds

    @abstractmethod
    def _profile(self, squared: Array) -> tuple[Array, Array]:
        """``f(d²)`` and ``-2 f'(d²)``."""

    def recorded(self, X: Array, Z: Array) -> Recorded:
        squared = np.maximum(self._distances(Z, np.float64, slope=1.0)(X, Workspace()), 0.0)
        value, slope = self._profile(squared)
        variance = float(positive("variance", self.variance))
        inverse = np.broadcast_to(1 / np.asarray(self.length_scale, np.float64), Z.shape[1])
        return RecordedDistance(X, Z, inverse, variance * value, variance * slope)

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        along = float(positive("variance", self.variance)) * adjoint.sum()
        return {"length_scale": np.zeros(X.shape[1]), "variance": np.array([along])}

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), positive("variance", self.variance))

    def _distances(self, Z: Array, dtype: npt.DTypeLike, slope: float, intercept: float = 0.0) -> AffineDistances:
        scale = np.asarray(positive("length_scale", self.length_scale), np.float64)
        if scale.ndim and scale.shape != (Z.shape[1],):
            raise ValueError(
                f"length_scale has shape {scale.shape}, but the inputs have {Z.shape[1]} columns; "
                "give one number, or one per column"
            )
        return AffineDistances.between(Z, np.broadcast_to(1 / scale, Z.shape[1]), slope, intercept, dtype)


class RBF(_Stationary):
    """``σ² exp(-d²/2)``: squared exponential (D2).

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        One for all features, or one for each.
    variance : float
        The σ².
    length_scale_bounds, variance_bounds : (low, high) or "fixed"
        Where tuning may go; "fixed" keeps the value.

    Examples
    --------
    >>> from bayesvm.kernels import RBF
    >>> float(RBF(length_scale=2.0, variance=3.0)([[0.0]], [[2.0]])[0, 0].round(4))
    1.8196
    """

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        log_variance = float(np.log(positive("variance", self.variance)))
        return RBFAgainst(self._distances(Z, dtype, slope=-0.5, intercept=log_variance))

    def level(self, matrix: Array) -> float:
        variance = float(positive("variance", self.variance))
        return variance if matrix.mean() > FLAT * variance else 0.0

    def above(self, level: float, Z: Array, dtype: npt.DTypeLike) -> CrossKernel:
        return FlatRBFAgainst(self._distances(Z, dtype, slope=-0.5), level)

    def _profile(self, squared: Array) -> tuple[Array, Array]:
        value = np.exp(-0.5 * squared)
        return value, value


class Matern(_Stationary):
    """Matern with ``nu`` 3/2, ``σ² (1+a) exp(-a)``, a = √3 d, or 5/2, ``σ² (1+a+a²/3) exp(-a)``, a = √5 d.

    Parameters
    ----------
    nu : 1.5 or 2.5
        How smooth f is: it has one derivative, or two.
    length_scale, variance, length_scale_bounds, variance_bounds
        As those of ``RBF``.
    """

    def __init__(
        self,
        length_scale: float | npt.ArrayLike = 1.0,
        variance: float = 1.0,
        nu: float = 1.5,
        length_scale_bounds: Bounds = LENGTH_SCALES,
        variance_bounds: Bounds = VARIANCES,
    ) -> None:
        super().__init__(length_scale, variance, length_scale_bounds, variance_bounds)
        self.nu = nu

    def _profile(self, squared: Array) -> tuple[Array, Array]:
        a = np.sqrt(2 * self.nu * squared)
        decay = np.exp(-a)
        if self.nu == 1.5:
            return (1 + a) * decay, 3 * decay
        return (1 + a + a * a / 3) * decay, 5 / 3 * (1 + a) * decay

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu must be 1.5 or 2.5, got {self.nu!r}")
        return MaternAgainst(self._distances(Z, dtype, 2.0 * self.nu), positive("variance", self.variance), self.nu)


class Linear(Kernel):
    """``σ² xᵀz``, the kernel of the linear model.

    Alone it makes a linear boundary through the origin of the scaled inputs; ``BayesianLinearSVC`` does that without
    inducing points. It is of use in sums: a trend beside what another kernel finds.

    Parameters
    ----------
    variance : float
        σ², the prior variance of each coefficient on the scaled inputs.
    variance_bounds : (low, high) or "fixed"
        Within which tuning may change it.

    Examples
    --------
    >>> from bayesvm.kernels import RBF, Linear
    >>> RBF(4.0) + 0.1 * Linear()
    Sum(kernels=[RBF(length_scale=4.0, variance=1.0), Linear(variance=1.0)], weights=[1.0, 0.1])
    """

    def __init__(self, variance: float = 1.0, variance_bounds: Bounds = VARIANCES) -> None:
        self.variance = variance
        self.variance_bounds = variance_bounds

    def recorded(self, X: Array, Z: Array) -> Recorded:
        variance = float(positive("variance", self.variance))
        return RecordedLinear(X, variance, variance * (X @ Z.T))

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        return {"variance": np.array([adjoint @ self.diagonal(X)])}

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return LinearAgainst(np.asarray(positive("variance", self.variance) * Z.T, dtype))

    def diagonal(self, X: Array) -> Array:
        rows = np.asarray(X, np.float64)
        norms: Array = np.einsum("ij,ij->i", rows, rows)
        return norms * float(positive("variance", self.variance))


class Constant(Kernel):
    """``σ²`` everywhere: a bias with a normal prior, when added to another kernel.

    Parameters
    ----------
    variance : float
        σ², the prior variance of the bias.
    variance_bounds : (low, high) or "fixed"
        Within which tuning may change it.

    Examples
    --------
    >>> from bayesvm.kernels import Constant, Linear
    >>> Linear() + Constant(10.0)
    Sum(kernels=[Linear(variance=1.0), Constant(variance=10.0)], weights=[1.0, 1.0])
    """

    def __init__(self, variance: float = 1.0, variance_bounds: Bounds = VARIANCES) -> None:
        self.variance = variance
        self.variance_bounds = variance_bounds

    def recorded(self, X: Array, Z: Array) -> Recorded:
        return RecordedConstant(np.full((len(X), len(Z)), float(positive("variance", self.variance))), X.shape[1])

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        return {"variance": np.array([adjoint @ self.diagonal(X)])}

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return ConstantAgainst(positive("variance", self.variance), len(Z), np.dtype(dtype))

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), positive("variance", self.variance))
