"""Inspection: histograms of predicted probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from bayesvm.evaluation import Predictions
from bayesvm.inspection import colours
from bayesvm.inspection._display import Floats, without_math
from bayesvm.inspection._predicted import PredictionDisplay, against_the_rest


@dataclass(eq=False, repr=False)
class ProbabilityHistogramDisplay(PredictionDisplay):
    """Histograms of predicted probabilities: for two classes, of the second class, for the rows of each class.

    For more than two classes, the plot shows the probability of the most probable class, for correct and for wrong
    predictions, or with ``pos_label`` the probability of one class, for its rows and for all others. Each histogram
    adds up to one, so that rare classes are visible.

    Parameters
    ----------
    shares : array of shape (n_groups, n_bins)
        Shares of the rows (or weight) of each group.
    edges : array of shape (n_bins + 1,)
        Edges of the bins.
    labels : sequence of str
        Names of the groups.
    counts : sequence of int
        Number of rows of each group.
    what : str
        The event of the probability, for the axis label.
    grouped_by : {"truth", "prediction"}
        Whether the groups are true classes, or correct and wrong predictions.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    steps_ : list of matplotlib patches
        The outlines of the histograms.

    See Also
    --------
    ReliabilityDisplay : Predicted probabilities against observed frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.inspection import ProbabilityHistogramDisplay
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.where(np.random.default_rng(1).random(1000) < p, "yes", "no")
    >>> display = ProbabilityHistogramDisplay.from_predictions(y, p, n_bins=5)
    >>> display.labels, display.shares.round(1)[1]
    (['no', 'yes'], array([0. , 0.1, 0.2, 0.3, 0.4]))
    """

    shares: Floats
    edges: Floats
    labels: Sequence[str]
    counts: Sequence[int]
    _: KW_ONLY
    what: str = "the class"
    grouped_by: str = "truth"

    @classmethod
    def of(
        cls, predictions: Predictions, *, n_bins: int = 25, pos_label: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw predictions.

        Parameters
        ----------
        predictions : Predictions
            Predicted probabilities and true classes.
        n_bins : int
            Number of bins of equal width.
        pos_label : label or None
            The class whose probability to draw; by default the second of two classes, or the most probable class.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.stairs``.

        Returns
        -------
        ProbabilityHistogramDisplay
            The display, with the plotted data.
        """
        labels = list(map(str, predictions.classes))
        what, grouped_by = f"y = {labels[-1]}", "truth"
        if pos_label is not None:
            predictions = against_the_rest(predictions, pos_label)
            labels, what = [f"not {pos_label}", str(pos_label)], f"y = {pos_label}"
        if len(predictions.classes) == 2:
            group, predicted = predictions.y, predictions.positive
        else:
            labels, what, grouped_by = ["correct", "wrong"], "the most probable class", "prediction"
            group, predicted = (~predictions.correct).astype(np.intp), predictions.proba.max(axis=1)
        edges = np.linspace(0, 1, n_bins + 1)
        weight = predictions.weight_or_ones
        heights = [np.histogram(predicted[group == k], edges, weights=weight[group == k])[0] for k in range(2)]
        shares = np.array([height / max(height.sum(), np.finfo(float).tiny) for height in heights])
        counts = np.bincount(group[weight > 0], minlength=2).tolist()
        return cls(shares, edges, labels, counts, what=what, grouped_by=grouped_by).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.stairs``.

        Returns
        -------
        ProbabilityHistogramDisplay
            The display itself.
        """
        ax = self._begin(ax)
        self.steps_ = []
        for k, (share, label, count) in enumerate(zip(self.shares, self.labels, self.counts, strict=True)):
            colour = colours.of_class(k) if self.grouped_by == "truth" else colours.series(k)
            ax.stairs(share, self.edges, **({"fill": True, "color": colour, "alpha": 0.3} | kwargs))
            named = f"{label} ({count:,})"
            self.steps_.append(ax.stairs(share, self.edges, color=colour, linewidth=1.4, label=named))
        ax.set(xlim=(0, 1), xlabel=f"predicted probability of {self.what}", ylabel="share of the rows")
        without_math(ax.xaxis.label)
        ax.set_ylim(bottom=0)
        without_math(*ax.legend(title=f"{self.grouped_by} (rows)", fontsize="small", loc="best").get_texts())
        return self
