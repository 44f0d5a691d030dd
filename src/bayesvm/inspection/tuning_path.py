"""Inspection: the trials of tuning and their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from bayesvm.extras import optional
from bayesvm.inspection import colours
from bayesvm.inspection._display import Display
from bayesvm.inspection._pipelines import ModelInPipeline


@dataclass(eq=False, repr=False)
class TuningPathDisplay(Display):
    """Leave-one-out log loss of the trials of tuning in order, with a colour per kernel and a marker per scaling.

    Rings mark the trials with the selected scaling and kernel; a star marks the final fit, for a committee that of the
    heaviest member. Losses are comparable within a stage only, because stages use different rows.

    Parameters
    ----------
    trials : sequence of trials
        The trials, from ``tuning_report_.trials``.
    kept : int, optional
        Index of the trial that is the final fit.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    points_ : list of matplotlib lines
        Markers of the trials.
    rings_ : matplotlib line or None
        Markers of the selected trials.

    See Also
    --------
    ElboTraceDisplay : The evidence lower bound during training.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> from bayesvm.inspection import TuningPathDisplay
    >>> data = waveform(300, random_state=0)
    >>> model = BayesianSVC(n_inducing=20, random_state=0).fit(data.X, data.y)
    >>> TuningPathDisplay.from_estimator(model).trials[0].what
    'first'
    """

    trials: Sequence[Any]
    _: KW_ONLY
    kept: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> TuningPathDisplay:
        """Draw ``tuning_report_`` of a fitted ``BayesianSVC`` or a pipeline that ends with one.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A tuned ``BayesianSVC``, or a pipeline that ends with one.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot`` of the markers.

        Returns
        -------
        TuningPathDisplay
            The display, with the plotted data.

        Raises
        ------
        ValueError
            If the model was not tuned by leave-one-out.
        """
        model = ModelInPipeline.of(estimator, classifier=False).model
        report = getattr(model, "tuning_report_", None)
        if report is None or not report.trials:
            raise ValueError(
                f"this {type(model).__name__} has no tuning report: only a BayesianSVC has one, unless tune=None"
            )
        return cls(report.trials, kept=report.kept).plot(ax=ax, **kwargs)

    @property
    def chosen(self) -> list[int]:
        """Indices of the trials with the scaling and kernel of the final fit."""
        if self.kept is None:
            return []
        kept = self.trials[self.kept]
        return [i for i, t in enumerate(self.trials) if (t.scale, t.kernel) == (kept.scale, kept.kernel)]

    def plot(self, ax: Any = None, **kwargs: Any) -> TuningPathDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot`` of the markers.

        Returns
        -------
        TuningPathDisplay
            The display itself.
        """
        ax = self._begin(ax)
        kernels = list(dict.fromkeys(trial.kernel for trial in self.trials))
        scales = list(dict.fromkeys(trial.scale for trial in self.trials))
        number = np.arange(1, len(self.trials) + 1)
        loss = np.array([trial.loo for trial in self.trials])
        ax.plot(number, loss, color=colours.ink(), alpha=0.25, linewidth=1, zorder=1)
        self.points_ = []
        for i, trial in enumerate(self.trials):
            shape = "*" if i == self.kept else colours.marker(scales.index(trial.scale))
            style = {"color": colours.series(kernels.index(trial.kernel)), "linestyle": "", "zorder": 3}
            size = {"marker": shape, "markersize": 12 if i == self.kept else 7}
            self.points_ += ax.plot(number[i], loss[i], **(style | size | kwargs))
        self.rings_ = None
        if self.chosen:
            ring = {"marker": "o", "markersize": 15, "markerfacecolor": "none", "linestyle": ""}
            (self.rings_,) = ax.plot(
                number[self.chosen], loss[self.chosen], **ring, markeredgecolor=colours.ink(), alpha=0.7, zorder=2
            )
        self._name_stages(ax, number)
        ax.set_ylabel("leave-one-out log loss (nats)")
        ax.margins(y=0.15)
        self._explain(ax, kernels, scales)
        return self

    def _name_stages(self, ax: Any, number: Any) -> None:
        """Label each stage below the axis."""
        ticks, labels = [], []
        for (what, rows), group in groupby(
            # Labels of members of a committee differ after the comma; they share one label, to avoid overlaps.
            zip(number, self.trials, strict=True),
            key=lambda pair: (pair[1].what.partition(",")[0], pair[1].n_rows),
        ):
            members = [int(i) for i, _ in group]
            ticks.append(np.mean(members))
            labels.append(f"{what}, {rows:,} rows")
            if members[0] > 1:
                ax.axvline(members[0] - 0.5, color=colours.ink(), alpha=0.15, linewidth=0.8)
        ax.set_xticks(ticks, labels, rotation=45, ha="right", rotation_mode="anchor", fontsize="small")
        ax.set_xlim(0.4, len(self.trials) + 0.6)
        ax.tick_params(axis="x", length=0)

    def _explain(self, ax: Any, kernels: Sequence[str], scales: Sequence[str | None]) -> None:
        line = optional("matplotlib.lines", "plots").Line2D
        shape = {"linestyle": "", "markersize": 7}
        handles = [
            line([], [], marker="s", color=colours.series(k), label=name, **shape) for k, name in enumerate(kernels)
        ]
        for k, scale in enumerate(scales):
            label = f"scale: {scale or 'none'}"
            handles.append(line([], [], marker=colours.marker(k), color=colours.ink(), alpha=0.6, label=label, **shape))
        if self.chosen:
            ring = {"markerfacecolor": "none", "markeredgecolor": colours.ink(), "linestyle": "", "markersize": 11}
            handles.append(line([], [], marker="o", label="selected", **ring))
            handles.append(
                line([], [], marker="*", color=colours.ink(), label="final fit", linestyle="", markersize=10)
            )
        ax.legend(handles=handles, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
