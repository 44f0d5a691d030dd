"""Inspection: partial dependence of class probabilities or of predictions on a feature, with credible bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesvm.evaluation.formatting import counted
from bayesvm.inspection import colours
from bayesvm.inspection._display import Array, Display, Floats, some_of, without_math
from bayesvm.inspection._frames import as_rows, column_of, holds_numbers, rows_of, with_columns
from bayesvm.inspection._pipelines import ModelInPipeline, column_number

FEW_VALUES = 12  # a column with at most this many distinct values is evaluated at each of them
MOST_SETTINGS = 20
OUTER = (1, 99)  # percentiles that limit the grid of a numeric column
BAND = (0.025, 0.975)


@dataclass(eq=False, repr=False)
class PartialDependenceDisplay(Display):
    """Mean probability of a class over some rows as a function of a feature, with a 95% credible band.

    For a ``BayesianSVR``, the mean prediction, in the units of y. The band shows the uncertainty of the mean due to f:
    quantiles over posterior draws (``sample_proba``, or ``sample_latent``, without noise).

    Parameters
    ----------
    values : array of shape (g,) or (g, k)
        Values of the feature, or of columns that change together.
    mean, lower, upper : arrays of shape (g,)
        Mean probability or prediction, and the 95% band.
    labels : sequence of str, optional
        Names of the values; the plot then shows points with error bars instead of a line with a band.
    deciles : array, optional
        Deciles of the feature in the data, drawn as a rug.
    feature_name : str
        Label of the axis.
    target : label
        The class; None for regression.
    n_rows : int, optional
        Number of rows behind the mean.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    line_ : matplotlib line
        The mean.
    band_ : matplotlib collection
        The 95% band; error bars if there are labels.
    rug_ : matplotlib artist or None
        The deciles.

    See Also
    --------
    EffectDisplay : The contribution of an effect to f.
    sklearn.inspection.PartialDependenceDisplay : For any estimator, without a credible band.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> from bayesvm.inspection import PartialDependenceDisplay
    >>> data = waveform(300, random_state=0)
    >>> model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(data.X, data.y)
    >>> display = PartialDependenceDisplay.from_estimator(model, data.X, 10, max_rows=50)
    >>> bool((display.lower <= display.mean).all() and (display.mean <= display.upper).all())
    True
    """

    values: Array
    mean: Floats
    lower: Floats
    upper: Floats
    _: KW_ONLY
    labels: Sequence[str] | None = None
    deciles: Floats | None = None
    feature_name: str = "feature"
    target: Any = None
    n_rows: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: Any,
        *,
        values: Any = None,
        labels: Sequence[str] | None = None,
        target: Any = None,
        feature_names: Sequence[str] | None = None,
        feature_name: str | None = None,
        n_values: int = 30,
        max_rows: int = 200,
        n_draws: int = 200,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> PartialDependenceDisplay:
        """Draw the partial dependence of a fitted model on a feature.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A model of bayesvm, or a pipeline that ends with one.
        X : array or data frame
            Rows; their other features are unchanged.
        feature : str, int or list of them
            Name or index of a column, or of several that change together, such as one-hot encoded columns.
        values : array of shape (g,), or (g, k) for k columns that change together
            Values of the feature; by default all distinct values if there are few, otherwise a grid between the 1st and
            the 99th percentile.
        labels : sequence of str or None
            Names of the values.
        target : label or None
            The class; by default the second of two classes.
        feature_names : sequence of str or None
            Names of the columns of X; by default those of the fit.
        feature_name : str or None
            Label of the axis; by default the name of the column.
        n_values : int
            Number of grid values, unless ``values`` is given.
        max_rows : int
            Maximal number of rows; a random choice is used if X has more.
        n_draws : int
            Number of posterior draws for the band.
        random_state : int
            Controls the choice of rows and the draws.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot``.

        Returns
        -------
        PartialDependenceDisplay
            The display, with the plotted data.
        """
        fitted, X = ModelInPipeline.of(estimator, classifier=False), as_rows(X)
        names = fitted.names(X, feature_names)
        number = fitted.class_number(target)
        several = isinstance(feature, list | tuple | np.ndarray | range)
        columns = [column_number(part, names) for part in (feature if several else [feature])]
        if not columns:
            raise ValueError("feature is empty: pass the name or index of a column, or several")
        settings, labels = _settings(X, columns, names, values, labels, n_values)
        rows = rows_of(X, some_of(X.shape[0], max_rows, random_state))
        numbers = fitted.is_regression
        draw = fitted.model.sample_latent if numbers else fitted.model.sample_proba
        found = mean_and_band(
            (lambda moved: estimator.predict(moved)[:, None]) if numbers else estimator.predict_proba,
            lambda moved: _in_columns(draw(fitted.prepared(moved), n_draws, random_state), single=numbers),
            rows,
            columns,
            settings,
        )
        numeric = labels is None and len(columns) == 1
        return cls(
            settings[:, 0] if len(columns) == 1 else settings,
            *(part[:, number] for part in found),
            labels=labels,
            deciles=np.nanquantile(column_of(X, columns[0]).astype(float), np.arange(1, 10) / 10) if numeric else None,
            feature_name=feature_name or ", ".join(names[column] for column in columns[:3]),
            target=None if numbers else fitted.model.classes_[number],
            n_rows=rows.shape[0],
        ).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> PartialDependenceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot`` of the line or points.

        Returns
        -------
        PartialDependenceDisplay
            The display itself.
        """
        ax = self._begin(ax)
        style = {"color": colours.series(0)} | kwargs
        self.rug_ = None
        if self.labels is not None:
            ticks = np.arange(len(self.labels))
            style = {"linestyle": "", "marker": "o"} | style
            self.band_ = ax.vlines(ticks, self.lower, self.upper, colors=style["color"], alpha=0.6, linewidth=2)
            (self.line_,) = ax.plot(ticks, self.mean, **style)
            long = sum(map(len, self.labels)) > 30
            turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if long else {}
            ax.set_xticks(ticks, self.labels, parse_math=False, **turned)
            ax.set_xlim(-0.5, len(ticks) - 0.5)
        else:
            style = ({"marker": "o", "markersize": 4} if len(self.values) <= FEW_VALUES else {}) | style
            self.band_ = ax.fill_between(
                self.values.astype(float), self.lower, self.upper, color=style["color"], alpha=0.22, linewidth=0
            )
            (self.line_,) = ax.plot(self.values.astype(float), self.mean, **style)
        if self.deciles is not None:
            self.rug_ = ax.vlines(
                self.deciles, 0, 0.03, transform=ax.get_xaxis_transform(), colors=colours.ink(), alpha=0.6, linewidth=1
            )
        over = "" if self.n_rows is None else f", mean of {counted(self.n_rows, 'row')}"
        what = "prediction" if self.target is None else f"P(y = {self.target})"
        ax.set(xlabel=self.feature_name, ylabel=f"{what}{over}")
        without_math(ax.xaxis.label, ax.yaxis.label)
        return self


