"""Inference: train the posteriors: which updates, on which rows, until when.

All strategies end with coordinate ascent over all rows, whose stopping criterion (D12) is reliable: ``batch`` starts
with it, ``stochastic`` runs epochs of minibatches first, and ``auto`` growing subsets of the rows. Latent functions are
trained together: one pass serves all that are not finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bayesvm.core.latent import LatentFunction
from bayesvm.core.statistics import Statistics
from bayesvm.data.blocks import BlockSource
from bayesvm.data.stopping import Stopped
from bayesvm.inference import coordinate_ascent, mean_field, stochastic
from bayesvm.inference.coordinate_ascent import AscentState
from bayesvm.inference.learning_rates import LearningRate
from bayesvm.inference.problem import Problem
from bayesvm.inference.training_state import Clock, Epoch, NoMemory, TrainingState

FIRST_SUBSET = 16  # rows per weight in the smallest subset, within the limits
SMALLEST_SUBSET, LARGEST_FIRST_SUBSET = 2_048, 16_384
GROWTH = 4
UNKNOWN_CONTRACTION = 0.9
FEW_PASSES = 10  # over a sample, for mean-field targets stopped before their first pass


@dataclass(frozen=True)
class Progress:
    """The progress of training, passed to callbacks after every update."""

    phase: str
    update: int
    passes: float  # rows read so far, divided by the number of rows
    max_passes: float
    elbo: float  # of all rows and functions; an estimate while only some rows are used
    rho: float
    remaining: float  # estimated remaining gain of ELBO per row; NaN if unknown
    tol: float = 0.0  # tolerance for ``remaining``
    functions: tuple[LatentFunction, ...] = ()  # the current functions; empty if not available
    held_out: float = np.nan  # log loss on held-out rows, if requested


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Plan:
    """How to train: the inference strategy, its budget in passes and seconds, and its tolerance.

    ``tol`` is in nats of ELBO per row, the unit of the log loss; zero means use the whole budget.
    """

    inference: str
    max_passes: int
    tol: float
    batch_size: int
    learning_rate: LearningRate
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True)
class Trained:
    """The trained functions, the record of training, and the functions one step before, which define the sites."""

    functions: tuple[LatentFunction, ...]
    before: tuple[LatentFunction, ...]
    elbo: float
    trace: tuple[float, ...]
    passes: float
    converged: bool


@dataclass
class Log:
    """Counts rows, records the trace, calls callbacks, and checks the budget."""

    n_rows: int
    plan: Plan
    callback: Callback | None
    memory: NoMemory
    rows: int = 0
    trace: list[float] = field(default_factory=list)
    latest: Callable[[], TrainingState] | None = None
    stopped: bool = False

    @property
    def passes(self) -> float:
        """Rows read, divided by the number of rows."""
        return self.rows / self.n_rows

    def spent(self, next_rows: int = 0) -> bool:
        """Whether the budget does not allow reading this many more rows."""
        if self.plan.clock.over() and not self.stopped:
            # From here on training takes shortcuts; a later run should resume from the state before them.
            self.stopped = True
            if self.latest is not None:
                self.memory.keep(self.latest, now=True)
        return self.stopped or self.rows + next_rows > self.plan.max_passes * self.n_rows

    def abandoned(self) -> None:
        """Note that a pass was aborted on request."""
        self.plan.clock.stop.settle()
        self.spent()

    def __call__(
        self,
        phase: str,
        rows: int,
        elbo: float,
        rho: float,
        remaining: float = np.nan,
        functions: Iterable[LatentFunction] = (),
    ) -> None:
        self.rows += rows
        self.trace.append(elbo)
        if self.callback is not None:
            update, left, plan = len(self.trace), remaining / self.n_rows, self.plan
            self.callback(
                Progress(phase, update, self.passes, plan.max_passes, elbo, rho, left, plan.tol, tuple(functions))
            )

    def states(self, phase: str, rows: int, states: Sequence[AscentState], reached: TrainingState) -> None:
        """Note a pass of coordinate ascent."""
        elbo, left = sum(s.best.elbo for s in states), sum(s.remaining for s in states)
        self(phase, rows, elbo, min(s.rho for s in states), left, (s.best.function for s in states))
        self.reached(replace(reached, states=tuple(states)))

    def reached(self, state: TrainingState, *, now: bool = False) -> None:
        """Store a state to resume from."""
        if not self.stopped:
            self.latest = lambda: replace(state, rows=self.rows, trace=tuple(self.trace))
            self.memory.keep(self.latest, now=now)


def train(
    problem: Problem,
    source: BlockSource,
    plan: Plan,
    functions: Sequence[LatentFunction],
    rng: np.random.Generator,
    callback: Callback | None = None,
    memory: NoMemory | None = None,
) -> Trained:
    """Fit a full covariance for every function, from the start or from a stored state."""
    log = Log(source.n_rows, plan, callback, memory or NoMemory())
    reached = log.memory.recall()
    if reached is None:
        reached = TrainingState.start(plan.inference, functions, [UNKNOWN_CONTRACTION] * len(functions), rng)
    else:
        log.rows, log.trace = reached.rows, list(reached.trace)
        rng.bit_generator.state = reached.rng
    if reached.phase == "stochastic":
        reached = minibatch_epochs(problem, source, plan, reached, rng, log)
    elif reached.phase == "auto":
        reached = _growing_subsets(problem, source, plan, reached, rng, log)
    good_enough = plan.tol * problem.total_weight
    states = _ascend(problem, source, reached, log, "all rows", good_enough) or _from_few_rows(
        problem, source, reached, rng, log
    )
    log.reached(replace(reached, states=tuple(states)), now=True)
    done = [not state.rejected and state.remaining <= good_enough for state in states]
    final = [s.settled() if good else s.finished() for s, good in zip(states, done, strict=True)]
    return Trained(
        functions=tuple(final),
        before=tuple(state.best.function for state in states),
        elbo=float(sum(state.best.elbo for state in states)),
        trace=tuple(log.trace),
        passes=log.passes,
        converged=all(done),
    )


def train_mean_field(
    problem: Problem,
    source: BlockSource,
    plan: Plan,
    targets: Sequence[int],
    callback: Callback | None = None,
    memory: NoMemory | None = None,
) -> Trained:
    """Fit a diagonal covariance for every target, one at a time.

    The state of the optimiser cannot be stored, but the sums of its passes can, and they reproduce its path.
    """
    log = Log(source.n_rows * len(targets), plan, callback, memory or NoMemory())
    reached = log.memory.recall() or TrainingState("mean field", (), (), None)
    passes = [list(sums) for sums in reached.passes]
    fits = []
    for number, target in enumerate(targets):
        if number == len(passes):
            passes.append([])
        earlier, mine = iter(tuple(passes[number])), passes[number]

        def remembered(
            sums: Callable[[], Statistics], earlier: Iterator[Statistics] = earlier, mine: list[Statistics] = mine
        ) -> Statistics:
            if (found := next(earlier, None)) is None:
                found = sums()
                mine.append(found)
                log.reached(replace(reached, passes=tuple(map(tuple, passes))))
            return found

        fit = None
        with suppress(Stopped):
            if mine or not plan.clock.stop.made:
                fit = mean_field.maximise(
                    problem,
                    source,
                    target,
                    max_passes=plan.max_passes,
                    tol=plan.tol,
                    on_pass=lambda elbo: log("mean field", source.n_rows, elbo, 1.0),
                    remembered=remembered,
                    stop=log.spent,
                )
        if plan.clock.stop.made:
            log.abandoned()
        if fit is None:  # a model needs all its functions
            few = source.subset(SMALLEST_SUBSET, np.random.default_rng(0))
            few_passes = min(FEW_PASSES, plan.max_passes)
            heard = partial(log, "mean field", few.n_rows, rho=1.0)
            fit = mean_field.maximise(problem, few, target, max_passes=few_passes, tol=plan.tol, on_pass=heard)
        fits.append(fit)
    log.reached(replace(reached, passes=tuple(map(tuple, passes))), now=True)
    functions = tuple(LatentFunction(target, 0.0, q) for target, (q, _, _) in zip(targets, fits, strict=True))
    elbo, done = sum(elbo for _, elbo, _ in fits), all(done for _, _, done in fits)
    return Trained(functions, functions, elbo, tuple(log.trace), log.passes, done)


def _ascend(
    problem: Problem, source: BlockSource, reached: TrainingState, log: Log, phase: str, good_enough: float
) -> list[AscentState]:
    """Coordinate ascent until, for every function, the gain that remains after the next step is within the tolerance.

    A stop request ends it with the last complete pass; before the first pass there are no states.
    """
    states = list(reached.states)
    try:
        probe = coordinate_ascent.probe_of(problem, source)
        if not states and not log.plan.clock.stop.made:
            states = coordinate_ascent.init(problem, source, reached.functions, reached.contraction)
            log.states(phase, source.n_rows, states, reached)
        while states and not log.spent(source.n_rows):
            going = [i for i, s in enumerate(states) if (s.rejected or s.remaining > good_enough) and not s.stalled]
            if not going:
                break
            moving = [states[i] for i in going]
            if probe is not None:
                moving = [coordinate_ascent.probed(problem, probe, state) for state in moving]
            for i, state in zip(going, coordinate_ascent.step(problem, source, moving), strict=True):
                states[i] = state
            log.states(phase, source.n_rows, states, reached)
    except Stopped:
        log.abandoned()
    return states


def _from_few_rows(
    problem: Problem, source: BlockSource, reached: TrainingState, rng: np.random.Generator, log: Log
) -> list[AscentState]:
    """The result of a stop before the first complete pass: the current functions, or one step from the prior."""
    log.abandoned()
    part = source.subset(min(source.n_rows, SMALLEST_SUBSET), rng)
    states = coordinate_ascent.init(problem, part, reached.functions, reached.contraction)
    begun = [function.trained for function in reached.functions]
    states = [replace(state, rejected=trained) for state, trained in zip(states, begun, strict=True)]
    log.states(f"{part.n_rows:,} rows", part.n_rows, states, reached)
    return states


def first_subset(n_weights: int) -> int:
    """The number of rows in the smallest useful subset for this many weights."""
    return int(np.clip(FIRST_SUBSET * n_weights, SMALLEST_SUBSET, LARGEST_FIRST_SUBSET))


def _growing_subsets(
    problem: Problem, source: BlockSource, plan: Plan, reached: TrainingState, rng: np.random.Generator, log: Log
) -> TrainingState:
    """Train on nested random subsets, each four times the size of the last, with sums scaled to all rows.

    From a cold start, a posterior concentrated by all N rows moves slowly, because only rows near the margin have
    influence; a small subset makes the same progress at a fraction of the cost. A subset of n rows determines the
    weights only to about M·N/n nats, so converging much further is useless.
    """
    order = source.subset(source.n_rows, rng)  # limited to what memory can hold
    n_rows = reached.subset_rows or first_subset(problem.features.n_weights)
    largest = min(source.n_rows // 2, order.n_rows + 1)
    while reached.states or (n_rows < largest and not log.spent(source.n_rows)):
        part = order.head(n_rows)
        sampling_noise = 0.1 * problem.features.n_weights * source.n_rows / n_rows
        good_enough = max(sampling_noise, plan.tol * problem.total_weight)
        states = _ascend(problem, part, replace(reached, subset_rows=n_rows), log, f"{n_rows:,} rows", good_enough)
        if not states:
            break
        functions, contraction = tuple(s.finished() for s in states), tuple(s.contraction for s in states)
        reached = replace(reached, functions=functions, contraction=contraction, states=())
        n_rows *= GROWTH
    return reached.for_all_rows(rng)


def minibatch_epochs(
    problem: Problem, source: BlockSource, plan: Plan, reached: TrainingState, rng: np.random.Generator, log: Log
) -> TrainingState:
    """Train on epochs of minibatches until their mean ELBO does not rise beyond its noise twice in a row.

    At least one pass of the budget is reserved for the final coordinate ascent, which checks convergence.
    """
    epoch = reached.epoch or Epoch(tuple(stochastic.init(reached.functions, plan.learning_rate)))
    while epoch.begun or (epoch.flat < 2 and not log.spent(2 * source.n_rows)):
        reached = replace(reached, rng=rng.bit_generator.state)
        try:
            for number, batch in enumerate(source.minibatches(plan.batch_size, rng)):
                if number < epoch.done:
                    continue  # done before the interruption
                if epoch.begun and log.spent():
                    break
                states = stochastic.step(problem, batch, epoch.states, plan.learning_rate)
                epoch = epoch.after(states)
                elbo, rho = sum(state.elbo for state in states), min(state.rho for state in states)
                log("minibatches", batch.n_rows, elbo, rho, functions=(state.function for state in states))
                log.reached(replace(reached, epoch=epoch))
        except Stopped:
            log.abandoned()
        if epoch.begun:
            epoch = epoch.ended(plan.tol * problem.total_weight)
    functions = tuple(state.function for state in epoch.states)
    return replace(reached, functions=functions, epoch=None).for_all_rows(rng)
