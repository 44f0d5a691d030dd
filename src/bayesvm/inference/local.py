"""Inference: local models, in some leaves of a tree, on top of a fitted member (D30).

The functions here are pure and take the rows of a few leaves, so leaves can be fitted where their rows are stored. The
mean of the member below is the prior mean of the local models. Features are computed once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import Cavities, RowMarginals, block_marginals, without_group
from bayesvm.core.features import InducingFeatures
from bayesvm.core.heads import Head
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import Block, LatentFunction, View
from bayesvm.core.leaves import Leaf, Leaves
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array, JitterWarning
from bayesvm.core.posterior import CompactGaussian
from bayesvm.core.stacks import Ascended, Posteriors, Stack, StackProblem, ascended, padded
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BucketRows, RowNumbers
from bayesvm.data.repetition import equal_rows
from bayesvm.data.workers import quiet_overflow
from bayesvm.inference.inducing import seeds

MOST_POINTS, ROWS_PER_POINT = 150, 2.6  # per leaf
UPDATES, ENOUGH = 50, 4e-3  # maximum number; tolerance in nats per row
REFIT_ENOUGH = 1e-3  # tolerance after rows were left out
FOLD_SHARE, REFIT_UPDATES = 0.05, 5  # share of a leaf's rows that are left out together; updates afterwards
MODELS_AT_ONCE = 8


class RowsOfMember(NamedTuple):
    """The sites of a leaf's rows in one function of the member, which can be removed from it jointly (D24)."""

    spread: Array  # B, with φᵀ S φ' for two rows in B Bᵀ
    centred: Array  # m - c
    precision: Array
    linear: Array

    def without(self, rows: npt.NDArray[Any]) -> tuple[Array, Array]:
        """The change of the mean of every row when some rows are left out, and ``t₋`` of the latter.

        ``m₋ - m = -φᵀ S Φ_Gᵀ (γ - w (m₋ - c))``, where ``m₋`` on the right is that of the left-out rows.
        """
        w, gamma, spread = self.precision[rows], self.linear[rows], self.spread[rows]
        moved, explained = without_group(spread.astype(np.float64), self.centred[rows], w, gamma)
        return -(self.spread @ (spread.T @ (gamma - w * moved).astype(spread.dtype))).astype(np.float64), explained


class Below(NamedTuple):
    """The member's marginals at rows, one column per function: including them, and with each left out (D10).

    ``removable`` has one entry per function if rows can be removed from the member; it is empty if the member was not
    trained on them.
    """

    mean: Array
    explained: Array
    mean_without: Array
    explained_without: Array
    variance_without: Array  # including the residual, which local models replace
    removable: tuple[RowsOfMember, ...] = ()

    def without(self, rows: npt.NDArray[Any]) -> tuple[Array, Array]:
        """The change of the mean of every row when some rows are left out, and ``t₋`` of the latter, by function."""
        if not self.removable:
            return np.zeros_like(self.mean), self.explained[rows]
        shifts, explained = zip(*(function.without(rows) for function in self.removable), strict=True)
        return np.column_stack(shifts), np.column_stack(explained)


@dataclass(frozen=True)
class LeafSetup:
    """The setup shared by all leaves. ``before`` and ``final`` are views of the member below, trained with ``bound``.

    Without ``before``, the member was trained on few of the rows, so rows need not be left out of it.
    """

    before: View | None
    final: View
    head: Head
    bound: Likelihood
    likelihood: Likelihood  # of the leaves; if the head learns the noise, they may need less of it
    kernel: Kernel  # for distances between rows; the kernel of local models is a multiple of it
    seed: int
    copied: bool  # whether equal rows are copies, which are left out together

    def below(self, block: Block) -> Below:
        """The member's marginals at these rows."""
        if self.before is None:
            seen = list(self.final.marginals(block.X, Workspace()))
            mean = np.column_stack([at.mean for at in seen])
            explained = np.column_stack([at.explained for at in seen])
            variance = np.column_stack([at.variance for at in seen])
            return Below(mean, explained, mean, explained, variance)
        share = np.ones(len(block.y))  # of a row in the weight that is left out with it
        if self.copied:
            equal, weight = _equal(block), block.weights
            block = block._replace(weight=np.bincount(equal, weight)[equal].astype(np.float64))
            share = weight / block.weights
        rows = block_marginals(
            [block], Workspace(), before=self.before, final=self.final, head=self.head, likelihood=self.bound
        )
        left = rows.left_out(slice(None), np.zeros((0, 0)))
        sites = zip(
            self.final.spreads(block.X, Workspace()), (rows.mean - rows.prior_mean).T, rows.precision.T, rows.linear.T,
            strict=True,
        )  # fmt: skip
        return Below(
            rows.mean,
            rows.explained,
            np.column_stack([row.mean for row in left]),
            np.column_stack([row.at.explained / row.share for row in left]),
            np.column_stack([row.variance for row in left]),
            tuple(RowsOfMember(B, centred, share * w, share * gamma) for B, centred, w, gamma in sites),
        )


