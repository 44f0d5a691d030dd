"""Core: a fitted model as a weighted list of members, and their averaged predictions (D25).

Most models have one member. Several members form a committee, whose predictions are averaged. A member
may have leaves: local models on top of its mean (D30).
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

BASE_ROWS = 4_096  # per step of the model below the leaves, whose blocks are large
ROWS_FOR_LEAVES = 32_768  # in a block, so that every leaf has some of them


@dataclass(frozen=True)
class Member:
    """Latent functions that share features.

    ``link`` is set if the member does not use the link of the whole model. ``scaler`` maps the scaled rows of the model
    to those of the member, if it scales columns differently. ``leaves`` are local models on top of its mean.
    """

    features: Features
    functions: tuple[LatentFunction, ...]
    weight: float = 1.0
    link: Any = None
    scaler: Any = None
    leaves: Leaves | None = None

    def rows(self, X: Array) -> Array:
        """The rows, scaled for the member."""
        return X if self.scaler is None else np.asarray(self.scaler(X))


class MemberMoments(NamedTuple):
    """Mean and variance of f at some rows for one member, and its share in the prediction for each row."""

    mean: Array
    variance: Array
    link: Any
    share: float = 1.0


@dataclass(frozen=True)
class MemberView:
    """One member, prepared for blocks of rows."""

    view: View
    scaler: Any
    leaves: Leaves | None

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> Moments:
        """Mean and variance of f at every row of the blocks."""
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
    """Members, prepared for blocks of rows."""

    views: tuple[MemberView, ...]
    shares: tuple[float, ...]
    links: tuple[Any, ...]

    @classmethod
    def of(cls, members: Sequence[Member], link: Any, n_rows: int, dtype: npt.DTypeLike) -> MemberViews:
        """The views for about ``n_rows`` rows; members without a link of their own use ``link``."""
        views = [
            MemberView(View.of(member.features, member.functions, n_rows, dtype)[0], member.scaler, member.leaves)
            for member in members
        ]
        total = sum(member.weight for member in members)
        shares = tuple(member.weight / total for member in members)
        return cls(tuple(views), shares, tuple(member.link or link for member in members))

    @property
    def n_weights(self) -> int:
        """The number of weights of the widest feature map."""
        return max(len(member.view.coordinates[0].mean) for member in self.views)

    def block_rows(self, usual: int) -> int:
        """The number of rows per block: larger than usual if members have leaves."""
        return usual if all(member.leaves is None for member in self.views) else ROWS_FOR_LEAVES

    def moments(self, blocks: Iterable[Block], workspace: Workspace) -> list[MemberMoments]:
        """The moments of every member at the rows of the blocks."""
        if len(self.views) > 1:  # a block is valid only until the next one, and every member reads all blocks
            blocks = [Block(np.concatenate([np.array(block.X) for block in blocks]), np.zeros(0), None)]
        return [
            MemberMoments(*member.moments(blocks, workspace), link, share)
            for member, link, share in zip(self.views, self.links, self.shares, strict=True)
        ]


def mixed(parts: Sequence[MemberMoments], of: Callable[[MemberMoments], Array]) -> Array:
    """The average of a quantity over members, weighted by their shares."""
    if len(parts) == 1:
        return of(parts[0])
    return np.asarray(sum(part.share * of(part) for part in parts))


def mixed_moments(parts: Sequence[MemberMoments]) -> Moments:
    """Mean and variance of f over all members; the variance includes the spread between members (D25)."""
    if len(parts) == 1:
        return Moments(parts[0].mean, parts[0].variance)
    mean = mixed(parts, lambda part: part.mean)
    # Use squares of differences: differences of squares would lose a small variance to rounding.
    return Moments(mean, mixed(parts, lambda part: part.variance + (part.mean - mean) ** 2))
