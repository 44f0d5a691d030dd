"""Data: a stop request, checked between two blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class Stopped(KeyboardInterrupt):
    """A pass was aborted on request. If there is no model to keep yet, it ends the fit like Ctrl-C."""


@dataclass
class StopRequest:
    """Whether a stop was requested, and how the running code must react."""

    made: bool = False
    pending: bool = False  # whether a pass must still be aborted
    heeded: bool = False  # whether the running code checks for requests; before that there is no model to keep
    waiting: bool = False  # whether it is waiting for others and cannot check

    def make(self) -> None:
        """Request a stop; raises immediately while waiting for a cluster or a file."""
        self.made = self.pending = True
        if self.waiting:
            raise Stopped

    def check(self) -> None:
        """Abort the current pass if a stop was requested."""
        if self.pending:
            raise Stopped

    def settle(self) -> None:
        """Mark that the remaining work is short and runs to completion."""
        self.pending = False

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Mark that a cluster is working or a table is being read."""
        self.waiting = True
        try:
            self.check()
            yield
        finally:
            self.waiting = False
