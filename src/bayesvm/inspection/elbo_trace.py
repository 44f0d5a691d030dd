"""Inspection: the evidence lower bound during the fit."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesvm.inspection import colours
from bayesvm.inspection._display import Display, Floats
from bayesvm.inspection._pipelines import ModelInPipeline


@dataclass(eq=False, repr=False)
class ElboTraceDisplay(Display):
    """The evidence lower bound after each update.

    Parameters
    ----------
    elbo : array of shape (n_updates,)
        The bound, summed over rows and classes.
    n_rows : float, optional
        Number of rows to divide the bound by.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    line_ : matplotlib line
        The bound.

    See Also
    --------
    TuningPathDisplay : The trials of tuning, before training.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> from bayesvm.inspection import ElboTraceDisplay
    >>> data = waveform(300, random_state=0)
    >>> model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(data.X, data.y)
    >>> ElboTraceDisplay.from_estimator(model).ax_.get_ylabel()
    'ELBO per row (nats)'
    """

    elbo: Floats
    _: KW_ONLY
    n_rows: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_rows: float | None = None, ax: Any = None, **kwargs: Any
    ) -> ElboTraceDisplay:
        """Draw ``elbo_trace_`` of a fitted model or a pipeline that ends with one.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A classifier of bayesvm, or a pipeline that ends with one.
        n_rows : float or None
            Number (or weight) of the training rows, to show the bound per row; by default ``n_samples_``.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot``.

        Returns
        -------
        ElboTraceDisplay
            The display, with the plotted data.
        """
        model = ModelInPipeline.of(estimator, classifier=False).model
        n_rows = getattr(model, "n_samples_", None) if n_rows is None else n_rows
        return cls(model.elbo_trace_, n_rows=n_rows).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ElboTraceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot``.

        Returns
        -------
        ElboTraceDisplay
            The display itself.
        """
        ax = self._begin(ax)
        updates = np.arange(1, len(self.elbo) + 1)
        style = {"marker": "o", "markersize": 4, "color": colours.series(0)} | kwargs
        (self.line_,) = ax.plot(updates, self.elbo / (self.n_rows or 1), **style)
        unit = "of all rows" if self.n_rows is None else "per row"
        ax.set(xlabel="update", ylabel=f"ELBO {unit} (nats)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        return self
