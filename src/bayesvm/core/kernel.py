"""Core: the contract of covariance functions, their sums, and which parameters are learned, within which bounds.

A kernel is used in three ways: ``kernel(X, Z)`` for a plain matrix; ``kernel.against(Z, dtype)``, a small picklable
function of X for the many blocks of a pass, with all that depends on Z done once; and ``kernel.recorded(X, Z)``, a
matrix with its adjoint, for learning (D15).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.cross_kernels import ConstantAgainst, CrossKernel, SumAgainst
from bayesvm.core.kernel_adjoints import ByParameter, Recorded, RecordedSum, named_parts
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

Bounds = tuple[float, float] | Literal["fixed"]
LENGTH_SCALES: Bounds = (1e-2, 1e4)
VARIANCES: Bounds = (1e-2, 1e2)


@dataclass(frozen=True)
class Learned:
    """A parameter that is learned: its value, always as a vector, and its bounds."""

    name: str
    value: Array
    bounds: tuple[float, float]


class Kernel(ABC):
    """A covariance function. Parameters are stored as given, so that scikit-learn can clone them."""

    @abstractmethod
    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        """``k(·, Z)`` prepared for many blocks, computed in ``dtype``."""

    def level(self, matrix: Array) -> float:
        """A number near all of ``k(Z, Z)``, for kernels that can be had ``above`` it; zero if there is none (D3)."""
        return 0.0

    def above(self, level: float, Z: Array, dtype: npt.DTypeLike) -> CrossKernel:
        """``k(·, Z) - level``; a kernel with a level of its own gives it an error relative to that difference."""
        constant = ConstantAgainst(level, len(Z), np.dtype(dtype))
        return SumAgainst((self.against(Z, dtype), constant), (1.0, -1.0))

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """``k(x, x)`` of every row, in double precision."""

    @abstractmethod
    def recorded(self, X: Array, Z: Array) -> Recorded:
        """``k(X, Z)`` in double precision, with its adjoint (D15)."""

    @abstractmethod
    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        """``Σ adjoint_i ∂k(x_i, x_i)`` by the logarithms of the parameters (D15)."""

    def learned(self) -> list[Learned]:
        """The parameters that are learned; one with bounds ``"fixed"`` is not."""
        found = []
        for name, bounds in self._bounds().items():
            if not (isinstance(bounds, str) and bounds == "fixed"):
                low, high = _checked(name, bounds)
                value = np.atleast_1d(np.asarray(positive(name, getattr(self, name)), np.float64))
                found.append(Learned(name, value, (float(low), float(high))))
        return found

    def _bounds(self) -> dict[str, Bounds]:
        names = signature(type(self)).parameters
        return {name: getattr(self, f"{name}_bounds") for name in names if f"{name}_bounds" in names}

    def log_parameters(self) -> Array:
        """The logarithms of all that is learned, one after the other: θ."""
        return np.concatenate([np.zeros(0), *(np.log(parameter.value) for parameter in self.learned())])

    def log_bounds(self) -> Array:
        """Bounds of θ, a row (low, high) for each entry; wide enough for where it is now."""
        rows = [np.tile(np.log(p.bounds), (len(p.value), 1)) for p in self.learned()]
        bounds = np.concatenate([np.zeros((0, 2)), *rows])
        now = self.log_parameters()
        return np.column_stack([np.minimum(bounds[:, 0], now), np.maximum(bounds[:, 1], now)])

    def at(self, theta: Array) -> Self:
        """The same kernel at another θ."""
        other, start = copy.deepcopy(self), 0
        for parameter in self.learned():
            value = np.exp(theta[start : start + len(parameter.value)])
            given = self.get_params()[parameter.name]
            single = given is not None and np.ndim(given) == 0
            other.set_params(**{parameter.name: float(value[0]) if single else value})
            start += len(parameter.value)
        return other

    def by_theta(self, gradient: ByParameter) -> Array:
        """The derivative by θ from the derivatives by all parameters: what is one number for all features adds up."""
        parts = []
        for parameter in self.learned():
            along = gradient[parameter.name]
            parts.append(along if len(along) == len(parameter.value) else np.atleast_1d(along.sum()))
        return np.concatenate([np.zeros(0), *parts])

    def per_feature(self, n_features: int) -> Self:
        """The same kernel with a length-scale of its own for every feature, where length-scales are learned."""
        other = copy.deepcopy(self)
        for parameter in self.learned():
            if parameter.name.endswith("length_scale"):
                value = np.broadcast_to(parameter.value, n_features).copy()
                other.set_params(**{parameter.name: value})
        return other

    def __call__(self, X: npt.ArrayLike, Z: npt.ArrayLike | None = None) -> Array:
        """The matrix ``k(X, Z)``, or ``k(X, X)``, in double precision."""
        left = np.asarray(X, np.float64)
        return self.against(left if Z is None else np.asarray(Z, np.float64))(left, Workspace())

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
        usual = signature(type(self)).parameters
        values = ", ".join(
            f"{name}={_short(value)}"
            for name, value in self.get_params(deep=False).items()
            if not (name.endswith("_bounds") and value == usual[name].default)
        )
        return f"{type(self).__name__}({values})"


class Sum(Kernel):
    """``Σ_j γ_j k_j``, the paper's multiple kernels; ``2 * RBF() + Linear()`` builds one.

    The parts' parameters are reached as ``k0__length_scale``, ``k1__variance``, … As long as the weights are learned,
    the parts' variances stay as they are, since they would do the same.

    Parameters
    ----------
    kernels : list of kernels
    weights : list of positive numbers or None
        γ_j, one for each kernel; None for ones.
    weights_bounds : (low, high) or "fixed"
        Within which tuning may change them.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: Sequence[float] | None = None,
        weights_bounds: Bounds = VARIANCES,
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.weights_bounds = weights_bounds

    def learned(self) -> list[Learned]:
        weighted = Sum(self.kernels, self.checked_weights(), self.weights_bounds)
        own = super(Sum, weighted).learned()
        parts = [
            Learned(f"k{i}__{parameter.name}", parameter.value, parameter.bounds)
            for i, kernel in enumerate(self.kernels)
            for parameter in kernel.learned()
            if not (own and parameter.name == "variance")
        ]
        return own + parts

    def at(self, theta: Array) -> Self:
        weighted = type(self)(self.kernels, list(self.checked_weights()), self.weights_bounds)
        return super(Sum, weighted).at(theta)

    def recorded(self, X: Array, Z: Array) -> Recorded:
        parts = tuple(kernel.recorded(X, Z) for kernel in self.kernels)
        return RecordedSum(parts, tuple(self.checked_weights()))

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        weights = self.checked_weights()
        parts = [kernel.pull_diagonal(X, w * adjoint) for w, kernel in zip(weights, self.kernels, strict=True)]
        along = [w * float(adjoint @ kernel.diagonal(X)) for w, kernel in zip(weights, self.kernels, strict=True)]
        return named_parts(parts, np.array(along))

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
        params = super().get_params(deep=False)
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


def _checked(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0 < low < high:
        raise ValueError(f"{name}_bounds must be 'fixed' or two numbers 0 < low < high, got {bounds!r}")
    return low, high


def _terms(kernel: Kernel) -> list[tuple[Kernel, float]]:
    if isinstance(kernel, Sum):
        return list(zip(kernel.kernels, kernel.checked_weights(), strict=True))
    return [(kernel, 1.0)]


def _short(value: Any) -> str:
    return np.array2string(value, precision=3, threshold=6) if isinstance(value, np.ndarray) else repr(value)
