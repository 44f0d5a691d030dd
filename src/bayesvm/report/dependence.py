"""Report: how the probabilities go with a column, in the values of the table, and how sure the model is of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.inspection import PartialDependenceDisplay
from bayesvm.inspection.colours import CLASSES
from bayesvm.report.influence import Setting, moved, setting
from bayesvm.report.svg import drawn
from bayesvm.report.words import short
from bayesvm.workflow import TableModel

MOST_CLASSES = 3  # in one plot
DRAWS = 200  # from the posterior, for a band
BAND = (0.025, 0.975)
LEAST_HEIGHT = 0.3  # of the axis of probabilities: no small movement shall look large
ROOM = 0.16  # share of it for a legend


@dataclass(frozen=True)
class Dependence:
    """Mean probabilities of some classes over some rows, while a column of all of them is moved."""

    name: str
    at: Setting
    deciles: npt.NDArray[Any] | None  # of the column, if it holds numbers
    mean: npt.NDArray[Any]  # (settings, classes),
    low: npt.NDArray[Any]  # and the 95 % band
    high: npt.NDArray[Any]
    shown: list[int]  # the classes to draw


def plots(
    model: TableModel, names: Sequence[str], X: npt.NDArray[Any], values: npt.NDArray[Any]
) -> list[tuple[str, str]]:
    """Of some columns: name and plot, all with the same axis of probabilities.

    The mean is taken over the rows X; ``values`` are more rows, which tell what the columns may be set to.
    """
    found = [_of(model, name, X, values) for name in names]
    if not found:
        return []
    labels = [str(label) for label in model.estimator.classes_]
    low = min(float(one.low[:, one.shown].min()) for one in found)
    high = max(float(one.high[:, one.shown].max()) for one in found)
    middle, half = (low + high) / 2, max(LEAST_HEIGHT / 2, 0.54 * (high - low))
    bottom, top = max(-0.02, middle - half), min(1.02, middle + half)
    limits = (bottom, top + (ROOM * (top - bottom) if len(labels) > 2 else 0))
    drawings = []
    for number, one in enumerate(found):
        draw = partial(_draw, found=one, labels=labels, limits=limits)
        drawings.append(drawn(f"dependence{number}", f"Mean probability against {one.name}", draw, (5.0, 3.3)))
    return list(zip(names, drawings, strict=True))


def _of(model: TableModel, name: str, X: npt.NDArray[Any], values: npt.NDArray[Any]) -> Dependence:
    estimator, at = model.estimator, setting(model.recipe, name, values)
    mean = moved(estimator.predict_proba, X, at).mean(axis=1)
    draws = moved(lambda rows: estimator.sample_proba(rows, DRAWS, 0), X, at).mean(axis=2)
    low, high = np.quantile(draws, BAND, axis=0)
    deciles = np.quantile(values[:, at.features[0]], np.arange(1, 10) / 10) if at.labels is None else None
    moves = np.argsort(-np.ptp(mean, axis=0), kind="stable")
    shown = [1] if mean.shape[1] == 2 else sorted(moves[:MOST_CLASSES].tolist())
    return Dependence(name, at, deciles, mean, np.minimum(low, mean), np.maximum(high, mean), shown)


def _draw(ax: Any, found: Dependence, labels: list[str], limits: tuple[float, float]) -> None:
    for rank, k in enumerate(found.shown):
        # The colour of the class, as long as each has its own.
        colour = 0 if len(labels) == 2 else k if len(labels) <= len(CLASSES) else rank
        display = PartialDependenceDisplay(
            found.at.values[:, 0],
            found.mean[:, k],
            found.low[:, k],
            found.high[:, k],
            labels=found.at.labels,
            deciles=None if rank else found.deciles,
        )
        display.plot(ax, color=CLASSES[colour])
        display.line_.set_label(short(labels[k], 14))
    ax.set(xlabel="", ylabel=f"P({short(labels[1], 20)})" if len(labels) == 2 else "probability")
    if found.at.labels is None:
        ax.locator_params(axis="x", nbins=6)
        if 10_000 <= np.abs(found.at.values[:, 0]).max() < 10_000_000:
            ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(*limits)
    if len(found.shown) > 1:
        ax.legend(ncols=len(found.shown), loc="upper center", columnspacing=1.0, handlelength=1.2)
