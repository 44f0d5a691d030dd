"""Inference: the report of tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

HEADER = f"{'tried':<14} {'scale':<8} {'kernel':<20} {'rows':>9} {'points':>6} {'LOO loss':>8} {'seconds':>7}"


@dataclass(frozen=True)
class Trial:
    """One trial of tuning: a line of the report."""

    what: str
    scale: str | None
    kernel: str
    n_rows: int
    n_inducing: int
    loo: float  # leave-one-out log loss
    seconds: float

    def __str__(self) -> str:
        left = f"{self.what:<14} {self.scale or 'none':<8} {self.kernel:<20} {self.n_rows:>9,} {self.n_inducing:>6}"
        return f"{left} {self.loo:>8.4f} {self.seconds:>7.2f}"


@dataclass(frozen=True)
class Report:
    """The trials of tuning with their leave-one-out log loss, the choice and its reasons; prints as a table.

    Attributes
    ----------
    trials : tuple of trials
    chosen : tuple of str
        What was chosen and why.
    failed : int
        Kernels whose matrices could not be factored.
    climb : tuple of tuples
        The steps of ``tune="elbo"``: the ELBO, then the kernel's learned parameters.
    kept : int or None
        The number of the trial that became the model; None if tuning was interrupted before that.
    """

    trials: tuple[Trial, ...] = ()
    chosen: tuple[str, ...] = ()
    failed: int = 0
    climb: tuple[tuple[float, ...], ...] = ()
    kept: int | None = None

    def with_reason(self, reason: str) -> Report:
        """The report with one more sentence about the choice."""
        return replace(self, chosen=(*self.chosen, reason))

    def __str__(self) -> str:
        failed = [f"{self.failed} kernels were skipped: their matrices could not be factored."] if self.failed else []
        return "\n".join([HEADER, *map(str, self.trials), *self.chosen, *failed])

    __repr__ = __str__


@dataclass
class TrialLog:
    """The report under construction; ``notify`` is called with every trial."""

    notify: Callable[[Trial], Any] = lambda _: None
    report: Report = field(default_factory=Report)

    def add(self, trial: Trial) -> Trial:
        """Note a trial."""
        self.report = replace(self.report, trials=(*self.report.trials, trial))
        self.notify(trial)
        return trial

    def choose(self, reason: str) -> None:
        """Note what was chosen and why."""
        self.report = self.report.with_reason(reason)

    def fail(self, times: int = 1) -> None:
        """Note kernels whose matrices could not be factored."""
        self.report = replace(self.report, failed=self.report.failed + times)
