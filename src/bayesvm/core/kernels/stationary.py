"""Core: kernels with length-scales; kernels of the Euclidean distance need one method (D2, D15)."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels.distances import AffineDistances
from bayesvm.core.kernels.formula import Call, Formula, formula, traced, without_factor
from bayesvm.core.kernels.kernel import Kernel
from bayesvm.core.kernels.parameters import LENGTH_SCALE, VARIANCE, Bounds, checked_bounds, positive
from bayesvm.core.kernels.records import ByParameter, Constant, CrossKernel, Recorded, Recorder
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

PANEL_BYTES = 2**18  # of a matrix per panel; all calls of a profile process it while it is cached
STEP = 6e-6  # in logarithms, for central differences: balances rounding and truncation errors
UNIT = 1e-12  # tolerance for f(0) = 1
# Distance to the points: rows this far away have zero slope, and their squares must not overflow.
FARTHEST = {np.dtype(np.float64): 1e150, np.dtype(np.float32): 1e15}


class LengthScaled(Kernel):
    """A kernel of the differences ``(x_j - z_j)/ℓ_j`` with ``k(x, x) = σ²``."""

    parameters = {"length_scale": LENGTH_SCALE, "variance": VARIANCE}  # noqa: RUF012  (never changed)

    def __init__(
        self,
        length_scale: float | npt.ArrayLike = 1.0,
        variance: float = 1.0,
        length_scale_bounds: Bounds = LENGTH_SCALE.bounds,
        variance_bounds: Bounds = VARIANCE.bounds,
    ) -> None:
        self.length_scale = length_scale
        self.variance = variance
        self.length_scale_bounds = length_scale_bounds
        self.variance_bounds = variance_bounds

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), self.checked_variance)

    def pull_diagonal(self, X: Array, adjoint: Array) -> ByParameter:
        zeros = {name: np.zeros(1) for name in self.parameters}
        along = {"length_scale": np.zeros(X.shape[1]), "variance": np.array([self.variance * adjoint.sum()])}
        return zeros | along

    @property
    def checked_variance(self) -> float:
        """σ²; raises an error unless it is positive."""
        return float(positive("variance", self.variance))

    def inverse_scale(self, n_columns: int) -> Array:
        """``1/ℓ_j`` for every column."""
        scale = np.asarray(positive("length_scale", self.length_scale), np.float64)
        if scale.ndim and scale.shape != (n_columns,):
            raise ValueError(
                f"length_scale has shape {scale.shape}, but the inputs have {n_columns} columns; "
                "give one number, or one per column"
            )
        return np.broadcast_to(1 / scale, n_columns)


class Stationary(LengthScaled):
    """``σ² f(d²)`` with ``d² = Σ_j (x_j - z_j)² / ℓ_j²``; the base class of distance-based kernels.

    A custom kernel needs one method, ``profile``.

    Parameters
    ----------
    length_scale : float or array of shape (n_features,)
        Length-scale in units of the scaled inputs: one for all features, or one per feature.
    variance : float
        Prior variance of f, σ².
    length_scale_bounds, variance_bounds : (low, high) or "fixed"
        Bounds for tuning; "fixed" keeps the value.

    See Also
    --------
    Kernel : The base class of other kernels.
    Parameter : Declares a learnable parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.kernels import Stationary
    >>> class Cauchy(Stationary):
    ...     def profile(self, squared):
    ...         return 1 / (1 + squared), 2 / (1 + squared) ** 2
    >>> float(Cauchy(length_scale=2.0)([[0.0]], [[2.0]])[0, 0])
    0.5
    """

    def column_distances(self, points: Array) -> Array | None:
        return np.asarray(np.var(points, axis=0) * self.inverse_scale(points.shape[1]) ** 2)

    @abstractmethod
    def profile(self, squared: Any) -> tuple[Any, Any]:
        """``f(d²)`` and ``-2 f'(d²)``, written with NumPy functions.

        ``f(0)`` must be 1, so that the kernel has unit variance. The slope may be infinite at 0, because it is
        multiplied by a zero difference there.

        Parameters
        ----------
        squared : array
            The d². Do not modify it.

        Returns
        -------
        value : array
            ``f(d²)``, of the same shape.
        slope : array
            ``-2 f'(d²)``, of the same shape.
        """

    def against(self, Z: Array, dtype: npt.DTypeLike = np.float64) -> CrossKernel:
        variance, intercept = self.checked_variance, 0.0
        if abs(at_zero := float(self._value(np.zeros(1))[0]) - 1) > UNIT:
            name = type(self).__name__
            raise ValueError(f"{name}.profile must be 1 at distance zero, but is {at_zero + 1:g}; divide by it")
        calls = traced(lambda squared: self.profile(squared)[0]) or [Call(self._untraced, (0,), 1)]
        factor, calls = without_factor(calls)
        smooth = [call.function for call in calls] == [np.exp]
        if smooth:
            intercept = float(np.log(variance))
        else:
            calls = [*calls, Call(np.multiply, (calls[-1].result, variance), calls[-1].result + 1)]
        distances = self._distances(Z, dtype, factor, intercept)
        return StationaryAgainst(distances, formula(calls), clamped=not smooth)

    def recorded(self, X: Array, Z: Array) -> Recorded:
        return self.recorder(Z, X.dtype)(X, None)

    def recorder(self, Z: Array, dtype: npt.DTypeLike) -> Recorder:
        """With ``A = adjoint · slope``, ``slope = -2 σ² f'(d²)`` (D15):

        ``∂/∂log ℓ_j = Σ A (x_j - z_j)²/ℓ_j²``, ``∂/∂log σ² = Σ adjoint k``, ``∂/∂z_m = Σ_i A_im (x_i - z_m)/ℓ²``.
        """
        variance, distances = self.checked_variance, self._distances(Z, dtype)
        # Squared differences are expanded below, so the terms should be small.
        centre, inverse_square = np.mean(Z, axis=0), distances.inverse_scale**2
        points = (Z - centre).astype(dtype)
        farthest = FARTHEST[np.dtype(dtype)]

        def recorded(X: Array, _: Constant) -> Recorded:
            squared = distances.clamp(distances(X, Workspace()))
            squared.flags.writeable = False
            with np.errstate(divide="ignore", invalid="ignore"):
                shape, shape_slope = self.profile(squared)
            value = variance * shape
            slope = value if shape_slope is shape else variance * shape_slope
            if not np.isfinite(slope.sum()):  # a row coincides with a point
                slope = np.where(np.isfinite(slope), slope, 0.0)

            def centred() -> Array:
                return np.asarray(np.clip(X - centre, -farthest, farthest), dtype)

            def pull(adjoint: Array) -> ByParameter:
                A, rows = adjoint * slope, centred()
                drawn, by_point = A.T @ rows, A.sum(axis=0)
                squares = A.sum(axis=1) @ rows**2 - 2 * np.einsum("mj,mj->j", drawn, points) + by_point @ points**2
                parameters = {"length_scale": squares * inverse_square, "variance": np.array([np.vdot(adjoint, value)])}
                return parameters | self._by_shape(squared, adjoint)

            def pull_points(adjoint: Array) -> Array:
                A = adjoint * slope
                return np.asarray((A.T @ centred() - A.sum(axis=0)[:, None] * points) * inverse_square)

            return Recorded(value, pull, pull_points)

        return recorded

    def _by_shape(self, squared: Array, adjoint: Array) -> ByParameter:
        """``Σ adjoint ∂k/∂log p`` for the parameters p of the profile, by central differences."""
        found = {}
        for name, declared in self.parameters.items():
            bounds = checked_bounds(name, getattr(self, f"{name}_bounds", declared.bounds))
            if name in Stationary.parameters or bounds is None:
                continue
            up, down = copy.copy(self), copy.copy(self)
            setattr(up, name, getattr(self, name) * np.exp(STEP))
            setattr(down, name, getattr(self, name) * np.exp(-STEP))
            exactly = squared.astype(np.float64)
            along = np.vdot(adjoint, up._value(exactly) - down._value(exactly)) / (2 * STEP)  # noqa: SLF001  (its own)
            found[name] = np.array([self.variance * along])
        return found

    def _value(self, squared: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # the slope at zero may be infinite
            value: Array = self.profile(squared)[0]
        return value

    def _untraced(self, squared: Array, out: Array) -> None:
        """The value of a profile that cannot be written as ufunc calls."""
        out[...] = self._value(squared)

    def _distances(self, Z: Array, dtype: npt.DTypeLike, slope: float = 1.0, intercept: float = 0.0) -> AffineDistances:
        return AffineDistances.between(Z, self.inverse_scale(Z.shape[1]), slope, intercept, dtype)


@dataclass(frozen=True)
class StationaryAgainst:
    """``σ² f(d²)``, computed panel by panel and in place of the distances."""

    distances: AffineDistances
    formula: Formula
    clamped: bool  # not needed if rounding errors below zero do no more harm than those above

    def __call__(self, X: Array, workspace: Workspace, /) -> Array:
        result = self.distances(X, workspace)
        n_rows = PANEL_BYTES // max(1, result.itemsize * result.shape[1])
        n_rows = max(1, len(X) if len(self.formula.calls) == 1 else n_rows)  # a single call gains nothing from panels
        scratch = workspace.empty((self.formula.n_scratch, min(n_rows, len(X)), result.shape[1]), result.dtype)
        for start in range(0, len(result), n_rows):
            panel = result[start : start + n_rows]
            if self.clamped:
                self.distances.clamp(panel)
            self.formula.in_place(panel, scratch[:, : len(panel)])
        workspace.release(scratch)
        return result