def _in_columns(draws: Floats, *, single: bool) -> Floats:
    """Draws with a last axis for classes, or of length one."""
    return draws[..., None] if single else draws


def mean_and_band(
    proba: Callable[[Any], Floats], draws: Callable[[Any], Floats], X: Any, columns: Sequence[int], settings: Array
) -> tuple[Floats, Floats, Floats]:
    """Mean probabilities over the rows X for each setting of some columns, and bands, of shape (settings, classes).

    ``proba`` returns probabilities, ``draws`` joint posterior draws of them, of shape (draws, rows, classes).
    """
    means, bands = [], []
    for setting in settings:
        moved = with_columns(X, columns, list(setting))
        means.append(proba(moved).mean(axis=0))
        bands.append(np.quantile(draws(moved).mean(axis=1), BAND, axis=0))
    mean = np.array(means)
    low, high = np.moveaxis(np.array(bands), 1, 0)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def _settings(
    X: Any, columns: Sequence[int], names: Sequence[str], values: Any, labels: Sequence[str] | None, n_values: int
) -> tuple[Array, list[str] | None]:
    """The settings of the columns, one per row, and their names unless they are numbers."""
    if values is None:
        settings, named = _found(X, columns, names, n_values)
        labels = named if labels is None else labels
    else:
        settings = np.asarray(values)
        settings = settings[:, None] if settings.ndim == 1 and len(columns) == 1 else settings
        if settings.ndim != 2 or settings.shape[1] != len(columns) or not len(settings):
            raise ValueError(
                f"values must have a row for each setting and {counted(len(columns), 'column')}, "
                f"got shape {np.shape(values)}"
            )
        if labels is None and (len(columns) > 1 or not holds_numbers(settings)):
            labels = [_named(setting, columns, names) for setting in settings]
    if labels is not None and len(labels) != len(settings):
        raise ValueError(f"labels has {len(labels)} names for {len(settings)} settings")
    return settings, None if labels is None else [str(label) for label in labels]


def _found(X: Any, columns: Sequence[int], names: Sequence[str], n_values: int) -> tuple[Array, list[str] | None]:
    """The settings that occur in X; for a number with many values, an equidistant grid."""
    if len(columns) == 1:
        column = column_of(X, columns[0])
        if column.dtype.kind == "M":
            times = column[~np.isnat(column)].astype("datetime64[s]")
            low, high = np.percentile(times.astype(np.int64), OUTER)
            grid = np.unique(np.linspace(low, high, min(n_values, FEW_VALUES)).astype("datetime64[s]"))
            return grid[:, None], [str(time.astype("datetime64[D]")) for time in grid]
        if column.dtype.kind == "f":
            column = column[~np.isnan(column)]
        distinct = np.unique(column.astype(float) if holds_numbers(column) else column.astype(str))
        if holds_numbers(column):
            low, high = np.percentile(column.astype(float), OUTER)
            return (distinct if len(distinct) <= FEW_VALUES else np.linspace(low, high, n_values))[:, None], None
        settings = distinct[:, None]
    else:
        settings = np.unique(np.column_stack([column_of(X, column) for column in columns]), axis=0)[::-1]
    if len(settings) > MOST_SETTINGS:
        raise ValueError(
            f"{', '.join(names[column] for column in columns[:3])}: X has {len(settings)} distinct settings, more than "
            f"{MOST_SETTINGS}; select some with values"
        )
    return settings, [_named(setting, columns, names) for setting in settings]


def _named(setting: Array, columns: Sequence[int], names: Sequence[str]) -> str:
    """The name of a setting; for columns of zeros and ones, the names of those that are one."""
    if len(columns) == 1:
        return str(setting[0])
    if np.isin(setting, (0, 1)).all():
        return " + ".join(names[column] for column, value in zip(columns, setting, strict=True) if value) or "none"
    return ", ".join(f"{value:g}" for value in setting)
