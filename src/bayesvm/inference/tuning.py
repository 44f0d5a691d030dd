"""Inference: automatic tuning: the scaling, the kernel and the number of length-scales.

All decisions are made by leave-one-out on samples of the rows (D10), starting with cheap decisions on small samples.
Candidates that cannot be distinguished become members of a committee. All trials are kept for a report.
`docs/tuning.md` has the experiments behind the procedure.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bayesvm.core.features import InducingFeatures
from bayesvm.core.heads import Head
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import Block
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array, NotFiniteError, NotPositiveDefiniteError
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import RowNumbers
from bayesvm.data.scaling import Scaler
from bayesvm.data.stopping import Stopped
from bayesvm.data.workers import Workers
from bayesvm.inference.committees import MOST_MEMBERS
from bayesvm.inference.effect_kernels import effects_of, residuals_of
from bayesvm.inference.entries import Candidates, Entry, inducing_features, noise
from bayesvm.inference.evidence import maximise
from bayesvm.inference.families import KernelFamily
from bayesvm.inference.hyperparameters import FIRST_STEP, search, trying
from bayesvm.inference.inducing import select
from bayesvm.inference.judgements import Judgement, Rows, judge
from bayesvm.inference.screening import Found, screened, united
from bayesvm.inference.training_state import Clock
from bayesvm.inference.tuning_report import Trial, TrialLog


class Stage(NamedTuple):
    """The size of the sample and of the search in one stage."""

    n_rows: int
    n_points: int
    judgements: int
    on_few: int = 0  # judgements if there are few rows, which are fast
    first_step: float = FIRST_STEP
    enough: int | None = None  # judgements after which the search continues only while it gains a lot


FIRST = Stage(1_000, 60, 3)
RELEVANCE = Stage(2_000, 80, 10, on_few=15)
REFINED = Stage(8_000, 320, 12, on_few=9, first_step=1.0, enough=6)  # many rows allow long steps
ROWS_PER_POINT = 25  # of the sample, in the refinement of a kernel
FRESH_POINTS = 160  # for comparing candidates on fresh rows; also the minimum in the refinement of a kernel
LONGER_BELOW = 5_000  # rows
POINTS = 20  # judgements for learning inducing points
MOST_ROWS = 8_000  # for screening effects and comparing numbers of points
WORTH_RELEVANCE = 0.05  # log loss by which a scaling may be worse and still get relevance learning
RELEVANCE_FROM = 1_000  # rows below which one length-scale per feature was never reliably better
ROWS_PER_FEATURE = 10
SAFE_RELEVANCE, SAFE_ROWS_PER_FEATURE = 5_000, 50
CLOSE = 0.02  # log loss by which another scaling may be worse and still be averaged
ONE_SCALING_FROM = 5_000  # rows times functions from which one scaling per kernel is chosen
FEWEST_REFINED = 2_000  # rows, regardless of the number of functions
CLEARLY = 0.003  # log loss by which another scaling or kernel, or effects, must improve
FIRST_ALONE = 6  # judgements of the first stage if there are so few rows that no other stage follows
ERRORS = 2.0  # standard errors by which a kernel may then be worse than the best
MOST_LINES = 3  # maximum number of averaged kernels, each with its scaling


@dataclass(frozen=True)
class Tuner:
    """A sample of rows in random order, of which each stage uses the first rows, and the settings of tuning."""

    sample: Block  # not scaled
    effective_rows: float  # of the whole table; determines how many parameters may be learned
    head: Head
    likelihood: Likelihood
    base_rates: bool  # whether rows far from all data get the base rates; else the prior mean is zero
    workers: Workers
    rng: np.random.Generator
    log: TrialLog
    clock: Clock = field(default_factory=Clock)
    most_points: int = 1_000_000  # of the subsequent fit; a kernel tuned with more would not suit it
    groups: RowNumbers | None = None  # the group number of every row, if groups are left out together
    compares_points: bool = True  # whether the fit uses more points if these help

    def tune(self, candidates: Candidates) -> list[Entry]:
        """Tune: for every kernel, scaling and relevance, then more rows and points. The best comes first.

        The others are averaged with it.
        """
        tried, lines = list[Entry](), list[Entry]()
        with trying(), suppress(Stopped):  # aborts the current stage
            for name in candidates.kernels:
                for scale in candidates.scalers:
                    if not tried or (self._has_time() and self._is_worth_trying(name, scale, tried)):
                        tried.append(self._first(name, scale, candidates))
            by_kernel = [[entry for entry in tried if entry.name == name] for name in candidates.kernels]
            by_kernel = [entries for entries in by_kernel if entries]
            lines = _ranked([self._best(entries, errors=2.0) for entries in by_kernel])
            if candidates.relevance and self._many_rows() and self._has_time():
                lines = self._with_relevance(by_kernel, candidates)
            elif not candidates.whole_recipe:
                lines = lines[:1]
            rough = lines[0]
            if self._is_more(REFINED, lines[0]) and lines[0].kernel.learned() and self._has_time():
                lines = self._refined(lines, candidates)
            if candidates.whole_recipe and self._has_time():
                many = self._many_rows()
                lines = self._with_effects(lines, rough, candidates) if many else self._averaged(lines, tried)
            lines = self._with_gain(lines) if self.compares_points else lines
        if not tried:
            raise Stopped
        self.clock.stop.settle()
        lines = lines or [self._best(tried, errors=2.0)]
        self.log.choose(
            f"Chosen: scale {lines[0].scale!r}, kernel {lines[0].trial.kernel}: lowest leave-one-out log loss, "
            "or tried earlier and not clearly worse than the lowest."
        )
        return lines

    def _is_worth_trying(self, name: str, scale: str | None, tried: Sequence[Entry]) -> bool:
        """False for a scaling that was clearly worse than another with an earlier kernel."""
        earlier = [entry for entry in tried if entry.name != name]
        with_scale = [entry for entry in earlier if entry.scale == scale]
        best = min((entry.score for entry in earlier), default=np.inf)
        return not with_scale or with_scale[0].score < best + CLOSE

    def _with_relevance(self, by_kernel: Sequence[Sequence[Entry]], candidates: Candidates) -> list[Entry]:
        """The best entry of every kernel, then other scalings that could not be distinguished from it.

        The samples are too small for blocks to keep several threads busy, so kernels are tuned side by side.
        """
        tuners = [replace(self, rng=rng, log=TrialLog()) for rng in self.rng.spawn(len(by_kernel))]

        def learned(of: tuple[Tuner, Sequence[Entry]], _: Workspace) -> list[Entry]:
            tuner, entries = of
            return tuner._learned_relevance(entries, candidates)  # noqa: SLF001  (its own)

        found = list(self.workers.map(learned, list(zip(tuners, by_kernel, strict=True))))
        for tuner in tuners:
            for trial in tuner.log.report.trials:
                self.log.add(trial)
            self.log.fail(tuner.log.report.failed)
        others = _ranked([line for _, *close in found for line in close])
        return _ranked([*(best for best, *_ in found), *others[: max(0, MOST_LINES - len(found))]])

    def _learned_relevance(self, tried: Sequence[Entry], candidates: Candidates) -> list[Entry]:
        """One length-scale per feature for a kernel, if that is better on fresh rows.

        With few rows, other scalings that fresh rows cannot distinguish are kept as well.
        """
        best = self._best(tried, errors=2.0)
        close = [entry for entry in tried if entry.score < best.score + WORTH_RELEVANCE]
        linear = [entry for entry in close if entry.scale != "quantile"]
        if linear:  # with one length-scale per column, all scalings except ranks give the same model
            nearest = self._best(linear, errors=2.0)
            close = [entry for entry in close if entry is nearest or entry.scale == "quantile"]
        learned = [self._relevance(entry, candidates) for entry in close]
        # One length-scale for all is a special case, and does not need to be preferred if there are many rows.
        safely_many = max(SAFE_RELEVANCE, SAFE_ROWS_PER_FEATURE * self.sample.X.shape[1])
        rivals = learned if self.effective_rows >= safely_many else [best, *learned]
        anew = [self._seen_anew(entry, candidates) for entry in rivals]
        best = self._best(anew)
        if not self._few_rows():
            return [best]
        return [best, *(entry for entry in anew if entry.scale != best.scale and self._is_close(entry, best))]

    def _few_rows(self) -> bool:
        """Whether there are too few rows to distinguish scalings, so that all of them become members."""
        return len(self.sample.y) * self.head.n_functions < ONE_SCALING_FROM

    def _is_close(self, entry: Entry, best: Entry) -> bool:
        """Whether fresh rows cannot decide which of two entries is better."""
        return entry.score < best.score + max(CLOSE, 2 * noise(entry, best))

    def _refined(self, entries: Sequence[Entry], candidates: Candidates) -> list[Entry]:
        """Continue the search with more rows and points, and drop entries that are clearly worse then."""
        refined = list[Entry]()
        for entry in entries:
            if not refined or self._has_time():
                refined.append(self._refined_alone(entry, candidates))
        best = min(refined, key=lambda entry: entry.score)
        return _ranked([entry for entry in refined if entry.name != best.name or self._is_close(entry, best)])

    def _refined_alone(self, entry: Entry, candidates: Candidates) -> Entry:
        """Refine with enough points for the kernel to become as rough as the fit can use; few keep it too smooth."""
        stage = self._longer(REFINED)
        n_rows = max(FEWEST_REFINED, int(stage.n_rows / np.sqrt(self.head.n_functions)))  # every function takes time
        rows = self._rows(candidates.scalers[entry.scale], self._first_rows(n_rows), entry)
        n_points = max(FRESH_POINTS, min(stage.n_points, len(self.sample.y) // ROWS_PER_POINT))
        stage = stage._replace(n_rows=n_rows, n_points=n_points)
        return self._searched("refined", entry.scale, entry.name, rows, entry.kernel, entry.judgement, stage)

    def _with_effects(self, entries: Sequence[Entry], rough: Entry, candidates: Candidates) -> list[Entry]:
        """Effects of one or two columns, if the residuals of the best entry indicate them (D26, D27).

        A refined kernel may have become rough to model an effect, which its residuals then no longer show. So the
        residuals of an unrefined kernel are screened, too; effects found there must clearly improve leave-one-out.
        """
        best = self._on_all_rows(entries[0], candidates)
        asked = self._screened(best)
        hidden = [] if rough is entries[0] else self._screened(self._on_all_rows(rough, candidates))
        for found in (united(hidden, asked), asked):
            if not found:
                continue
            began = time.monotonic()
            with_effects = self._with_those(best, found, candidates)
            features = InducingFeatures.build(
                best.kernel, best.features.inducing_points, np.float32, with_effects.effects
            )
            judgement = judge(best.rows, features, best.judgement)
            tried = replace(best.trial, what="effects", loo=judgement.loo, seconds=time.monotonic() - began)
            after = replace(with_effects, judgement=judgement, trial=self.log.add(tried))
            if found is asked or after.score < best.score - max(CLEARLY, ERRORS * noise(after, best)):
                return [after, *(self._with_those(entry, found, candidates) for entry in entries[1:])]
        return [*entries]

    def _screened(self, entry: Entry) -> list[Found]:
        """The effects that the residuals of an entry indicate."""
        return screened(self.sample.X[: len(entry.judgement.losses)], residuals_of(self.head, entry.judgement))

    def _on_all_rows(self, entry: Entry, candidates: Candidates) -> Entry:
        """The entry judged on the whole sample, which reveals smaller effects than a part of it."""
        if entry.rows.source.n_rows == len(self.sample.y):
            return entry
        rows = self._rows(candidates.scalers[entry.scale], slice(None), entry)
        found = judge(rows, entry.features, entry.judgement)
        trial = replace(entry.trial, loo=found.loo, n_rows=rows.source.n_rows)
        return replace(entry, rows=rows, judgement=found, trial=trial)

    def _with_those(self, entry: Entry, found: Sequence[Found], candidates: Candidates) -> Entry:
        """An entry with effects, whose kernels are fitted to its residuals; not yet judged with them."""
        entry = self._on_all_rows(entry, candidates)
        return replace(entry, effects=effects_of(found, self.head, entry.judgement, entry.rows.source.X))

    def _averaged(self, lines: Sequence[Entry], tried: Sequence[Entry]) -> list[Entry]:
        """Every kernel with every scaling that the rows cannot distinguish from the best (D28)."""
        n_rows = lines[0].rows.source.n_rows
        ranked = _ranked([entry for entry in tried if entry.rows.source.n_rows == n_rows] or lines)
        best = ranked[0]
        return [entry for entry in ranked if entry.score <= best.score + ERRORS * noise(entry, best)][:MOST_MEMBERS]

    def _with_gain(self, lines: Sequence[Entry]) -> list[Entry]:
        """The entries with the gain of twice the points for the best entry."""
        best = lines[0]
        n_points = 2 * best.trial.n_inducing
        if not (self._many_rows() and 1.5 * n_points <= self.most_points and self._has_time()):
            return [*lines]
        began = time.monotonic()
        try:
            found = self._judged(best, best.rows, n_points)
        except (NotPositiveDefiniteError, NotFiniteError):  # then more points are not needed
            self.log.fail()
            return [*lines]
        n_points, seconds = len(inducing_features(found).inducing_points), time.monotonic() - began
        self.log.add(replace(best.trial, what="more points", n_inducing=n_points, loo=found.loo, seconds=seconds))
        return [replace(best, gained=best.judgement.loo - found.loo), *lines[1:]]

    def _judged(self, entry: Entry, rows: Rows, n_points: int) -> Judgement:
        """Judge the unchanged kernel of a candidate, on these rows and with ``n_points`` points."""
        points = select(rows.source, "kmeans", min(n_points, self.most_points), self.rng, entry.kernel, self.head)
        features = InducingFeatures.build(entry.kernel, points, np.float32, entry.features.effects)
        return judge(rows, features, entry.judgement)

    def _is_more(self, stage: Stage, entry: Entry) -> bool:
        """Whether a stage has many more rows or points than were used to learn an entry."""
        rows, points = len(self.sample.y), min(len(self.sample.y), self.most_points)
        return min(rows, stage.n_rows) >= 1.5 * entry.rows.source.n_rows or (
            self._many_rows() and min(points, stage.n_points) >= 2 * len(entry.features.inducing_points)
        )

    def evidence(self, candidates: Candidates, n_points: int, updates: int, batch_size: int | None) -> Entry:
        """The paper's method for the first scaling and kernel: ML-II on the sample, in full or in minibatches."""
        began = time.monotonic()
        scale, scaler = next(iter(candidates.scalers.items()))
        name, kernel = next(iter(candidates.kernels.items()))
        rows = self._rows(scaler, slice(None), None)
        points = select(rows.source, "kmeans", n_points, self.rng, kernel, self.head)
        found, climb = maximise(rows, KernelFamily(kernel, points), updates, batch_size, self.rng, self.clock)
        steps = tuple((float(step.elbo), *np.exp(step.x).tolist()) for step in climb)
        self.log.report = replace(self.log.report, climb=steps)
        seconds = time.monotonic() - began
        trial = Trial("evidence", scale, name, rows.source.n_rows, len(points), found.loo, seconds)
        self.log.choose("Chosen: the kernel with the highest ELBO (tune='elbo').")
        return Entry(scale, name, rows, found, self.log.add(trial))

    def with_points(self, entry: Entry, points: Array) -> Entry:
        """Learn the kernel and these inducing points jointly."""
        began = time.monotonic()
        family = KernelFamily(entry.kernel, points, learn_points=True, effects=entry.effects)
        with trying():
            found = search(entry.rows, family, entry.judgement, POINTS, over=self.clock.over)
        self.log.fail(found.failed)
        seconds = time.monotonic() - began
        trial = replace(entry.trial, what="learned points", n_inducing=len(points), loo=found.best.loo, seconds=seconds)
        return replace(entry, judgement=found.best, trial=self.log.add(trial))

    def _first(self, name: str, scale: str | None, candidates: Candidates) -> Entry:
        """Learn one length-scale for all features, from the default start."""
        rows = self._rows(candidates.scalers[scale], self._first_rows(FIRST.n_rows), None)
        stage = FIRST if self._many_rows() else FIRST._replace(judgements=FIRST_ALONE)
        return self._searched("first", scale, name, rows, candidates.kernels[name], None, stage)

    def _relevance(self, entry: Entry, candidates: Candidates) -> Entry:
        """Learn one length-scale per feature, from an entry with a single one."""
        kernel = entry.kernel.per_feature(self.sample.X.shape[1])
        rows = self._rows(candidates.scalers[entry.scale], slice(0, self._half()), entry)
        return self._searched(
            "relevance", entry.scale, entry.name, rows, kernel, entry.judgement, self._longer(RELEVANCE)
        )

    def _longer(self, stage: Stage) -> Stage:
        few = len(self.sample.y) < LONGER_BELOW
        return stage._replace(judgements=stage.on_few, enough=None) if few else stage

    def _half(self) -> int:
        """The number of rows for learning many parameters; the same number is left to judge them."""
        wanted: int = self._first_rows(RELEVANCE.n_rows).stop
        return min(wanted, len(self.sample.y) // 2)

    def _has_time(self) -> bool:
        return not self.clock.over()

    def _many_rows(self) -> bool:
        n_features = self.sample.X.shape[1]
        return bool(n_features > 1 and self.effective_rows >= max(RELEVANCE_FROM, ROWS_PER_FEATURE * n_features))

    def _seen_anew(self, entry: Entry, candidates: Candidates) -> Entry:
        """The candidate scored on all rows of the sample that were not used to learn its kernel."""
        rows = self._rows(candidates.scalers[entry.scale], slice(self._half(), None), entry)
        found = self._judged(entry, rows, FRESH_POINTS)
        trial = replace(entry.trial, what="on fresh rows", loo=found.loo, seconds=0.0)
        trial = replace(trial, n_rows=rows.source.n_rows, n_inducing=len(inducing_features(found).inducing_points))
        return replace(entry, fresh=found, trial=self.log.add(trial))

    def _searched(
        self,
        what: str,
        scale: str | None,
        name: str,
        rows: Rows,
        kernel: Kernel,
        start: Judgement | None,
        stage: Stage,
    ) -> Entry:
        """The best entry with points of its own, with a line in the report."""
        points = select(rows.source, "kmeans", min(stage.n_points, self.most_points), self.rng, kernel, self.head)
        family, began = KernelFamily(kernel, points), time.monotonic()
        found = search(rows, family, start, stage.judgements, stage.first_step, stage.enough, self.clock.over)
        self.log.fail(found.failed)
        shown = name + (", relevance" if kernel.has_relevance else "")
        seconds = time.monotonic() - began
        trial = Trial(what, scale, shown, rows.source.n_rows, len(points), found.best.loo, seconds)
        return Entry(scale, name, rows, found.best, self.log.add(trial))

    def _best(self, entries: Sequence[Entry], errors: float = 0.0) -> Entry:
        """The first entry, unless another has a score lower by ``CLEARLY`` and by ``errors`` standard errors.

        Relevance need not be significantly better on the few rows of its trial, because it gains most from more rows.
        """
        first, best = entries[0], min(entries, key=lambda entry: entry.score)
        return best if best.score < first.score - max(CLEARLY, errors * noise(first, best)) else first

    def _rows(self, scaler: Scaler, which: slice, entry: Entry | None) -> Rows:
        """Scaled rows of the sample, with prior means from the current link."""
        X, y, weight = self.sample
        chosen = None if weight is None else weight[which]
        block = Block(scaler(X[which]), y[which], chosen)
        groups = None if self.groups is None else self.groups[which]
        return Rows.held(block, self.workers, self.head, self.likelihood, self.offsets(entry), groups)

    def _first_rows(self, n_rows: int) -> slice:
        """The first ``n_rows`` rows, or more if the head needs them to include all strata."""
        return slice(0, self.head.rows_needed(self.sample.y, n_rows))

    def offsets(self, entry: Entry | None) -> tuple[float, ...]:
        """Prior means such that rows far from all data get the base rates (D11); zero before the first entry."""
        if entry is None or not self.base_rates:
            return (0.0,) * self.head.n_functions
        return tuple(self.head.prior_means(entry.prior_variance, entry.judgement.link))


def _ranked(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, best first."""
    return sorted(entries, key=lambda entry: entry.score)