@dataclass(frozen=True)
class LeafRows:
    """The rows of a leaf with everything that does not depend on the kernel of local models."""

    setup: LeafSetup
    leaf: int
    block: Block
    numbers: RowNumbers
    below: Below
    points: Array

    @classmethod
    def of(cls, rows: BucketRows, setup: LeafSetup) -> LeafRows:
        """Choose the points of the leaf, and compute the marginals of the member below."""
        block = rows.block._replace(X=np.asarray(rows.block.X, np.float64))
        n_points = int(min(MOST_POINTS, max(1, len(block.y) / ROWS_PER_POINT)))
        rng = np.random.default_rng([setup.seed, rows.bucket])
        points = seeds(block.X, block.weights, n_points, rng, setup.kernel)
        return cls(setup, rows.bucket, block, rows.numbers, setup.below(block), points.astype(np.float32))

    def with_likelihood(self, likelihood: Likelihood) -> LeafRows:
        """The same rows, to train leaves with this likelihood."""
        return replace(self, setup=replace(self.setup, likelihood=likelihood))

    @cached_property
    def equal(self) -> npt.NDArray[np.intp]:
        """A number for every row, equal for copies."""
        return _equal(self.block) if self.setup.copied else np.arange(len(self.block.y))


class Start(NamedTuple):
    """Earlier models of all leaves, from which training starts; in a stream they are also the prior."""

    leaves: Leaves
    as_prior: bool


