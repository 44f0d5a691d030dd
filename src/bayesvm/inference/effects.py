"""Inference: the effects of a fitted model (D26): their columns, their shares of f, and their values.

f is a sum of components: one of the main kernel, and one per effect. A component is identified only up to a constant,
which other components can absorb, so values are relative to their mean over reference rows. Without reference rows, the
inducing points are used, each replaced by the nearest point of the effect, because cluster centres lie between the
values of a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial.distance import cdist

from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.latent import LatentFunction, Moments, full
from bayesvm.core.leaves import Leaves
from bayesvm.core.linalg import Array
from bayesvm.core.members import Member
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import Scaler
from bayesvm.inference.fitted import Fitted

TINY = float(np.finfo(float).tiny)
NEAR = 1e-6  # tolerance around 0 and 1 after scaling and inverse scaling


@dataclass(frozen=True)
class MemberEffect:
    """An effect in one member of a model."""

    effect: Effect
    own: slice  # position of its features among those of the member
    functions: tuple[LatentFunction, ...]
    scalers: tuple[Scaler, ...]  # from the units of X to the rows of the member, applied in order
    usual: Array  # scaled reference values of its columns, in place of rows
    n_features: int  # columns of X
    weight: float  # of the member
    share: float  # of the variation of the member's f

    @property
    def points(self) -> Array:
        """The inducing points of the effect, in the units of X."""
        rows: Array = np.zeros((len(self.effect.features.inducing_points), self.n_features))
        rows[:, self.effect.columns] = self.effect.features.inducing_points
        for scaler in reversed(self.scalers):
            rows = scaler.inverse(rows)
        return self.effect.of(rows)

    @property
    def factors(self) -> tuple[tuple[int, ...], ...]:
        """The columns in groups: the one-hot columns of a categorical column form a group; a pair has two groups."""
        columns, points = self.effect.columns, self.points
        rounded = np.rint(points)
        binary = np.all((np.abs(points - rounded) < NEAR) & np.isin(rounded, (0.0, 1.0)), axis=0).tolist()
        groups: list[list[int]] = []
        for i, column in enumerate(columns):
            last = groups[-1] if groups else []
            is_next = bool(last) and column == columns[last[-1]] + 1 and binary[i] and binary[last[-1]]
            if is_next and not (rounded[:, last].any(axis=1) & (rounded[:, i] > 0)).any():
                last.append(i)
            else:
                groups.append([i])
        return tuple(tuple(columns[i] for i in group) for group in groups)

    def moments(self, values: Array, reference: Array | None = None) -> Moments:
        """Mean and variance at values of its columns, relative to the mean over others; one column per function."""
        phi, residual = self._features(self._scaled(values))
        phi = phi - self._features(self.usual if reference is None else self._scaled(reference))[0].mean(axis=0)
        mean, variance = [], []
        for function in self.functions:
            q = full(function)
            mean.append(phi @ q.mean[self.own])
            variance.append(np.einsum("ij,ij->i", phi @ q.covariance[self.own, self.own], phi) + residual)
        return Moments(np.column_stack(mean), np.column_stack(variance))

    def _scaled(self, values: Array) -> Array:
        rows: Array = np.zeros((len(values), self.n_features))
        rows[:, self.effect.columns] = values
        for scaler in self.scalers:
            rows = scaler(rows)
        return self.effect.of(rows)

    def _features(self, rows: Array) -> tuple[Array, Array]:
        """The features and the residual variance (D3)."""
        phi = _phi(self.effect.features, rows)
        return phi, np.maximum(self.effect.features.diagonal(rows) - np.einsum("ij,ij->i", phi, phi), 0.0)


@dataclass(frozen=True)
class FittedEffect:
    """An effect averaged over all members of a model; members without it contribute zero."""

    columns: tuple[int, ...]
    members: tuple[MemberEffect, ...]

    @property
    def share(self) -> float:
        """The share of the effect in the variation of f."""
        return sum(member.weight * member.share for member in self.members)

    @property
    def variance(self) -> float:
        """The prior variance, averaged over the members that have the effect."""
        origin = np.zeros((1, len(self.columns)))
        each = [member.effect.features.diagonal(origin)[0] for member in self.members]
        return float(np.average(each, weights=[member.weight for member in self.members]))

    @property
    def points(self) -> Array:
        """The inducing points of the effect, in the units of X."""
        return self.members[0].points

    @property
    def factors(self) -> tuple[tuple[int, ...], ...]:
        """The columns in groups: the one-hot columns of a categorical column form a group; a pair has two groups."""
        return self.members[0].factors

    def moments(self, values: Array, reference: Array | None = None) -> Moments:
        """Mean and variance at values of its columns in the units of X, averaged over members (D25).

        They are relative to the mean over ``reference``, other values of its columns, or over the inducing points.
        """
        weights = np.array([member.weight for member in self.members])
        each = [member.moments(values, reference) for member in self.members]
        mean = np.tensordot(weights, [one.mean for one in each], axes=1)
        spread = [one.variance + (one.mean - mean) ** 2 for one in each]
        # Members without the effect contribute zero, with certainty.
        variance = np.tensordot(weights, spread, axes=1) + (1 - weights.sum()) * mean**2
        return Moments(mean, variance)


def fitted_effects(fitted: Fitted) -> list[FittedEffect]:
    """The effects of a model, largest shares first."""
    found: dict[tuple[int, ...], list[MemberEffect]] = {}
    for member, weight in _weighted(fitted):
        for effect in _member_effects(fitted, member, weight):
            found.setdefault(effect.effect.columns, []).append(effect)
    effects = [FittedEffect(columns, tuple(members)) for columns, members in found.items()]
    return sorted(effects, key=lambda effect: -effect.share)


def relevance(fitted: Fitted) -> Array | None:
    """The share of every column in the variation of f, averaged over members; None if the kernel has no distances."""
    total: Array | float = 0.0
    for member, weight in _weighted(fitted):
        of_kernel, effects = _in_distances(_inducing(member)), _member_effects(fitted, member, weight)
        if of_kernel is None:
            return None
        relevant = (1 - sum(effect.share for effect in effects)) * of_kernel
        for effect in effects:
            for (
                factor
            ) in effect.factors:  # a categorical column counts as one, regardless of its number of one-hot columns
                relevant[list(factor)] += effect.share / len(effect.factors) / len(factor)
        total = total + weight * relevant
    return np.asarray(total)


def component_shares(features: InducingFeatures, functions: Sequence[LatentFunction]) -> Array:
    """The shares of the main kernel and of each effect in the variation of f over the inducing points.

    The variation of a component is the variance of its posterior mean, summed over functions.
    """
    if not features.effects:
        return np.ones(1)
    own = features.n_weights - sum(effect.features.n_weights for effect in features.effects)
    main = _phi(features, features.inducing_points)[:, :own]
    parts = [main, *(_phi(effect.features, usual_values(effect, features)) for effect in features.effects)]
    slices = [slice(0, own), *_slices(features)]
    variation = np.full(len(parts), TINY)
    for function in functions:
        mean = function.posterior.mean
        variation += [np.var(phi @ mean[at]) for phi, at in zip(parts, slices, strict=True)]
    return np.asarray(variation / variation.sum())


def usual_values(effect: Effect, features: InducingFeatures) -> Array:
    """Scaled reference values of an effect's columns: for each inducing point, the nearest point of the effect."""
    points = effect.features.inducing_points
    return np.asarray(points[cdist(effect.of(features.inducing_points), points).argmin(axis=1)])


