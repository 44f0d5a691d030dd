"""Inspection: relevance of the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesvm.evaluation.formatting import counted
from bayesvm.inspection import colours
from bayesvm.inspection._display import Array, Display, Floats
from bayesvm.inspection._pipelines import ModelInPipeline


@dataclass(eq=False, repr=False)
class RelevanceDisplay(Display):
    """Share of each feature in the variation of f, as bars, largest first.

    Parameters
    ----------
    relevance : array of shape (n_features,)
        Shares, adding up to one.
    names : sequence of str
        Names of the features.
    learned : bool
        Whether the model has a length-scale per feature, or effects. With a common length-scale, the shares only
        reflect the spread of the features, and the plot says so.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    bars_ : matplotlib bars
        The shares.

    See Also
    --------
    EffectDisplay : The contribution of a column to f.
    sklearn.inspection.permutation_importance : The value of a column for the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> from bayesvm.inspection import RelevanceDisplay
    >>> from bayesvm.kernels import RBF
    >>> data = waveform(300, random_state=0)
    >>> kernel = RBF(length_scale=np.full(21, 4.0), variance=4.0)
    >>> model = BayesianSVC(kernel, tune="loo", n_inducing=20, random_state=0).fit(data.X, data.y)
    >>> display = RelevanceDisplay.from_estimator(model, groups={"left half": range(10)}, top=5)
    >>> len(display.bars_)
    6
    """

    relevance: Floats
    names: Sequence[str]
    _: KW_ONLY
    learned: bool = True

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        groups: Mapping[str, Sequence[int]] | None = None,
        top: int = 20,
        ax: Any = None,
        **kwargs: Any,
    ) -> RelevanceDisplay:
        """Draw ``relevance_`` of a fitted ``BayesianSVC`` or ``BayesianSVR``, or a pipeline that ends with one.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A ``BayesianSVC`` or ``BayesianSVR``, or a pipeline that ends with one.
        feature_names : sequence of str or None
            Names of the columns of the model; by default those of the fit.
        groups : dict from name to column numbers, or None
            Columns that belong together, such as those of a categorical feature; their shares are added. Columns
            without a group have their own bars.
        top : int
            Number of bars; the other features share one more.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.barh``.

        Returns
        -------
        RelevanceDisplay
            The display, with the plotted data.

        Raises
        ------
        ValueError
            If the model has no ``relevance_``, or a column is in two groups.
        """
        fitted = ModelInPipeline.of(estimator, classifier=False)
        relevance = getattr(fitted.model, "relevance_", None)
        if relevance is None:
            raise ValueError(
                f"this {type(fitted.model).__name__} has no length-scales, and so no relevance_: use a BayesianSVC "
                "with the RBF or Matern kernel, or coef_ of a BayesianLinearSVC"
            )
        names = fitted.inner_names(feature_names)
        if groups:
            relevance, names = added_up(relevance, names, groups)
        learned = fitted.model.kernel_.has_relevance or bool(fitted.model.effects_)
        return cls(relevance, names, learned=learned).plot(ax=ax, top=top, **kwargs)

    def plot(self, ax: Any = None, *, top: int = 20, **kwargs: Any) -> RelevanceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        top : int
            Number of bars; the other features share one more.
        **kwargs : dict
            Passed to ``ax.barh``.

        Returns
        -------
        RelevanceDisplay
            The display itself.
        """
        ax = self._begin(ax)
        order = np.argsort(-self.relevance, kind="stable")
        shown, rest = order[:top], order[top:]
        widths, names = [float(self.relevance[i]) for i in shown], [self.names[i] for i in shown]
        if len(rest):
            widths.append(float(self.relevance[rest].sum()))
            names.append(f"{counted(len(rest), 'other')} together")
        self.bars_ = ax.barh(np.arange(len(widths)), widths, **({"color": colours.series(0)} | kwargs))
        if len(rest):
            self.bars_[-1].set_alpha(colours.FAINT)
        ax.set_yticks(np.arange(len(widths)), names, parse_math=False)
        ax.invert_yaxis()
        ax.set_xlabel(
            "share in the variation of f" + ("" if self.learned else "\n(one length-scale for all: not learned)")
        )
        ax.set_xlim(left=0)
        return self


def added_up(relevance: Array, names: Sequence[str], groups: Mapping[str, Sequence[int]]) -> tuple[Array, list[str]]:
    """Sum the shares of groups of columns, in the positions of their first columns.

    >>> added_up(np.array([0.5, 0.2, 0.3]), ["age", "red", "blue"], {"colour": [1, 2]})
    (array([0.5, 0.5]), ['age', 'colour'])
    """
    group_of: dict[int, str] = {}
    for name, columns in groups.items():
        for column in columns:
            if not 0 <= column < len(names):
                raise ValueError(f"group {name!r} has column {column}, but the model has {len(names)}, counted from 0")
            if column in group_of:
                raise ValueError(f"column {column} is in two groups, {group_of[column]!r} and {name!r}")
            group_of[int(column)] = name
    keys = [("group", group_of[i]) if i in group_of else ("column", str(i)) for i in range(len(names))]
    sums: dict[tuple[str, str], float] = dict.fromkeys(keys, 0.0)
    for key, share in zip(keys, relevance, strict=True):
        sums[key] += float(share)
    return np.array(list(sums.values())), [key if kind == "group" else names[int(key)] for kind, key in sums]