@dataclass(frozen=True)
class TrainedLeaves:
    """Some leaves with one kernel, and the result of training for each function of the head."""

    rows: Sequence[LeafRows]
    features: Sequence[InducingFeatures]
    problems: Sequence[StackProblem]
    ends: Sequence[Ascended]

    @classmethod
    def of(cls, rows: Sequence[LeafRows], kernel: Kernel, start: Start | None = None) -> TrainedLeaves:
        """Coordinate ascent from the prior, or from earlier models of these leaves, whose points are kept."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JitterWarning)
            features = [
                local_features(kernel, mine.points) if start is None else start.leaves.leaves[mine.leaf].features
                for mine in rows
            ]
        stack, setup = _stack(rows, features), rows[0].setup
        problems, ends = list[StackProblem](), list[Ascended]()
        for number in range(setup.head.n_functions):
            problem = StackProblem(stack, setup.head, setup.likelihood, number)
            begin = Posteriors.prior(len(rows), stack.phi.shape[2])
            if start is not None:
                begin = _as_posteriors(
                    [start.leaves.leaves[mine.leaf].functions[number] for mine in rows], stack.phi.shape[2]
                )
                problem = replace(problem, prior=begin if start.as_prior else None)
            problems.append(problem)
            ends.append(ascended(problem, begin, UPDATES, ENOUGH))
        return cls(rows, features, problems, ends)

    @property
    def stack(self) -> Stack:
        """The rows as a stack."""
        return self.problems[0].stack

    @cached_property
    def final(self) -> list[Posteriors]:
        """For each function, the prior times the sites of the rows."""
        return [end.settled() for end in self.ends]

    @property
    def converged(self) -> bool:
        """Whether training converged in all leaves."""
        return all(bool(end.converged.all()) for end in self.ends)

    def leaves(self) -> list[Leaf]:
        """The leaves as predictions need them."""
        found = []
        for i, features in enumerate(self.features):
            own = slice(0, features.n_weights)
            functions = (
                LatentFunction(k, 0.0, CompactGaussian(q.mean[i, own], q.root[i, own, own].astype(np.float32)))
                for k, q in enumerate(self.final)
            )
            found.append(Leaf(features, tuple(functions)))
        return found

    def cavities(self) -> Cavities:
        """Leave every row out of its leaf and of the member below, all other sites fixed: fast, but optimistic."""
        stack, columns = self.stack, []
        lengths = np.array([len(mine.block.y) for mine in self.rows])
        there = np.flatnonzero(np.arange(stack.phi.shape[1]) < lengths[:, None])  # the rows that are not padding
        copies = np.cumsum([0, *(mine.equal.max() + 1 for mine in self.rows[:-1])])
        equal = np.concatenate([mine.equal + first for mine, first in zip(self.rows, copies, strict=True)])
        for number, (end, q) in enumerate(zip(self.ends, self.final, strict=True)):
            mean, explained = stack.marginals(q, number)
            # A row is left out with the sites of all its copies.
            sites = [np.bincount(equal, part.ravel()[there])[equal] for part in (end.at.precision, end.at.linear)]
            others = (mean, explained, stack.prior_mean[:, :, number], stack.residual)
            columns.append([*sites, *(array.ravel()[there] for array in others)])
        marginals = RowMarginals(*(np.column_stack(column) for column in zip(*columns, strict=True)))
        left = marginals.left_out(slice(None), np.zeros((0, 0)))
        shift = np.concatenate([rows.below.mean_without - rows.below.mean for rows in self.rows])
        mean = np.column_stack([row.mean for row in left]) + shift
        explained = np.concatenate([rows.below.explained_without for rows in self.rows])
        variance = np.column_stack([row.variance for row in left]) + explained
        y, weight = (np.concatenate(c) for c in zip(*((r.block.y, r.block.weights) for r in self.rows), strict=True))
        return Cavities(mean, variance, y, weight)

    def refitted(self, which: Sequence[RowNumbers]) -> list[Cavities]:
        """Marginals of these rows of each leaf from models refitted without them, a twentieth of the leaf at a time.

        With many points for few rows, the other sites change when a row is left out, so D10 is too optimistic. The rows
        are also left out of the member below, and the leaf is refitted on top of the resulting mean.
        """
        found = [_to_be_found(rows, mine) for rows, mine in zip(self.rows, which, strict=True)]
        folds = [
            (i, held)
            for i, (rows, mine) in enumerate(zip(self.rows, which, strict=True))
            for held in _folds(rows, mine)
        ]
        for first in range(0, len(folds), MODELS_AT_ONCE):
            self._refit(folds[first : first + MODELS_AT_ONCE], which, found)
        return found

    def _refit(
        self, folds: Sequence[tuple[int, RowNumbers]], which: Sequence[RowNumbers], found: Sequence[Cavities]
    ) -> None:
        """Refit all folds together; a fold is a leaf and the positions of the rows that are left out of it."""
        leaf = np.array([i for i, _ in folds])
        part = self.stack.take(leaf)
        kept, prior_mean, explained_below = part.weight.copy(), part.prior_mean.copy(), []
        for j, (i, positions) in enumerate(folds):
            mine, rows = self.rows[i], which[i][positions]
            out = np.flatnonzero(np.isin(mine.equal, mine.equal[rows]))
            kept[j, out] = 0.0
            shift, explained = mine.below.without(out)
            prior_mean[j, : len(shift)] += shift
            explained_below.append(explained[np.searchsorted(out, rows)])
        rest = replace(part, weight=kept, prior_mean=prior_mean)
        for number, end in enumerate(self.ends):
            problem, at = replace(self.problems[number].take(leaf), stack=rest), end.at.take(leaf)
            linear = at.linear - at.precision * (prior_mean - part.prior_mean)[:, :, number]
            q = Posteriors.of(*problem.natural(at.precision * (kept > 0), linear * (kept > 0)))
            q = ascended(problem, q, REFIT_UPDATES, REFIT_ENOUGH).settled()
            mean, explained = rest.marginals(q, number)
            for j, (i, positions) in enumerate(folds):
                rows = which[i][positions]
                found[i].mean[positions, number] = mean[j, rows]
                variance = explained[j, rows] + part.residual[j, rows] + explained_below[j][:, number]
                found[i].variance[positions, number] = variance


class FittedLeaves(NamedTuple):
    """Some leaves, and the marginals of left-out rows with their numbers."""

    leaves: list[Leaf]
    left_out: Cavities
    numbers: RowNumbers
    converged: bool


def fitted_leaves(
    rows: Sequence[BucketRows],
    *,
    setup: LeafSetup,
    kernel: Kernel,
    left_out: RowNumbers,
    start: Start | None = None,
) -> FittedLeaves:
    """Fit the local models of some leaves; rows with the increasing numbers ``left_out`` are predicted without them.

    A leaf without rows keeps its earlier model, or the prior.
    """
    found = {
        mine.bucket: _unseen(mine, kernel, setup.head) if start is None else start.leaves.leaves[mine.bucket]
        for mine in rows
        if not len(mine.numbers)
    }
    filled = [mine for mine in rows if len(mine.numbers)]
    left, numbers, converged = [_nothing_left_out(setup.head)], [np.zeros(0, np.intp)], True
    if filled:
        with one_blas_thread(), quiet_overflow():
            trained = TrainedLeaves.of([LeafRows.of(mine, setup) for mine in filled], kernel, start)
            which = [np.flatnonzero(_among(mine.numbers, left_out)) for mine in filled]
            left += trained.refitted(which)
        numbers += [mine.numbers[chosen] for mine, chosen in zip(filled, which, strict=True)]
        found |= {mine.bucket: leaf for mine, leaf in zip(filled, trained.leaves(), strict=True)}
        converged = trained.converged
    return FittedLeaves(
        [found[mine.bucket] for mine in rows], Cavities.joined(left), np.concatenate(numbers), converged
    )


def _unseen(rows: BucketRows, kernel: Kernel, head: Head) -> Leaf:
    features = local_features(kernel, np.zeros((1, rows.block.X.shape[1]), np.float32))
    prior = CompactGaussian(np.zeros(1), np.ones((1, 1), np.float32))
    return Leaf(features, tuple(LatentFunction(number, 0.0, prior) for number in range(head.n_functions)))


def _nothing_left_out(head: Head) -> Cavities:
    nothing = np.zeros((0, head.n_functions))
    return Cavities(nothing, nothing, np.zeros(0, np.intp), np.zeros(0))


def local_features(kernel: Kernel, points: Array) -> InducingFeatures:
    """The features of a leaf, whitened in single precision, as used in training and stored."""
    features = InducingFeatures.build(kernel, points.astype(np.float64), np.float32)
    return replace(features, inducing_points=points, whitening=features.whitening.astype(np.float32))


def _stack(rows: Sequence[LeafRows], features: Sequence[InducingFeatures]) -> Stack:
    most, widest = max(len(mine.block.y) for mine in rows), max(of.n_weights for of in features)
    phi = np.zeros((len(rows), most, widest), np.float32)
    residual = []
    for own, mine, of in zip(phi, rows, features, strict=True):
        found, prior_variance = of.prepared(None, np.float32)(mine.block.X, Workspace())
        own[: len(found), : of.n_weights] = found
        explained = np.einsum("ij,ij->i", found, found, dtype=np.float64)
        residual.append(np.zeros(len(found)) if prior_variance is None else np.maximum(prior_variance - explained, 0.0))
    return Stack(
        phi,
        padded(residual, most),
        padded([mine.below.mean for mine in rows], most),
        padded([mine.block.y for mine in rows], most),
        padded([mine.block.weights for mine in rows], most),
    )


def _as_posteriors(functions: Sequence[LatentFunction], width: int) -> Posteriors:
    """The posteriors of earlier leaves, padded with the prior."""
    start = Posteriors.prior(len(functions), width)
    precision, linear = start.precision.copy(), start.linear.copy()
    for i, function in enumerate(functions):
        q = function.posterior
        if isinstance(q, CompactGaussian):
            own = slice(0, len(q.mean))
            natural_parameters = q.full().natural
            precision[i, own, own], linear[i, own] = natural_parameters.precision, natural_parameters.linear
    return Posteriors.of(precision, linear)


def _folds(rows: LeafRows, which: RowNumbers) -> list[RowNumbers]:
    """The positions of the left-out rows, in folds of at most a twentieth of the leaf; copies share a fold."""
    rng = np.random.default_rng([rows.setup.seed, rows.leaf, 1])
    n_folds = max(1, int(np.ceil(len(which) / max(1.0, FOLD_SHARE * len(rows.block.y)))))
    fold = rng.permutation(int(rows.equal.max()) + 1)[rows.equal[which]] % n_folds
    return [held for held in (np.flatnonzero(fold == number) for number in range(n_folds)) if len(held)]


def _to_be_found(rows: LeafRows, which: RowNumbers) -> Cavities:
    shape = len(which), rows.setup.head.n_functions
    return Cavities(np.empty(shape), np.empty(shape), rows.block.y[which], rows.block.weights[which])


def _among(numbers: RowNumbers, rising: RowNumbers) -> npt.NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(rising, numbers), len(rising) - 1)
    return np.asarray(rising[place] == numbers)


def _equal(block: Block) -> npt.NDArray[np.intp]:
    """A number for every row, equal for rows with the same inputs and target."""
    return equal_rows(np.column_stack([block.X, block.y]))[1]
