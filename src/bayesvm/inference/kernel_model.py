"""Inference: models with a kernel and inducing points, which tune themselves and grow if that pays."""

from __future__ import annotations

import copy
import time
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
from bayesvm.inference.fitting import Candidate, fitted_link, leave_one_out, mean_loss, train_all, trained_candidate
from bayesvm.inference.hyperparameters import moved
from bayesvm.inference.problem import Problem
from bayesvm.inference.scalings import fitted_scalers, worth_trying
from bayesvm.inference.session import Prepared, Session
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Plan, Trained
from bayesvm.inference.tuning import FIRST, MOST_ROWS, Candidates, Entry, Tuner
from bayesvm.inference.tuning_report import Report, TrialLog
from bayesvm.warn import warn_user

GROWTH = (300, 1_000)  # numbers of inducing points that "auto" tries one after the other,
PASS_BUDGET = 2e10  # as long as rows × points² is at most this; the first one always
GROWN_TOLERANCE = 5e-4  # nats per row; a larger model starts near its end
WORTH_TRYING = 0.003  # log loss that twice the points of tuning must gain for a thousand to be tried
WORTH_GROWING = 0.002  # log loss that a larger number must gain
EVIDENCE_POINTS = 150  # inducing points while the ELBO is climbed
MOST_SAMPLE_ENTRIES = 20_000_000  # of a table to tune on
TRANSFER_ROWS = 16_384  # that show enough of the sites for a start
MOST_INDUCING = 20_000  # k(Z,Z) and a few matrices of its size must fit into memory


