"""Inspection: what is uncertain because the classes overlap, and what because data are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bayesvm.evaluation import Predictions
from bayesvm.evaluation.formatting import counted
from bayesvm.inspection import colours
from bayesvm.inspection._display import MOST_POINTS, Array, Floats, legend_on_top, some_of
from bayesvm.inspection._predicted import PredictionDisplay


@dataclass(eq=False, repr=False)
class UncertaintyDisplay(PredictionDisplay):
    """The epistemic part of every row's uncertainty, which more data would remove, against the aleatoric one.

    Rows whose class was predicted and others have different marks.

    Parameters
    ----------
    aleatoric, epistemic : arrays of shape (n,)
        In nats, as ``predict_uncertainty`` gives them.
    correct : array of bool of shape (n,)
        Whether the most probable class is the true one.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where ``plot`` drew.
    figure_ : matplotlib figure
        That of the axes.
    right_ : matplotlib collection
        Rows whose class was predicted.
    wrong_ : matplotlib collection
        The other rows.

    See Also
    --------
    DecisionBoundaryDisplay : Where, in the plane of two features.
    RiskCoverageDisplay : What is gained by leaving doubtful rows open.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> from bayesvm.inspection import UncertaintyDisplay
    >>> train, test = waveform(300, random_state=0), waveform(500, random_state=1)
    >>> model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(train.X, train.y)
    >>> display = UncertaintyDisplay.from_estimator(model, test.X, test.y)
    >>> total = display.aleatoric + display.epistemic
    >>> bool(total[~display.correct].mean() > total[display.correct].mean())
    True
    """

    _of_uncertainty: ClassVar[bool] = True

    aleatoric: Floats
    epistemic: Floats
    correct: Array

    @classmethod
    def of(cls, predictions: Predictions, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw predictions that have an aleatoric and an epistemic part.

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
        UncertaintyDisplay
            What was drawn, with its numbers.

        Raises
        ------
        ValueError
            If the predictions do not have these parts.
        """
        if predictions.aleatoric is None or predictions.epistemic is None:
            raise ValueError(
                "these predictions have no aleatoric and epistemic part: give both, as predict_uncertainty tells them"
            )
        return cls(predictions.aleatoric, predictions.epistemic, predictions.correct).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, max_points: int = MOST_POINTS, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where to draw; None for a new figure.
        max_points : int
            Rows; of more, a random choice is drawn.
        **kwargs : dict
            Passed to ``ax.scatter``.

        Returns
        -------
        UncertaintyDisplay
            Itself.
        """
        ax = self._begin(ax)
        shown = some_of(len(self.correct), max_points)
        parts = []
        for right, name, look in (
            (True, "right", {"marker": "o", "s": 12, "alpha": 0.45, "linewidths": 0, "color": colours.series(0)}),
            (False, "wrong", {"marker": "x", "s": 22, "alpha": 0.9, "linewidths": 1.1, "color": colours.series(1)}),
        ):
            rows = shown[self.correct[shown] == right]
            label = f"{name} ({(self.correct == right).sum():,})"
            parts.append(ax.scatter(self.aleatoric[rows], self.epistemic[rows], **(look | kwargs), label=label))
        self.right_, self.wrong_ = parts
        ax.set(xlabel="aleatoric: the classes overlap (nats)", ylabel="epistemic: more data would tell (nats)")
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        all_rows = counted(len(self.correct), "row")
        notes = [f"drawn: {len(shown):,} of {all_rows}"] if len(shown) < len(self.correct) else []
        legend_on_top(ax, parts, [part.get_label() for part in parts], notes)
        return self
