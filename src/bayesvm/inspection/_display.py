"""Inspection: the base class of displays, which creates axes if needed, and helpers for legends and many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation.rows import Floats
from bayesvm.extras import optional

__all__ = ["MOST_POINTS", "Array", "Display", "Floats", "legend_on_top", "some_of", "without_math"]

Array = npt.NDArray[Any]
MOST_POINTS = 2_000  # of a scatter plot; more are slow, make large files and cannot be distinguished


class Display:
    """A plot that keeps its data: ``plot`` draws it and sets ``ax_`` and ``figure_``.

    Displays are dataclasses. Fields of type ``Floats`` and ``Array`` accept any sequence.
    """

    ax_: Any
    figure_: Any

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            kind, value = str(each.type).partition(" ")[0], getattr(self, each.name)
            if kind in {"Floats", "Array"} and value is not None:
                setattr(self, each.name, np.asarray(value, np.float64 if kind == "Floats" else None))

    def _begin(self, ax: Any) -> Any:
        """The given axes, or new ones."""
        pyplot = optional("matplotlib.pyplot", "plots")
        if ax is None:
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def some_of(n_rows: int, most: int, random_state: int = 0) -> npt.NDArray[np.intp]:
    """Sorted row indices: all, or a random choice of ``most``."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, most, replace=False))


def legend_on_top(ax: Any, handles: Sequence[Any], labels: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Draw a legend above the axes, where it hides no data, in as many columns as fit."""
    font = optional("matplotlib.font_manager", "plots").FontProperties(size="small")
    size = font.get_size_in_points()
    wide = [size * (4.5 + 0.55 * len(label)) for label in labels]  # mark, gaps, and letters
    room = 0.85 * ax.get_window_extent().width / ax.figure.dpi * 72
    n_columns = next(
        n for n in range(len(wide), 0, -1) if n == 1 or sum(max(part) for part in np.array_split(wide, n)) <= room
    )
    where = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    look = {"frameon": False, "prop": font, "title_fontproperties": font, "alignment": "left"}
    ax.legend(handles, labels, ncols=n_columns, title="; ".join(notes) or None, **where, **look)
    without_math(*ax.get_legend().get_texts())


def without_math(*texts: Any) -> None:
    """Turn off math text: names of columns and classes may contain dollar signs."""
    for text in texts:
        text.set_parse_math(False)
