"""Export: kernels (D2), feature maps (D3) and the moments of f (D4).

Kernels are computed in double precision, because distances cancel. Products with M×M matrices, which are most of the
work, use the type of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import Constant, Kernel, Laplacian, LengthScaled, Linear, Stationary, Sum
from bayesvm.core.kernels.distances import FARTHEST, REMOTE_FROM, AffineDistances
from bayesvm.core.latent import View
from bayesvm.core.linalg import Array
from bayesvm.core.members import MemberViews
from bayesvm.export.graph import UFUNCS, Value, absolute, clip, concatenated, exp, maximum, minimum
from bayesvm.export.leaves import with_leaves
from bayesvm.export.scalers import scaled
from bayesvm.inference.fitted import Fitted


class MemberNodes(NamedTuple):
    """Mean and variance of f of a member at scaled rows, in double precision, with one column per function."""

    mean: Value
    variance: Value


def members_of(fitted: Fitted, views: MemberViews, rows: Value, dtype: npt.DTypeLike) -> list[MemberNodes]:
    """All members (D4, D25)."""
    found: list[MemberNodes] = []
    for member, seen in zip(fitted.members, views.views, strict=True):
        own = rows if member.scaler is None else scaled(member.scaler, rows)
        mean, explained, residual = _member(member.features, seen.view, own, np.dtype(dtype))
        if member.leaves is not None:
            found.append(MemberNodes(*with_leaves(member.leaves, own, mean, explained)))
        else:
            found.append(MemberNodes(mean, explained + residual))
    return found


def _member(features: Any, view: View, rows: Value, dtype: np.dtype[Any]) -> tuple[Value, Value, Value | float]:
    """``m``, ``t`` and ``r`` (D4)."""
    phi, prior_variance = (_inducing if isinstance(features, InducingFeatures) else _linear)(
        features, view, rows, dtype
    )
    residual: Value | float = 0.0
    if prior_variance is not None:
        residual = maximum(prior_variance - (phi * phi).sum(1).cast(np.float64), 0.0)
    means, variances = [], []
    for offset, at in zip(view.offsets, view.coordinates, strict=True):
        turned = phi if at.basis is None else phi @ at.basis
        means.append((turned @ at.mean[:, None]).cast(np.float64) + offset)
        variances.append((turned * turned @ at.spread[:, None]).cast(np.float64))
    return concatenated(means), concatenated(variances), residual


def _linear(features: Any, view: Any, rows: Value, dtype: np.dtype[Any]) -> tuple[Value, None]:
    """``rootᵀ (x, 1)``; a vector stands for a diagonal matrix."""
    root, rows = view.features.root, rows.cast(dtype)
    if not features.intercept:
        return rows * root if root.ndim == 1 else rows @ root, None
    if root.ndim == 2:
        return rows @ root[:-1] + root[-1], None
    one_more = rows.graph.constant([0, 0, 0, 1], np.int64)
    return (rows * root[:-1]).apply("Pad", one_more, root[-1]), None


def _inducing(features: InducingFeatures, view: Any, rows: Value, dtype: np.dtype[Any]) -> tuple[Value, Value]:
    """``L⁻¹ k(Z, x)`` in the basis of the view, and ``k(x, x)``."""
    prepared = view.features
    matrix, diagonal = _kernel_nodes(features, rows)
    if prepared.shared is not None:
        matrix = matrix - features.offset
    if features.effects:
        each = [_kernel_nodes(effect.features, rows.columns(list(effect.columns))) for effect in features.effects]
        matrix = concatenated([matrix, *(part for part, _ in each)])
        diagonal = sum((part for _, part in each), diagonal)
    phi = matrix.cast(dtype) @ prepared.whitening
    return phi if prepared.shared is None else phi + prepared.shared, diagonal


def _kernel_nodes(features: InducingFeatures, rows: Value) -> tuple[Value, Value]:
    """``k(Z, x)`` and ``k(x, x)`` of the kernel of the points."""
    exported = exported_kernel(features.kernel)
    return exported.matrix(features.kernel, features.inducing_points, rows), exported.diagonal(features.kernel, rows)


class ExportedKernel(NamedTuple):
    """A kernel as nodes: ``k(x, Z)`` of each row, and ``k(x, x)`` of each row or a common one."""

    matrix: Callable[[Any, Array, Value], Value]
    diagonal: Callable[[Any, Value], Value]


def exported_kernel(kernel: Kernel) -> ExportedKernel:
    """The exported form of a kernel."""
    for kind, exported in KERNELS.items():
        if isinstance(kernel, kind):
            return exported
    raise TypeError(
        f"a kernel of type {type(kernel).__name__} has no ONNX form; derive it from bayesvm.kernels.Stationary, or fit "
        "with a kernel of bayesvm"
    )


def _affine(distances: AffineDistances, rows: Value) -> Value:
    """``slope · d² + intercept``, on the right side of d² = 0."""
    scaled = clip((rows - distances.centre) * distances.inverse_scale, -FARTHEST, FARTHEST)
    points = distances.points
    if np.square(points).sum(axis=1).max() < REMOTE_FROM[np.dtype(np.float64)]:
        extended = concatenated([scaled, (scaled * scaled).sum(1)])
        value = extended.apply("Gemm", distances.table[:-1], distances.table[-1])
    else:  # by differences, as for remote rows there; by column, because all differences would take N·M·D entries
        differences = [scaled.columns([j]) - points[:, j] for j in range(points.shape[1])]
        squares = [difference * difference for difference in differences]
        value = sum(squares[1:], squares[0]) * distances.slope + distances.intercept
    return (minimum if distances.slope < 0 else maximum)(value, distances.intercept)


def _stationary(kernel: Stationary, points: Array, rows: Value) -> Value:
    against: Any = kernel.against(points)
    for call in against.formula.calls:
        if call.function not in UFUNCS:
            name = (
                call.function.__name__
                if isinstance(call.function, np.ufunc)
                else "a branch or a function that is not a ufunc"
            )
            usual = ", ".join(sorted(ufunc.__name__ for ufunc in UFUNCS))
            raise TypeError(
                f"{type(kernel).__name__}.profile uses {name}, which has no ONNX form; write it with operators and "
                f"these functions of NumPy: {usual}"
            )
    value: Value = against.formula.of(_affine(against.distances, rows))
    return value


def _laplacian(kernel: Laplacian, points: Array, rows: Value) -> Value:
    """Computed by column, because all differences would take N·M·D entries."""
    inverse = kernel.inverse_scale(points.shape[1])
    scaled, targets = (clip(rows * inverse, -FARTHEST, FARTHEST), np.clip(points * inverse, -FARTHEST, FARTHEST))
    differences = [absolute(scaled.columns([j]) - targets[:, j]) for j in range(points.shape[1])]
    distance = sum(differences[1:], differences[0])
    return exp(distance * -1.0) * kernel.checked_variance


def _variance(kernel: LengthScaled, rows: Value) -> Value:
    return rows.graph.constant(kernel.checked_variance, np.float64)


def _dot(kernel: Linear, points: Array, rows: Value) -> Value:
    return rows @ (float(kernel.variance) * points.T)


def _dot_diagonal(kernel: Linear, rows: Value) -> Value:
    return (rows * rows).sum(1) * float(kernel.variance)


def _constant(kernel: Constant, points: Array, rows: Value) -> Value:
    # One row per input row, to concatenate effects with.
    return rows.columns([0]) * 0.0 + np.full((1, len(points)), float(kernel.variance))


def _constant_diagonal(kernel: Constant, rows: Value) -> Value:
    return rows.graph.constant(float(kernel.variance), np.float64)


def _sum(kernel: Sum, points: Array, rows: Value) -> Value:
    return _weighted(kernel, [exported_kernel(part).matrix(part, points, rows) for part in kernel.kernels])


def _sum_diagonal(kernel: Sum, rows: Value) -> Value:
    return _weighted(kernel, [exported_kernel(part).diagonal(part, rows) for part in kernel.kernels])


def _weighted(kernel: Sum, parts: Sequence[Value]) -> Value:
    terms = [part * weight for part, weight in zip(parts, kernel.checked_weights(), strict=True)]
    return sum(terms[1:], terms[0])


KERNELS: dict[Any, ExportedKernel] = {
    Stationary: ExportedKernel(_stationary, _variance),
    Laplacian: ExportedKernel(_laplacian, _variance),
    Linear: ExportedKernel(_dot, _dot_diagonal),
    Constant: ExportedKernel(_constant, _constant_diagonal),
    Sum: ExportedKernel(_sum, _sum_diagonal),
}
