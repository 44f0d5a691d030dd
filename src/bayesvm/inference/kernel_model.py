"""Inference: models with a kernel and inducing points, tuned automatically; several of them may be averaged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.features import InducingFeatures
from bayesvm.core.gradients import LearnableFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import LatentFunction
from bayesvm.core.linalg import Array
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BlockSource, RowNumbers, at_most
from bayesvm.data.repetition import merged
from bayesvm.data.stopping import Stopped
from bayesvm.inference import inducing
from bayesvm.inference.entries import Candidates, Entry
from bayesvm.inference.fitting import train_all
from bayesvm.inference.judgements import moved
from bayesvm.inference.leaves import may_be_local
from bayesvm.inference.leaving_out import leave_one_out
from bayesvm.inference.problem import Problem
from bayesvm.inference.scalings import fitted_scalers, worth_trying
from bayesvm.inference.session import Prepared, Session
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Plan, Trained
from bayesvm.inference.tuning import FIRST, MOST_ROWS, Tuner
from bayesvm.inference.tuning_report import TrialLog
from bayesvm.warn import warn_user

FEWEST, USUAL, MORE, MANY = 100, 500, 700, 2_000  # numbers of inducing points that "auto" chooses from
WORTH_MORE, WORTH_MANY = 0.004, 0.012  # gain in log loss with twice the points of tuning that justifies MORE and MANY
PASS_BUDGET = 2e10  # limit of rows × points² for "auto"
SOME = 300  # points regardless of the budget, and without tuning
ROWS_PER_POINT, USUAL_ROWS_PER_POINT = 5, 12  # minimum, and above SOME points; fewer rows per point overfit
USUAL_TOLERANCE = 5e-5  # nats per row; a smaller tolerance is used as given
ENOUGH = 0.01  # nats in total; a smaller gain of the ELBO is irrelevant
LARGE_TOLERANCE = 5e-3  # nats per row, for large models, which start near convergence
EVIDENCE_POINTS = 150  # inducing points during ELBO ascent
MOST_SAMPLE_ENTRIES = 20_000_000  # of a table to tune on
TRANSFER_ROWS = 16_384  # rows whose sites suffice for a start
MOST_INDUCING = 20_000  # k(Z,Z) and a few matrices of the same size must fit into memory


@dataclass(frozen=True)
class KernelModel:
    """The kernels and inducing points to use.

    ``kernels`` has one kernel by name, or several for tuning to choose from, ordered from smooth to rough.
    """

    kernels: dict[str, Kernel]
    n_inducing: int | str | None  # a number, "auto", or None for all rows
    max_inducing: int
    inducing: str | Array  # the method to choose points, or the points in the units of X
    learn_inducing: bool
    learn_relevance: bool  # whether tuning may learn one length-scale per feature

    def size(self, n_rows: int, gained: float | None = None, members: int = 1) -> int:
        """The number of inducing points, given the gain with twice the points of tuning; None means no tuning.

        The members of a committee share the budget.
        """
        if not isinstance(self.inducing, str):
            return len(self.inducing)
        if not isinstance(self.n_inducing, str):
            return n_rows if self.n_inducing is None else min(n_rows, int(self.n_inducing))
        most = min(n_rows, self.max_inducing)
        if gained is None:
            return min(most, SOME)
        usual = min(USUAL, max(SOME, n_rows // USUAL_ROWS_PER_POINT))
        wanted = MANY if gained > WORTH_MANY else MORE if gained > WORTH_MORE else usual
        affordable = max(SOME, int(np.sqrt(PASS_BUDGET / members / n_rows)))
        return min(most, max(FEWEST, min(wanted, affordable, n_rows // ROWS_PER_POINT)))

    def expected_weights(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return self.size(n_rows, None if settings.tune is None else np.inf)

    def matrix_size(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return self.expected_weights(n_rows, n_features, settings)

    def wide_vectors(self, n_rows: int, settings: Settings) -> int:
        """The approximate number of vectors as wide as the table that a fit holds at a time, measured with few rows."""
        return 14 * min(self.size(n_rows), n_rows)

    def prepare(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling, kernel and points: as given, or tuned."""
        return self._fixed(raw, session) if session.settings.tune is None else self._tuned(raw, session)

    def _fixed(self, raw: BlockSource, session: Session) -> Prepared:
        settings = session.settings
        session.display.phase("scaling columns")
        scaler = fitted_scalers([settings.plain_scale], raw)[settings.plain_scale]
        source = raw.scaled(scaler)
        session.display.phase("inducing points")
        kernel = copy.deepcopy(next(iter(self.kernels.values())))
        size = self.size(raw.n_rows)
        features = InducingFeatures.build(kernel, self._points(source, kernel, size, session), session.dtype)
        functions = session.problem(features, source).start()
        return Prepared(settings.plain_scale, scaler, features, tuple(functions))

    def _tuned(self, raw: BlockSource, session: Session) -> Prepared:
        log = TrialLog()
        tuner = self._tuner(raw, session, log)
        session.display.phase("scaling columns")
        candidates = self._candidates(raw, session.settings)
        session.display.phase("tuning")
        log.notify = session.display.trial
        session.clock.stop.heeded = True
        with one_blas_thread():
            entries = self._searched(tuner, candidates, raw, session)
        size = self.size(raw.n_rows, 0.0, len(entries))
        found, chosen = (
            list[Prepared](),
            dict[tuple[str | None, str], Array](),
        )  # points by scaling and kernel, reused for kernels of the same shape
        for entry in entries:
            found.append(
                self._prepared(entry, candidates, raw, size, tuner, session, chosen.get((entry.scale, entry.name)))
            )
            features = found[-1].features
            if isinstance(features, InducingFeatures) and not entry.kernel.has_relevance:
                chosen[entry.scale, entry.name] = features.inducing_points
        session.clock.stop.settle()
        return replace(found[0], report=log.report, others=tuple(found[1:]), gained=entries[0].gained)

    def enlarged(self, members: Sequence[Prepared], raw: BlockSource, session: Session) -> list[Prepared] | None:
        """The members with more inducing points, if tuning found that these help; they start from the current sites."""
        size = self.size(raw.n_rows, members[0].gained, len(members))
        found = list[Prepared]()
        for member in members:
            features = member.features
            if not isinstance(features, InducingFeatures) or size <= 1.1 * len(features.inducing_points):
                return None
            session.display.phase("inducing points")
            source = raw.scaled(member.scaler)
            points = self._points(source, features.kernel, size, session)
            larger = InducingFeatures.build(features.kernel, points, session.dtype, features.effects)
            problem = session.problem(features, source, member.likelihood)
            offsets = [function.offset for function in member.functions]
            functions = _started(problem, member.functions, source, larger, offsets, session)
            found.append(replace(member, features=larger, functions=tuple(functions)))
        return found

    def _prepared(
        self,
        entry: Entry,
        candidates: Candidates,
        raw: BlockSource,
        size: int,
        tuner: Tuner,
        session: Session,
        points: Array | None,
    ) -> Prepared:
        """A tuned kernel, with points chosen from all rows and a start from the sites of its sample."""
        scaler = candidates.scalers[entry.scale]
        source = raw.scaled(scaler)
        prepared = Prepared(
            entry.scale,
            scaler,
            entry.features,
            tuple(entry.judgement.functions),
            chosen=entry.trial,
            likelihood=entry.judgement.problem.likelihood,
        )
        with suppress(Stopped):
            if not session.clock.stop.made:
                session.display.phase("inducing points")
                points = self._points(source, entry.kernel, size, session) if points is None else points
                if self.learn_inducing:
                    entry = tuner.with_points(entry, points)
                    points = entry.features.inducing_points
                features = InducingFeatures.build(entry.kernel, points, session.dtype, entry.effects)
                judged, offsets = entry.judgement, self._offsets(entry, session)
                functions = _started(judged.plain_problem, judged.functions, source, features, offsets, session)
                return replace(prepared, features=features, functions=tuple(functions), chosen=entry.trial)
        return prepared

    def _tuner(self, raw: BlockSource, session: Session, log: TrialLog) -> Tuner:
        largest = int(np.clip(MOST_SAMPLE_ENTRIES // raw.n_features, 100, MOST_ROWS))
        # A table may be sorted, so it is shuffled, unless a stage uses all of it.
        part = raw.held() if raw.n_rows <= FIRST.n_rows else raw.subset(min(largest, raw.n_rows), session.rng)
        part = merged(part) if session.repetition.copied else part
        return Tuner(
            part.gathered(),
            # A rare class carries less information, regardless of the number of other rows (D29).
            session.repetition.effective_rows * session.head.evenness,
            session.head,
            session.settings.likelihood,
            session.settings.base_rates,
            session.workers,
            session.rng,
            log,
            session.clock,
            self.size(raw.n_rows, np.inf),
            # If local models are possible, more points gained less than 0.0005 on five tables of 10,000 rows.
            compares_points=not may_be_local(raw.n_rows, session),
            groups=session.groups_of(part),
        )

    def _candidates(self, raw: BlockSource, settings: Settings) -> Candidates:
        whole_recipe = settings.tune == "auto"
        if settings.scale == "auto" and whole_recipe:
            scalers = worth_trying(raw)
        else:
            scalers = fitted_scalers([settings.plain_scale], raw)
        for kernel in self.kernels.values():  # raise errors now, not after some stages
            kernel.learned()
            kernel.against(np.zeros((1, raw.n_features)))
        self._require_points(self.size(raw.n_rows), raw.n_features)
        return Candidates(scalers, self.kernels, whole_recipe, relevance=whole_recipe and self.learn_relevance)

    def _searched(self, tuner: Tuner, candidates: Candidates, raw: BlockSource, session: Session) -> list[Entry]:
        if session.settings.tune != "elbo":
            return tuner.tune(candidates)
        plan = session.plan(raw)
        batch_size = plan.batch_size if plan.inference == "stochastic" else None
        n_points = min(self.size(raw.n_rows), EVIDENCE_POINTS)
        return [tuner.evidence(candidates, n_points, session.settings.tune_interval, batch_size)]

    def _offsets(self, entry: Entry, session: Session) -> list[float]:
        """Prior means such that rows far from all data get the base rates (D11)."""
        if not session.settings.base_rates:
            return [0.0] * session.head.n_functions
        link = entry.judgement.link if session.settings.link == "calibrated" else None
        return session.head.prior_means(entry.prior_variance, link)

    def _points(self, source: BlockSource, kernel: Kernel, size: int, session: Session) -> Array:
        """Inducing points in scaled inputs."""
        self._require_points(size, source.n_features)
        if not isinstance(self.inducing, str):
            return source.scaler(self.inducing)
        if self.n_inducing is None:
            return inducing.every_row(source)
        points = inducing.select(source, self.inducing, size, session.rng, kernel, session.head)
        if not isinstance(self.n_inducing, str) and len(points) < self.n_inducing:
            warn_user(
                f"n_inducing={self.n_inducing}, but there are only {len(points)} distinct rows or clusters; "
                f"using {len(points)} inducing points",
            )
        return points

    def _require_points(self, size: int, n_features: int) -> None:
        """Validate the inducing points before tuning starts."""
        if not isinstance(self.inducing, str) and self.inducing.shape[1] != n_features:
            raise ValueError(f"inducing has {self.inducing.shape[1]} columns, but X has {n_features}")
        if size > MOST_INDUCING:
            raise ValueError(
                f"{size} inducing points need {size}×{size} matrices; at most {MOST_INDUCING} are supported. "
                "Set n_inducing, for example to 1000."
            )

    def train(
        self, problem: Problem, source: BlockSource, plan: Plan, prepared: Prepared, session: Session, name: str
    ) -> Trained:
        # A tuned start is so close to convergence that subsets of the rows would not help.
        if plan.inference == "auto" and prepared.chosen is not None and source.n_rows <= 4 * TRANSFER_ROWS:
            enough = LARGE_TOLERANCE if problem.features.n_weights > SOME else ENOUGH / source.n_rows
            plan = replace(
                plan, inference="batch", tol=max(plan.tol, enough) if plan.tol >= USUAL_TOLERANCE else plan.tol
            )
        return train_all(problem, source, plan, prepared, session, name)

    def leave_out(
        self, problem: Problem, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, RowNumbers]:
        return leave_one_out(problem, source, trained, session, few=few)


def _started(
    problem: Problem,
    functions: Sequence[LatentFunction],
    source: BlockSource,
    features: LearnableFeatures,
    offsets: Sequence[float],
    session: Session,
) -> list[LatentFunction]:
    """A start from the sites of another fit at some rows (D18)."""
    enough = max(TRANSFER_ROWS, 8 * features.n_weights)
    whole = replace(problem, total_weight=source.total_weight)
    return moved(whole, functions, at_most(source, enough, session.rng), features, offsets)
