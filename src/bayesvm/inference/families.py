"""Inference: the learnable parameters of features as vectors: kernels, inducing points, linear priors.

A family defines the start of a search, the features of a parameter vector, its prior (D19), and its gradient from sums
over rows (D16).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bayesvm.core.features import Effect, FeatureGradient, InducingFeatures, LinearFeatures
from bayesvm.core.kernels import Kernel, SharedLogNormal
from bayesvm.core.linalg import Array

PRIOR_VARIANCES = (1e-4, 1e2)  # bounds for the weights of linear models
LINEAR_PRIOR = SharedLogNormal(deviation=1.5, median=1.0)  # prior of these variances (D19)

Bounds = list[tuple[float, float]]
Features = InducingFeatures | LinearFeatures


class Family(Protocol):
    """Features that depend on a parameter vector."""

    def start(self) -> Array:
        """The start of a search."""
        ...

    def bounds(self) -> Bounds:
        """The bounds of every entry."""
        ...

    def features(self, x: Array) -> Features:
        """The features for a parameter vector."""
        ...

    def gradient(self, features: Features, total: FeatureGradient) -> Array:
        """The derivative with respect to the parameter vector, from sums over rows (D16)."""
        ...

    def penalty(self, x: Array) -> tuple[float, Array]:
        """``-log`` of the prior density, and its derivative (D19)."""
        ...


@dataclass(frozen=True)
class KernelFamily:
    """The log parameters of a kernel and of effects, and the inducing points if they are learned."""

    kernel: Kernel
    points: Array
    learn_points: bool = False
    effects: tuple[Effect, ...] = ()

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of all columns, then those of the effects."""
        return [self.kernel, *(effect.features.kernel for effect in self.effects)]

    def start(self) -> Array:
        theta = [kernel.log_parameters() for kernel in self.kernels]
        return np.concatenate([*theta, self.points.ravel()] if self.learn_points else theta)

    def bounds(self) -> Bounds:
        of_theta: Bounds = [(float(low), float(high)) for kernel in self.kernels for low, high in kernel.log_bounds()]
        return of_theta + [(-np.inf, np.inf)] * (self.points.size if self.learn_points else 0)

    def features(self, x: Array) -> InducingFeatures:
        (kernel, *others), rest = self._at(x)
        points = rest.reshape(self.points.shape) if self.learn_points else self.points
        effects = tuple(effect.with_kernel(other) for effect, other in zip(self.effects, others, strict=True))
        return InducingFeatures.build(kernel, points, np.float32, effects, learns_points=self.learn_points)

    def gradient(self, features: Features, total: FeatureGradient) -> Array:
        if not isinstance(features, InducingFeatures):
            raise TypeError("a kernel family needs the features of inducing points")
        theta, points = features.gradient(total)
        return theta if points is None else np.concatenate([theta, points.ravel()])

    def penalty(self, x: Array) -> tuple[float, Array]:
        kernels, rest = self._at(x)
        widths = [self.points.shape[1], *(len(effect.columns) for effect in self.effects)]
        values, slopes = zip(
            *(kernel.penalty(width) for kernel, width in zip(kernels, widths, strict=True)), strict=True
        )
        return float(sum(values)), np.concatenate([*slopes, np.zeros(len(rest))])

    def _at(self, x: Array) -> tuple[list[Kernel], Array]:
        """The kernels for a parameter vector, and the rest of the vector."""
        found, first = list[Kernel](), 0
        for kernel in self.kernels:
            last = first + len(kernel.log_parameters())
            found.append(kernel.at(x[first:last]))
            first = last
        return found, x[first:]


@dataclass(frozen=True)
class LinearFamily:
    """The log prior variances of the weights of a linear model: one for all features, or one per feature."""

    prior: Array  # of length 1 or D
    n_features: int
    intercept: Array  # its prior standard deviation, or empty

    def start(self) -> Array:
        return np.log(self.prior)

    def bounds(self) -> Bounds:
        low, high = np.log(PRIOR_VARIANCES)
        return [(float(low), float(high))] * len(self.prior)

    def features(self, x: Array) -> LinearFeatures:
        root = np.broadcast_to(np.exp(0.5 * x), self.n_features)
        return LinearFeatures(np.concatenate([root, self.intercept]), bool(len(self.intercept)))

    def gradient(self, features: Features, total: FeatureGradient) -> Array:
        if not isinstance(features, LinearFeatures):
            raise TypeError("a linear family needs the features of a linear model")
        each = features.gradient(total)
        return each if len(self.prior) > 1 else np.atleast_1d(each.sum())

    def penalty(self, x: Array) -> tuple[float, Array]:
        return LINEAR_PRIOR(x, self.n_features)
