"""Core: the interface of covariance functions, sums of kernels, and the learned parameters with their bounds.

A kernel is used in three ways. ``kernel(X, Z)`` returns a plain matrix. ``kernel.against(Z, dtype)`` returns a small
picklable function of X for the many blocks of a pass; everything that depends on Z is computed once.
``kernel.recorded(X, Z)`` returns a matrix with its adjoint, for learning (D15). During a search, ``recorder`` and
``constant`` avoid recomputing what the trials share.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from inspect import Parameter as Argument
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.parameters import VARIANCE, Bounds, Learned, Parameter, checked_bounds, positive
from bayesvm.core.kernels.records import ByParameter, Constant, CrossKernel, Recorded, Recorder
from bayesvm.core.kernels.sums import SumAgainst, named_by_part, no_parameters, no_points
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.suggest import did_you_mean


@cache
def parameters_of(kind: type) -> Mapping[str, Argument]:
    """The constructor's parameters; cached because searches ask for them thousands of times."""
    return signature(kind).parameters


class Kernel(ABC):
    """A covariance function. Parameters are stored as given, so that scikit-learn can clone them.

    ``parameters`` maps the names of the learnable parameters to ``Parameter`` objects with prior and bounds. To write a
    kernel of distances, derive from ``Stationary``, which needs one method. Other kernels implement the four below.

    See Also
    --------
    Stationary : The base class of distance-based kernels.
    Sum : The result of ``+`` and ``*``.

    Examples
    --------
    >>> from bayesvm.kernels import RBF, Kernel, Linear
    >>> kernel = 2 * RBF(length_scale=3.0) + Linear()
    >>> isinstance(kernel, Kernel), kernel([[0.0], [1.0]]).shape
    (True, (2, 2))
    """

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # other parameters and their allowed values

    @abstractmethod
    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        """``k(·, Z)`` prepared for many blocks, computed in ``dtype``."""

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """``k(x, x)`` of every row, in double precision."""

    @abstractmethod
    def recorded(self, X: Array, Z: Array) -> Recorded:
        """``k(X, Z)`` in the precision of X, with its adjoint (D15)."""

    @abstractmethod
    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        """``Σ adjoint_i ∂k(x_i, x_i)`` with respect to the logarithms of the parameters (D15)."""

    def recorder(self, Z: Array, dtype: npt.DTypeLike) -> Recorder:
        """``recorded(·, Z)`` for many blocks, computed in ``dtype``; takes what ``constant`` returned for the block."""

        def recorded(X: Array, _: Constant) -> Recorded:
            found = self.recorded(X, Z)
            return replace(found, value=np.asarray(found.value, dtype))

        return recorded

    def constant(self, X: Array, Z: Array, dtype: npt.DTypeLike) -> Constant:
        """The part of ``k(X, Z)`` that does not change while the kernel is learned."""
        return None

    def offset(self, matrix: Array) -> float:
        """A number close to all entries of ``k(Z, Z)``, for kernels with ``minus_offset``; zero for others (D3)."""
        return 0.0

    def minus_offset(self, offset: float, Z: Array, dtype: npt.DTypeLike) -> CrossKernel:
        """``k(·, Z) - offset``, accurate relative to that difference."""
        raise TypeError(f"{type(self).__name__} has no offset")

    @property
    def length_scales(self) -> Any:
        """The length-scales: one number, or one per feature. None if the kernel has none."""
        return next((getattr(self, name) for name, declared in self.parameters.items() if declared.per_feature), None)

    def column_distances(self, points: Array) -> Array | None:
        """The contribution of each column to the distances between points, up to a factor; None if there is none."""
        return None

    @property
    def has_relevance(self) -> bool:
        """Whether any parameter has one value per feature (automatic relevance determination)."""
        return any(np.ndim(getattr(self, name)) for name, declared in self.parameters.items() if declared.per_feature)

    def learned(self) -> list[Learned]:
        """The parameters that are learned: all but those with bounds ``"fixed"``."""
        names = parameters_of(type(self))
        for name in names:
            if f"{name}_bounds" in names and name not in self.parameters:
                raise TypeError(
                    f"{type(self).__name__} has {name}_bounds, but declares no prior for {name}; "
                    "add a Parameter to the class: "
                    f"parameters = {{..., {name!r}: Parameter(LogNormal(1.0, 1.0), bounds=(0.01, 100.0))}}"
                )
        found = []
        for name, declared in self.parameters.items():
            bounds = checked_bounds(name, getattr(self, f"{name}_bounds", declared.bounds))
            if bounds is not None:
                value = np.atleast_1d(np.asarray(positive(name, getattr(self, name)), np.float64))
                found.append(Learned(name, value, bounds, declared))
        return found

    def log_parameters(self) -> Array:
        """θ: the logarithms of all learned parameters, concatenated."""
        return np.concatenate([np.zeros(0), *(np.log(parameter.value) for parameter in self.learned())])

    def log_bounds(self) -> Array:
        """Bounds of θ, one row (low, high) per entry, widened to include the current value."""
        rows = [np.tile(np.log(p.bounds), (len(p.value), 1)) for p in self.learned()]
        bounds = np.concatenate([np.zeros((0, 2)), *rows])
        now = self.log_parameters()
        return np.column_stack([np.minimum(bounds[:, 0], now), np.maximum(bounds[:, 1], now)])

    def penalty(self, n_features: int) -> tuple[float, Array]:
        """``-log`` of the prior at the current θ, and its derivative with respect to θ (D19)."""
        priors = [p.declared.prior(np.log(p.value), n_features) for p in self.learned()]
        return float(sum(value for value, _ in priors)), np.concatenate([np.zeros(0), *(slope for _, slope in priors)])

    def at(self, theta: Array) -> Self:
        """The same kernel with another θ."""
        other, start = copy.deepcopy(self), 0
        for parameter in self.learned():
            value = np.exp(theta[start : start + len(parameter.value)])
            given = self.get_params()[parameter.name]
            single = given is not None and np.ndim(given) == 0
            other.set_params(**{parameter.name: float(value[0]) if single else value})
            start += len(parameter.value)
        return other

    def by_theta(self, gradient: ByParameter) -> Array:
        """The derivative with respect to θ, given those of all parameters; sums over features for scalar parameters."""
        parts = []
        for parameter in self.learned():
            along = gradient[parameter.name]
            parts.append(along if len(along) == len(parameter.value) else np.atleast_1d(along.sum()))
        return np.concatenate([np.zeros(0), *parts])

    def per_feature(self, n_features: int) -> Self:
        """The same kernel with one value per feature for all learned parameters that allow it."""
        other = copy.deepcopy(self)
        for parameter in self.learned():
            if parameter.declared.per_feature:
                value = np.broadcast_to(parameter.value, n_features).copy()
                other.set_params(**{parameter.name: value})
        return other

    def stretched(self, length: float, variance: float) -> Self:
        """The same kernel with all learned length-scales and variances multiplied by these factors, within bounds."""
        shifts = []
        for parameter in self.learned():
            is_variance = parameter.declared.amplitude or parameter.name == "weights"
            factor = length if parameter.declared.per_feature else variance if is_variance else 1.0
            shifts.append(np.full(len(parameter.value), np.log(factor)))
        low, high = self.log_bounds().T
        return self.at(np.clip(self.log_parameters() + np.concatenate([np.zeros(0), *shifts]), low, high))

    def __call__(self, X: npt.ArrayLike, Z: npt.ArrayLike | None = None) -> Array:
        """The matrix ``k(X, Z)``, or ``k(X, X)``, in double precision.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows of scaled inputs.
        Z : array-like of shape (m, n_features) or None
            Other rows. None means X itself.

        Returns
        -------
        array of shape (n, m)
            The covariances.
        """
        left = np.asarray(X, np.float64)
        return self.against(left if Z is None else np.asarray(Z, np.float64))(left, Workspace())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as in scikit-learn; ``deep`` includes those of the parts of a sum."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self.get_params(deep=False):
                hint = did_you_mean(name, self.get_params())
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; {hint}")
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
        usual = parameters_of(type(self))
        values = ", ".join(
            f"{name}={_short(value)}"
            for name, value in self.get_params(deep=False).items()
            if not (name.endswith("_bounds") and value == usual[name].default)
        )
        return f"{type(self).__name__}({values})"


