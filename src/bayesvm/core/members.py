"""Core: a fitted model as a weighted list of members, and what they say together (D25).

One member is an ordinary model; several are a committee, whose predictions are averaged. A member may have leaves:
local models on top of its mean (D30).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import Features
from bayesvm.core.latent import Block, LatentFunction, Moments, View
from bayesvm.core.leaves import Leaves
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

BASE_ROWS = 4_096  # of a block for leaves, which is large, that the model below them sees at a time
ROWS_FOR_LEAVES = 32_768  # in a block, so that a leaf has some of them


@dataclass(frozen=True)
class Member:
    """Latent functions that share features, for all rows.

    ``link`` is a link of its own, where it does not use that of the whole model. ``scaler`` maps the rows of the model
    to those of the member, where its columns are scaled in another way. ``leaves`` are local models on its mean.
    """

    features: Features
    functions: tuple[LatentFunction, ...]
    weight: float = 1.0
    link: Any = None
    scaler: Any = None
    leaves: Leaves | None = None

    def rows(self, X: Array) -> Array:
        """The rows as the member sees them."""
        return X if self.scaler is None else np.asarray(self.scaler(X))


class MemberMoments(NamedTuple):
    """Mean and variance of f at some rows as one member sees them, and its share in what is said of them."""

    mean: Array
    variance: Array
    link: Any
    share: float = 1.0


@dataclass(frozen=True)
class MemberView:
    """One member as blocks of rows see it."""

    view: View
    scaler: Any
    leaves: Leaves | None

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> Moments:
        """Mean and variance of f at every row of some blocks."""
        if self.leaves is None:
            return self.view.moments(self._scaled(blocks), workspace)
        parts = []
        for block in self._scaled(blocks):
            X = np.array(block.X)
            for first in range(0, len(X), BASE_ROWS):
                some = X[first : first + BASE_ROWS]
                workspace.reset()
                found = [(at.mean, at.explained) for at in self.view.marginals(some, workspace)]
                parts.append((some, *(np.column_stack(column) for column in zip(*found, strict=True))))
        return self.leaves.moments(*map(np.concatenate, zip(*parts, strict=True)))

    def _scaled(self, blocks: Iterable[Block]) -> Iterable[Block]:
        return blocks if self.scaler is None else (block._replace(X=self.scaler(block.X)) for block in blocks)


@dataclass(frozen=True)
class MemberViews:
    """Members as blocks of rows see them."""

    views: tuple[MemberView, ...]
    shares: tuple[float, ...]
    links: tuple[Any, ...]

    @classmethod
    def of(cls, members: Sequence[Member], link: Any, n_rows: int, dtype: npt.DTypeLike) -> MemberViews:
        """The views for about so many rows; ``link`` is that of members without one."""
        views = [
            MemberView(View.of(member.features, member.functions, n_rows, dtype)[0], member.scaler, member.leaves)
            for member in members
        ]
        total = sum(member.weight for member in members)
        shares = tuple(member.weight / total for member in members)
        return cls(tuple(views), shares, tuple(member.link or link for member in members))

    @property
    def n_weights(self) -> int:
        """Of the widest feature map."""
        return max(len(member.view.coordinates[0].mean) for member in self.views)

    def block_rows(self, usual: int) -> int:
        """How many rows a block should have: more than usual where members have leaves."""
        return usual if all(member.leaves is None for member in self.views) else ROWS_FOR_LEAVES

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> list[MemberMoments]:
        """What each member says of the rows of some blocks."""
        if len(self.views) > 1:  # a block is valid until the next one only, and every member reads all of them
            blocks = [Block(np.concatenate([np.array(block.X) for block in blocks]), np.zeros(0), None)]
        return [
            MemberMoments(*member.moments(blocks, workspace), link, share)
            for member, link, share in zip(self.views, self.links, self.shares, strict=True)
        ]


def mixed(parts: Sequence[MemberMoments], of: Callable[[MemberMoments], Array]) -> Array:
    """The average of something that each member says, by their shares."""
    if len(parts) == 1:
        return of(parts[0])
    return np.asarray(sum(part.share * of(part) for part in parts))


def mixed_moments(parts: Sequence[MemberMoments]) -> Moments:
    """Mean and variance of f over all members: the spread between them is part of the variance (D25)."""
    if len(parts) == 1:
        return Moments(parts[0].mean, parts[0].variance)
    mean = mixed(parts, lambda part: part.mean)
    # Squares of differences, not differences of squares, which lose a small variance to rounding.
    return Moments(mean, mixed(parts, lambda part: part.variance + (part.mean - mean) ** 2))
