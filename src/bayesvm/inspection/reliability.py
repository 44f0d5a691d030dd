"""Inspection: do things happen as often as is stated?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from bayesvm.evaluation import Predictions, reliability
from bayesvm.evaluation.formatting import counted
from bayesvm.inspection import colours
from bayesvm.inspection._display import Array, Floats, without_math
from bayesvm.inspection._predicted import PredictionDisplay, against_the_rest

BARS = 25  # of the strip of counts
STRIP = (-0.24, -0.05)  # where it lies, below the share of zero
PERFECT = "perfect"


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(PredictionDisplay):
    """Stated probabilities against the share that came true, in groups of equal numbers of rows, with 95 % intervals.

    The strip below shows how many rows state which probability. Of two classes it is the probability of the second; of
    more, that of the most probable class, or of ``pos_label``.

    Parameters
    ----------
    stated, observed, low, high : arrays of shape (n_groups,)
        Mean stated probability, observed share, and its interval.
    counts : array or None
        Rows, by stated probability in even bins from 0 to 1.
    what : str
        Whose probability it is.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where ``plot`` drew.
    figure_ : matplotlib figure
        That of the axes.
    line_ : matplotlib line
        Observed shares.
    intervals_ : matplotlib collection
        Their 95 % intervals.
    strip_ : matplotlib bars or None
        The counts.

    See Also
    --------
    bayesvm.evaluation.reliability : The numbers.
    ProbabilityHistogramDisplay : How often which probability is stated.
    sklearn.calibration.CalibrationDisplay : Groups of equal width, without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.inspection import ReliabilityDisplay
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p  # comes true as often as stated
    >>> display = ReliabilityDisplay.from_predictions(y, p, n_bins=10)
    >>> bool(((display.low < display.stated) & (display.stated < display.high)).mean() > 0.8)
    True
    """

    stated: Floats
    observed: Floats
    low: Floats
    high: Floats
    _: KW_ONLY
    counts: Array | None = None
    what: str = "the class"

    @classmethod
    def of(
        cls, predictions: Predictions, *, n_bins: int = 15, pos_label: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw predictions.

        Parameters
        ----------
        predictions : Predictions
            Stated probabilities, and what was true.
        n_bins : int
            Groups, at most.
        pos_label : label or None
            A class, to draw its probability; None for the second of two classes, or else the most probable one.
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        ReliabilityDisplay
            What was drawn, with its numbers.
        """
        what = "the most probable class" if len(predictions.classes) > 2 else f"y = {predictions.classes[1]}"
        if pos_label is not None:
            predictions, what = against_the_rest(predictions, pos_label), f"y = {pos_label}"
        found = reliability(predictions, n_bins)
        stated = predictions.positive if len(predictions.classes) == 2 else predictions.proba.max(axis=1)
        counts, _ = np.histogram(stated[predictions.weight_or_ones > 0], BARS, (0, 1))
        shown = cls(found.stated, found.observed, found.low, found.high, counts=counts, what=what)
        return shown.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, strip: bool = True, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        name : str or None
            For the legend.
        strip : bool
            Whether to draw the counts; False for a second model on the same axes.
        **kwargs : dict
            Passed to ``ax.plot`` of the points.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        ax = self._begin(ax)
        if PERFECT not in ax.get_legend_handles_labels()[1]:
            ax.plot([0, 1], [0, 1], color=colours.ink(), alpha=colours.FAINT, linewidth=1, zorder=1, label=PERFECT)
        number = len(ax.get_legend_handles_labels()[1]) - 1  # of this curve on these axes
        look = {"marker": "o", "markersize": 4.5, "linewidth": 1, "zorder": 3}
        style = {"color": colours.series(number)} | look | kwargs
        self.intervals_ = ax.vlines(
            self.stated, self.low, self.high, colors=style["color"], alpha=0.55, linewidth=2, zorder=2
        )
        (self.line_,) = ax.plot(self.stated, self.observed, label=name or "observed, 95 % interval", **style)
        ax.set(xlim=(-0.02, 1.02), xlabel=f"stated probability of {self.what}", ylabel="observed share")
        without_math(ax.xaxis.label)
        ax.set_yticks(np.arange(0, 1.01, 0.2))
        self.strip_ = None
        if strip and self.counts is not None:
            self._draw_strip(ax)
        else:
            ax.set_ylim(min(ax.get_ylim()[0], -0.02), 1.02)
        ax.legend(loc="upper left", fontsize="small")
        return self

    def _draw_strip(self, ax: Any) -> None:
        counts = np.zeros(1) if self.counts is None else self.counts
        bottom, top = STRIP
        edges = np.linspace(0, 1, len(counts) + 1)
        heights = (top - bottom) * counts / max(counts.max(), 1)
        look = {"color": colours.ink(), "alpha": colours.FAINT, "linewidth": 0, "align": "edge"}
        self.strip_ = ax.bar(edges[:-1], heights, 0.9 * edges[1], bottom=bottom, **look)
        ax.axhline(bottom, color=colours.ink(), alpha=colours.FAINT, linewidth=0.6)
        most = f"of {counted(int(counts.sum()), 'row')}, the highest bar has {int(counts.max()):,}"
        ax.text(0.5, top, most, ha="center", va="bottom", fontsize="x-small", color=colours.ink(), alpha=0.8)
        ax.set_ylim(bottom - 0.02, 1.02)
