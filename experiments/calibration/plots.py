"""Calibration: the plots of the page, as SVG, the same bytes for the same numbers."""

import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from experiments.calibration.methods import LINKS, OURS
from experiments.calibration.sets import DISTANCES
from experiments.reproduction.figures import COLOURS, STYLE, save

SHOWN = (OURS, "SVC + sigmoid", "Gaussian process", "CatBoost", "boosting", "boosting + isotonic")
COLOUR = dict(zip((*SHOWN, *LINKS[1:]), COLOURS, strict=False))
LINE = dict(zip(SHOWN, ("-", "--", ":", (0, (1, 2)), "-.", (0, (4, 1, 1, 1, 1, 1))), strict=True))
LOOK = STYLE | {"font.size": 8, "lines.markersize": 3, "lines.linewidth": 1.2}
MOST_POINTS = 50  # of a curve: more are not seen at this size


def reliability(sets, path, methods=SHOWN, titles=None):
    """A row for every set, a column for every method."""
    with mpl.rc_context(LOOK):
        figure, axes = plt.subplots(
            len(sets), len(methods), figsize=(8.4, 1.45 * len(sets) + 0.4), sharex="row", sharey="row", squeeze=False
        )
        for row, (name, each) in zip(axes, sets.items(), strict=True):
            for axis, method in zip(row, methods, strict=True):
                top = reach(each, methods)
                axis.plot([0, top], [0, top], color="#999999", linewidth=0.7)
                said = each.parts["test"].get(method)
                if said is not None:
                    groups = said.reliability
                    # One broken line for all intervals: a collection takes ten times the bytes.
                    at = np.repeat(groups.predicted, 3)
                    ends = np.column_stack([groups.low, groups.high, np.full(len(groups.low), np.nan)]).ravel()
                    axis.plot(at, ends, color=COLOUR[method], alpha=0.5, linewidth=2, solid_capstyle="butt")
                    axis.plot(groups.predicted, groups.observed, "o-", color=COLOUR[method])
                around, ticks = (-0.04 * top, 1.04 * top), [0, top / 2, top]
                axis.set(xlim=around, ylim=around, xticks=ticks, yticks=ticks)
                axis.grid(visible=False)
                axis.xaxis.set_major_formatter("{x:g}")
                axis.yaxis.set_major_formatter("{x:g}")
                axis.tick_params(length=0)
            row[0].set_ylabel(name)
        for axis, method in zip(axes[0], methods, strict=True):
            axis.set_title((titles or {}).get(method, method), fontsize="medium")
        figure.supxlabel("predicted probability of the second class", fontsize="medium")
        figure.supylabel("observed share, with 95 % interval", fontsize="medium")
        small(figure, path)


def reach(each, methods):
    """Of the axes of a set: one, or less where all groups have small probabilities, as of rare classes."""
    groups = [each.parts["test"][method].reliability for method in methods if method in each.parts["test"]]
    most = max(float(max(group.predicted.max(), group.observed.max())) for group in groups)
    return next(top for top in (0.2, 0.4, 1.0) if most <= top)


def small(figure, path):
    """Saved with coordinates to a tenth of a point and without indentation, which halves the file."""
    save(figure, path)
    text = path.read_text(encoding="utf-8")
    text = re.sub(r' d="[^"]*"', lambda found: re.sub(r"(\d\.\d)\d+", r"\1", found[0]).replace(" \n", " "), text)
    path.write_text(re.sub(r"\n +", "\n", text), encoding="utf-8")


def far(sets, path):
    """Mean confidence by the distance that rows were moved; below, our epistemic part."""
    with mpl.rc_context(LOOK):
        figure, axes = plt.subplots(
            2, len(sets), figsize=(8.4, 4.4), sharex=True, sharey="row", squeeze=False, height_ratios=(2, 1)
        )
        place = np.arange(len(DISTANCES))
        for (above, below), (name, each) in zip(axes.T, sets.items(), strict=True):
            for method in SHOWN:
                if method in each.moved:
                    mean = [confidence for confidence, _ in each.moved[method]]
                    above.plot(place, mean, marker="o", label=method, color=COLOUR[method], linestyle=LINE[method])
            above.axhline(max(each.share, 1 - each.share), color="#999999", linewidth=0.8)
            above.set(title=name, ylim=(0.48, 1.02))
            if each.moved_epistemic:
                below.plot(place, each.moved_epistemic, "o-", color=COLOUR[OURS])
            below.set(ylim=(0, np.log(2)), xticks=place, xticklabels=[str(distance) for distance in DISTANCES])
        axes[0, 0].set_ylabel("mean confidence")
        axes[1, 0].set_ylabel("our epistemic\npart, nats")
        figure.supxlabel("standard deviations away from the data", fontsize="medium")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SHOWN))
        small(figure, path)


def coverage(sets, path, n_columns=4):
    """The error among the rows that are answered, the least doubtful first."""
    with mpl.rc_context(LOOK):
        n_rows = -(-len(sets) // n_columns)
        figure, axes = plt.subplots(n_rows, n_columns, figsize=(8.4, 2.1 * n_rows + 0.4), sharex=True, squeeze=False)
        for axis in axes.ravel()[len(sets) :]:
            axis.set_axis_off()
        for axis, (name, each) in zip(axes.ravel(), sets.items(), strict=False):
            for method in SHOWN:
                said = each.parts["test"].get(method)
                if said is not None:
                    curve = said.coverage
                    points = np.unique(np.linspace(0, len(curve.coverage) - 1, MOST_POINTS).astype(int))
                    points = points[curve.coverage[points] > 0.02]  # of very few rows the error is only chance
                    axis.plot(
                        curve.coverage[points],
                        curve.risk[points],
                        label=method,
                        color=COLOUR[method],
                        linestyle=LINE[method],
                    )
            axis.set(title=name, xlim=(0, 1), ylim=(0, None))
            axis.xaxis.set_major_formatter("{x:g}")
        figure.supxlabel("share of rows answered", fontsize="medium")
        figure.supylabel("error among them", fontsize="medium")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SHOWN))
        small(figure, path)
