"""Estimators: what the kernel and the linear model share: fit, streams, leave-one-out, files."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from bayesvm.core.features import Features
from bayesvm.core.leave_one_out import Cavities, joined
from bayesvm.core.likelihoods import Likelihood, noisy
from bayesvm.core.links import Softmax, TwoProbits
from bayesvm.core.posterior import Gaussian
from bayesvm.data.blas import threads_for_matrices
from bayesvm.data.blocks import BlockSource, block_rows, rounded_sum
from bayesvm.data.capacity import require_memory
from bayesvm.data.repetition import repetition
from bayesvm.data.stopping import Stopped
from bayesvm.data.workers import Workers
from bayesvm.estimators._calibration import capped, cavities, decision, fitted_link, mean_log_loss
from bayesvm.estimators._checkpoints import Checkpoint, CheckpointFile, NoCheckpoint, identity, task_from, task_state
from bayesvm.estimators._classes import warn_if_costly
from bayesvm.estimators._held_out import HeldOut, Listeners
from bayesvm.estimators._inputs import TrainingRows, stream_rows, training_rows
from bayesvm.estimators._parameters import COMMON, block_dtype, check_parameters, learning_rate
from bayesvm.estimators._prediction import PredictionMixin, jobs, prediction_view, probabilities
from bayesvm.estimators._scaling import fitted_scalers, naming_the_largest_column
from bayesvm.estimators._schemas import READY, place
from bayesvm.estimators._session import Session, all_or_nothing, session
from bayesvm.estimators._states import features_from, features_state, scaler_from, scaler_state
from bayesvm.estimators._validation import columns_of, require_same_columns, require_whole_labels
from bayesvm.estimators._warnings import warn_of_repetition
from bayesvm.inference.objective import Model, Task
from bayesvm.inference.training import Callback, Plan, Trained, train
from bayesvm.progress import progress_display
from bayesvm.storage.kernels import classes_of

NOISE = 1.0  # variance; .3 and 3 are about as good, and all far better than none where rows are many


Prepared = tuple[Model, BlockSource, list[Task]]


class Fitted(NamedTuple):
    """A trained model, and what it would say of its rows had it not seen them."""

    model: Model
    trained: Trained
    cavities: Cavities
    which: np.ndarray


class BaseBayesianSVC(PredictionMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """The walk of ``fit``; subclasses say what the features are."""

    _parameter_checks = COMMON
    _rates: np.ndarray

    @abstractmethod
    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        """About how many features a row will have; decides precision and block size."""

    def _matrix_size(self, n_rows: int, n_features: int) -> int:
        """About how many rows and columns the largest matrix has that is factored."""
        return self._expected_weights(n_rows, n_features)

    @abstractmethod
    def _wide_vectors(self, n_rows: int) -> int:
        """About how many vectors as wide as the table a fit holds at a time, as measured with few rows."""

    @abstractmethod
    def _build_features(self, source: BlockSource, dtype: Any, rng: np.random.Generator) -> Features:
        """The feature map, and fitted attributes that belong to it."""

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        callback: Callback | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        held_out: Any = None,
    ) -> Any:
        """Fit to rows ``X`` and labels ``y``.

        Inside ``with bayesvm.stop_on_interrupt():`` Ctrl-C ends the fit early with a usable model, and
        ``interrupted_`` is true. Elsewhere the estimator is what it was before the call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a Dask array or data frame
            Or a table of ``open_table``, which has labels and weights in it.
        y : array-like of shape (n_rows,), two or more classes of any type
        sample_weight : array-like of shape (n_rows,), optional
            For a given kernel and link, a weight of 2 counts as the row given twice, a weight of 0 as the row left
            out. Tuning and calibration leave a row out with all its weight.
        callback : callable, optional
            Called with a ``Progress`` after every update.
        checkpoint : path, optional
            A file that is written during the fit, whole or not at all. If the process dies, the same call goes on from
            there and ends with the same bits. It is left there at the end; delete it to start anew.
        checkpoint_every : float
            Seconds between two versions of that file.
        held_out : (X, y) or a table, optional
            Rows that are not learned from, a random 2,000 if there are more: ``verbose=1`` and ``callback`` tell their
            log loss during the fit, which does not depend on them.
        """
        check_parameters(self, self._parameter_checks)
        kept: Checkpoint = NoCheckpoint() if checkpoint is None else CheckpointFile.open(checkpoint, checkpoint_every)
        with progress_display(self.verbose) as display:
            display.phase("reading labels")
            columns = columns_of(self)
            rows = training_rows(self, X, y, sample_weight)
            again = self.warm_start and self._can_go_on(rows.classes)
            if again:
                require_same_columns(columns, self)
            warn_if_costly(len(rows.classes), rows.n_rows)
            self.classes_ = rows.classes
            self._rates = self._rates if again else self._base_rates(rows.totals)
            audience = Listeners(display, callback, HeldOut.of(self, held_out))
            session, fitted = self._fitted(rows, kept, audience, again=again)
        self.interrupted_ = session.clock.stop.made
        self._warn_if_unfinished(fitted.trained)
        return self

    def _fitted(
        self, rows: TrainingRows, kept: Checkpoint, audience: Listeners, *, again: bool
    ) -> tuple[Session, Fitted]:
        require_memory(type(self).__name__, rows.n_features, self._wide_vectors(rows.n_rows), stacklevel=5)
        with self._session(rows, kept, audience, again=again) as (raw, session):
            warn_of_repetition(session.repetition, stacklevel=5)
            model, source, tasks = self._continued(raw) if again else self._ready(raw, session)
            session.clock.stop.heeded = True
            plan = self._plan(source, session)
            if self._starts_warm(source) and plan.inference == "auto":
                plan = replace(plan, inference="batch")
            trained = self._train(model, source, plan, tasks, session)
            fitted = Fitted(model, trained, *self._leave_out(model, source, trained, session))
            fitted = fitted if again else self._improved(fitted, source, session)
            self._store(fitted.model, fitted.trained)
            self._calibrate(fitted.cavities, rows.given(fitted.which))
        return session, fitted

    @available_if(lambda self: getattr(self, "covariance", "full") == "full")
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more part of a stream.

        The first call (if there was no ``fit``) needs ``classes``, all labels that will come; it sets scaling, kernel
        and inducing points, which stay as they are. Each part's sites are added to the posterior so far, for good;
        the link is fitted again to leave-one-out marginals remembered from all parts (at most 20,000).
        """
        check_parameters(self, self._parameter_checks)
        first = not hasattr(self, "_machines")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs `classes`, all labels that will come")
        require_whole_labels(classes, "classes")
        if first:
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"`classes` must hold at least two labels, got {self.classes_.tolist()}")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"`classes` differs from the first call's {self.classes_.tolist()}")
        rows = stream_rows(self, X, y, sample_weight, first=first)
        require_memory(type(self).__name__, rows.n_features, self._wide_vectors(rows.n_rows), stacklevel=4)
        self._rates = self._base_rates(rows.totals) if first else self._rates
        with (
            progress_display(self.verbose) as display,
            self._session(rows, NoCheckpoint(), Listeners(display)) as (raw, session),
        ):
            warn_of_repetition(session.repetition, stacklevel=4)
            model, source, tasks = self._prepared(raw, session) if first else self._continued(raw, as_prior=True)
            session.clock.stop.heeded = True
            plan = replace(self._plan(source, session), inference="batch")
            trained = self._train(model, source, plan, tasks, session)
            self._store(model, trained)
            cavity, _ = self._leave_out(model, source, trained, session)
            seen = cavity if first else joined([self._cavities, cavity])
            self._calibrate(capped(seen, session.rng), None)
        self.interrupted_ = session.clock.stop.made
        return self

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, without pickle; ``bayesvm.load`` reads it back, to the same bits."""
        from bayesvm.estimators._files import save  # noqa: PLC0415  (it must know the estimators, which import this)

        save(self, path)

    @contextmanager
    def _session(
        self,
        rows: TrainingRows,
        checkpoint: Checkpoint,
        audience: Listeners,
        *,
        again: bool = False,
    ) -> Iterator[tuple[BlockSource, Session]]:
        """A source of blocks, not yet scaled, and what works on it."""
        shape = rows.n_rows, rows.n_features
        workers = Workers(jobs(self.n_jobs))
        seed = checkpoint.seed(check_random_state(self.random_state).randint(2**31))
        with (
            threads_for_matrices(self._matrix_size(*shape)),
            session(workers, seed, self.time_limit, audience, checkpoint) as opened,
        ):
            opened.display.phase("reading rows")
            raw = rows.source(workers, block_rows(self._expected_weights(*shape), rows.n_features), opened.rng)
            start = {"the model it starts from": self._start_digest() if again else None}
            checkpoint.belongs_to(lambda: identity(self, rows.classes, rows.fingerprint() | start))
            with naming_the_largest_column(self, raw):
                yield raw, replace(opened, repetition=repetition(raw))

    def _start_digest(self) -> str:
        """Tells the model of an earlier fit apart from others."""
        return sha256(b"".join(machine.posterior.mean.tobytes() for machine in self._machines)).hexdigest()[:16]

    def _ready(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling, features and first machines as an earlier run left them, or made anew."""
        rng, machines = session.rng.bit_generator, len(self._labels())
        state = session.checkpoint.recall("prepared", READY, {"D": raw.n_features, "K": machines})
        if state is not None:
            with session.checkpoint.building():
                rng.state = state["rng"]
                return self._prepared_from(state, raw)
        prepared = self._prepared(raw, session)
        if session.clock.over():  # which has cut it short
            session.checkpoint.freeze()
        session.checkpoint.keep("prepared", lambda: self._prepared_state(prepared) | {"rng": rng.state})
        return prepared

    def _prepared_state(self, prepared: Prepared) -> dict[str, Any]:
        tasks = [task_state(task) for task in prepared[2]]
        return {"scaler": scaler_state(self._scaler), "features": features_state(self._features), "tasks": tasks}

    def _prepared_from(self, state: dict[str, Any], raw: BlockSource) -> Prepared:
        self._scaler = scaler_from(state["scaler"])
        source = raw.scaled(self._scaler)
        model = self._model(features_from(state["features"], classes_of(getattr(self, "kernel", None))), source)
        return model, source, [task_from(task) for task in state["tasks"]]

    def _prepared(self, raw: BlockSource, session: Session) -> Prepared:
        """Scaling, features and first machines, all made anew, with everything fixed but the prior mean."""
        session.display.phase("scaling columns")
        scale = "standard" if self.scale == "auto" else self.scale
        self._scaler = fitted_scalers([scale], raw)[scale]
        source = raw.scaled(self._scaler)
        session.display.phase("inducing points")
        model = self._model(self._build_features(source, self._dtype(raw), session.rng), source)
        return model, source, self._first_tasks(source)

    def _continued(self, raw: BlockSource, *, as_prior: bool = False) -> Prepared:
        """The scaling, features and machines of an earlier fit, which are the start, or the prior too."""
        source = raw.scaled(self._scaler)
        tasks = self._tasks_from_here()
        if not as_prior:
            prior = Gaussian.prior(self._features.n_weights)
            tasks = [replace(task, prior=prior) for task in tasks]
        return self._model(self._features, source), source, tasks

    def _improved(self, fitted: Fitted, source: BlockSource, session: Session) -> Fitted:
        """What a fit is after another look; here, itself."""
        return fitted

    def _starts_warm(self, source: BlockSource) -> bool:
        """Whether the first machines are so near their end that subsets of the rows would be a detour."""
        return False

    def _dtype(self, source: BlockSource) -> Any:
        return block_dtype(self.precision, source.n_rows * self._expected_weights(source.n_rows, source.n_features))

    def _model(self, features: Features, source: BlockSource) -> Model:
        self._features = features
        return Model(features, self._likelihood(), self._dtype(source), source.total_weight)

    def _likelihood(self) -> Likelihood:
        """The bound, with noise unless it is to be that of the paper (D22)."""
        usual = NOISE if self.tune in {"auto", "loo"} else 0.0
        return noisy(self.bound, usual if self.noise == "auto" else float(self.noise))

    def _can_go_on(self, classes: np.ndarray) -> bool:
        """Whether there is an earlier fit of the same classes to start from."""
        machines: Any = getattr(self, "_machines", None)
        full = machines is not None and isinstance(machines[0].posterior, Gaussian)
        return full and list(classes) == list(self.classes_)

    def _labels(self) -> list[int]:
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _first_tasks(self, source: BlockSource) -> list[Task]:
        mean_field = getattr(self, "covariance", "full") == "diagonal"  # has no use for a prior with a full matrix
        prior = Gaussian.prior(1 if mean_field else self._features.n_weights)
        return [Task(label, 0.0, prior, prior) for label in self._labels()]

    def _tasks_from_here(self) -> list[Task]:
        machines = [(m, m.posterior) for m in self._machines]
        return [Task(m.label, m.offset, q, q) for m, q in machines if isinstance(q, Gaussian)]

    def _base_rates(self, totals: np.ndarray) -> np.ndarray:
        share = rounded_sum(totals) + 0.5
        return (share / share.sum())[self._labels()]

    def _train(self, model: Model, source: BlockSource, plan: Plan, tasks: list[Task], session: Session) -> Trained:
        sizes = {"M": model.features.n_weights, "K": len(tasks), "R": source.n_rows}
        name = f"training of {model.features.n_weights} weights"
        memory = session.checkpoint.training(name, place(self.learning_rate), sizes)
        return train(model, source, plan, tasks, session.rng, session.audience.of(model, source.scaler), memory)

    def _leave_out(
        self, model: Model, source: BlockSource, trained: Trained, session: Session
    ) -> tuple[Cavities, np.ndarray]:
        """What the fit would say of its rows had it not seen them, and which rows those are."""
        session.display.phase("leaving one out")
        with suppress(Stopped):
            if not session.clock.stop.made:
                return self._left_out(model, source, trained, session, few=False)
        session.clock.stop.settle()
        return self._left_out(model, source, trained, session, few=True)

    def _left_out(
        self, model: Model, source: BlockSource, trained: Trained, session: Session, *, few: bool
    ) -> tuple[Cavities, np.ndarray]:
        copies = session.repetition.copied > 0
        return cavities(model, source, trained, session.rng, copies=copies, few=few)

    def _plan(self, source: BlockSource, session: Session) -> Plan:
        size = min(source.n_rows, 4096 if self.batch_size == "auto" else int(self.batch_size))
        rate = learning_rate(self.learning_rate)
        return Plan(self.inference, int(self.max_iter), float(self.tol), size, rate, session.clock)

    def _store(self, model: Model, trained: Trained) -> None:
        self._machines = trained.machines
        self.noise_ = model.likelihood.noise
        self._view = prediction_view(model.features, trained.machines)
        self.elbo_ = trained.elbo
        self.elbo_trace_ = np.array(trained.trace)
        self.n_iter_ = len(trained.trace)
        self.n_passes_ = trained.passes
        self.converged_ = trained.converged

    def _calibrate(self, cavity: Cavities, indices: np.ndarray | None) -> None:
        """Fit the link to leave-one-out marginals, and say how good they are."""
        self._cavities = cavity
        self._link = fitted_link(self.link, cavity)
        if isinstance(self._link, TwoProbits | Softmax):
            self.calibration_scale_ = np.atleast_1d(self._link.scale)
            self.calibration_bias_ = np.atleast_1d(self._link.bias)
        if isinstance(self._link, TwoProbits):
            self.calibration_share_ = self._link.share
        self.loo_proba_ = probabilities(decision(self._link, cavity))
        if indices is not None:
            self.loo_indices_ = indices
        elif hasattr(self, "loo_indices_"):  # of an earlier fit; a stream does not remember where its rows came from
            del self.loo_indices_
        self.loo_log_loss_ = mean_log_loss(self._link, cavity)
        self.loo_error_ = float(np.average(self.loo_proba_.argmax(axis=1) != cavity.y, weights=cavity.weight))

    def _warn_if_unfinished(self, trained: Trained) -> None:
        if self.interrupted_:
            warnings.warn(
                f"the fit was stopped by Ctrl-C after {trained.passes:.1f} passes; the model is usable, but not as "
                "good as it could be (interrupted_ is True). With checkpoint=… the same call goes on from what was "
                "kept.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return
        if not trained.converged and self.tol > 0:
            budget = f"{self.max_iter} passes" + ("" if self.time_limit is None else f" or {self.time_limit} seconds")
            warnings.warn(
                f"{type(self).__name__} used its budget of {budget} before the ELBO settled to "
                f"tol={self.tol:g} nats per row; raise max_iter (or time_limit), or tol if that is good enough. "
                "elbo_trace_ shows how far it was.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