def local_spreads(leaves: Leaves) -> list[float]:
    """The standard deviation of the mean of every local model over its inducing points, over all functions."""
    found = []
    for leaf in leaves.leaves:
        phi = _phi(leaf.features, np.asarray(leaf.features.inducing_points, np.float64))
        means = [phi @ function.posterior.mean for function in leaf.functions]
        found.append(float(np.sqrt(sum(np.var(mean) for mean in means))))
    return found


def _phi(features: InducingFeatures, rows: Array) -> Array:
    return features.prepared(None, np.float64)(rows, Workspace())[0]


def _in_distances(features: InducingFeatures) -> Array | None:
    """The share of every column in the distances between inducing points."""
    share = features.kernel.column_distances(features.inducing_points)
    return None if share is None else np.asarray((share + TINY) / (share + TINY).sum())


def _weighted(fitted: Fitted) -> list[tuple[Member, float]]:
    """The members with positive weight, and their weights, which sum to one."""
    return list(zip(fitted.members, fitted.views.shares, strict=True))


def _member_effects(fitted: Fitted, member: Member, weight: float) -> list[MemberEffect]:
    features = _inducing(member)
    scalers = (fitted.scaler,) if member.scaler is None else (fitted.scaler, member.scaler)
    n_features = features.inducing_points.shape[1]
    shares = component_shares(features, member.functions)[1:]
    return [
        MemberEffect(
            effect, own, member.functions, scalers, usual_values(effect, features), n_features, weight, float(share)
        )
        for effect, own, share in zip(features.effects, _slices(features), shares, strict=True)
    ]


def _slices(features: InducingFeatures) -> list[slice]:
    """The positions of the features of each effect among those of the map."""
    ends = np.cumsum([len(features.inducing_points), *(effect.features.n_weights for effect in features.effects)])
    return [slice(int(start), int(stop)) for start, stop in pairwise(ends)]


def _inducing(member: Member) -> InducingFeatures:
    if not isinstance(member.features, InducingFeatures):
        raise TypeError("this model has no inducing points")
    return member.features
