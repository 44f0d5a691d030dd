"""Inspection: which probabilities the rows of each class are given."""

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
    """How often which probability is stated: of two classes that of the second, for the rows of either class.

    Of more classes, that of the most probable one, where it is the true one and where it is not; or with ``pos_label``
    that of one class, for its rows and for the others. Each histogram adds up to one, so that a rare class is seen.

    Parameters
    ----------
    shares : array of shape (n_groups, n_bins)
        Of the rows (or weight) of each group.
    edges : array of shape (n_bins + 1,)
        Of the bins.
    labels : sequence of str
        Of the groups.
    counts : sequence of int
        Rows of the groups.
    what : str
        Whose probability it is.
    grouped_by : {"truth", "prediction"}
        By their class, or by whether it was predicted.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where ``plot`` drew.
    figure_ : matplotlib figure
        That of the axes.
    steps_ : list of matplotlib patches
        The outlines of the histograms.

    See Also
    --------
    ReliabilityDisplay : Whether things happen as often as stated.

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
            Stated probabilities, and what was true.
        n_bins : int
            Even ones.
        pos_label : label or None
            A class, to draw its probability; None for the second of two classes, or else the most probable one.
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``ax.stairs``.

        Returns
        -------
        ProbabilityHistogramDisplay
            What was drawn, with its numbers.
        """
        labels = list(map(str, predictions.classes))
        what, grouped_by = f"y = {labels[-1]}", "truth"
        if pos_label is not None:
            predictions = against_the_rest(predictions, pos_label)
            labels, what = [f"not {pos_label}", str(pos_label)], f"y = {pos_label}"
        if len(predictions.classes) == 2:
            group, stated = predictions.y, predictions.positive
        else:
            labels, what, grouped_by = ["right", "wrong"], "the most probable class", "prediction"
            group, stated = (~predictions.correct).astype(np.intp), predictions.proba.max(axis=1)
        edges = np.linspace(0, 1, n_bins + 1)
        weight = predictions.weight_or_ones
        heights = [np.histogram(stated[group == k], edges, weights=weight[group == k])[0] for k in range(2)]
        shares = np.array([height / max(height.sum(), np.finfo(float).tiny) for height in heights])
        counts = np.bincount(group[weight > 0], minlength=2).tolist()
        return cls(shares, edges, labels, counts, what=what, grouped_by=grouped_by).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``ax.stairs``.

        Returns
        -------
        ProbabilityHistogramDisplay
            Itself.
        """
        ax = self._begin(ax)
        self.steps_ = []
        for k, (share, label, count) in enumerate(zip(self.shares, self.labels, self.counts, strict=True)):
            colour = colours.of_class(k) if self.grouped_by == "truth" else colours.series(k)
            ax.stairs(share, self.edges, **({"fill": True, "color": colour, "alpha": 0.3} | kwargs))
            named = f"{label} ({count:,})"
            self.steps_.append(ax.stairs(share, self.edges, color=colour, linewidth=1.4, label=named))
        ax.set(xlim=(0, 1), xlabel=f"stated probability of {self.what}", ylabel="share of the rows")
        without_math(ax.xaxis.label)
        ax.set_ylim(bottom=0)
        without_math(*ax.legend(title=f"{self.grouped_by} (rows)", fontsize="small", loc="best").get_texts())
        return self