class Sum(Kernel):
    """``Σ_j γ_j k_j``, the paper's multiple kernels; ``2 * RBF() + Linear()`` builds one.

    The parameters of the parts are named ``k0__length_scale``, ``k1__variance``, … While the weights are learned, the
    variances of the parts are fixed, because they have the same effect.

    Parameters
    ----------
    kernels : list of Kernel
        The parts.
    weights : list of positive numbers or None
        γ_j, one per kernel. None means all ones.
    weights_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the values.

    See Also
    --------
    Constant : A kernel to add for a bias.
    Linear : A kernel to add for a linear trend.

    Examples
    --------
    >>> from bayesvm.kernels import RBF, Linear
    >>> kernel = 2 * RBF() + Linear()
    >>> sorted(kernel.get_params())[:3]
    ['k0__length_scale', 'k0__length_scale_bounds', 'k0__variance']
    """

    parameters = {"weights": replace(VARIANCE, amplitude=False)}  # noqa: RUF012  (never changed)

    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: Sequence[float] | None = None,
        weights_bounds: Bounds = VARIANCE.bounds,
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.weights_bounds = weights_bounds

    def learned(self) -> list[Learned]:
        weighted = Sum(self.kernels, self.checked_weights(), self.weights_bounds)
        own = super(Sum, weighted).learned()
        parts = [
            # A part that is itself a sum keeps the ratios of its amplitudes.
            replace(parameter, name=f"k{i}__{parameter.name}", declared=replace(parameter.declared, amplitude=False))
            for i, kernel in enumerate(self.kernels)
            for parameter in kernel.learned()
            if not (own and parameter.declared.amplitude)
        ]
        return own + parts

    @property
    def length_scales(self) -> Any:
        return next((scales for part in self.kernels if (scales := part.length_scales) is not None), None)

    def column_distances(self, points: Array) -> Array | None:
        each = (part.column_distances(points) for part in self.kernels)
        return next((found for found in each if found is not None), None)

    @property
    def has_relevance(self) -> bool:
        return any(part.has_relevance for part in self.kernels)

    def at(self, theta: Array) -> Self:
        weighted = type(self)(self.kernels, list(self.checked_weights()), self.weights_bounds)
        return super(Sum, weighted).at(theta)

    def stretched(self, length: float, variance: float) -> Self:
        if any(parameter.name == "weights" for parameter in self.learned()):
            return super().stretched(length, variance)
        # If the weights are fixed, the variances of the parts are learned.
        parts = [kernel.stretched(length, variance) for kernel in self.kernels]
        return type(self)(parts, copy.deepcopy(self.weights), self.weights_bounds)

    def checked_weights(self) -> Sequence[float]:
        """The weights, one per kernel; all ones if none were given."""
        weights = [1.0] * len(self.kernels) if self.weights is None else list(self.weights)
        if len(weights) != len(self.kernels) or not weights:
            raise ValueError(f"a sum of {len(self.kernels)} kernels has {len(weights)} weights; give one per kernel")
        return [positive("a kernel's weight", weight) for weight in weights]

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        parts = tuple(kernel.against(Z, dtype) for kernel in self.kernels)
        return SumAgainst(parts, tuple(self.checked_weights()))

    def diagonal(self, X: Array) -> Array:
        return np.asarray(np.sum([weight * kernel.diagonal(X) for kernel, weight in _terms(self)], axis=0))

    def recorded(self, X: Array, Z: Array) -> Recorded:
        return self.recorder(Z, X.dtype)(X, None)

    def constant(self, X: Array, Z: Array, dtype: npt.DTypeLike) -> Constant:
        held = [None if kernel.learned() else kernel.against(Z, dtype)(X, Workspace()) for kernel in self.kernels]
        return held if any(part is not None for part in held) else None

    def recorder(self, Z: Array, dtype: npt.DTypeLike) -> Recorder:
        weights, learns = self.checked_weights(), [bool(kernel.learned()) for kernel in self.kernels]
        recorders = [kernel.recorder(Z, dtype) for kernel in self.kernels]

        def recorded(X: Array, constant: Constant) -> Recorded:
            matrices = constant or [None] * len(recorders)
            parts = [
                recorder(X, None) if matrix is None else Recorded(matrix, no_parameters, no_points)
                for recorder, matrix in zip(recorders, matrices, strict=True)
            ]

            def pull(adjoint: Array) -> ByParameter:
                pulled = [
                    {name: weight * along for name, along in part.pull(adjoint).items()} if learned else {}
                    for weight, part, learned in zip(weights, parts, learns, strict=True)
                ]
                return named_by_part(
                    pulled, [weight * np.vdot(adjoint, part.value) for weight, part in zip(weights, parts, strict=True)]
                )

            def pull_points(adjoint: Array) -> Array:
                terms = [weight * part.pull_points(adjoint) for weight, part in zip(weights, parts, strict=True)]
                return np.asarray(np.sum(terms, axis=0))

            value: Array = np.multiply(parts[0].value, weights[0])
            scratch = np.empty_like(value)
            for weight, part in zip(weights[1:], parts[1:], strict=True):
                value += np.multiply(part.value, weight, out=scratch)
            return Recorded(value, pull, pull_points)

        return recorded

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        parts = [kernel.pull_diagonal(X, weight * adjoint) for kernel, weight in _terms(self)]
        return named_by_part(parts, [weight * float(adjoint @ kernel.diagonal(X)) for kernel, weight in _terms(self)])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = super().get_params(deep=False)
        if deep:
            for i, kernel in enumerate(self.kernels):
                params |= {f"k{i}__{name}": value for name, value in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            part, _, rest = name.partition("__")
            if rest and part[1:].isdigit() and part[0] == "k" and int(part[1:]) < len(self.kernels):
                self.kernels[int(part[1:])].set_params(**{rest: value})
            else:
                super().set_params(**{name: value})
        return self


def _terms(kernel: Kernel) -> list[tuple[Kernel, float]]:
    if isinstance(kernel, Sum):
        return list(zip(kernel.kernels, kernel.checked_weights(), strict=True))
    return [(kernel, 1.0)]


def _short(value: Any) -> str:
    return np.array2string(value, precision=3, threshold=6) if isinstance(value, np.ndarray) else repr(value)
