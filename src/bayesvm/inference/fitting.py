"""Inference: fit a model to rows, given settings. ``fit`` is the entry point; ``update`` is its variant for streams.

The steps, one function each: open the rows, prepare (scaling, tuning, features), train, leave rows out, calibrate.
Every member of a committee is trained, and its rows are left out, separately.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from typing import Protocol

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Head
from bayesvm.core.latent import full
from bayesvm.core.linalg import NotFiniteError, NotPositiveDefiniteError
from bayesvm.core.members import Member
from bayesvm.core.posterior import Gaussian
from bayesvm.data.blas import threads_for_matrices
from bayesvm.data.blocks import BlockSource, RowNumbers, block_rows
from bayesvm.data.repetition import Repetition, repetition
from bayesvm.data.stopping import Stopped
from bayesvm.inference import leaving_out
from bayesvm.inference.calibrating import Candidate, calibrated
from bayesvm.inference.fitted import Fitted
from bayesvm.inference.leaves import (
    AVERAGED_UP_TO,
    OUT_OF_TIME,
    Found,
    base_rows,
    find_leaves,
    may_be_local,
    tried_leaves,
    with_leaves,
)
from bayesvm.inference.leaving_out import widened
from bayesvm.inference.local import Start
from bayesvm.inference.noise import with_learned_noise
from bayesvm.inference.problem import Problem, evaluate
from bayesvm.inference.session import Listeners, NoCheckpoint, Prepared, Session, TrainingRows, working
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Plan, Trained, train
from bayesvm.warn import warn_user

SOME_COPIES = 0.01  # share of rows above which a warning reports copies
FEW_EFFECTIVE = 0.1  # effective rows per row below which a warning reports it


class FeatureModel(Protocol):
    """What differs between kernel and linear models."""

    def expected_weights(self, n_rows: int, n_features: int, settings: Settings) -> int:
        """The approximate number of features per row; determines precision and block size."""
        ...

    def matrix_size(self, n_rows: int, n_features: int, settings: Settings) -> int:
        """The approximate size of the largest matrix to factor."""
        ...

    def prepare(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling, features and initial functions; tuned if requested."""
        ...

    def enlarged(self, members: Sequence[Prepared], raw: BlockSource, session: Session) -> list[Prepared] | None:
        """The members with more weights, if tuning found that these help."""
        ...

    def train(
        self, problem: Problem, source: BlockSource, plan: Plan, prepared: Prepared, session: Session, name: str
    ) -> Trained:
        """The posteriors of all functions; a checkpoint stores them by this name."""
        ...

    def leave_out(
        self, problem: Problem, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, RowNumbers]:
        """Leave-one-out marginals of all rows, or of a random sample, and the numbers of these rows."""
        ...


def fit(
    settings: Settings,
    model: FeatureModel,
    head: Head,
    rows: TrainingRows,
    listeners: Listeners,
    checkpoint: NoCheckpoint | None = None,
    start: Fitted | None = None,
) -> Fitted:
    """Fit a model to rows. Pure except for notifications of listeners and the checkpoint.

    ``start`` is an earlier fit of the same head: its scaling and features are kept, and training starts from it.
    """
    with _opened(settings, model, head, rows, listeners, checkpoint or NoCheckpoint()) as (raw, session):
        prepared = _ready(model, raw, session) if start is None else _continued(start, as_prior=False)
        session.clock.stop.heeded = True
        candidates, prepared = _trained_members(model, raw, prepared, session)
        candidates = [widened(candidate, rows) for candidate in candidates]
        indices = rows.given(candidates[0].left_out_rows)
        left_out = [candidate.left_out for candidate in candidates]
        return calibrated(candidates, left_out, indices, prepared, session, rows.n_rows)


