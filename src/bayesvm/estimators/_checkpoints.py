"""Estimators: a file that a fit writes as it goes, and from which the same call goes on after a crash.

What is kept: the outcome of tuning, and the place in each training. What comes between them is done again with the same
numbers, since the random generator's state is kept too; it is cheap, but for the two-fold predictions of a mean field.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bayesvm import persistence
from bayesvm.atomic import remove_unfinished, try_to_write
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.core.statistics import Statistics
from bayesvm.estimators._schemas import CHECKPOINT
from bayesvm.estimators._states import plain
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.learning_rates import RunningAverages
from bayesvm.inference.objective import Evaluation, Task
from bayesvm.inference.stochastic import StochasticState
from bayesvm.inference.training_state import Epoch, Memory, NoMemory, TrainingState
from bayesvm.schema import Schema, Sizes

KIND = "checkpoint"
ANY_VALUE = {"n_jobs", "verbose", "time_limit"}  # parameters that do not change the result, or only how far it gets


class Checkpoint(Protocol):
    """What a fit asks of whatever keeps its states by name."""

    def seed(self, drawn: int) -> int:
        """The seed of the run that began, which may be the one that was drawn now."""
        ...

    def belongs_to(self, who: Callable[[], dict[str, Any]]) -> None:
        """Refuse to be used for another fit, and say what differs."""
        ...

    def recall(self, name: str, schema: Schema, sizes: Sizes) -> Any:
        """The state of that name, if it was reached; it must fit the schema with these sizes."""
        ...

    def building(self) -> AbstractContextManager[None]:
        """For what is built of such a state."""
        ...

    def keep(self, name: str, state: Callable[[], Any], *, now: bool = True) -> None:
        """Replace the state of that name, at once or when it is time."""
        ...

    def freeze(self) -> None:
        """Keep nothing more: what follows is no part of the whole fit."""
        ...

    def training(self, name: str, schema: Schema, sizes: Sizes) -> Memory:
        """For a training of that name, whose place fits the schema with these sizes."""
        ...


class NoCheckpoint:
    """A fit that keeps nothing."""

    def seed(self, drawn: int) -> int:
        return drawn

    def belongs_to(self, who: Callable[[], dict[str, Any]]) -> None:
        """Anything goes."""

    def recall(self, name: str, schema: Schema, sizes: Sizes) -> Any:
        return None

    def building(self) -> AbstractContextManager[None]:
        return nullcontext()

    def keep(self, name: str, state: Callable[[], Any], *, now: bool = True) -> None:
        """Does nothing."""

    def freeze(self) -> None:
        """Nothing was kept before."""

    def training(self, name: str, schema: Schema, sizes: Sizes) -> Memory:
        return NoMemory()


@dataclass
class CheckpointFile:
    """Plain states by name in one file, written every so many seconds."""

    path: Path
    every: float
    content: dict[str, Any] = field(default_factory=dict)
    written: float = -np.inf  # when, on the clock of time.monotonic
    warned: bool = False
    frozen: bool = False

    @classmethod
    def open(cls, path: Any, every: float) -> CheckpointFile:
        """The file as an earlier run left it, or a new one."""
        if not isinstance(every, int | float) or isinstance(every, bool) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a number of seconds from 0; got {every!r}")
        found = cls(Path(path).absolute(), every)
        if found.path.is_dir():
            raise IsADirectoryError(f"the checkpoint {path} is a folder; give the path of a file in it")
        if not found.path.parent.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint {path} does not exist; make it first")
        remove_unfinished(found.path)  # which a killed process left
        try_to_write(found.path)
        if found.path.exists():
            try:
                kind, found.content = persistence.read(found.path)
            except ValueError as error:
                raise ValueError(f"{error}. Or delete it to start anew.") from error
            if kind != KIND:
                raise ValueError(f"{path} is a bayesvm file, but no checkpoint: it holds a {kind}; give another path")
            with found.building():
                CHECKPOINT(found.content, "state", {})
        return found

    def building(self) -> AbstractContextManager[None]:
        return persistence.building(self.path, "delete it to start anew")

    def freeze(self) -> None:
        self.frozen = True

    def seed(self, drawn: int) -> int:
        return int(self.content.setdefault("seed", drawn))

    def belongs_to(self, who: Callable[[], dict[str, Any]]) -> None:
        here = who()
        known = self.content.setdefault("identity", here)
        for name in [*here, *known]:
            then, now = known.get(name), here.get(name)
            if then != now:
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: {name} was {_short(then)} and is "
                    f"{_short(now)}. Delete it to start anew, or give another path."
                )

    def recall(self, name: str, schema: Schema, sizes: Sizes) -> Any:
        state = self.content.get(name)
        if state is not None:
            with self.building():
                schema(state, name, sizes)
        return state

    def keep(self, name: str, state: Callable[[], Any], *, now: bool = True) -> None:
        """Replace the state of that name, and the file, if it is time."""
        if self.frozen or (not now and time.monotonic() < self.written + self.every):
            return
        self.content[name] = state()
        try:
            persistence.write(self.path, KIND, self.content)
        except OSError as error:
            if not self.warned:
                warnings.warn(
                    f"the fit continues without its checkpoint: {error.strerror or error}",
                    UserWarning,
                    stacklevel=2,
                )
            self.warned = True
        self.written = time.monotonic()

    def training(self, name: str, schema: Schema, sizes: Sizes) -> Memory:
        return TrainingMemory(self, name, schema, sizes)


@dataclass(frozen=True)
class TrainingMemory:
    """The place of one training, in a checkpoint."""

    checkpoint: Checkpoint
    name: str
    schema: Schema
    sizes: Sizes

    def recall(self) -> TrainingState | None:
        """Where an earlier run was."""
        state = self.checkpoint.recall(self.name, self.schema, self.sizes)
        with self.checkpoint.building():
            return None if state is None else place_from(state)

    def keep(self, place: Callable[[], TrainingState], *, now: bool = False) -> None:
        """Where it is now; asked for only when it is time to keep it."""
        self.checkpoint.keep(self.name, lambda: place_state(place()), now=now)


def identity(estimator: Any, classes: np.ndarray, data: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for a fit to go on: parameters, classes, and what tells the data apart from others."""
    free = ANY_VALUE | ({"max_iter"} if estimator.inference == "batch" else set())  # elsewhere it divides the phases
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        parameters = {
            name: repr(plain(value))
            for name, value in estimator.get_params(deep=False).items()
            if name not in free and not isinstance(value, np.random.RandomState)
        }
    names = getattr(estimator, "feature_names_in_", None)
    return parameters | {
        "the estimator": type(estimator).__name__,
        "the version of bayesvm": version("bayesvm"),
        "the classes": repr(classes.tolist()),
        "the names of the columns": None if names is None else repr(list(names)),
        **data,
    }


