"""Inspection: how the evidence lower bound rose during the fit."""

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
        Of all rows and classes together.
    n_rows : int or None
        By which it is divided, if given.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where ``plot`` drew.
    figure_ : matplotlib figure
        That of the axes.
    line_ : matplotlib line
        The bound.

    See Also
    --------
    TuningPathDisplay : What came before training.

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
        """Draw ``elbo_trace_`` of a fitted model or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A classifier of this library, or a pipeline that ends in one.
        n_rows : float or None
            Rows of the fit (their weight), for the bound of one row; by default ``n_samples_``.
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``ax.plot``.

        Returns
        -------
        ElboTraceDisplay
            What was drawn, with its numbers.
        """
        model = ModelInPipeline.of(estimator, classifier=False).model
        n_rows = getattr(model, "n_samples_", None) if n_rows is None else n_rows
        return cls(model.elbo_trace_, n_rows=n_rows).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ElboTraceDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        **kwargs : dict
            Passed to ``ax.plot``.

        Returns
        -------
        ElboTraceDisplay
            Itself.
        """
        ax = self._begin(ax)
        updates = np.arange(1, len(self.elbo) + 1)
        style = {"marker": "o", "markersize": 4, "color": colours.series(0)} | kwargs
        (self.line_,) = ax.plot(updates, self.elbo / (self.n_rows or 1), **style)
        unit = "of all rows" if self.n_rows is None else "per row"
        ax.set(xlabel="update", ylabel=f"ELBO {unit} (nats)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        return self
