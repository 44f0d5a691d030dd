"""Inspection: what is gained by leaving the most doubtful rows to somebody else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from bayesvm.evaluation import Predictions, risk_coverage
from bayesvm.inspection import colours
from bayesvm.inspection._display import Floats
from bayesvm.inspection._predicted import PredictionDisplay


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(PredictionDisplay):
    """The error among the rows that are answered, if the most doubtful ones are not; and the error that was stated.

    Where the stated line follows the observed one, a wanted error rate can be kept by it.

    Parameters
    ----------
    coverage : array of shape (n,)
        Share of the rows that are answered.
    risk, stated : arrays of shape (n,)
        Observed error among them, and the mean of their doubts.
    area : float
        Under the observed curve.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where ``plot`` drew.
    figure_ : matplotlib figure
        That of the axes.
    line_ : matplotlib line
        The observed error.
    stated_line_ : matplotlib line
        The stated error.

    See Also
    --------
    bayesvm.evaluation.risk_coverage : The numbers.
    UncertaintyDisplay : Why rows are doubtful.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.inspection import RiskCoverageDisplay
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p
    >>> display = RiskCoverageDisplay.from_predictions(y, p)
    >>> print(display.risk[-1].round(2), display.stated[-1].round(2))  # of all rows
    0.25 0.25
    """

    coverage: Floats
    risk: Floats
    stated: Floats
    area: float

    @classmethod
    def of(cls, predictions: Predictions, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw predictions.

        Parameters
        ----------
        predictions : Predictions
            Stated probabilities, and what was true.
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        RiskCoverageDisplay
            What was drawn, with its numbers.
        """
        return cls(*risk_coverage(predictions)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        name : str or None
            For the legend.
        **kwargs : dict
            Passed to ``ax.plot`` of the observed error.

        Returns
        -------
        RiskCoverageDisplay
            Itself.
        """
        ax = self._begin(ax)
        style = {"color": colours.series(len(ax.get_lines()) // 2)} | kwargs
        whose = "" if name is None else f"{name}, "
        (self.line_,) = ax.plot(self.coverage, self.risk, label=f"{whose}observed (area {self.area:.3g})", **style)
        (self.stated_line_,) = ax.plot(
            self.coverage, self.stated, label=f"{whose}stated", color=style["color"], linestyle="dashed", alpha=0.8
        )
        ax.set(xlim=(0, 1.01), xlabel="share of rows answered, least doubtful first", ylabel="error among them")
        ax.set_ylim(bottom=0)
        ax.legend(loc="best", fontsize="small")
        return self
