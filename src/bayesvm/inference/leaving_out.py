"""Inference: leave rows out of a trained model: individually (D10), with their copies, or in groups (D24)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.groups import Grouping, group_cavities
from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.members import Member, MemberViews
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import BlockSource, HeldRows, RowNumbers, at_most
from bayesvm.data.completion import MeanAndVariance
from bayesvm.data.repetition import group_weights
from bayesvm.inference.calibrating import Candidate
from bayesvm.inference.fitted import MANY_ROWS
from bayesvm.inference.problem import Problem
from bayesvm.inference.session import Session, TrainingRows
from bayesvm.inference.training import Trained

LOO_ROWS = 20_000  # for larger tables, a random sample of this size is left out
FEW_LOO_ROWS = 2_000  # after a request to stop
LEAST_LEFT = 0.1  # lower bound of a variance that completions reduce, relative


def leave_one_out(
    problem: Problem, source: BlockSource, trained: Trained, session: Session, *, few: bool
) -> tuple[Cavities, RowNumbers]:
    """Leave rows out by removing sites (D10). Copies leave together: their sites are equal, so their weights add up."""
    # The same rows for every member of a committee.
    rng, most = np.random.default_rng(session.checkpoint.seed(session.settings.seed)), FEW_LOO_ROWS if few else LOO_ROWS
    if session.groups is not None:
        return leave_groups_out(problem, source.rows(whole_groups(session.groups, most, rng)), trained, session.groups)
    part = at_most(source, most, rng)
    if not session.repetition.copied:
        return problem.cavities(part, trained.before, trained.functions), part.numbers
    group = group_weights(source, part)
    weight = np.ones(part.n_rows) if part.weights is None else part.weights
    together = problem.cavities(part.weighted(group), trained.before, trained.functions)
    return together._replace(weight=weight, group_weight=group), part.numbers


def leave_groups_out(
    problem: Problem, part: HeldRows, trained: Trained, groups: RowNumbers
) -> tuple[Cavities, RowNumbers]:
    """Leave out every row with all rows of its group (D24); ``part`` has whole groups."""
    grouping = Grouping.of(groups[part.numbers], problem.features.n_weights)
    marginals = problem.marginals(part, trained.before, trained.functions)
    removed = problem.without_groups(part, marginals, trained.functions, grouping)
    block = part.gathered()
    return group_cavities(marginals, removed, block.y, block.weights), part.numbers


def whole_groups(groups: RowNumbers, most: int, rng: np.random.Generator) -> RowNumbers:
    """The rows of all groups, or of a random sample of groups with about ``most`` rows in total, at least two."""
    sizes = np.bincount(groups)
    order = rng.permutation(np.flatnonzero(sizes))
    n_chosen = max(2, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))
    return np.flatnonzero(np.isin(groups, order[:n_chosen]))


def widened(candidate: Candidate, rows: TrainingRows) -> Candidate:
    """The candidate with left-out marginals that include the changes by completions of missing values (D33).

    The change is that of the posterior of all rows.
    """
    member = Member(
        candidate.problem.features,
        tuple(candidate.trained.functions),
        scaler=candidate.prepared.scaler,
        leaves=candidate.leaves,
    )
    views = MemberViews.of([member], None, MANY_ROWS, np.float64)

    def moments(X: Array) -> list[MeanAndVariance]:
        (found,) = views.moments([Block(X, np.zeros(len(X)), None)], Workspace())
        return [(found.mean, found.variance)]

    found = rows.changes(candidate.left_out_rows, moments)
    if found is None:
        return candidate
    (shift, added), left_out = found[0], candidate.left_out
    variance = np.maximum(left_out.variance + added, LEAST_LEFT * left_out.variance)
    mean = left_out.mean + (shift if candidate.problem.head.averages_completions else 0.0)
    return replace(candidate, left_out=left_out._replace(mean=mean, variance=variance))
