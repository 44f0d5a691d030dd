"""Storage: a checkpoint file that a fit writes while it runs, and from which the same call resumes after a crash.

It stores the outcome of tuning and the state of each training run. The steps in between are repeated with identical
results, because the state of the random generator is stored too. They are cheap, except for the two-fold predictions of
a mean field.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import persistence
from bayesvm.atomic import remove_unfinished, try_to_write
from bayesvm.core.cavities import Cavities
from bayesvm.core.kernels import Kernel
from bayesvm.core.posterior import NaturalParameters
from bayesvm.core.statistics import Statistics
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.learning_rates import RunningAverages
from bayesvm.inference.local import FittedLeaves
from bayesvm.inference.problem import Evaluation
from bayesvm.inference.session import NoCheckpoint, NoLeafMemory, Prepared
from bayesvm.inference.stochastic import StochasticState
from bayesvm.inference.training import Plan
from bayesvm.inference.training_state import Epoch, NoMemory, TrainingState
from bayesvm.inference.tuning_report import Trial
from bayesvm.schema import Schema, Sizes
from bayesvm.storage.schemas import CHECKPOINT, FINISHED_LEAVES, MEAN_FIELD, PREPARED, training_state
from bayesvm.storage.states import (
    LIKELIHOODS,
    SCALERS,
    features_from,
    features_state,
    function_from,
    function_state,
    leaf_from,
    leaf_state,
    named_from,
    named_state,
    plain,
    report_from,
    report_state,
)
from bayesvm.warn import warn_user

KIND = "checkpoint"
ANY_VALUE = {"n_jobs", "verbose", "time_limit"}  # parameters that do not change the result, or only when a fit ends


@dataclass
class CheckpointFile(NoCheckpoint):
    """Plain states by name in one file, written at regular intervals.

    ``trusted`` are the classes of the kernels passed to the fit, which may be imported.
    """

    path: Path
    every: float
    trusted: Iterable[type] = ()
    content: dict[str, Any] = field(default_factory=dict)
    written: float = -np.inf  # time of the last write, by time.monotonic
    warned: bool = False
    frozen: bool = False

    @classmethod
    def open(cls, path: Any, every: float, trusted: Iterable[type] = ()) -> CheckpointFile:
        """The checkpoint of an earlier run, or a new one."""
        if not isinstance(every, int | float) or isinstance(every, bool) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a nonnegative number of seconds; got {every!r}")
        found = cls(Path(path).absolute(), every, trusted)
        if found.path.is_dir():
            raise IsADirectoryError(f"the checkpoint {path} is a folder; pass the path of a file in it")
        if not found.path.parent.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint {path} does not exist; create it first")
        remove_unfinished(found.path)  # left by a killed process
        try_to_write(found.path)
        if found.path.exists():
            try:
                kind, version_found, found.content = persistence.read(found.path)
            except ValueError as error:
                raise ValueError(f"{error}. Or delete it to start over.") from error
            if kind != KIND:
                raise ValueError(
                    f"{path} is a bayesvm file, but not a checkpoint: it contains a {kind}; use another path"
                )
            if version_found != persistence.VERSION:
                raise ValueError(f"{path} is a checkpoint of an earlier version of bayesvm; delete it to start over")
            with found.building():
                CHECKPOINT(found.content, "state", {})
        return found

    def building(self) -> AbstractContextManager[None]:
        return persistence.building(self.path, "delete it to start over")

    def freeze(self) -> None:
        self.frozen = True

    def seed(self, drawn: int) -> int:
        return int(self.content.setdefault("seed", drawn))

    def belongs_to(self, here: dict[str, Any]) -> None:
        """Raise an error that names the difference if the checkpoint belongs to another fit."""
        kept = self.content.setdefault("identity", here)
        for name in [*here, *kept]:
            then, now = kept.get(name), here.get(name)
            if then != now:
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: {name} was {_short(then)} and is "
                    f"{_short(now)}. Delete it to start over, or use another path."
                )

    def recall(self, name: str, schema: Schema, sizes: Sizes) -> Any:
        """The state of this name, if it was stored; it must match the schema with these sizes."""
        state = self.content.get(name)
        if state is not None:
            with self.building():
                schema(state, name, sizes)
        return state

    def keep(self, name: str, state: Callable[[], Any], *, now: bool = True) -> None:
        """Replace the state of this name, and write the file if the interval has passed."""
        if self.frozen or (not now and time.monotonic() < self.written + self.every):
            return
        self.content[name] = state()
        try:
            persistence.write(self.path, KIND, self.content)
        except OSError as error:
            if not self.warned:
                warn_user(
                    f"the fit continues without its checkpoint: {error.strerror or error}",
                )
            self.warned = True
        self.written = time.monotonic()

    def recall_prepared(self, n_features: int, n_functions: int) -> tuple[Prepared, Any] | None:
        state = self.recall("prepared", PREPARED, {"D": n_features, "K": n_functions})
        if state is None:
            return None
        with self.building():
            report = None if state["report"] is None else report_from(state["report"])
            others = tuple(self._prepared_from(other) for other in state["others"])
            return replace(self._prepared_from(state), report=report, others=others), state["rng"]

    def _prepared_from(self, state: dict[str, Any]) -> Prepared:
        """One prepared member from its state."""
        return Prepared(
            state["scale"],
            named_from(state["scaler"], SCALERS),
            features_from(state["features"], self.trusted),
            tuple(map(function_from, state["functions"])),
            chosen=None if state["chosen"] is None else Trial(**state["chosen"]),
            gained=state["gained"],
            likelihood=None if state["likelihood"] is None else named_from(state["likelihood"], LIKELIHOODS),
        )

    def keep_prepared(self, prepared: Prepared, rng: Any) -> None:
        report = prepared.report
        self.keep(
            "prepared",
            lambda: (
                _prepared_state(prepared)
                | {
                    "report": None if report is None else report_state(report),
                    "others": [_prepared_state(other) for other in prepared.others],
                    "rng": rng,
                }
            ),
        )

    def leaves(self, name: str, kernel: Kernel, n_functions: int) -> LeafMemory:
        return LeafMemory(self, name, kernel, {"K": n_functions})

    def training(self, name: str, plan: Plan, sizes: dict[str, int]) -> TrainingMemory:
        schema = MEAN_FIELD if name == "mean field" else training_state(plan.learning_rate)
        return TrainingMemory(self, name, schema, sizes)


@dataclass(frozen=True)
class TrainingMemory(NoMemory):
    """The state of one training run, in a checkpoint."""

    checkpoint: CheckpointFile
    name: str
    schema: Schema
    sizes: Sizes

    def recall(self) -> TrainingState | None:
        state = self.checkpoint.recall(self.name, self.schema, self.sizes)
        with self.checkpoint.building():
            return None if state is None else _training_from(state)

    def keep(self, state: Callable[[], TrainingState], *, now: bool = False) -> None:
        self.checkpoint.keep(self.name, lambda: _training_state(state()), now=now)


@dataclass
class LeafMemory(NoLeafMemory):
    """The finished local models, in a checkpoint."""

    checkpoint: CheckpointFile
    name: str
    kernel: Kernel
    sizes: Sizes
    states: list[dict[str, Any]] = field(default_factory=list)

    def recall(self) -> list[FittedLeaves]:
        self.states = list(self.checkpoint.recall(self.name, FINISHED_LEAVES, self.sizes) or [])
        with self.checkpoint.building():
            return [_leaves_from(state, self.kernel) for state in self.states]

    def keep(self, finished: Sequence[FittedLeaves], *, now: bool = False) -> None:
        self.states += [_leaves_state(leaves) for leaves in finished[len(self.states) :]]
        self.checkpoint.keep(self.name, lambda: list(self.states), now=now)


def identity(estimator: Any, classes: np.ndarray | None, columns: Any, data: dict[str, Any]) -> dict[str, Any]:
    """What must match for a fit to resume: parameters, classes, and a fingerprint of the data."""
    free = ANY_VALUE | (
        {"max_iter"} if estimator.inference == "batch" else set()
    )  # otherwise it determines the lengths of the phases
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        parameters = {
            name: repr(plain(value))
            for name, value in estimator.get_params(deep=False).items()
            if name not in free and not isinstance(value, np.random.RandomState)
        }
    return parameters | {
        "the estimator": type(estimator).__name__,
        "the version of bayesvm": version("bayesvm"),
        "the classes": None if classes is None else repr(classes.tolist()),
        "the names of the columns": repr(list(columns)) if isinstance(columns, tuple) else None,
        **data,
    }


def _short(value: Any, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _leaves_state(fitted: FittedLeaves) -> dict[str, Any]:
    left = fitted.left_out
    return {
        "leaves": [leaf_state(leaf) for leaf in fitted.leaves],
        "left_out": {"mean": left.mean, "variance": left.variance, "y": left.y, "weight": left.weight},
        "numbers": fitted.numbers,
        "converged": fitted.converged,
    }


def _leaves_from(state: dict[str, Any], kernel: Kernel) -> FittedLeaves:
    leaves = [leaf_from(leaf, kernel) for leaf in state["leaves"]]
    return FittedLeaves(leaves, Cavities(**state["left_out"]), state["numbers"], state["converged"])


def _training_state(reached: TrainingState) -> dict[str, Any]:
    epoch = reached.epoch
    return {
        "phase": reached.phase,
        "functions": [function_state(function) for function in reached.functions],
        "contraction": reached.contraction,
        "rng": reached.rng,
        "subset_rows": reached.subset_rows,
        "states": [_ascent_state(state) for state in reached.states],
        "epoch": None if epoch is None else vars(epoch) | {"states": [_walk_state(state) for state in epoch.states]},
        "passes": [[dict(vars(sums)) for sums in of_target] for of_target in reached.passes],
        "rows": reached.rows,
        "trace": np.array(reached.trace),
    }


def _training_from(state: dict[str, Any]) -> TrainingState:
    epoch = state["epoch"]
    return TrainingState(
        phase=state["phase"],
        functions=tuple(map(function_from, state["functions"])),
        contraction=tuple(state["contraction"]),
        rng=state["rng"],
        subset_rows=state["subset_rows"],
        states=tuple(_ascent_from(each) for each in state["states"]),
        epoch=None if epoch is None else Epoch(**epoch | {"states": tuple(map(_walk_from, epoch["states"]))}),
        passes=tuple(tuple(Statistics(**sums) for sums in of_target) for of_target in state["passes"]),
        rows=state["rows"],
        trace=tuple(state["trace"].tolist()),
    )


def _ascent_state(state: AscentState) -> dict[str, Any]:
    best = state.best
    return {
        "function": function_state(best.function),
        "elbo": best.elbo,
        "target": dict(vars(best.target)),
        "rho": state.rho,
        "distance": state.distance,
        "contraction": state.contraction,
        "rejected": state.rejected,
    }


def _ascent_from(state: dict[str, Any]) -> AscentState:
    best = Evaluation(function_from(state["function"]), state["elbo"], NaturalParameters(**state["target"]))
    proposal = best.posterior.moved(best.target, state["rho"])
    return AscentState(
        best, proposal, state["rho"], state["distance"], state["contraction"], rejected=state["rejected"]
    )


def _walk_state(state: StochasticState) -> dict[str, Any]:
    memory = state.memory
    kept = dict(vars(memory)) if isinstance(memory, RunningAverages) else memory
    return {"function": function_state(state.function), "memory": kept, "rho": state.rho, "elbo": state.elbo}


def _walk_from(state: dict[str, Any]) -> StochasticState:
    memory = state["memory"]
    kept = RunningAverages(**memory) if isinstance(memory, dict) else memory
    return StochasticState(function_from(state["function"]), kept, state["rho"], state["elbo"])


def _prepared_state(prepared: Prepared) -> dict[str, Any]:
    """The state of one prepared member."""
    return {
        "scale": prepared.scale,
        "scaler": named_state(prepared.scaler),
        "features": features_state(prepared.features),
        "functions": [function_state(function) for function in prepared.functions],
        "chosen": None if prepared.chosen is None else dict(vars(prepared.chosen)),
        "gained": prepared.gained,
        "likelihood": None if prepared.likelihood is None else named_state(prepared.likelihood),
    }
