"""Inspection: predictions over the plane of two features, with their epistemic uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation.formatting import counted
from bayesvm.evaluation.predictions import class_numbers
from bayesvm.extras import optional
from bayesvm.inspection import colours
from bayesvm.inspection._display import MOST_POINTS, Array, Display, Floats, legend_on_top, some_of, without_math
from bayesvm.inspection._frames import as_rows, column_of, rows_of, typical, with_columns
from bayesvm.inspection._pipelines import ModelInPipeline, column_number

PAD = 0.08  # on all sides, relative to the range of the data
STRONGEST = 0.6  # opacity without epistemic uncertainty
WEAKEST = 0.06  # opacity with full epistemic uncertainty
UNKNOWN = 0.5  # epistemic uncertainty that counts as full, relative to the maximal entropy


@dataclass(eq=False, repr=False)
class DecisionBoundaryDisplay(Display):
    """Class probabilities over two features as shades, which fade with the epistemic uncertainty.

    For two classes, the colour shows the probability and fades with the epistemic uncertainty of
    ``predict_uncertainty``. The line shows where both classes are equally probable; the dashed lines show the margin,
    where the mean of f is -1 and +1. For more classes, the colour shows the most probable class and also fades with
    lower probability.

    Parameters
    ----------
    x, y : arrays of shape (g,) and (h,)
        Values of the two features.
    proba : array of shape (h, g, n_classes)
        Class probabilities on the grid.
    epistemic : array of shape (h, g)
        Epistemic uncertainty on the grid, in nats.
    classes : array of shape (n_classes,)
        Class labels.
    latent : array of shape (h, g), optional
        Mean of f on the grid; two classes only.
    points, codes : arrays of shape (n, 2) and (n,), optional
        Rows to draw, and the indices of their classes.
    inducing : array of shape (m, 2), optional
        Inducing points, in the coordinates of the two features.
    feature_names : sequence of two str
        Labels of the axes.
    n_held : int
        Number of other columns that are fixed, for the legend.
    n_rows : int, optional
        Number of rows that the points were chosen from, for the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    image_ : matplotlib image
        The shading.
    boundary_ : list of matplotlib contours or None
        Decision boundaries, where two classes are equally probable.
    margin_ : list of matplotlib contours or None
        Margins, where the mean of f is -1 and +1.
    points_ : list of matplotlib collections or None
        The rows, class by class.
    inducing_ : matplotlib line or None
        Markers of the inducing points.

    See Also
    --------
    UncertaintyDisplay : Both parts of the uncertainty for each row.
    PartialDependenceDisplay : One feature, with a credible band.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.inspection import DecisionBoundaryDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, y)
    >>> DecisionBoundaryDisplay.from_estimator(model, X, y, grid_resolution=30).proba.shape
    (30, 30, 2)
    """

    x: Floats
    y: Floats
    proba: Floats
    epistemic: Floats
    classes: Array
    _: KW_ONLY
    latent: Floats | None = None
    points: Floats | None = None
    codes: Array | None = None
    inducing: Floats | None = None
    feature_names: Sequence[str] = ("column 0", "column 1")
    n_held: int = 0
    n_rows: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        grid_resolution: int = 100,
        ax: Any = None,
        **kwargs: Any,
    ) -> DecisionBoundaryDisplay:
        """Draw the predictions of a fitted model over the range of the rows X.

        Parameters
        ----------
        estimator : fitted model or pipeline
            A classifier of bayesvm, or a pipeline that ends with one.
        X : array or data frame
            Rows, which set the range; at most 2,000 of them are drawn if y is given.
        y : array-like of shape (n_rows,) or None
            Labels of the rows.
        features : two names or numbers of columns, or None
            Required if X has more than two columns. The others are fixed at their median, or most frequent value.
        feature_names : sequence of str or None
            Names of the columns of X; by default those of the fit.
        grid_resolution : int
            Number of grid values of each feature.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        DecisionBoundaryDisplay
            The display, with the plotted data.

        Raises
        ------
        ValueError
            If X has more than two columns and ``features`` is not given.
        """
        fitted, X = ModelInPipeline.of(estimator), as_rows(X)
        names = fitted.names(X, feature_names)
        if features is None and X.shape[1] != 2:
            raise ValueError(
                f"X has {X.shape[1]} columns, but a decision boundary has two: select them with features=(i, j); the "
                "others are fixed at their median"
            )
        columns = [column_number(feature, names) for feature in ((0, 1) if features is None else features)]
        if len(set(columns)) != 2 or len(columns) != 2:
            raise ValueError(f"features must be two different columns; got {features!r}")
        codes = None if y is None else class_numbers(fitted.model.classes_, y)
        if codes is not None and len(codes) != X.shape[0]:
            raise ValueError(f"y has {len(codes)} labels for {X.shape[0]} rows")
        data = np.column_stack([column_of(X, column).astype(float) for column in columns])
        across, along = (_steps(column, grid_resolution) for column in data.T)
        plane = _plane(X, columns, across, along)
        seen, shape = fitted.prepared(plane), (grid_resolution, grid_resolution)
        two = len(fitted.model.classes_) == 2
        shown = some_of(len(data), MOST_POINTS)
        return cls(
            across,
            along,
            estimator.predict_proba(plane).reshape(*shape, -1),
            fitted.model.predict_uncertainty(seen)["epistemic"].reshape(shape),
            fitted.model.classes_,
            latent=fitted.model.latent_mean_and_variance(seen)[0].reshape(shape) if two else None,
            points=None if codes is None else data[shown],
            codes=None if codes is None else codes[shown],
            inducing=_inducing_points(fitted, columns),
            feature_names=[names[column] for column in columns],
            n_held=X.shape[1] - 2,
            n_rows=len(data),
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        inducing: bool = True,
        margin: bool = True,
        key: bool = True,
        **kwargs: Any,
    ) -> DecisionBoundaryDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        inducing : bool
            Whether to draw the inducing points.
        margin : bool
            Whether to draw the margin.
        key : bool
            Whether to draw a legend and a colour bar.
        **kwargs : dict
            Passed to ``ax.imshow``.

        Returns
        -------
        DecisionBoundaryDisplay
            The display itself.
        """
        ax = self._begin(ax)
        edges = (*_outer(self.x), *_outer(self.y))
        how = {"extent": edges, "origin": "lower", "aspect": "auto", "interpolation": "bilinear", "zorder": 0}
        self.image_ = ax.imshow(self._shades(), **(how | kwargs))
        self.boundary_ = self._contour(ax, self._advantage(), [0.0], linewidths=1.6)
        self.margin_: Any = None
        if margin and self.latent is not None:
            self.margin_ = self._contour(ax, [self.latent], [-1.0, 1.0], linewidths=0.9, linestyles="dashed", alpha=0.7)
        self._draw_points(ax)
        self.inducing_: Any = None
        if inducing and self.inducing is not None:
            open_marker = {"marker": "o", "markerfacecolor": "none", "markersize": 6, "linestyle": "", "zorder": 4}
            (self.inducing_,) = ax.plot(
                *self.inducing.T,
                **open_marker,
                markeredgecolor=colours.ink(),
                markeredgewidth=0.9,
                label="inducing points",
            )
        ax.set(xlim=edges[:2], ylim=edges[2:], xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        without_math(ax.xaxis.label, ax.yaxis.label)
        if key:
            self._explain(ax)
        return self

    def _shades(self) -> npt.NDArray[np.float64]:
        """Colours and opacities of the cells; the background shows through where the model is uncertain."""
        certainty = 1 - np.clip(self.epistemic / (UNKNOWN * np.log(len(self.classes))), 0, 1)
        if len(self.classes) == 2:
            shades = np.array(_between_two()(self.proba[:, :, 1]))
        else:
            number = self.proba.argmax(axis=2)
            to_rgba = optional("matplotlib.colors", "plots").to_rgba_array
            shades = to_rgba([colours.of_class(k) for k in range(len(self.classes))])[number]
            even = 1 / len(self.classes)
            certainty = certainty * (self.proba.max(axis=2) - even) / (1 - even)
        shades[:, :, 3] = WEAKEST + (STRONGEST - WEAKEST) * certainty
        return shades

    def _advantage(self) -> list[npt.NDArray[np.float64]]:
        """Probability of a class minus that of the best other class, for each class whose boundary is drawn."""
        count = len(self.classes)
        others = [np.delete(self.proba, k, axis=2).max(axis=2) for k in range(count)]
        return [self.proba[:, :, k] - others[k] for k in range(1 if count == 2 else 0, count)]

    def _contour(self, ax: Any, fields: list[npt.NDArray[np.float64]], values: list[float], **style: Any) -> Any:
        """Contour lines for the values that occur; None if no value does."""
        drawn = []
        for field in fields:
            inside = [value for value in values if field.min() < value < field.max()]
            if inside:
                drawn.append(ax.contour(self.x, self.y, field, inside, colors=[colours.ink()], zorder=1, **style))
        return drawn or None

    def _draw_points(self, ax: Any) -> None:
        self.points_: Any = None
        if self.points is None or self.codes is None:
            return
        edge = optional("matplotlib", "plots").rcParams["axes.facecolor"]
        self.points_ = []
        for k, label in enumerate(self.classes):
            look = {"color": colours.of_class(k), "marker": colours.marker(k), "edgecolors": edge, "linewidths": 0.5}
            self.points_.append(ax.scatter(*self.points[self.codes == k].T, s=22, **look, label=str(label), zorder=3))

    def _explain(self, ax: Any) -> None:
        handles, labels = ax.get_legend_handles_labels()
        line = optional("matplotlib.lines", "plots").Line2D
        patch = optional("matplotlib.patches", "plots").Patch
        if self.points_ is None and len(self.classes) > 2:
            patches = [patch(color=colours.of_class(k), alpha=STRONGEST) for k in range(len(self.classes))]
            handles, labels = patches + handles, list(map(str, self.classes)) + labels
        if self.margin_ is not None:
            handles.append(line([], [], color=colours.ink(), linestyle="dashed", linewidth=0.9, alpha=0.7))
            labels.append("margin")
        if handles:
            shown = 0 if self.points is None else len(self.points)
            notes = [f"{counted(self.n_held, 'other column')} at the median"] if self.n_held else []
            if self.n_rows is not None and 0 < shown < self.n_rows:
                notes.append(f"drawn: {shown:,} of {counted(self.n_rows, 'row')}")
            legend_on_top(ax, handles, labels, notes)
        if len(self.classes) == 2:
            scale = optional("matplotlib.cm", "plots").ScalarMappable(cmap=_between_two())
            bar = self.figure_.colorbar(scale, ax=ax)
            bar.solids.set_alpha(STRONGEST)
            bar.set_label(f"P(y = {self.classes[1]}); paler: less certain")
            without_math(bar.ax.yaxis.label)


def _between_two() -> Any:
    """A colour map from the first class through a neutral colour to the second."""
    made = optional("matplotlib.colors", "plots").LinearSegmentedColormap.from_list
    return made("two classes", [colours.of_class(0), colours.MIDDLE, colours.of_class(1)])


def _steps(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    low, high = values.min(), values.max()
    pad = PAD * (high - low) or 1.0
    return np.linspace(low - pad, high + pad, count)


def _outer(steps: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Outer edges of the cells around equidistant steps."""
    half = (steps[1] - steps[0]) / 2
    return float(steps[0] - half), float(steps[-1] + half)


def _plane(X: Any, columns: Sequence[int], across: npt.NDArray[np.float64], along: npt.NDArray[np.float64]) -> Any:
    """One row per pair of values, with typical values in the other columns."""
    pairs = [part.ravel() for part in np.meshgrid(across, along)]
    rest = [column for column in range(X.shape[1]) if column not in columns]
    row = rows_of(X, np.zeros(len(pairs[0]), np.intp))
    return with_columns(row, [*columns, *rest], [*pairs, *(typical(X, column) for column in rest)])


def _inducing_points(fitted: ModelInPipeline, columns: Sequence[int]) -> npt.NDArray[np.float64] | None:
    """Coordinates of the inducing points; None after steps without an inverse."""
    points = getattr(fitted.model, "inducing_points_", None)
    if points is None or (fitted.before is not None and not hasattr(fitted.before, "inverse_transform")):
        return None
    if fitted.before is not None:
        points = fitted.before.inverse_transform(points)
    return np.asarray(points, np.float64)[:, list(columns)]