def _short(value: Any, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def task_state(task: Task) -> dict[str, Any]:
    prior = task.prior.natural
    standard = not prior.linear.any() and np.array_equal(prior.precision, np.eye(len(prior.linear)))
    return {
        "label": task.label,
        "offset": task.offset,
        "prior": len(prior.linear) if standard else dict(vars(prior)),
        "posterior": dict(vars(task.posterior.natural)),
    }


def task_from(state: dict[str, Any]) -> Task:
    prior = state["prior"]
    start = Gaussian.prior(prior) if isinstance(prior, int) else _gaussian(prior)
    return Task(state["label"], state["offset"], start, _gaussian(state["posterior"]))


def _gaussian(natural: dict[str, Any]) -> Gaussian:
    return Gaussian.from_natural(NaturalParameters(**natural))


def place_state(place: TrainingState) -> dict[str, Any]:
    epoch = place.epoch
    return {
        "phase": place.phase,
        "tasks": [task_state(task) for task in place.tasks],
        "contraction": place.contraction,
        "rng": place.rng,
        "subset_rows": place.subset_rows,
        "states": [_ascent_state(state) for state in place.states],
        "epoch": None if epoch is None else vars(epoch) | {"states": [_walk_state(state) for state in epoch.states]},
        "passes": [[dict(vars(sums)) for sums in of_class] for of_class in place.passes],
        "rows": place.rows,
        "trace": np.array(place.trace),
    }


def place_from(state: dict[str, Any]) -> TrainingState:
    epoch = state["epoch"]
    return TrainingState(
        phase=state["phase"],
        tasks=tuple(task_from(task) for task in state["tasks"]),
        contraction=tuple(state["contraction"]),
        rng=state["rng"],
        subset_rows=state["subset_rows"],
        states=tuple(_ascent_from(each) for each in state["states"]),
        epoch=None if epoch is None else Epoch(**epoch | {"states": tuple(map(_walk_from, epoch["states"]))}),
        passes=tuple(tuple(Statistics(**sums) for sums in of_class) for of_class in state["passes"]),
        rows=state["rows"],
        trace=tuple(state["trace"].tolist()),
    )


def _ascent_state(state: AscentState) -> dict[str, Any]:
    best = state.best
    return {
        "task": task_state(best.task),
        "elbo": best.elbo,
        "target": dict(vars(best.target)),
        "rho": state.rho,
        "distance": state.distance,
        "contraction": state.contraction,
        "rejected": state.rejected,
    }


def _ascent_from(state: dict[str, Any]) -> AscentState:
    best = Evaluation(task_from(state["task"]), state["elbo"], NaturalParameters(**state["target"]))
    proposal = best.task.posterior.moved(best.target, state["rho"])
    return AscentState(
        best, proposal, state["rho"], state["distance"], state["contraction"], rejected=state["rejected"]
    )


def _walk_state(state: StochasticState) -> dict[str, Any]:
    memory = state.memory
    kept = dict(vars(memory)) if isinstance(memory, RunningAverages) else memory
    return {"task": task_state(state.task), "memory": kept, "rho": state.rho, "elbo": state.elbo}


def _walk_from(state: dict[str, Any]) -> StochasticState:
    memory = state["memory"]
    kept = RunningAverages(**memory) if isinstance(memory, dict) else memory
    return StochasticState(task_from(state["task"]), kept, state["rho"], state["elbo"])