def update(
    settings: Settings,
    model: FeatureModel,
    head: Head,
    rows: TrainingRows,
    listeners: Listeners,
    start: Fitted | None,
) -> Fitted:
    """Learn from one more part of a stream: add the sites of its rows permanently to the current posterior.

    Every member is updated; their weights are unchanged. The links are refitted to leave-one-out marginals stored from
    all parts, at most 20,000 of them.
    """
    with _opened(settings, model, head, rows, listeners, NoCheckpoint()) as (raw, session):
        prepared = model.prepare(raw, session) if start is None else _continued(start, as_prior=True)
        session.clock.stop.heeded = True
        candidates, prepared = _trained_members(model, raw, prepared, session, inference="batch")
        candidates = [widened(candidate, rows) for candidate in candidates]
        left_out = [candidate.left_out for candidate in candidates]
        n_samples: int | None = rows.n_rows
        if start is not None:
            earlier = zip(start.left_out, left_out, strict=True)
            left_out = [Cavities.joined([before, now]) for before, now in earlier]
            # Files of version 1 do not store the number of rows.
            n_samples = None if start.n_samples is None else start.n_samples + rows.n_rows
        if (n_rows := len(left_out[0].y)) > leaving_out.LOO_ROWS:
            kept = np.sort(session.rng.choice(n_rows, leaving_out.LOO_ROWS, replace=False))
            left_out = [left.take(kept) for left in left_out]
        return calibrated(candidates, left_out, None, prepared, session, n_samples)


def _trained_members(
    model: FeatureModel, raw: BlockSource, prepared: Prepared, session: Session, *, inference: str | None = None
) -> tuple[list[Candidate], Prepared]:
    """One candidate per member of a committee, the best first; fewer if time runs out."""
    if prepared.weight is None:
        return _first_fit(model, raw, prepared, session, inference)
    found = list[Candidate]()
    for number, member in enumerate([prepared, *prepared.others]):  # of an earlier fit
        source = raw.scaled(member.scaler)
        if member.start is None:
            found.append(trained_candidate(model, source, member, session, number, inference=inference))
        else:
            found.append(_continued_leaves(model, source, member, member.start, session, number))
    return _on_common_rows(found), prepared


def _first_fit(
    model: FeatureModel, raw: BlockSource, prepared: Prepared, session: Session, inference: str | None
) -> tuple[list[Candidate], Prepared]:
    """Train members that have not been trained before, with local models or with more inducing points if these help.

    The first member decides whether members get local models. With many rows only the first member gets them, because
    a second one takes as long and gains little.
    """
    members = [prepared, *prepared.others]
    leaves, found, said, cut_short = None, list[Candidate](), "", False
    if may_be_local(raw.n_rows, session) and prepared.report is not None and not session.clock.over():
        base = trained_base(model, raw.scaled(prepared.scaler), prepared, session, 0)
        leaves, said, cut_short = tried_leaves(base, raw.scaled(prepared.scaler), session)
        members = [replace(prepared, functions=base.trained.functions), *members[1:]]
        if leaves is not None and raw.n_rows > AVERAGED_UP_TO:
            members = members[:1]
        if leaves is not None or base.whole:
            found = [base]
    elif not session.clock.over():
        members = model.enlarged(members, raw, session) or members
    for number, member in enumerate(members[len(found) :], len(found)):
        if found and session.clock.over():
            break
        train = trained_candidate if leaves is None else trained_base
        found.append(train(model, raw.scaled(member.scaler), member, session, number, inference=inference))
    if leaves is not None:
        found = [_with_leaves(candidate, leaves, raw, session, number) for number, candidate in enumerate(found)]
        if found[0].leaves is None:
            said, cut_short = f"{said} They were not fitted: {OUT_OF_TIME}.", True
    if cut_short:
        found[0] = replace(found[0], trained=replace(found[0].trained, converged=False))
    report = prepared.report.with_reason(said) if prepared.report is not None and said else prepared.report
    return _on_common_rows(found), replace(prepared, report=report)


def _continued_leaves(
    model: FeatureModel, source: BlockSource, member: Prepared, start: Start, session: Session, number: int
) -> Candidate:
    """A member whose local models learn more; in a stream the mean below them is fixed, as earlier rows rely on it."""
    if start.as_prior:
        problem = session.problem(member.features, source, member.likelihood)
        found = evaluate(problem, source, member.functions)
        elbo = sum(at.elbo for at in found)
        trained = Trained(member.functions, member.functions, elbo, (elbo,), 1.0, converged=True)
        left_out, rows = _left_out(model, problem, source, trained, session)
        candidate = Candidate(member, problem, trained, left_out, rows, 0.0, whole=False)
    else:
        candidate = trained_base(model, source, member, session, number)
    leaves = start.leaves
    return with_leaves(candidate, Found(leaves.tree, leaves.kernel), source, session, number, start)


