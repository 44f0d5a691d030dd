"""Inspection: aleatoric and epistemic uncertainty of predictions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesvm.evaluation import Predictions
from bayesvm.evaluation.formatting import counted
from bayesvm.inspection import colours
from bayesvm.inspection._display import MOST_POINTS, Array, Floats, legend_on_top, some_of
from bayesvm.inspection._pipelines import ModelInPipeline
from bayesvm.inspection._predicted import PredictionDisplay


@dataclass(eq=False, repr=False)
class UncertaintyDisplay(PredictionDisplay):
    """Epistemic against aleatoric uncertainty of each row, with different markers for correct and wrong predictions.

    More data would reduce the epistemic uncertainty, but not the aleatoric uncertainty. For a ``BayesianSVR``, both are
    standard deviations in the units of y, and the markers distinguish rows inside and outside their 90% intervals.

    Parameters
    ----------
    aleatoric, epistemic : arrays of shape (n,)
        Parts of the uncertainty in nats, from ``predict_uncertainty``; for regression, standard deviations.
    correct : array of bool of shape (n,)
        Whether the most probable class is the true one; for regression, whether the 90% interval contains the true
        value.
    is_regression : bool
        Whether these are predictions of a regressor.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    right_ : matplotlib collection
        Correct predictions.
    wrong_ : matplotlib collection
        Wrong predictions.

    See Also
    --------
    DecisionBoundaryDisplay : Uncertainty over the plane of two features.
    RiskCoverageDisplay : The error rate without doubtful rows.

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
    _: KW_ONLY
    is_regression: bool = False

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the predictions of a fitted model for rows with known targets.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A model of bayesvm, or a pipeline that ends with one.
        X : array, data frame or sparse matrix
            Rows.
        y : array-like of shape (n_rows,)
            True labels or values.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the rows.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        UncertaintyDisplay
            The display, with the plotted data.
        """
        fitted = ModelInPipeline.of(estimator, classifier=False)
        if not fitted.is_regression:
            return super().from_estimator(estimator, X, y, sample_weight=sample_weight, ax=ax, **kwargs)
        found, y = fitted.model.predict_uncertainty(fitted.prepared(X)), np.asarray(y, np.float64)
        inside = (found["lower"] <= y) & (y <= found["upper"])
        parts = np.sqrt(found["aleatoric"]), np.sqrt(found["epistemic"])
        return cls(*parts, inside, is_regression=True).plot(ax=ax, **kwargs)

    @classmethod
    def of(cls, predictions: Predictions, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw predictions with aleatoric and epistemic uncertainty.

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
        UncertaintyDisplay
            The display, with the plotted data.

        Raises
        ------
        ValueError
            If the predictions have no such parts.
        """
        if predictions.aleatoric is None or predictions.epistemic is None:
            raise ValueError(
                "the predictions have no aleatoric and epistemic parts: pass both, from predict_uncertainty"
            )
        return cls(predictions.aleatoric, predictions.epistemic, predictions.correct).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, max_points: int = MOST_POINTS, **kwargs: Any) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        max_points : int
            Maximal number of rows; a random choice is drawn if there are more.
        **kwargs : dict
            Passed to ``ax.scatter``.

        Returns
        -------
        UncertaintyDisplay
            The display itself.
        """
        ax = self._begin(ax)
        shown = some_of(len(self.correct), max_points)
        parts = []
        names = ("inside the interval", "outside") if self.is_regression else ("correct", "wrong")
        for right, name, look in (
            (True, names[0], {"marker": "o", "s": 12, "alpha": 0.45, "linewidths": 0, "color": colours.series(0)}),
            (False, names[1], {"marker": "x", "s": 22, "alpha": 0.9, "linewidths": 1.1, "color": colours.series(1)}),
        ):
            rows = shown[self.correct[shown] == right]
            label = f"{name} ({(self.correct == right).sum():,})"
            parts.append(ax.scatter(self.aleatoric[rows], self.epistemic[rows], **(look | kwargs), label=label))
        self.right_, self.wrong_ = parts
        ax.set(
            xlabel="aleatoric: noise (std)" if self.is_regression else "aleatoric: classes overlap (nats)",
            ylabel=f"epistemic: more data would help ({'std' if self.is_regression else 'nats'})",
        )
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        all_rows = counted(len(self.correct), "row")
        notes = [f"drawn: {len(shown):,} of {all_rows}"] if len(shown) < len(self.correct) else []
        legend_on_top(ax, parts, [part.get_label() for part in parts], notes)
        return self
