"""Inspection: what all displays share: axes to draw on, made when none are given, and a choice where rows are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.extras import optional

MOST_POINTS = 2_000  # of a scatter plot: more make a picture slow and its file large, and are no longer seen


class Display:
    """A picture that keeps its numbers: ``plot`` draws them, and leaves ``ax_`` and ``figure_``."""

    ax_: Any
    figure_: Any

    def _begin(self, ax: Any) -> Any:
        """Axes to draw on: those given, or new ones."""
        pyplot = optional("matplotlib.pyplot", "plots")
        if ax is None:
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def some_of(n_rows: int, most: int, random_state: int = 0) -> npt.NDArray[np.intp]:
    """Row numbers in order: all, or a random choice of ``most``."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, most, replace=False))


def counted(n: int, what: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")