@dataclass(frozen=True)
class KernelModel:
    """Which kernels may be used, and which inducing points.

    ``kernels`` has one kernel by its name, or several among which tuning chooses, from smooth to rough.
    """

    kernels: dict[str, Kernel]
    n_inducing: int | str | None  # a number, "auto", or None for every row
    max_inducing: int
    inducing: str | Array  # how points are chosen, or the points in the units of X
    learn_inducing: bool
    learn_relevance: bool  # whether tuning may learn a length-scale for every feature

    def sizes(self, n_rows: int, *, tuned: bool) -> list[int]:
        """Numbers of inducing points to try; one, unless ``n_inducing="auto"``."""
        if not isinstance(self.inducing, str):
            return [len(self.inducing)]
        if not isinstance(self.n_inducing, str):
            return [n_rows if self.n_inducing is None else min(n_rows, int(self.n_inducing))]
        most = min(n_rows, self.max_inducing)
        grows = tuned and not self.learn_inducing and min(most, n_rows // 2) >= 2 * GROWTH[0]
        affordable = [m for m in GROWTH[1:] if m * m * n_rows <= PASS_BUDGET and grows]
        return [min(GROWTH[0], most), *(min(m, most, n_rows // 2) for m in affordable)]

    def expected_weights(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return max(self.sizes(n_rows, tuned=settings.tune is not None))

    def matrix_size(self, n_rows: int, n_features: int, settings: Settings) -> int:
        return self.expected_weights(n_rows, n_features, settings)

    def wide_vectors(self, n_rows: int, settings: Settings) -> int:
        """About how many vectors as wide as the table a fit holds at a time, as measured with few rows."""
        return 14 * min(self.sizes(n_rows, tuned=settings.tune is not None)[0], n_rows)

    def prepare(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling, kernel and points: as they were given, or tuned."""
        return self._fixed(raw, session) if session.settings.tune is None else self._tuned(raw, session)

    def _fixed(self, raw: BlockSource, session: Session) -> Prepared:
        settings = session.settings
        session.display.phase("scaling columns")
        scaler = fitted_scalers([settings.plain_scale], raw)[settings.plain_scale]
        source = raw.scaled(scaler)
        session.display.phase("inducing points")
        kernel = copy.deepcopy(next(iter(self.kernels.values())))
        size = self.sizes(raw.n_rows, tuned=False)[0]
        features = InducingFeatures.build(kernel, self._points(source, kernel, size, session), session.dtype)
        functions = session.problem(features, source).start()
        return Prepared(settings.plain_scale, scaler, features, tuple(functions))

    def _tuned(self, raw: BlockSource, session: Session) -> Prepared:
        size, log = self.sizes(raw.n_rows, tuned=True)[0], TrialLog()
        tuner = self._tuner(raw, session, log)
        session.display.phase("scaling columns")
        candidates = self._candidates(raw, size, session.settings)
        session.display.phase("tuning")
        log.notify = session.display.trial
        session.clock.stop.heeded = True
        with one_blas_thread():
            entry = self._searched(tuner, candidates, size, raw, session)
        scaler = candidates.scalers[entry.scale]
        source = raw.scaled(scaler)
        prepared = Prepared(entry.scale, scaler, entry.features, tuple(entry.judgement.functions), log.report)
        with suppress(Stopped):
            if not session.clock.stop.made:
                session.display.phase("inducing points")
                points = self._points(source, entry.kernel, size, session)
                gained = entry.gained
                if self.learn_inducing:
                    entry = tuner.with_points(entry, points)
                    points = entry.features.inducing_points
                features = InducingFeatures.build(entry.kernel, points, session.dtype)
                judged = entry.judgement
                offsets = self._offsets(entry, session)
                functions = _started(judged.plain_problem, judged.functions, source, features, offsets, session)
                prepared = replace(prepared, features=features, functions=tuple(functions), report=log.report)
                return replace(prepared, chosen=entry.trial, grows=gained > WORTH_TRYING)
        session.clock.stop.settle()
        return replace(prepared, chosen=entry.trial, report=log.report)

    def _tuner(self, raw: BlockSource, session: Session, log: TrialLog) -> Tuner:
        largest = int(np.clip(MOST_SAMPLE_ENTRIES // raw.n_features, 100, MOST_ROWS))
        # A table may be sorted; one that a stage sees as a whole may stay as it is.
        part = raw.held() if raw.n_rows <= FIRST[0] else raw.subset(min(largest, raw.n_rows), session.rng)
        part = merged(part) if session.repetition.copied else part
        return Tuner(
            part.gathered(),
            session.repetition.effective_rows,
            session.head,
            session.settings.likelihood,
            session.settings.base_rates,
            session.workers,
            session.rng,
            log,
            session.clock,
            max(self.sizes(raw.n_rows, tuned=True)),
        )

    def _candidates(self, raw: BlockSource, size: int, settings: Settings) -> Candidates:
        whole_recipe = settings.tune == "auto"
        if settings.scale == "auto" and whole_recipe:
            scalers = worth_trying(raw)
        else:
            scalers = fitted_scalers([settings.plain_scale], raw)
        for kernel in self.kernels.values():  # complain now, not after some stages
            kernel.learned()
            kernel.against(np.zeros((1, raw.n_features)))
        self._require_points(size, raw.n_features)
        return Candidates(scalers, self.kernels, relevance=whole_recipe and self.learn_relevance)

    def _searched(self, tuner: Tuner, candidates: Candidates, size: int, raw: BlockSource, session: Session) -> Entry:
        if session.settings.tune != "elbo":
            return tuner.tune(candidates)
        plan = session.plan(raw)
        batch_size = plan.batch_size if plan.inference == "stochastic" else None
        return tuner.evidence(candidates, min(size, EVIDENCE_POINTS), session.settings.tune_interval, batch_size)

    def _offsets(self, entry: Entry, session: Session) -> list[float]:
        """Prior means for which a row far away gets the base rates (D11)."""
        if not session.settings.base_rates:
            return [0.0] * session.head.n_functions
        link = entry.judgement.link if session.settings.link == "calibrated" else None
        return session.head.prior_means(entry.prior_variance, link)

    def _points(self, source: BlockSource, kernel: Kernel, size: int, session: Session) -> Array:
        """Inducing points on scaled inputs."""
        self._require_points(size, source.n_features)
        if not isinstance(self.inducing, str):
            return source.scaler(self.inducing)
        if self.n_inducing is None:
            return inducing.every_row(source)
        points = inducing.select(source, self.inducing, size, session.rng, kernel, session.head)
        if not isinstance(self.n_inducing, str) and len(points) < self.n_inducing:
            warn_user(
                f"n_inducing={self.n_inducing}, but there are only {len(points)} distinct rows or clusters; "
                f"{len(points)} inducing points are used.",
            )
        return points

    def _require_points(self, size: int, n_features: int) -> None:
        """Refuse senseless inducing points before anything is tried."""
        if not isinstance(self.inducing, str) and self.inducing.shape[1] != n_features:
            raise ValueError(f"inducing has {self.inducing.shape[1]} columns, but X has {n_features}")
        if size > MOST_INDUCING:
            raise ValueError(
                f"{size} inducing points need {size}×{size} matrices; at most {MOST_INDUCING} are supported. "
                "Give n_inducing, for example 1000."
            )

    def train(self, problem: Problem, source: BlockSource, plan: Plan, prepared: Prepared, session: Session) -> Trained:
        # A tuned start is so near the end that subsets of the rows would be a detour.
        if plan.inference == "auto" and session.settings.tune is not None and source.n_rows <= 4 * TRANSFER_ROWS:
            plan = replace(plan, inference="batch")
        return train_all(problem, source, plan, prepared, session)

    def leave_out(
        self, problem: Problem, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, RowNumbers]:
        return leave_one_out(problem, source, trained, session, few=few)

    def grow(
        self, candidate: Candidate, source: BlockSource, prepared: Prepared, session: Session
    ) -> tuple[Candidate, Report | None]:
        """More inducing points for as long as leave-one-out says that they pay."""
        chosen, how, features = prepared.chosen, self.inducing, prepared.features
        if prepared.report is None or chosen is None or session.clock.over():
            return candidate, prepared.report
        log, began = TrialLog(session.display.trial, prepared.report), time.monotonic()

        def noted(found: Candidate, seconds: float) -> float:
            """A line of the report for the whole fit; its leave-one-out loss."""
            loss = mean_loss(fitted_link(session.head, session.settings.link, found.left_out), found.left_out)
            rows, points = len(found.left_out_rows), found.problem.features.n_weights
            log.add(replace(chosen, what="fit", n_rows=rows, n_inducing=points, loo=loss, seconds=seconds))
            return loss

        loss, kept = noted(candidate, 0.0), len(log.report.trials) - 1
        if not (prepared.grows and isinstance(how, str) and isinstance(features, InducingFeatures)):
            return candidate, replace(log.report, kept=kept)
        with suppress(Stopped):  # the smaller model is whole
            for size in self.sizes(source.n_rows, tuned=True)[1:2]:
                session.display.phase("inducing points")
                points = inducing.select(source, how, size, session.rng, features.kernel, session.head)
                if session.clock.over() or len(points) < 1.2 * candidate.problem.features.n_weights:
                    break
                features = InducingFeatures.build(features.kernel, points, session.dtype)
                old = candidate.trained.functions
                offsets = [function.offset for function in old]
                functions = _started(candidate.problem, old, source, features, offsets, session)
                larger = trained_candidate(
                    self,
                    source,
                    replace(prepared, features=features, functions=tuple(functions)),
                    session,
                    inference="batch",
                    tol=max(session.settings.tol, GROWN_TOLERANCE),
                )
                if session.clock.stop.made:
                    break
                gained = loss - noted(larger, time.monotonic() - began)
                if gained < WORTH_GROWING:
                    break
                candidate, loss, kept = larger, loss - gained, len(log.report.trials) - 1
        return candidate, replace(log.report, kept=kept)


def _started(
    problem: Problem,
    functions: Sequence[LatentFunction],
    source: BlockSource,
    features: LearnableFeatures,
    offsets: Sequence[float],
    session: Session,
) -> list[LatentFunction]:
    """A start from the sites of another fit, as some rows show them (D18)."""
    enough = max(TRANSFER_ROWS, 8 * features.n_weights)
    whole = replace(problem, total_weight=source.total_weight)
    return moved(whole, functions, at_most(source, enough, session.rng), features, offsets)
