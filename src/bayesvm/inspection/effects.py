"""Inspection: plots of effects of single columns and pairs of columns (D26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesvm.evaluation.formatting import shortened
from bayesvm.extras import optional
from bayesvm.inspection import colours
from bayesvm.inspection._display import Array, Display, Floats, without_math
from bayesvm.inspection._frames import as_rows, column_of
from bayesvm.inspection._pipelines import ModelInPipeline, checked_names

NORMAL_95 = 1.959964
FEW_DOTS = 40  # a column with at most this many distinct points has no other values, so each is drawn
BETWEEN = 4  # steps between two points of a curve
FEW_CELLS = 24  # a column of a pair with at most this many distinct values is drawn at each of them
GRID = 24  # values of a column of a pair with more distinct values
MOST_MARKED = 1_000  # cells
SAME = 1e-9  # relative
LONG = 30  # characters of all labels together beyond which they are rotated
LONGEST = 20  # characters of one label
MOST = 25  # labels that are shown, in equal steps
MANY = 12  # labels beyond which there is no space between them


@dataclass(eq=False, repr=False)
class EffectDisplay(Display):
    """An effect of one column as a curve with a 95% band, or an effect of a pair as a heat map.

    The scale is that of f, where contributions add up and the margins are ±1. Above zero, the class is more probable
    than on average. For a ``BayesianSVR``, f is in the units of y. ``PartialDependenceDisplay`` shows probabilities or
    predictions, and the full influence of a column.

    Parameters
    ----------
    values : sequence of one or two arrays
        Values of each column; for a one-hot encoded categorical column, indices of the categories.
    mean, lower, upper : arrays of shape (g,), or (g, h) for a pair
        Posterior mean of the contribution to f, relative to its mean over the rows, and the 95% band.
    labels : sequence of one or two, each a sequence of str or None
        Names of the categories of a categorical column.
    names : sequence of one or two str
        Names of the columns.
    points : array of shape (p, 1) or (p, 2), optional
        Inducing points of the effect; it is interpolated between them.
    target : label
        The class; None for regression.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    line_ : matplotlib line or None
        The mean; effects of one column only.
    band_ : matplotlib collection or None
        The 95% band; effects of one column only.
    points_ : matplotlib artist or None
        The inducing points; on a heat map, dots on cells whose band includes zero.
    mesh_ : matplotlib mesh or None
        The heat map; effects of pairs only.
    colorbar_ : matplotlib colour bar or None
        Colour bar of the heat map.

    See Also
    --------
    PartialDependenceDisplay : The probability, with the full influence of a column.
    RelevanceDisplay : The share of each column in the variation of f.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.inspection import EffectDisplay
    >>> from bayesvm.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(1500, 2)), rng.integers(12, size=1500)])
    >>> y = X[:, 0] + 4 * (X[:, 2] % 2) - 2 + rng.logistic(size=1500) > 0
    >>> model = BayesianSVC(RBF(), scale="standard", n_inducing=50, random_state=0).fit(X, y)
    >>> display = EffectDisplay.from_estimator(model, effect=0, X=X)
    >>> display.ax_.get_xlabel()
    'column 2'
    """

    values: Sequence[Array]
    mean: Floats
    lower: Floats
    upper: Floats
    _: KW_ONLY
    labels: Sequence[Sequence[str] | None] = (None, None)
    names: Sequence[str] = ("first column", "second column")
    points: Floats | None = None
    target: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        effect: Any = 0,
        *,
        X: Any = None,
        target: Any = None,
        feature_names: Sequence[str] | None = None,
        factor_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> EffectDisplay:
        """Draw one of ``effects_`` of a fitted ``BayesianSVC`` or ``BayesianSVR``, or of a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A ``BayesianSVC`` or ``BayesianSVR`` with ``effects_``, or a pipeline that ends with one.
        effect : int or ColumnEffect
            Index in ``effects_``, or the effect itself.
        X : array or data frame, or None
            Reference rows, over which the mean of the effect is zero; by default the inducing points.
        target : label or None
            The class; by default the second of two classes.
        feature_names : sequence of str or None
            Names of the columns of the model; by default those of the fit.
        factor_names : sequence of one or two str, or None
            Labels of the axes; by default the names of the columns.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        EffectDisplay
            The display, with the plotted data.
        """
        fitted = ModelInPipeline.of(estimator, classifier=False)
        found = _chosen(fitted.model, effect)
        number = fitted.class_number(target)
        axes = _axes(found, fitted.feature_names(feature_names))
        reference = None
        if X is not None:
            rows = as_rows(fitted.inner_features(X))
            reference = np.column_stack([column_of(rows, k).astype(float) for k in found.columns])
        mean, variance = found.mean_and_variance(_combined(axes, found), reference)
        if fitted.is_regression:
            spread = fitted.model.fitted_.head.spread
            mean, variance = spread * mean, spread**2 * variance
        elif mean.ndim == 2:  # one function per class
            mean, variance = mean[:, number], variance[:, number]
        elif number == 0:
            mean = -mean
        shape = [len(axis.settings) for axis in axes]
        mean, deviation = mean.reshape(shape), np.sqrt(variance).reshape(shape)
        return cls(
            [axis.values for axis in axes],
            mean,
            mean - NORMAL_95 * deviation,
            mean + NORMAL_95 * deviation,
            labels=[axis.labels for axis in axes],
            names=[axis.name for axis in axes] if factor_names is None else factor_names,
            points=np.column_stack([axis.points for axis in axes]),
            target=None if fitted.is_regression else fitted.model.classes_[number],
        ).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> EffectDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``ax.plot`` of the line, or to ``ax.pcolormesh`` of the heat map.

        Returns
        -------
        EffectDisplay
            The display itself.
        """
        ax = self._begin(ax)
        for name in ("line_", "band_", "points_", "mesh_", "colorbar_"):
            setattr(self, name, None)
        if len(self.values) == 2:
            self._heat_map(ax, kwargs)
        else:
            self._curve(ax, {"color": colours.series(0)} | kwargs)
        _label_axis(ax.xaxis, self.values[0], self.labels[0], self.names[0])
        return self

    @property
    def _scale(self) -> str:
        if self.target is None:
            return "effect on y"
        return f"effect on f, towards y = {shortened(self.target, LONGEST)}"

    def _curve(self, ax: Any, style: dict[str, Any]) -> None:
        (x,) = self.values
        ax.axhline(0, color=colours.ink(), alpha=colours.FAINT, linewidth=1)
        if self.labels[0] is not None or len(x) <= FEW_DOTS:
            self.band_ = ax.vlines(x, self.lower, self.upper, colors=style["color"], alpha=0.6, linewidth=2)
            style = {"linestyle": "", "marker": "o"} | style
        else:
            self.band_ = ax.fill_between(x, self.lower, self.upper, color=style["color"], alpha=0.22, linewidth=0)
            if self.points is not None:
                self.points_ = ax.vlines(
                    self.points[:, 0], 0, 0.03, transform=ax.get_xaxis_transform(), colors=colours.ink(), alpha=0.6,
                    linewidth=1,
                )  # fmt: skip
        (self.line_,) = ax.plot(x, self.mean, **style)
        ax.set_ylabel(self._scale)
        without_math(ax.yaxis.label)

    def _heat_map(self, ax: Any, style: dict[str, Any]) -> None:
        x, y = self.values
        most = float(np.abs(self.mean).max()) or 1.0
        look = {"cmap": _diverging(), "vmin": -most, "vmax": most, "shading": "nearest", "antialiased": False}
        self.mesh_ = ax.pcolormesh(x, y, self.mean.T, **(look | style))
        bar = self.colorbar_ = ax.figure.colorbar(self.mesh_, ax=ax, label=self._scale)
        bar.outline.set_visible(False)
        without_math(bar.ax.yaxis.label)
        unsure = (self.lower < 0) & (self.upper > 0)
        columns, rows = np.nonzero(unsure)
        if len(columns) and unsure.size <= MOST_MARKED:
            bar.set_label(f"{bar.ax.get_ylabel()}\n(dots: may be zero)")
            (self.points_,) = ax.plot(
                x[columns], y[rows], linestyle="", marker=".", markersize=3, color=colours.ink(), alpha=colours.FAINT
            )
        ax.grid(visible=False)
        _label_axis(ax.yaxis, y, self.labels[1], self.names[1])


