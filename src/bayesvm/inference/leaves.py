"""Inference: add leaves to a member, local models on top of its mean, if leave-one-out shows that they help (D30).

The tree is grown from a sample of the rows. A few of its leaves determine the kernel of the local models, and whether
they are worthwhile. Then all rows are sorted by leaf, once, and the leaves are fitted in order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Head
from bayesvm.core.kernels import Kernel, LengthScaled, Sum
from bayesvm.core.leaves import Leaves, Tree
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array, NotFiniteError, NotPositiveDefiniteError
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BlockSource, BucketRows, Buckets, RowNumbers, at_most, most_held
from bayesvm.data.stopping import Stopped
from bayesvm.data.workers import Workers
from bayesvm.inference.calibrating import Candidate
from bayesvm.inference.hyperparameters import trying
from bayesvm.inference.local import FittedLeaves, LeafRows, LeafSetup, Start, TrainedLeaves, fitted_leaves
from bayesvm.inference.session import Session
from bayesvm.inference.training_state import Clock
from bayesvm.warn import warn_user

OUT_OF_TIME = "the fit was stopped, or its time limit was reached"
LEAF_ROWS = 400
TOGETHER, PROBED_TOGETHER = 4, 3  # leaves that are fitted together
FEWEST_ROWS = 4_000  # of a table; with fewer, leaves are tried only on request
AVERAGED_UP_TO = 50_000  # rows; with more, one member with local models suffices
BASE_ROWS = 20_000  # rows that determine the mean below local models; 32,768 gain 0.0001 on covtype for twice the time
TREE_ROWS = 2**17  # in the sample for growing the tree
PROBED, PROBED_FIRST = 16, 6  # leaves used for the decision; at first
CERTAIN = 3.0  # standard errors from WORTH_HAVING at which the first leaves suffice
SCALES = (1.0, 0.6, 0.36, 0.22, 0.13)  # multiples of the length-scales of the member below
VARIANCES = (0.1, 0.4, 1.6, 6.3, 25.0, 100.0)
FIRST = (1, 3)  # indices of the initial scale and variance
NOISE_ROUNDS = 3  # maximum number, after the first
CUT_SHORT = 0.02  # share of leaves that may stop early in a converged model
WORTH_HAVING, ERRORS = 0.003, 2.0  # gain in log loss, and in standard errors, that local models must reach

Place = tuple[int, int]


@dataclass(frozen=True)
class Found:
    """The tree and the kernel of local models, and their gain in log loss over the member below.

    Without a ``likelihood`` of their own they have that of the member.
    """

    tree: Tree
    kernel: Kernel
    likelihood: Likelihood | None = None
    gained: float = 0.0
    error: float = 0.0  # standard error of the gain
    place: Place = FIRST
    buckets: Buckets | None = None  # all rows by leaf, if they are already sorted

    @property
    def worth_having(self) -> bool:
        """Whether the gain is large enough and significant."""
        return self.gained > max(WORTH_HAVING, ERRORS * self.error)


@dataclass(frozen=True)
class Probe:
    """The rows of some leaves, for trying kernels."""

    rows: Sequence[Sequence[LeafRows]]  # in groups of leaves that are fitted together
    base: Kernel
    workers: Workers
    clock: Clock

    def kernel(self, place: Place) -> Kernel:
        """The kernel of the member with other length-scales and another variance."""
        scaled = self.base.stretched(SCALES[place[0]], 1.0)
        return scaled.set_params(variance=VARIANCES[place[1]])

    @property
    def head(self) -> Head:
        """The head of the model."""
        return self.rows[0][0].setup.head

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the leaves."""
        return self.rows[0][0].setup.likelihood

    def with_noise(self, trained: Sequence[TrainedLeaves]) -> Probe:
        """The probe with the noise estimated from these leaves, if the head learns it (D32)."""
        if not self.head.learns_noise:
            return self
        cavities = self._at_fixed_sites(trained)
        likelihood = self.head.likelihood_after(self.likelihood, self.head.fit_link(cavities), cavities)
        if likelihood == self.likelihood:
            return self
        return replace(self, rows=[[mine.with_likelihood(likelihood) for mine in group] for group in self.rows])

    def trained(self, place: Place) -> list[TrainedLeaves]:
        """Train the leaves with the kernel at this place."""
        self.clock.require_time()
        kernel = self.kernel(place)
        return list(self.workers.map(lambda rows, _: TrainedLeaves.of(rows, kernel), self.rows))

    def best(self, here: Place) -> tuple[Place, list[TrainedLeaves]]:
        """Descend to the lowest loss at fixed sites by steps along either axis."""
        tried: dict[Place, tuple[float, list[TrainedLeaves]]] = {}

        def loss(place: Place) -> float:
            if place not in tried:
                try:
                    trained = self.trained(place)
                    tried[place] = self._loss(trained), trained
                except (NotPositiveDefiniteError, NotFiniteError):
                    tried[place] = np.inf, []
            return tried[place][0]

        moved = True
        while moved:
            moved = False
            for axis, step in ((1, 1), (1, -1), (0, 1), (0, -1)):
                while (there := _next(here, axis, step)) is not None and loss(there) < loss(here):
                    here, moved = there, True
        if not np.isfinite(loss(here)):
            raise NotPositiveDefiniteError("no kernel of local models could be factored")
        return here, tried[here][1]

    def _loss(self, trained: Sequence[TrainedLeaves]) -> float:
        cavities = self._at_fixed_sites(trained)
        return float(np.average(self._losses(cavities), weights=cavities.weight))

    def _at_fixed_sites(self, trained: Sequence[TrainedLeaves]) -> Cavities:
        return Cavities.joined(self.workers.map(lambda leaves, _: leaves.cavities(), trained))

    def _losses(self, cavities: Cavities) -> Array:
        link = self.head.fit_link(cavities)
        return np.asarray(link.row_losses(cavities.mean, cavities.variance, cavities.y))

    def gain(self, trained: Sequence[TrainedLeaves]) -> tuple[float, float]:
        """The gain of local models on rows not used to fit them, and its standard error."""

        def refitted(leaves: TrainedLeaves, _: Any) -> Cavities:
            self.clock.require_time()
            return Cavities.joined(leaves.refitted([np.arange(len(mine.block.y)) for mine in leaves.rows]))

        return self._gain_of(Cavities.joined(self.workers.map(refitted, trained)))

    def _gain_of(self, local: Cavities) -> tuple[float, float]:
        below = [
            Cavities(mine.below.mean_without, mine.below.variance_without, mine.block.y, mine.block.weights)
            for group in self.rows
            for mine in group
        ]
        share, gained = local.weight / local.weight.sum(), self._losses(Cavities.joined(below)) - self._losses(local)
        mean = float(share @ gained)
        return mean, float(np.linalg.norm(share * (gained - mean)))

    def settled(self, first: Place) -> tuple[Probe, Place, list[TrainedLeaves]]:
        """The best kernel; the search is repeated while the leaves have another noise than in training."""
        probe, (place, trained) = self, self.best(first)
        for _ in range(NOISE_ROUNDS):
            again = probe.with_noise(trained)
            if again is probe:
                break
            probe, (place, trained) = again, again.best(place)
        return probe, place, trained

    def decision(self, first: Place) -> Decision:
        """The kernel, its gain and the standard error; from the first leaves only if they are conclusive.

        The gain at fixed sites is optimistic, so local models that gain too little by it need no refits.
        """
        few, place, trained = replace(self, rows=self.rows[: PROBED_FIRST // PROBED_TOGETHER]).settled(first)
        decided = Decision(place, few.likelihood, *few._gain_of(few._at_fixed_sites(trained)))  # noqa: SLF001  (its own)
        if decided.gained < WORTH_HAVING:
            return decided
        decided = Decision(place, few.likelihood, *few.gain(trained))
        if len(few.rows) == len(self.rows) or abs(decided.gained - WORTH_HAVING) >= CERTAIN * decided.error:
            return decided
        every, place, trained = self.settled(place)
        return Decision(place, every.likelihood, *every.gain(trained))


class Decision(NamedTuple):
    """The place of the best kernel, the likelihood of the leaves, their gain and its standard error."""

    place: Place
    likelihood: Likelihood
    gained: float
    error: float


def may_be_local(n_rows: int, session: Session) -> bool:
    """Whether a tuned model of so many rows may get local models; leaves would split groups."""
    local = session.settings.local
    enough = n_rows >= FEWEST_ROWS if local == "auto" else bool(local)
    return enough and session.groups is None


def find_leaves(
    candidate: Candidate, source: BlockSource, session: Session, number: int, first: Place = FIRST
) -> Found | None:
    """The tree and the kernel of local models on a member; None if its kernel has no length-scales.

    ``first`` is the start of the search for the kernel. Raises ``Stopped`` if the time is over.
    """
    base = _distances(candidate)
    if base is None:
        return None
    session.display.phase("local models: trial")
    seed = session.checkpoint.seed(session.settings.seed)
    rng = np.random.default_rng([seed, number])
    held = at_most(source, most_held(source.n_features), rng)
    unit = np.broadcast_to(np.asarray(base.length_scales, np.float64), source.n_features)
    setup = leaf_setup(candidate, base, session, number)
    with trying(), one_blas_thread():
        grown_from = held.head(TREE_ROWS) if held.n_rows < source.n_rows else held.subset(TREE_ROWS, rng)
        rows = np.asarray(grown_from.gathered().X, np.float64)
        tree = _grown(rows, unit, held.n_rows)
        buckets = held.bucketed(tree.leaf_of, tree.n_leaves)
        probed = rng.permutation(tree.n_leaves)[:PROBED].tolist()
        work = partial(_rows_of, setup=setup)
        rows_of_leaves = list(buckets.map(work, batched(probed, PROBED_TOGETHER)))
        probe = Probe(rows_of_leaves, base, session.workers, session.clock)
        decided = probe.decision(first)
        place = decided.place
        found = Found(tree, probe.kernel(place), decided.likelihood, decided.gained, decided.error, place)
        if held.n_rows == source.n_rows:
            return replace(found, buckets=buckets)
        return replace(found, tree=_grown(rows, unit, source.n_rows))


def tried_leaves(base: Candidate, source: BlockSource, session: Session) -> tuple[Found | None, str, bool]:
    """The tree and kernel of local models on the first member, if they help (D30).

    Also returns a sentence for the report, and whether the time was over before the decision.
    """
    try:
        found = find_leaves(base, source, session, 0)
    except Stopped:
        session.clock.stop.settle()
        return None, f"Local models were not tried: {OUT_OF_TIME}.", True
    except NotPositiveDefiniteError:
        found, reason = None, "no kernel matrix of the leaves could be factored"
    else:
        reason = "the kernel has no length-scales"
    if found is None:
        if session.settings.local is True:
            warn_user(f"local=True has no effect: {reason}. Use another kernel, or local=False.")
        return None, f"Local models are not used: {reason}.", False
    gain = f"{found.gained:.4f} ± {found.error:.4f}"
    if session.settings.local == "auto" and not found.worth_having:
        return None, f"Local models would gain {gain}; not used.", False
    return found, f"Local models in {found.tree.n_leaves:,} leaves gain {gain}.", False


def _rows_of(rows: Sequence[BucketRows], *, setup: LeafSetup) -> list[LeafRows]:
    return [LeafRows.of(mine, setup) for mine in rows]


def _grown(rows: Array, unit: Array, n_rows: int) -> Tree:
    return Tree.grown(rows, unit, max(2, round(n_rows / LEAF_ROWS)))


def base_rows(source: BlockSource, session: Session) -> BlockSource:
    """The training rows of a member that may get local models, which resolve the details that more rows would show."""
    if source.n_rows <= BASE_ROWS:
        return source
    seed = session.checkpoint.seed(session.settings.seed)
    return source.subset(BASE_ROWS, np.random.default_rng([seed, BASE_ROWS]))


def with_leaves(
    candidate: Candidate,
    found: Found,
    source: BlockSource,
    session: Session,
    number: int,
    start: Start | None = None,
) -> Candidate:
    """The member with a local model in every leaf, and with their left-out marginals.

    A checkpoint stores finished leaves. Raises ``Stopped`` if the time is over; the leaves of an earlier fit, which
    ``start`` has, are always finished, because the member below them has changed.
    """
    session.display.phase("local models")
    began = time.monotonic()
    base = _distances(candidate)
    if base is None:
        return candidate
    setup = leaf_setup(candidate, base, session, number)
    setup = setup if found.likelihood is None else replace(setup, likelihood=found.likelihood)
    fitted = _fitted(found, setup, candidate.left_out_rows, source, session, number, start)
    leaves = Leaves(found.tree, found.kernel, tuple(leaf for some in fitted for leaf in some.leaves))
    left_out = in_order(candidate, fitted)
    cut_short = sum(len(some.leaves) for some in fitted if not some.converged)
    converged = candidate.trained.converged and cut_short <= CUT_SHORT * found.tree.n_leaves
    return replace(
        candidate,
        trained=replace(candidate.trained, converged=converged),
        leaves=leaves,
        left_out=left_out,
        seconds=candidate.seconds + time.monotonic() - began,
    )


def _fitted(
    found: Found,
    setup: LeafSetup,
    left_out: RowNumbers,
    source: BlockSource,
    session: Session,
    number: int,
    start: Start | None,
) -> list[FittedLeaves]:
    """Fit all leaves, some at a time; skips leaves that an earlier run finished."""
    tree = found.tree
    groups = batched(range(tree.n_leaves), TOGETHER)
    memory = session.checkpoint.leaves(f"leaves of member {number}", found.kernel, session.head.n_functions)
    finished = memory.recall()
    missing = groups[len(finished) :]
    if missing:
        buckets = found.buckets or source.bucketed(tree.leaf_of, tree.n_leaves)
        work = partial(fitted_leaves, setup=setup, kernel=found.kernel, left_out=np.sort(left_out), start=start)
        results = buckets.map(work, missing)
        for result in session.workers.watched(results, TOGETHER * LEAF_ROWS, len(missing) * TOGETHER * LEAF_ROWS):
            finished.append(result)
            memory.keep(finished)
            if start is None and len(finished) < len(groups):
                session.clock.require_time()
        memory.keep(finished, now=True)
    return finished


def in_order(candidate: Candidate, fitted: Sequence[FittedLeaves]) -> Cavities:
    """The left-out marginals of the leaves, in the row order of the candidate."""
    numbers = np.concatenate([leaves.numbers for leaves in fitted])
    joined = Cavities.joined(leaves.left_out for leaves in fitted)
    order = np.argsort(numbers)[np.argsort(np.argsort(candidate.left_out_rows))]
    return candidate.left_out._replace(mean=joined.mean[order], variance=joined.variance[order])


def leaf_setup(candidate: Candidate, base: Kernel, session: Session, number: int) -> LeafSetup:
    """The setup shared by all leaves of a member."""
    problem, trained = candidate.problem, candidate.trained
    views = problem.both(LEAF_ROWS, trained.before, trained.functions)
    before = views["before"] if candidate.whole else None
    seed = session.checkpoint.seed(session.settings.seed)
    return LeafSetup(
        before,
        views["final"],
        session.head,
        problem.likelihood,
        problem.likelihood,
        base,
        int(np.random.default_rng([seed, number]).integers(2**31)),
        copied=bool(session.repetition.copied),
    )


def _distances(candidate: Candidate) -> LengthScaled | None:
    """The part of a member's kernel that local models share; None if it has no length-scales."""
    kernel = getattr(candidate.problem.features, "kernel", None)
    parts = kernel.kernels if isinstance(kernel, Sum) else [kernel]
    return next((part for part in parts if isinstance(part, LengthScaled)), None)


def batched(leaves: Sequence[int], size: int) -> list[Sequence[int]]:
    """Split into parts of ``size``."""
    return [leaves[first : first + size] for first in range(0, len(leaves), size)]


def _next(place: Place, axis: int, step: int) -> Place | None:
    there = list(place)
    there[axis] += step
    return (there[0], there[1]) if 0 <= there[axis] < len((SCALES, VARIANCES)[axis]) else None
