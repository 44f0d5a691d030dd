"""Core: local models on top of a member's mean (D30): a tree that divides the inputs, and a small model in each leaf.

``f(x) = m_g(x) + h_k(x)``, where ``m_g`` is the mean of the member and k the leaf that x falls into. Each ``h_k`` has
inducing points and a posterior of its own; all of them share a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import LatentFunction, Marginals, Moments, View
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace

Codes = npt.NDArray[np.intp]
LARGEST_TIER = 63  # splits: six levels


@dataclass(frozen=True)
class Tier:
    """A connected set of splits of a tree, evaluated with one matrix product.

    Children are indices into the splits, or complements of indices into ``ends``.
    """

    splits: Codes
    below: Codes
    beyond: Codes
    ends: Codes

    def ends_of(self, is_below: npt.NDArray[np.bool_]) -> Codes:
        """The end that each row reaches, given the outcomes of all splits."""
        at, rows = np.zeros(len(is_below), np.intp), np.arange(len(is_below))
        while len(rows):
            here = at[rows]
            at[rows] = np.where(is_below[rows, here], self.below[here], self.beyond[here])
            rows = rows[at[rows] >= 0]
        return self.ends[~at]


@dataclass(frozen=True)
class Tree:
    """Splits of the scaled inputs: a row goes ``below`` if ``direction · x ≤ threshold``, else ``beyond``.

    A child is the index of another split, or the complement ``~k`` of leaf k. Split 0 is the root. A tree without
    splits has one leaf.
    """

    directions: Array
    thresholds: Array
    below: Codes
    beyond: Codes

    @property
    def n_leaves(self) -> int:
        """The number of leaves: one more than the number of splits."""
        return len(self.thresholds) + 1

    def leaf_of(self, X: Array) -> Codes:
        """The index of the leaf that each row falls into."""
        leaf = np.zeros(len(X), np.intp)
        waiting = [(0, np.arange(len(X)))] if len(self.thresholds) else []
        while waiting:
            root, rows = waiting.pop()
            tier = self._tiers[root]
            end = tier.ends_of(X[rows] @ self.directions[tier.splits].T <= self.thresholds[tier.splits])
            order = np.argsort(end, kind="stable")
            present, first = np.unique(end[order], return_index=True)
            for child, mine in zip(present.tolist(), np.split(rows[order], first)[1:], strict=True):
                if child < 0:
                    leaf[mine] = ~child
                else:
                    waiting.append((child, mine))
        return leaf

    @cached_property
    def _tiers(self) -> dict[int, Tier]:
        """The tier at the root, then the tiers that start where others end, by their first split."""
        found, waiting = dict[int, Tier](), [0]
        while waiting:
            root = waiting.pop()
            splits = [root]
            for split in splits:  # grows during iteration: breadth first
                children = [int(self.below[split]), int(self.beyond[split])]
                splits += [child for child in children if child >= 0][: max(0, LARGEST_TIER - len(splits))]
            place = {split: i for i, split in enumerate(splits)}
            ends = [c for s in splits for c in (int(self.below[s]), int(self.beyond[s])) if c not in place]
            number = {end: ~i for i, end in enumerate(ends)} | place
            below, beyond = ([number[int(side[s])] for s in splits] for side in (self.below, self.beyond))
            found[root] = Tier(*map(np.array, (splits, below, beyond, ends)))
            waiting += [end for end in ends if end >= 0]
        return found

    @classmethod
    def grown(cls, rows: Array, unit: Array, n_leaves: int) -> Tree:
        """Grow a tree by median splits along the leading direction of ``rows / unit``, always of the largest leaf.

        A leaf whose rows are all equal is not split, so the tree may have fewer leaves.
        """
        scaled = rows / unit
        splits: list[tuple[Array, float]] = []
        children: list[list[int]] = []
        open_leaves: list[tuple[Codes, int, int]] = [(np.arange(len(rows)), -1, 0)]  # rows, parent, side
        closed: list[tuple[int, int]] = []
        while open_leaves and len(open_leaves) + len(closed) < n_leaves:
            largest = max(range(len(open_leaves)), key=lambda i: len(open_leaves[i][0]))
            mine, parent, side = open_leaves.pop(largest)
            found = _median_split(scaled[mine])
            if found is None:
                closed.append((parent, side))
                continue
            direction, threshold = found
            is_below = scaled[mine] @ direction <= threshold
            number = len(splits)
            splits.append((direction / unit, threshold))
            children.append([0, 0])
            if parent >= 0:
                children[parent][side] = number
            open_leaves += [(mine[is_below], number, 0), (mine[~is_below], number, 1)]
        for leaf, (parent, side) in enumerate(sorted([*((parent, side) for _, parent, side in open_leaves), *closed])):
            if parent >= 0:
                children[parent][side] = ~leaf
        ends = np.array(children, np.intp).reshape(-1, 2)
        directions = np.array([direction for direction, _ in splits]).reshape(-1, rows.shape[1])
        return cls(directions, np.array([threshold for _, threshold in splits]), ends[:, 0], ends[:, 1])


def _median_split(rows: Array) -> tuple[Array, float] | None:
    """The leading direction of some rows, and the threshold: near the median, between two different rows."""
    centred = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    direction = vectors[:, -1]
    if direction[np.abs(direction).argmax()] < 0:  # else the sign would depend on the linear algebra library
        direction = -direction
    along = np.sort(rows @ direction)
    # Equal rows must stay together, but their products may differ by rounding.
    cuts = 1 + np.flatnonzero(np.diff(along) > 1e-9 * max(abs(along[0]), abs(along[-1]), 1e-300))
    if not len(cuts):
        return None
    cut = int(cuts[np.abs(2 * cuts - len(along)).argmin()])
    return direction, float(0.5 * (along[cut - 1] + along[cut]))


@dataclass(frozen=True)
class Leaf:
    """The features of a leaf and the posteriors of all functions, in single precision where that suffices."""

    features: InducingFeatures
    functions: tuple[LatentFunction, ...]

    def marginals(self, X: Array, dtype: npt.DTypeLike = np.float64) -> Iterator[Marginals]:
        """``h_k`` at rows of the leaf, one function at a time."""
        view, _ = View.of(self.features, self.functions, 1, dtype)
        return view.marginals(X, Workspace())


@dataclass(frozen=True)
class Leaves:
    """A tree with a local model in every leaf."""

    tree: Tree
    kernel: Kernel
    leaves: tuple[Leaf, ...]

    def groups(self, X: Array) -> Iterator[tuple[Leaf, Codes]]:
        """The leaves that the rows fall into, each with the indices of its rows."""
        number = self.tree.leaf_of(X)
        order = np.argsort(number, kind="stable")
        present, first = np.unique(number[order], return_index=True)
        for leaf, rows in zip(present.tolist(), np.split(order, first)[1:], strict=True):
            yield self.leaves[leaf], rows

    def moments(self, X: Array, mean: Array, explained: Array) -> Moments:
        """Mean and variance of f, given the mean of the member and its explained variance (D30)."""
        m, v = mean.copy(), explained.copy()
        for leaf, rows in self.groups(X):
            for number, at in enumerate(leaf.marginals(X[rows])):
                m[rows, number] += at.mean
                v[rows, number] += at.variance
        return Moments(m, v)
