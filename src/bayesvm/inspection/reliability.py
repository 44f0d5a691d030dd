"""Inspection: reliability diagrams."""

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
STRIP = (-0.24, -0.05)  # its position, below a frequency of zero
PERFECT = "perfect"


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(PredictionDisplay):
    """A reliability diagram: predicted probabilities against observed frequencies, with 95% intervals.

    Groups have equal numbers of rows. The strip below shows the distribution of the predicted probabilities. For two
    classes, the plot shows the probability of the second class; for more, that of the most probable class, or of
    ``pos_label``.

    Parameters
    ----------
    predicted, observed, low, high : arrays of shape (n_groups,)
        Mean predicted probability, observed frequency, and its interval.
    counts : array, optional
        Numbers of rows, by predicted probability in bins of equal width from 0 to 1.
    what : str
        The event of the probability, for the axis label.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    line_ : matplotlib line
        Observed frequencies.
    intervals_ : matplotlib collection
        95% intervals of the frequencies.
    strip_ : matplotlib bars or None
        Strip of counts.

    See Also
    --------
    bayesvm.evaluation.reliability : Compute the data of the plot.
    ProbabilityHistogramDisplay : Histograms of predicted probabilities.
    sklearn.calibration.CalibrationDisplay : Groups of equal width, without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.inspection import ReliabilityDisplay
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p  # calibrated
    >>> display = ReliabilityDisplay.from_predictions(y, p, n_bins=10)
    >>> bool(((display.low < display.predicted) & (display.predicted < display.high)).mean() > 0.8)
    True
    """

    predicted: Floats
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
            Predicted probabilities and true classes.
        n_bins : int
            Maximal number of groups.
        pos_label : label or None
            The class whose probability to draw; by default the second of two classes, or the most probable class.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        ReliabilityDisplay
            The display, with the plotted data.
        """
        what = "the most probable class" if len(predictions.classes) > 2 else f"y = {predictions.classes[1]}"
        if pos_label is not None:
            predictions, what = against_the_rest(predictions, pos_label), f"y = {pos_label}"
        found = reliability(predictions, n_bins)
        predicted = predictions.positive if len(predictions.classes) == 2 else predictions.proba.max(axis=1)
        counts, _ = np.histogram(predicted[predictions.weight_or_ones > 0], BARS, (0, 1))
        shown = cls(found.predicted, found.observed, found.low, found.high, counts=counts, what=what)
        return shown.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, strip: bool = True, **kwargs: Any) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        name : str or None
            Name in the legend.
        strip : bool
            Whether to draw the strip of counts; set it to False for a second model on the same axes.
        **kwargs : dict
            Passed to ``ax.plot`` of the points.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = self._begin(ax)
        if PERFECT not in ax.get_legend_handles_labels()[1]:
            ax.plot([0, 1], [0, 1], color=colours.ink(), alpha=colours.FAINT, linewidth=1, zorder=1, label=PERFECT)
        number = len(ax.get_legend_handles_labels()[1]) - 1  # index of this curve on the axes
        look = {"marker": "o", "markersize": 4.5, "linewidth": 1, "zorder": 3}
        style = {"color": colours.series(number)} | look | kwargs
        self.intervals_ = ax.vlines(
            self.predicted, self.low, self.high, colors=style["color"], alpha=0.55, linewidth=2, zorder=2
        )
        (self.line_,) = ax.plot(self.predicted, self.observed, label=name or "observed, 95% interval", **style)
        ax.set(xlim=(-0.02, 1.02), xlabel=f"predicted probability of {self.what}", ylabel="observed frequency")
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
