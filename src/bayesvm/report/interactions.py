"""Report: interactions, the non-additive influence of pairs of columns on the probability (D40)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from bayesvm.evaluation.formatting import column_label, shortened
from bayesvm.inspection import EffectDisplay
from bayesvm.report.influence import DRAWS, Setting, setting
from bayesvm.report.svg import drawn
from bayesvm.workflow import TableModel
from bayesvm.workflow.probing import joint_draws, replaced, responses, some_rows

MOST_COLUMNS = 4  # most important columns, of which all pairs are evaluated
MOST_SHOWN = 2  # pairs
MOST_SETTINGS = 8  # of a column
N_ROWS = 16  # rows of the mean; all their cells are drawn jointly
LEAST = 0.3  # in log odds, below which an interaction is not plotted
LEAST_SURE = 0.25  # of the cells
LEAST_PROBABILITY = 0.001  # at which log odds are clipped, so that nearly certain rows do not dominate
BAND = (0.025, 0.975)


@dataclass(frozen=True)
class Grid:
    """Rows with two columns at each pair of settings."""

    names: tuple[str, str]
    settings: tuple[Setting, Setting]
    rows: npt.NDArray[Any]  # of features: settings of the first, of the second, rows

    def beyond_additive(self, p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean log odds of each class over the rows, minus the part that is additive in both columns.

        With the mean ``l_ab`` at settings a and b that is ``l_ab - l_a. - l_.b + l_..``, where a dot is a mean over
        settings. For ``p`` of shape (..., rows, classes) it has the shape (..., classes, settings, settings).
        """
        first, second = (len(at.values) for at in self.settings)
        odds = logit(p.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
        mean = odds.reshape(*p.shape[:-2], first, second, -1, p.shape[-1]).mean(axis=-2)
        cells = np.moveaxis(mean, -1, -3)
        both = cells.mean(axis=-1, keepdims=True) + cells.mean(axis=-2, keepdims=True)
        found: npt.NDArray[np.float64] = cells - both + cells.mean(axis=(-2, -1), keepdims=True)
        return found


@dataclass(frozen=True)
class Interaction:
    """The non-additive influence of two columns on the log odds of a class, with a 95% credible interval."""

    grid: Grid
    target: int
    mean: npt.NDArray[np.float64]  # (settings of the first, settings of the second)
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    @classmethod
    def of(cls, model: TableModel, grid: Grid, mean: npt.NDArray[np.float64]) -> Interaction:
        """The interaction with its interval, from joint posterior draws; ``mean`` contains all classes."""
        target = 1 if len(mean) == 2 else int(np.abs(mean).max(axis=(1, 2)).argmax())
        draws = grid.beyond_additive(joint_draws(model, grid.rows, DRAWS))[:, target]
        low, high = np.quantile(draws, BAND, axis=0)
        return cls(grid, target, mean[target], np.minimum(low, mean[target]), np.maximum(high, mean[target]))

    @property
    def size(self) -> float:
        """The largest value whose interval excludes zero; 0 if there are few such cells, which may be chance."""
        sure = (self.low > 0) | (self.high < 0)
        return float(np.abs(self.mean[sure]).max()) if sure.mean() >= LEAST_SURE else 0.0


def grid_of(model: TableModel, names: tuple[str, str], X: npt.NDArray[Any], values: npt.NDArray[Any]) -> Grid:
    """Rows of X with two columns at all pairs of settings, which are chosen from the rows ``values``."""
    a, b = (_coarse(setting(model.recipe, name, values)) for name in names)
    rows = some_rows(X, N_ROWS)
    cells = [replaced(replaced(rows, a.features, u), b.features, v) for u, v in product(a.values, b.values)]
    return Grid(names, (a, b), np.vstack(cells))


def interactions(
    model: TableModel, ranked: Sequence[str], X: npt.NDArray[Any], values: npt.NDArray[Any]
) -> list[Interaction]:
    """The largest interactions among the most important columns; empty if none is significant."""
    grids = [grid_of(model, pair, X, values) for pair in combinations(ranked[:MOST_COLUMNS], 2)]
    means = [grid.beyond_additive(responses(model, grid.rows)) for grid in grids]
    largest = sorted(range(len(grids)), key=lambda i: -float(np.abs(means[i]).max()))[:MOST_SHOWN]
    found = [Interaction.of(model, grids[i], means[i]) for i in largest]
    return [each for each in found if each.size >= LEAST]


def interaction_plots(model: TableModel, found: Sequence[Interaction]) -> list[tuple[str, str]]:
    """Titles and heat maps."""
    plots = []
    for number, each in enumerate(found):
        title = " × ".join(map(column_label, each.grid.names))

        def draw(ax: Any, each: Interaction = each) -> None:
            label = shortened(model.estimator.classes_[each.target], 20)
            display = EffectDisplay(
                [_on_axis(at) for at in each.grid.settings],
                each.mean,
                each.low,
                each.high,
                labels=[at.labels for at in each.grid.settings],
                names=[shortened(column_label(name), 24) for name in each.grid.names],
                target=label,
            ).plot(ax=ax)
            display.colorbar_.set_label(f"log odds of {label}\n(dots: may be zero)")

        plots.append((title, drawn(f"interaction{number}", f"Interaction of {title}", draw, (5.0, 3.6))))
    return plots


def _coarse(at: Setting) -> Setting:
    """A subset of the settings."""
    some = np.unique(np.linspace(0, len(at.values) - 1, MOST_SETTINGS).round().astype(int))
    if len(at.values) <= MOST_SETTINGS or at.labels is not None:
        some = np.arange(min(len(at.values), MOST_SETTINGS))
    return Setting(at.features, at.values[some], None if at.labels is None else [at.labels[i] for i in some])


def _on_axis(at: Setting) -> npt.NDArray[Any]:
    return np.arange(len(at.values), dtype=float) if at.labels is not None else np.asarray(at.values[:, 0], float)