def _with_leaves(candidate: Candidate, of_first: Found, raw: BlockSource, session: Session, number: int) -> Candidate:
    """The member with local models; each member has its own tree and kernel."""
    source, found = raw.scaled(candidate.prepared.scaler), of_first if number == 0 else None
    with suppress(Stopped):
        if found is None and not session.clock.over():
            found = find_leaves(candidate, source, session, number, of_first.place)
        if found is not None and not session.clock.over():
            return with_leaves(candidate, found, source, session, number)
    session.clock.stop.settle()
    return candidate


def _on_common_rows(candidates: list[Candidate]) -> list[Candidate]:
    """Restrict to the rows left out of all members; after a request to stop, the last member has fewer."""
    first, *others = (candidate.left_out_rows for candidate in candidates)
    if all(np.array_equal(first, other) for other in others):
        return candidates
    common = reduce(np.intersect1d, others, first)

    def of(candidate: Candidate) -> Candidate:
        _, which, _ = np.intersect1d(candidate.left_out_rows, common, assume_unique=True, return_indices=True)
        return replace(candidate, left_out=candidate.left_out.take(which), left_out_rows=common)

    return list(map(of, candidates))


@contextmanager
def _opened(
    settings: Settings,
    model: FeatureModel,
    head: Head,
    rows: TrainingRows,
    listeners: Listeners,
    checkpoint: NoCheckpoint,
) -> Iterator[tuple[BlockSource, Session]]:
    """Step 1: open the rows as a source of unscaled blocks, in a session."""
    shape = rows.n_rows, rows.n_features
    n_weights = model.expected_weights(*shape, settings)
    with (
        threads_for_matrices(model.matrix_size(*shape, settings)),
        working(settings, listeners, checkpoint.seed(settings.seed)) as (workers, rng, clock),
    ):
        listeners.display.phase("reading rows")
        raw = rows.source(workers, block_rows(n_weights, rows.n_features), rng)
        with _naming_the_largest_column(raw, settings):
            found, dtype = repetition(raw), settings.dtype(rows.n_rows * n_weights)
            _warn_of_repetition(found)
            given = settings, head, workers, rng, listeners, clock, checkpoint, found, dtype
            yield raw, Session(*given, rows.groups)


def _ready(model: FeatureModel, raw: BlockSource, session: Session) -> Prepared:
    """Step 2: scaling, features and initial functions, from the checkpoint of an earlier run or computed."""
    rng, checkpoint = session.rng.bit_generator, session.checkpoint
    if (kept := checkpoint.recall_prepared(raw.n_features, session.head.n_functions)) is not None:
        prepared, rng.state = kept
        return prepared
    prepared = model.prepare(raw, session)
    if session.clock.over():  # the preparation was cut short
        checkpoint.freeze()
    checkpoint.keep_prepared(prepared, rng.state)
    return prepared


def _continued(start: Fitted, *, as_prior: bool) -> Prepared:
    """The scalings, features and functions of an earlier fit, as the start and optionally as the prior."""
    if len(start.left_out) != len(start.members):
        raise ValueError(
            "the earlier fit has no leave-one-out predictions of its members and cannot learn more; fit a new estimator"
        )

    def of(member: Member, left_out: Cavities) -> Prepared:
        if not all(isinstance(function.posterior, Gaussian) for function in member.functions):
            raise ValueError("the earlier fit has a diagonal covariance and cannot learn more; fit a new estimator")
        standard = None if as_prior else Gaussian.prior(member.features.n_weights)
        functions = tuple(replace(function, prior=standard or full(function)) for function in member.functions)
        scaler = start.scaler if member.scaler is None else member.scaler
        leaves = None if member.leaves is None else Start(member.leaves, as_prior)
        likelihood = start.head.likelihood_after(start.likelihood, member.link or start.link, left_out)
        return Prepared(
            start.scale, scaler, member.features, functions, weight=member.weight, start=leaves, likelihood=likelihood
        )

    first, *others = map(of, start.members, start.left_out)
    return replace(first, report=start.report, others=tuple(others))


