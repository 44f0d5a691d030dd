"""Inspection: risk-coverage curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from bayesvm.evaluation import Predictions, risk_coverage
from bayesvm.inspection import colours
from bayesvm.inspection._display import Floats
from bayesvm.inspection._predicted import PredictionDisplay


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(PredictionDisplay):
    """The observed and the predicted error rate if a model abstains from the most doubtful rows.

    If the predicted curve follows the observed one, use it to choose a coverage for a target error rate.

    Parameters
    ----------
    coverage : array of shape (n,)
        Share of the rows that are predicted.
    risk, predicted : arrays of shape (n,)
        Observed error rate of these rows, and their mean doubt.
    area : float
        Area under the observed curve.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    line_ : matplotlib line
        Observed error rate.
    predicted_line_ : matplotlib line
        Predicted error rate.

    See Also
    --------
    bayesvm.evaluation.risk_coverage : Compute the data of the plot.
    UncertaintyDisplay : Aleatoric and epistemic uncertainty of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.inspection import RiskCoverageDisplay
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p
    >>> display = RiskCoverageDisplay.from_predictions(y, p)
    >>> print(display.risk[-1].round(2), display.predicted[-1].round(2))  # for all rows
    0.25 0.25
    """

    coverage: Floats
    risk: Floats
    predicted: Floats
    area: float

    @classmethod
    def of(cls, predictions: Predictions, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw predictions.

        Parameters
        ----------
        predictions : Predictions
            Predicted probabilities and true classes.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        RiskCoverageDisplay
            The display, with the plotted data.
        """
        return cls(*risk_coverage(predictions)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        name : str or None
            Name in the legend.
        **kwargs : dict
            Passed to ``ax.plot`` of the observed error.

        Returns
        -------
        RiskCoverageDisplay
            The display itself.
        """
        ax = self._begin(ax)
        style = {"color": colours.series(len(ax.get_lines()) // 2)} | kwargs
        whose = "" if name is None else f"{name}, "
        (self.line_,) = ax.plot(self.coverage, self.risk, label=f"{whose}observed (area {self.area:.3g})", **style)
        (self.predicted_line_,) = ax.plot(
            self.coverage,
            self.predicted,
            label=f"{whose}predicted",
            color=style["color"],
            linestyle="dashed",
            alpha=0.8,
        )
        ax.set(xlim=(0, 1.01), xlabel="coverage (share of rows, least doubtful first)", ylabel="error rate")
        ax.set_ylim(bottom=0)
        ax.legend(loc="best", fontsize="small")
        return self
