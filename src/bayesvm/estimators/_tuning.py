"""Estimators: how the kernel model tunes itself: the recipe of ``inference.tuning``, then more inducing points."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.links import base_rate_offsets
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BlockSource, at_most
from bayesvm.data.repetition import merged
from bayesvm.data.stopping import Stopped
from bayesvm.estimators._base import BaseBayesianSVC, Fitted, Prepared
from bayesvm.estimators._calibration import fitted_link, mean_log_loss
from bayesvm.estimators._scaling import fitted_scalers, worth_trying
from bayesvm.estimators._session import Session
from bayesvm.inference import inducing as inducing_points
from bayesvm.inference.hyperparameters import moved
from bayesvm.inference.objective import Model, Task
from bayesvm.inference.training import Trained
from bayesvm.inference.tuning import FIRST, MOST_ROWS, Candidates, Entry, Report, Trial, Tuner
from bayesvm.progress import trial_display

GROWTH = (300, 1_000)  # numbers of inducing points that "auto" tries one after the other,
PASS_BUDGET = 2e10  # as long as rows × points² is at most this; the first one always
GROWN_TOLERANCE = 5e-4  # nats per row; a larger model starts near its end
WORTH_TRYING = 0.003  # log loss that twice the points of tuning must gain for a thousand to be tried
WORTH_GROWING = 0.002  # log loss that a larger number must gain
EVIDENCE_POINTS = 150  # inducing points while the ELBO is climbed
AUTO_KERNELS = ("rbf", "matern32")
MOST_SAMPLE_ENTRIES = 20_000_000  # of a table to tune on
TRANSFER_ROWS = 16_384  # that show enough of the sites for a start


class TuningMixin(BaseBayesianSVC):
    """Scaling, kernel and number of inducing points chosen by leave-one-out."""

    @abstractmethod
    def _kernel(self, wanted: Any, n_features: int) -> Kernel:
        """The kernel that a name or an object stands for."""

    @abstractmethod
    def _check_inducing(self, size: int, n_features: int) -> None:
        """Refuse senseless inducing points before anything is tried."""

    @abstractmethod
    def _place_inducing_points(self, source: BlockSource, rng: np.random.Generator, size: int) -> np.ndarray:
        """That many inducing points for the kernel found, on scaled inputs."""

    def _sizes(self, n_rows: int) -> list[int]:
        """Numbers of inducing points to try; one, unless ``n_inducing="auto"``."""
        if not isinstance(self.inducing, str):
            return [len(self.inducing)]
        if self.n_inducing != "auto":
            return [n_rows if self.n_inducing is None else min(n_rows, int(self.n_inducing))]
        most = min(n_rows, self.max_inducing)
        grows = self.tune is not None and not self.learn_inducing and min(most, n_rows // 2) >= 2 * GROWTH[0]
        affordable = [m for m in GROWTH[1:] if m * m * n_rows <= PASS_BUDGET and grows]
        return [min(GROWTH[0], most), *(min(m, most, n_rows // 2) for m in affordable)]

    def _features_at(self, source: BlockSource, points: np.ndarray) -> InducingFeatures:
        self.inducing_points_ = source.scaler.inverse(points)
        return InducingFeatures.build(self.kernel_, points, self._dtype(source))

    def _prepared(self, raw: BlockSource, session: Session) -> Prepared:
        if self.tune is None:
            return super()._prepared(raw, session)
        self.tuning_report_ = Report()
        tuner, size = self._tuner(raw, session), self._sizes(raw.n_rows)[0]
        session.display.phase("scaling columns")
        candidates = self._candidates(raw)
        session.display.phase("tuning")
        self.tuning_report_.hear = trial_display(session.display)
        session.clock.stop.heeded = True
        with one_blas_thread():
            entry = self._tuned(tuner, candidates, raw, size, session)
        self._scaler = candidates.scalers[entry.scale]
        source = raw.scaled(self._scaler)
        self.kernel_ = entry.kernel
        self._chosen, self._grows = entry.trial, entry.gained > WORTH_TRYING
        with suppress(Stopped):
            if not session.clock.stop.made:
                return self._grown_from(entry, tuner, source, size, session)
        session.clock.stop.settle()
        self.inducing_points_ = source.scaler.inverse(entry.features.inducing_points)
        return self._model(entry.features, source), source, entry.judgement.tasks

    def _grown_from(self, entry: Entry, tuner: Tuner, source: BlockSource, size: int, session: Session) -> Prepared:
        """The kernel of a trial with the points for all rows."""
        session.display.phase("inducing points")
        points = self._place_inducing_points(source, session.rng, size)
        if self.learn_inducing:
            entry = tuner.with_points(entry, points)
            self.kernel_, points = entry.kernel, entry.features.inducing_points
        self._chosen, judged = entry.trial, entry.judgement
        features = self._features_at(source, points)
        tasks = self._moved(judged.model, judged.tasks, source, features, self._offsets(entry), session.rng)
        return self._model(features, source), source, tasks

    def _prepared_state(self, prepared: Prepared) -> dict[str, Any]:
        state = super()._prepared_state(prepared)
        if self.tune is not None:
            state |= {"report": self.tuning_report_.state(), "chosen": vars(self._chosen), "grows": self._grows}
        return state

    def _prepared_from(self, state: dict[str, Any], raw: BlockSource) -> Prepared:
        prepared = super()._prepared_from(state, raw)
        self.kernel_ = self._features.kernel
        self.inducing_points_ = self._scaler.inverse(self._features.inducing_points)
        if self.tune is not None:
            self.tuning_report_ = Report.from_state(state["report"])
            self._chosen, self._grows = Trial(**state["chosen"]), state["grows"]
        return prepared

    def _tuner(self, raw: BlockSource, session: Session) -> Tuner:
        largest = int(np.clip(MOST_SAMPLE_ENTRIES // raw.n_features, 100, MOST_ROWS))
        # A table may be sorted; one that a stage sees as a whole may stay as it is.
        part = raw.held() if raw.n_rows <= FIRST[0] else raw.subset(min(largest, raw.n_rows), session.rng)
        part = merged(part) if session.repetition.copied else part
        return Tuner(
            part.gathered(),
            session.repetition.effective_rows,
            self._likelihood(),
            tuple(self._labels()),
            self._rates if self.link != "paper" else None,
            session.workers,
            session.rng,
            self.tuning_report_,
            session.clock,
            max(self._sizes(raw.n_rows)),
        )

    def _tuned(self, tuner: Tuner, candidates: Candidates, raw: BlockSource, size: int, session: Session) -> Entry:
        if self.tune != "elbo":
            return tuner.tune(candidates)
        plan = self._plan(raw, session)
        return tuner.evidence(
            candidates,
            min(size, EVIDENCE_POINTS),
            self.tune_interval,
            plan.batch_size if plan.inference == "stochastic" else None,
        )

    def _candidates(self, raw: BlockSource) -> Candidates:
        if self.scale == "auto" and self.tune == "auto":
            scalers = worth_trying(raw)
        else:
            scale = "standard" if self.scale == "auto" else self.scale
            scalers = fitted_scalers([scale], raw)
        names = AUTO_KERNELS if isinstance(self.kernel, str) and self.kernel == "auto" else (self.kernel,)
        kernels = {
            name if isinstance(name, str) else type(name).__name__: self._kernel(name, raw.n_features) for name in names
        }
        for kernel in kernels.values():  # complain now, not after some stages
            kernel.learned()
            kernel.against(np.zeros((1, raw.n_features)))
        self._check_inducing(self._sizes(raw.n_rows)[0], raw.n_features)
        named = isinstance(self.kernel, str) and self.kernel != "linear"
        return Candidates(scalers, kernels, relevance=self.tune == "auto" and named)

    def _starts_warm(self, source: BlockSource) -> bool:
        return self.tune is not None and source.n_rows <= 4 * TRANSFER_ROWS

    def _offsets(self, entry: Entry) -> list[float]:
        """Prior means for which a row far away gets the base rates (D11)."""
        if self.link == "paper":
            return [0.0] * len(self._rates)
        far = float(np.mean(entry.kernel.diagonal(entry.features.inducing_points)))
        return base_rate_offsets(self._rates, far, entry.judgement.link if self.link == "calibrated" else None)

    def _moved(
        self,
        model: Model,
        tasks: Sequence[Task],
        source: BlockSource,
        features: InducingFeatures,
        offsets: Sequence[float],
        rng: np.random.Generator,
    ) -> list[Task]:
        """A start from the sites of another fit, as some rows show them (D18)."""
        enough = max(TRANSFER_ROWS, 8 * features.n_weights)
        start = replace(model, total_weight=source.total_weight)
        return moved(start, tasks, at_most(source, enough, rng), features, offsets)

    def _improved(self, fitted: Fitted, source: BlockSource, session: Session) -> Fitted:
        """More inducing points for as long as leave-one-out says that they pay."""
        if self.tune is None or session.clock.over():
            return fitted
        rng = session.rng
        sizes, began = self._sizes(source.n_rows)[: 2 if self._grows else 1], time.monotonic()
        loss = self._noted(fitted, 0.0)
        with suppress(Stopped):  # the smaller model is whole
            for size in sizes[1:]:
                session.display.phase("inducing points")
                points = inducing_points.select(source, self.inducing, size, rng, self.kernel_)
                if session.clock.over() or len(points) < 1.2 * fitted.model.features.n_weights:
                    break
                features = self._features_at(source, points)
                model = replace(fitted.model, features=features)
                old = fitted.trained.tasks
                tasks = self._moved(fitted.model, old, source, features, [task.offset for task in old], rng)
                plan = replace(self._plan(source, session), inference="batch", tol=max(self.tol, GROWN_TOLERANCE))
                trained = self._train(model, source, plan, tasks, session)
                if session.clock.stop.made:
                    break
                larger = Fitted(model, trained, *self._leave_out(model, source, trained, session))
                gained = loss - self._noted(larger, time.monotonic() - began)
                if gained < WORTH_GROWING:
                    break
                fitted, loss = larger, loss - gained
        self._features = fitted.model.features
        self.inducing_points_ = source.scaler.inverse(self._features.inducing_points)
        return fitted

    def _noted(self, fitted: Fitted, seconds: float) -> float:
        """A line of the report for the whole fit; its leave-one-out log loss."""
        link = fitted_link(self.link, fitted.cavities)
        loss = mean_log_loss(link, fitted.cavities)
        rows, points = len(fitted.which), fitted.model.features.n_weights
        trial = replace(self._chosen, what="fit", n_rows=rows, n_inducing=points, loo=loss, seconds=seconds)
        self.tuning_report_.add(trial)
        return loss

    def _store(self, model: Model, trained: Trained) -> None:
        super()._store(model, trained)
        if self.tune is not None:
            self.tuning_report_.hear = None  # a fitted model holds no display
        scales = self.kernel_.length_scales
        if scales is not None:
            spread = np.var(self._features.inducing_points, axis=0)
            share = (spread + np.finfo(float).tiny) / np.broadcast_to(scales, spread.shape) ** 2
            self.relevance_ = share / share.sum()