def trained_candidate(
    model: FeatureModel,
    source: BlockSource,
    prepared: Prepared,
    session: Session,
    number: int = 0,
    *,
    inference: str | None = None,
) -> Candidate:
    """Steps 3 and 4: train the posteriors of all functions, and leave out each row."""
    return _trained(model, source, source, prepared, session, f"training of member {number}", inference)


def trained_base(
    model: FeatureModel,
    source: BlockSource,
    prepared: Prepared,
    session: Session,
    number: int,
    *,
    inference: str | None = None,
) -> Candidate:
    """Steps 3 and 4 for a member that may get local models, using only as many rows as it needs."""
    part = base_rows(source, session)
    return _trained(model, source, part, prepared, session, f"training of member {number}, base", inference)


def _trained(
    model: FeatureModel,
    source: BlockSource,
    part: BlockSource,
    prepared: Prepared,
    session: Session,
    name: str,
    inference: str | None,
) -> Candidate:
    began = time.monotonic()
    plan = session.plan(part)
    plan = replace(plan, inference=inference or plan.inference)

    def once(problem: Problem, start: Prepared, name: str) -> tuple[Trained, tuple[Cavities, RowNumbers]]:
        trained = model.train(problem, part, plan, start, session, name)
        return trained, _left_out(model, problem, source, trained, session)

    problem, trained, (left_out, rows) = with_learned_noise(once, part, prepared, session, name)
    whole = part.n_rows == source.n_rows
    return Candidate(prepared, problem, trained, left_out, rows, time.monotonic() - began, whole=whole)


def train_all(
    problem: Problem, source: BlockSource, plan: Plan, prepared: Prepared, session: Session, name: str
) -> Trained:
    """Train posteriors with full covariances, with the inference of the plan."""
    n_weights, functions = problem.features.n_weights, prepared.functions
    sizes = {"M": n_weights, "K": len(functions), "R": source.n_rows}
    memory = session.checkpoint.training(name, plan, sizes)
    callback = session.listeners.of(problem, source.scaler)
    return train(problem, source, plan, functions, session.rng, callback, memory)


def _left_out(
    model: FeatureModel, problem: Problem, source: BlockSource, trained: Trained, session: Session
) -> tuple[Cavities, RowNumbers]:
    """Leave out all rows, or only a few after a request to stop."""
    session.display.phase("leave-one-out")
    with suppress(Stopped):
        if not session.clock.stop.made:
            return model.leave_out(problem, source, trained, session, few=False)
    session.clock.stop.settle()
    return model.leave_out(problem, source, trained, session, few=True)


@contextmanager
def _naming_the_largest_column(raw: BlockSource, settings: Settings) -> Iterator[None]:
    """Add the most likely column to errors about values out of range."""
    try:
        yield
    except (NotFiniteError, NotPositiveDefiniteError) as error:
        moments = raw.moments()
        size = np.abs(moments.mean) + moments.root / np.sqrt(moments.weight)
        column = int(np.argmax(size))
        where = f"The largest values, about {size[column]:.0e}, are in column {settings.column(column)}"
        raise type(error)(f"{error}. {where}") from error


def _warn_of_repetition(found: Repetition) -> None:
    """Warn about copies and about very uneven weights."""
    if found.copied >= SOME_COPIES:
        warn_user(
            f"{found.copied:.1%} of the rows are exact copies of other rows. Copies are left out together, so that "
            "leave-one-out does not predict a row from its own copy. If they come from oversampling, pass every row "
            "once and use sample_weight or class_weight.",
        )
    effective = found.evenness * found.n_rows
    if effective < max(FEW_EFFECTIVE * found.n_rows, min(100, found.n_rows / 4)):
        warn_user(
            f"the weights are so uneven that {found.n_rows:,} rows count as {effective:,.0f} of equal weight; the fit "
            "is as uncertain as with that many rows. Cap the largest weights, or drop rows of small weight.",
        )