@dataclass(frozen=True)
class _Axis:
    """A column of an effect, or the columns of a one-hot encoded one: its values, and their positions in the plot."""

    name: str
    settings: Array  # (settings, columns)
    values: Floats  # positions of the settings on the axis
    labels: list[str] | None  # of categories
    points: Floats  # positions of the inducing points on the axis


def _axes(effect: Any, names: Sequence[str]) -> list[_Axis]:
    unnamed = list(names) == checked_names(None, None, len(names))
    place = {column: i for i, column in enumerate(effect.columns)}
    found = []
    for factor, name in zip(effect.factors, effect.factor_names(None if unnamed else names), strict=True):
        points = effect.points[:, [place[column] for column in factor]]
        if len(factor) > 1:
            points = np.rint(points)
            settings, which = np.unique(points, axis=0, return_inverse=True)
            order = np.argsort(np.where(settings.any(axis=1), settings.argmax(axis=1), -1), kind="stable")
            labels = [_category(settings[i], factor, names, name) for i in order]
            found.append(_Axis(name, settings[order], np.arange(len(order), dtype=float), labels,
                               np.argsort(order)[which.reshape(-1)].astype(float)))  # fmt: skip
        else:
            values = _values(points[:, 0], pair=effect.is_pair)
            found.append(_Axis(name, values[:, None], values, None, points[:, 0]))
    return found


