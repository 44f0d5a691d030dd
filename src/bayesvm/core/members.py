"""Core: a fitted model as a weighted list of members, and what they say together (D25).

One member is an ordinary model. Members without regions are a committee: their predictions are averaged. Members with
regions that divide the input space are local models, on top of a parent's mean if they have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features
from bayesvm.core.latent import Block, LatentFunction, Moments, View
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace


@dataclass(frozen=True)
class Region:
    """The scaled rows x with ``lower < directions x ≤ upper``, all of them; infinite where there is no limit."""

    directions: Array
    lower: Array
    upper: Array

    def contains(self, X: Array) -> npt.NDArray[np.bool_]:
        """Which rows are inside."""
        along = X @ self.directions.T
        return np.asarray(((along > self.lower) & (along <= self.upper)).all(axis=1))


@dataclass(frozen=True)
class Member:
    """Latent functions that share features; for all rows or for those of a region.

    ``parent`` is the number of an earlier member whose mean is the prior mean of this one. A member of weight zero is a
    parent only. ``link`` is a link of its own, where it does not use that of the whole model. ``scaler`` maps the rows
    of the model to those of the member, where its columns are scaled in another way.
    """

    features: Features
    functions: tuple[LatentFunction, ...]
    weight: float = 1.0
    region: Region | None = None
    parent: int | None = None
    link: Any = None
    scaler: Any = None

    def rows(self, X: Array) -> Array:
        """The rows as the member sees them."""
        return X if self.scaler is None else np.asarray(self.scaler(X))


class MemberMoments(NamedTuple):
    """Mean and variance of f at some rows as one member sees them, and its share in what is said of them."""

    mean: Array
    variance: Array
    link: Any
    rows: npt.NDArray[np.intp] | None = None  # None: all
    share: Array | None = None  # None: one


@dataclass(frozen=True)
class MemberViews:
    """Members as blocks of rows see them."""

    views: tuple[View, ...]
    weights: tuple[float, ...]
    regions: tuple[Region | None, ...]
    links: tuple[Any, ...]
    scalers: tuple[Any, ...]

    @classmethod
    def of(cls, members: Sequence[Member], link: Any, n_rows: int, dtype: npt.DTypeLike) -> MemberViews:
        """The views for about so many rows; ``link`` is that of members without one."""
        views: list[View] = []
        for member in members:
            parent = None if member.parent is None else views[member.parent]
            views.append(View.of(member.features, member.functions, n_rows, dtype, parent)[0])
        return cls(
            tuple(views),
            tuple(member.weight for member in members),
            tuple(member.region for member in members),
            tuple(member.link or link for member in members),
            tuple(member.scaler for member in members),
        )

    @property
    def n_weights(self) -> int:
        """Of the widest feature map."""
        return max(len(view.coordinates[0].mean) for view in self.views)

    @property
    def alone(self) -> bool:
        """Whether there is one member for all rows."""
        return self.weights == (1.0,) and self.regions == (None,) and self.scalers == (None,)

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> list[MemberMoments]:
        """What each member says of the rows of some blocks that concern it."""
        if self.alone:
            return [MemberMoments(*self.views[0].moments(blocks, workspace), self.links[0])]
        X = np.concatenate([np.array(block.X) for block in blocks])
        shares = self.shares(X)
        found = []
        for view, link, scaler, share in zip(self.views, self.links, self.scalers, shares, strict=True):
            rows = np.flatnonzero(share)
            if len(rows):
                some = Block(X[rows] if scaler is None else scaler(X[rows]), np.zeros(len(rows)), None)
                found.append(MemberMoments(*view.moments([some], workspace), link, rows, share[rows]))
        return found

    def shares(self, X: Array) -> Array:
        """The share of each member (first axis) in what is said of each row (second axis); they add up to one."""
        weights = np.zeros((len(self.weights), len(X)))
        for own, weight, region in zip(weights, self.weights, self.regions, strict=True):
            own[slice(None) if region is None else region.contains(X)] = weight
        total = weights.sum(axis=0)
        if not total.all():
            raise ValueError(
                f"{np.count_nonzero(total == 0)} rows lie in no region of the model's members; the regions must cover "
                "the whole space, or a member without a region must have some weight"
            )
        return np.asarray(weights / total)


def mixed(parts: Sequence[MemberMoments], of: Callable[[MemberMoments], Array]) -> Array:
    """The average of something that each member says of its rows, by their shares."""
    if len(parts) == 1 and parts[0].rows is None:
        return of(parts[0])
    values = [of(part) for part in parts]
    n_rows = 1 + max(int(part.rows[-1]) for part in parts if part.rows is not None)
    total = np.zeros((n_rows, *values[0].shape[1:]))
    for part, value in zip(parts, values, strict=True):
        share = np.ones(len(value)) if part.share is None else part.share
        total[_rows(part)] += (share * value.T).T
    return total


def mixed_moments(parts: Sequence[MemberMoments]) -> Moments:
    """Mean and variance of f over all members: the spread between them is part of the variance (D25)."""
    if len(parts) == 1 and parts[0].rows is None:
        return Moments(parts[0].mean, parts[0].variance)
    mean = mixed(parts, lambda part: part.mean)
    # Squares of differences, not differences of squares, which lose a small variance to rounding.
    variance = mixed(parts, lambda part: part.variance + (part.mean - mean[_rows(part)]) ** 2)
    return Moments(mean, variance)


def _rows(part: MemberMoments) -> Any:
    return slice(None) if part.rows is None else part.rows
