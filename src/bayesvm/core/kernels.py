"""Core: covariance functions (D2), their sums, and their evaluation against a fixed set of points.

A kernel is used in two ways: ``kernel(X, Z)`` for a plain matrix, and ``kernel.against(Z, dtype)``,
a small picklable function of X for the many blocks of a pass, with all that depends on Z done once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.arena import Arena
from bayesvm.core.cross_kernels import (
    AffineDistances,
    ConstantAgainst,
    CrossKernel,
    LinearAgainst,
    MaternAgainst,
    RBFAgainst,
    SumAgainst,
)
from bayesvm.core.linalg import Array


class Kernel(ABC):
    """A covariance function. Parameters are stored as given, so that scikit-learn can clone them."""

    @abstractmethod
    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        """``k(·, Z)`` prepared for many blocks, computed in ``dtype``."""

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """``k(x, x)`` of every row, in double precision."""

    def __call__(self, X: npt.ArrayLike, Z: npt.ArrayLike | None = None) -> Array:
        """The matrix ``k(X, Z)``, or ``k(X, X)``, in double precision."""
        left = np.asarray(X, np.float64)
        return self.against(left if Z is None else np.asarray(Z, np.float64))(left, Arena())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn asks; ``deep`` reaches into the parts of a sum."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {sorted(self.get_params())}")
            setattr(self, name, value)
        return self

    def __add__(self, other: Kernel) -> Sum:
        if not isinstance(other, Kernel):
            return NotImplemented
        left, right = _terms(self), _terms(other)
        return Sum([k for k, _ in left + right], [w for _, w in left + right])

    def __mul__(self, weight: float) -> Sum:
        if not isinstance(weight, int | float):  # NumPy's float64 is a float
            return NotImplemented
        return Sum([k for k, _ in _terms(self)], [w * weight for _, w in _terms(self)])

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(np.array_equal(value, theirs[name]) for name, value in mine.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_short(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({values})"


class _Stationary(Kernel):
    """A function of ``d² = Σ_j (x_j - z_j)² / ℓ_j²`` times a variance."""

    def __init__(self, length_scale: float | npt.ArrayLike = 1.0, variance: float = 1.0) -> None:
        self.length_scale = length_scale
        self.variance = variance

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
    """``σ² exp(-d²/2)``: squared exponential, ``length_scale`` one number or one per feature (D2).

    >>> from bayesvm.kernels import RBF
    >>> float(RBF(length_scale=2.0, variance=3.0)([[0.0]], [[2.0]])[0, 0].round(4))
    1.8196
    """

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        log_variance = float(np.log(positive("variance", self.variance)))
        return RBFAgainst(self._distances(Z, dtype, slope=-0.5, intercept=log_variance))


class Matern(_Stationary):
    """Matern with ``nu`` 3/2, ``σ² (1+a) exp(-a)``, a = √3 d, or 5/2, ``σ² (1+a+a²/3) exp(-a)``, a = √5 d."""

    def __init__(self, length_scale: float | npt.ArrayLike = 1.0, variance: float = 1.0, nu: float = 1.5) -> None:
        super().__init__(length_scale, variance)
        self.nu = nu

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu must be 1.5 or 2.5, got {self.nu!r}")
        return MaternAgainst(self._distances(Z, dtype, 2.0 * self.nu), positive("variance", self.variance), self.nu)


class Linear(Kernel):
    """``σ² xᵀz``, the kernel of the linear model."""

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = variance

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return LinearAgainst(np.asarray(positive("variance", self.variance) * Z.T, dtype))

    def diagonal(self, X: Array) -> Array:
        rows = np.asarray(X, np.float64)
        norms: Array = np.einsum("ij,ij->i", rows, rows)
        return norms * float(positive("variance", self.variance))


class Constant(Kernel):
    """``σ²`` everywhere: a bias with a normal prior, when added to another kernel."""

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = variance

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        return ConstantAgainst(positive("variance", self.variance), len(Z), np.dtype(dtype))

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), positive("variance", self.variance))


class Sum(Kernel):
    """``Σ_j γ_j k_j``, the paper's multiple kernels; ``2 * RBF() + Linear()`` builds one.

    The parts' parameters are reached as ``k0__length_scale``, ``k1__variance``, …
    """

    def __init__(self, kernels: Sequence[Kernel], weights: Sequence[float] | None = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def checked_weights(self) -> Sequence[float]:
        """The weights, one per kernel; all one if none were given."""
        weights = [1.0] * len(self.kernels) if self.weights is None else list(self.weights)
        if len(weights) != len(self.kernels) or not weights:
            raise ValueError(f"a sum of {len(self.kernels)} kernels has {len(weights)} weights; give one each")
        return [positive("a kernel's weight", weight) for weight in weights]

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        parts = tuple(kernel.against(Z, dtype) for kernel in self.kernels)
        return SumAgainst(parts, tuple(self.checked_weights()))

    def diagonal(self, X: Array) -> Array:
        parts = zip(self.checked_weights(), self.kernels, strict=True)
        return np.asarray(np.sum([weight * kernel.diagonal(X) for weight, kernel in parts], axis=0))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = {"kernels": self.kernels, "weights": self.weights}
        if deep:
            for i, kernel in enumerate(self.kernels):
                params |= {f"k{i}__{name}": value for name, value in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Kernel:
        for name, value in params.items():
            part, _, rest = name.partition("__")
            if rest and part[1:].isdigit() and part[0] == "k" and int(part[1:]) < len(self.kernels):
                self.kernels[int(part[1:])].set_params(**{rest: value})
            else:
                super().set_params(**{name: value})
        return self


def positive(name: str, value: Any) -> Any:
    """``value`` itself, if it is finite and above zero throughout."""
    try:
        holds = bool(np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0))
    except TypeError:
        holds = False
    if not holds:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return value


def _terms(kernel: Kernel) -> list[tuple[Kernel, float]]:
    if isinstance(kernel, Sum):
        return list(zip(kernel.kernels, kernel.checked_weights(), strict=True))
    return [(kernel, 1.0)]


def _short(value: Any) -> str:
    return np.array2string(value, precision=3, threshold=6) if isinstance(value, np.ndarray) else repr(value)
