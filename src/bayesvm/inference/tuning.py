"""Inference: the recipe by which a model tunes itself: which scaling, which kernel, how many length-scales.

Everything is decided by leave-one-out on samples of the rows (D10), cheap questions on small samples first. What was
tried is kept for a report. `docs/tuning.md` has the experiments that decided the recipe.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.links import base_rate_offsets
from bayesvm.core.statistics import Block
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler, Scaler
from bayesvm.data.workers import Workers
from bayesvm.inference.hyperparameters import Judgement, Rows, judge, search
from bayesvm.inference.inducing import select

# Rows, inducing points and judgements of each stage.
FIRST = (1_500, 80, 8)
RELEVANCE = (2_000, 80, 16)
OTHER = (2_000, 80, 6)
REFINED = ((4_000, 120, 10), (8_000, 150, 6))
MOST_ROWS = REFINED[-1][0]
WORTH_RELEVANCE = 0.05  # log loss by which a scaling may be behind before relevance is learned
RELEVANCE_FROM = 1_000  # rows below which a length-scale for every feature was never reliably better
ROWS_PER_FEATURE = 10
CLEARLY = 0.003  # log loss by which another scaling or kernel must be better than the plain one
RARE_ROWS = 50  # of the rarest class that a sample should have
BLOCK_ROWS = 512


@dataclass(frozen=True)
class Trial:
    """One thing that was tried: a line of the report."""

    what: str
    scale: str
    kernel: str
    n_rows: int
    n_inducing: int
    loo: float  # leave-one-out log loss
    price: float  # added to it, for parameters learned on the same rows
    seconds: float

    def __str__(self) -> str:
        left = f"{self.what:<16} {self.scale:<9} {self.kernel:<20} {self.n_rows:>9,} {self.n_inducing:>6}"
        return f"{left} {self.loo:>9.4f} {self.price:>7.4f} {self.seconds:>6.2f}"


HEADER = f"{'tried':<16} {'scale':<9} {'kernel':<20} {'rows':>9} {'points':>6} {'LOO loss':>9} {'price':>7} {'sec.':>6}"


@dataclass
class Report:
    """What was tried, its leave-one-out log loss, what was chosen and why; prints as a table."""

    trials: list[Trial] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    failed: int = 0
    hear: Callable[[Trial], None] | None = None

    def add(self, trial: Trial) -> Trial:
        """Note a trial, and tell who listens."""
        self.trials.append(trial)
        if self.hear is not None:
            self.hear(trial)
        return trial

    def state(self) -> dict[str, Any]:
        """As plain values, for files."""
        return {"trials": [vars(trial) for trial in self.trials], "chosen": self.chosen, "failed": self.failed}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Report:
        """What ``state`` gave."""
        return cls([Trial(**trial) for trial in state["trials"]], list(state["chosen"]), state["failed"])

    def __str__(self) -> str:
        failed = [f"{self.failed} kernels whose matrices failed were passed over."] if self.failed else []
        return "\n".join([HEADER, *map(str, self.trials), *self.chosen, *failed])

    __repr__ = __str__


@dataclass(frozen=True)
class Candidates:
    """What may be tried; the first scaling and the first kernel are the plain ones."""

    scalers: Mapping[str, Scaler]
    kernels: Mapping[str, Kernel]
    relevance: bool  # whether one length-scale for every feature may be learned


@dataclass(frozen=True)
class Entry:
    """A candidate as it stands: the rows it was judged on, its judgement, and its line in the report."""

    scale: str
    name: str  # of the kernel's family
    rows: Rows
    judgement: Judgement
    trial: Trial

    @property
    def score(self) -> float:
        """Leave-one-out log loss with the price of what was learned on the same rows."""
        return self.trial.loo + self.trial.price


@dataclass(frozen=True)
class Tuner:
    """Rows to tune on, in random order, of which each stage takes the first; and what is known about the classes."""

    sample: Block  # not scaled
    weight: float  # of all rows there are
    likelihood: Likelihood
    labels: tuple[int, ...]
    rates: Array | None  # base rates that a row far away gets; without them the prior mean is zero
    workers: Workers
    rng: np.random.Generator
    report: Report
    deadline: float = np.inf

    def tune(self, candidates: Candidates) -> Entry:
        """The recipe: scaling, relevance, kernel, then more rows."""
        first = next(iter(candidates.kernels))
        tried = [self._first(scale, candidates, first) for scale in candidates.scalers]
        best = self._best(tried)
        n_features = self.sample.X.shape[1]
        if (
            candidates.relevance
            and self.weight >= max(RELEVANCE_FROM, ROWS_PER_FEATURE * n_features)
            and n_features > 1
        ):
            close = [entry for entry in tried if entry.score < best.score + WORTH_RELEVANCE]
            best = self._best([best, *(self._relevance(entry, candidates) for entry in close)])
        others = [self._other(best, name, candidates) for name in candidates.kernels if name != best.name]
        best = self._best([best, *others])
        for stage in REFINED:
            enough = len(self.sample.y) >= 1.5 * best.trial.n_rows
            if enough and best.judgement.kernel.learned() and time.monotonic() < self.deadline:
                best = self._search("more rows", best, best.judgement.kernel, candidates, stage)
        self.report.chosen.append(
            f"Chosen: scale {best.scale!r}, kernel {best.trial.kernel}: lowest leave-one-out log loss plus price, "
            f"or within {CLEARLY} of the lowest and tried earlier."
        )
        return best

    def _first(self, scale: str, candidates: Candidates, name: str) -> Entry:
        """One length-scale for all features, from the usual start."""
        rows = self._rows(candidates.scalers[scale], FIRST[0], None)
        return self._searched("first", scale, name, rows, candidates.kernels[name], None, FIRST)

    def _relevance(self, entry: Entry, candidates: Candidates) -> Entry:
        kernel = entry.judgement.kernel.per_feature(self.sample.X.shape[1])
        return self._search("relevance", entry, kernel, candidates, RELEVANCE)

    def _other(self, entry: Entry, name: str, candidates: Candidates) -> Entry:
        """Another family with the length-scales found."""
        found = entry.judgement.kernel.get_params()
        kernel = copy.deepcopy(candidates.kernels[name])
        kernel.set_params(length_scale=found["length_scale"], variance=found["variance"])
        return self._searched("kernel", entry.scale, name, entry.rows, kernel, entry.judgement, OTHER)

    def _search(
        self, what: str, entry: Entry, kernel: Kernel, candidates: Candidates, stage: tuple[int, int, int]
    ) -> Entry:
        rows = self._rows(candidates.scalers[entry.scale], stage[0], entry.judgement)
        return self._searched(what, entry.scale, entry.name, rows, kernel, entry.judgement, stage)

    def _searched(
        self,
        what: str,
        scale: str,
        name: str,
        rows: Rows,
        kernel: Kernel,
        start: Judgement | None,
        stage: tuple[int, int, int],
    ) -> Entry:
        began = time.monotonic()
        _, n_points, most = stage
        points = select(rows.source, "kmeans", n_points, self.rng, kernel)
        found = search(rows, judge(rows, InducingFeatures.build(kernel, points, np.float32), start), most)
        self.report.failed += found.failed
        n_learned = len(kernel.log_parameters())
        trial = Trial(
            what,
            scale,
            name + (", relevance" if n_learned > 3 else ""),
            rows.source.n_rows,
            len(points),
            found.best.loo,
            max(0, n_learned - 2) / rows.source.total_weight,
            time.monotonic() - began,
        )
        return Entry(scale, name, rows, found.best, self.report.add(trial))

    def _best(self, entries: Sequence[Entry]) -> Entry:
        """The lowest score, but the first one unless another is clearly lower."""
        best = min(entries, key=lambda entry: entry.score)
        return best if best.score < entries[0].score - CLEARLY else entries[0]

    def _rows(self, scaler: Scaler, n_rows: int, judged: Judgement | None) -> Rows:
        """The first rows of the sample, more where a class is rare, scaled; prior means from the link found so far."""
        n_rows = min(len(self.sample.y), int(n_rows * self._rarity()))
        X, y, weight = self.sample
        chosen = None if weight is None else weight[:n_rows]
        source = MemorySource(scaler(X[:n_rows]), y[:n_rows], chosen, ColumnScaler(), self.workers, BLOCK_ROWS)
        return Rows(source, self.likelihood, self.labels, self.offsets(judged))

    def _rarity(self) -> float:
        rarest = np.bincount(self.sample.y, minlength=2).min() / len(self.sample.y)
        return float(np.clip(RARE_ROWS / (FIRST[0] * max(rarest, 1e-9)), 1.0, 10.0))

    def offsets(self, judged: Judgement | None) -> tuple[float, ...]:
        """Prior means for which a row far away gets the base rates (D11); zero before anything is known."""
        if self.rates is None or judged is None:
            return (0.0,) * len(self.labels)
        far = float(np.mean(judged.kernel.diagonal(judged.features.inducing_points)))
        return tuple(base_rate_offsets(self.rates, far, judged.link))