def _values(points: Floats, *, pair: bool) -> Floats:
    """The values at which a numeric column is evaluated: all its points if there are few."""
    distinct = _distinct(points)
    if len(distinct) <= (FEW_CELLS if pair else FEW_DOTS):
        return distinct
    if pair:
        return np.linspace(distinct[0], distinct[-1], GRID)
    steps = np.arange(BETWEEN * (len(distinct) - 1) + 1) / BETWEEN
    return np.interp(steps, np.arange(len(distinct)), distinct)


def _distinct(points: Floats) -> Floats:
    """The distinct values, sorted; numbers that differ only by rounding count as equal."""
    ordered = np.unique(points)
    apart = np.diff(ordered, prepend=-np.inf) > SAME * max(float(np.ptp(ordered)), float(np.abs(ordered).max()))
    return np.asarray(ordered[apart])


def _combined(axes: Sequence[_Axis], effect: Any) -> Array:
    """All combinations of settings of both columns, in the order of the columns of the effect."""
    numbers = np.meshgrid(*(np.arange(len(axis.settings)) for axis in axes), indexing="ij")
    parts = [axis.settings[number.reshape(-1)] for axis, number in zip(axes, numbers, strict=True)]
    order = [column for factor in effect.factors for column in factor]
    return np.column_stack(parts)[:, [order.index(column) for column in effect.columns]]


def _category(setting: Array, factor: Sequence[int], names: Sequence[str], name: str) -> str:
    ones = [names[column] for column, value in zip(factor, setting, strict=True) if value]
    return " + ".join(one.removeprefix(name).lstrip(" =_.:-[(") or one for one in ones) or "none"


def _label_axis(axis: Any, values: Array, labels: Sequence[str] | None, name: str) -> None:
    if labels is not None:
        every = -(-len(labels) // MOST)
        values, labels = values[::every], labels[::every]
        turned: dict[str, Any] = {}
        if axis.axis_name == "x" and sum(map(len, labels)) > LONG:
            turned = {"rotation": 35 if len(labels) <= MANY else 90, "ha": "right", "rotation_mode": "anchor"}
            turned |= {"va": "center", "fontsize": "small"} if len(labels) > MANY else {}
        axis.set_ticks(values, [shortened(label, LONGEST) for label in labels], parse_math=False, **turned)
        (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(-0.5, len(values) - 0.5)
    elif len(values) <= FEW_CELLS and np.equal(values, np.rint(values)).all():
        axis.set_major_locator(optional("matplotlib.ticker", "plots").MaxNLocator(integer=True))
    axis.set_label_text(name)
    without_math(axis.label)


def _diverging() -> Any:
    """A colour map from the first class to the second; transparent near zero, for light and dark backgrounds."""
    colors = optional("matplotlib.colors", "plots")
    low, high = (colors.to_rgb(colours.of_class(k)) for k in (0, 1))
    stops = [(0.0, (*low, 1.0)), (0.5, (*low, 0.0)), (0.5, (*high, 0.0)), (1.0, (*high, 1.0))]
    return colors.LinearSegmentedColormap.from_list("effect", stops)


def _chosen(model: Any, effect: Any) -> Any:
    effects = getattr(model, "effects_", ())
    if not effects:
        raise ValueError(
            f"this {type(model).__name__} has no effects of single columns or pairs (effects_ is empty); "
            "use PartialDependenceDisplay to show the influence of a column"
        )
    if not isinstance(effect, int | np.integer):
        return effect
    if not 0 <= effect < len(effects):
        raise ValueError(f"effect {effect} does not exist: effects_ has {len(effects)}, counted from 0")
    return effects[effect]
