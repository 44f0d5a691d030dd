"""Data: a stop request, checked between two blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class Stopped(KeyboardInterrupt):
    """A pass was abandoned on request. Where there is nothing yet to be kept, it ends the fit as Ctrl-C does."""


@dataclass
class StopRequest:
    """Whether somebody asked to stop, and what that means for whatever runs now."""

    made: bool = False
    pending: bool = False  # whether a pass has still to be abandoned
    heeded: bool = False  # whether the running code checks this; before that there is no model to keep
    waiting: bool = False  # whether it waits for others, and so cannot look

    def make(self) -> None:
        """Ask to stop; raises at once while waiting for a cluster or a file."""
        self.made = self.pending = True
        if self.waiting:
            raise Stopped

    def check(self) -> None:
        """Abandon the pass under way if that is asked for."""
        if self.pending:
            raise Stopped

    def settle(self) -> None:
        """What follows is short, and done to its end."""
        self.pending = False

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While a cluster works, or a table is read."""
        self.waiting = True
        try:
            self.check()
            yield
        finally:
            self.waiting = False
