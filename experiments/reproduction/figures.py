"""Reproduction: the figures, as SVG, the same bytes for the same numbers. Colours are those of Okabe and Ito."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F", "#A07800")
MARKERS = "osD^vPX*d"
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "font.size": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "svg.hashsalt": "bayesvm",
    "svg.fonttype": "none",  # letters stay letters: a fifth of the size
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "figure.constrained_layout.use": True,
}


def save(figure, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    figure.savefig(part, format="svg", metadata={"Date": None})
    part.replace(path)
    plt.close(figure)


def logarithmic(axis, which="x"):
    """Ticks are plain numbers. An axis with nothing on it stays as it is."""
    if not np.isfinite(axis.dataLim.minpos["xy".index(which)]):
        return
    getattr(axis, f"set_{which}scale")("log")
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_formatter("{x:g}")
    ticks.set_minor_formatter(
        "{x:g}" if which == "y" else NullFormatter()
    )  # there is room beside each other, not below
    ticks.set_minor_locator(LogLocator(subs=(2, 5)))


def marked(i):
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def time_curves(curves, metrics, path):
    """A column for every metric, a line for every method; below, the best of them from near."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(2, len(metrics), figsize=(10, 6.2), sharex="col")
        for column, (metric, title) in zip(axes.T, metrics.items(), strict=True):
            for i, (method, points) in enumerate(curves.items()):
                for axis in column:
                    seconds = [point["fit_seconds"] for point in points]
                    axis.plot(seconds, [point[metric] for point in points], label=method, **marked(i))
            low = min((point[metric] for points in curves.values() for point in points), default=1.0)
            column[0].set(title=title)
            column[1].set(xlabel="training time in seconds", ylim=(0.97 * low, 1.35 * low))
            logarithmic(column[0])
            logarithmic(column[0], "y")
            logarithmic(column[1])
        axes[1][0].set_ylabel("from near")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(figure, path)


def tuning_curves(by_set, names, path):
    """A panel for every set: loss over the grid, and where gradients ended."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(by_set), figsize=(10, 3.4), squeeze=False)
        for axis, (name, (grids, found)) in zip(axes[0], by_set.items(), strict=True):
            for (how, grid), stroke in zip(grids.items(), (":", "-"), strict=False):
                losses = [line["log_loss"] for line in grid]
                axis.plot([line["theta"] for line in grid], losses, stroke, color="#7F7F7F", label=how)
            shown = {
                method: line for method, line in found.items() if "from" not in method
            }  # it ends at the same place
            for i, (method, line) in enumerate(shown.items()):
                style = {"linestyle": "none", "markersize": 9, "markeredgecolor": "white"}
                axis.plot(line["theta"], line["log_loss"], label=method, **marked(i), **style)
            everything = [line["log_loss"] for grid in grids.values() for line in grid]
            low, high = min(everything, default=0.0), max(everything, default=1.0)
            axis.set(title=names[name], xlabel="length-scale θ", ylabel="validation loss (log loss)")
            axis.set_ylim(low - 0.01, min(high, 1.25 * low) + 0.01)
            logarithmic(axis)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(figure, path)


def point_curves(lines, ways, one_percent, path):
    """Error and time against the number of points; bands are one standard deviation over folds."""
    titles = {"error": "error", "log_loss": "log loss", "fit_seconds": "training time in seconds"}
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(titles), figsize=(10, 3.6))
        for axis, (metric, title) in zip(axes, titles.items(), strict=True):
            for i, (how, label) in enumerate(ways.items()):
                of_way = [(d["points"], d[metric], d[f"{metric}_deviation"]) for d in lines if d["how"] == how]
                points, mean, spread = np.reshape(of_way, (-1, 3)).T
                axis.plot(points, mean, label=label, **marked(i))
                low = np.maximum(mean - spread, mean / 4) if metric == "fit_seconds" else mean - spread
                axis.fill_between(points, low, mean + spread, color=COLOURS[i], alpha=0.12, linewidth=0)
            axis.axvline(one_percent, color="#7F7F7F", linestyle=":", linewidth=1)
            axis.set(xlabel="inducing points (dotted: 1 % of the rows)", title=title)
            logarithmic(axis)
        logarithmic(axes[-1], "y")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        save(figure, path)


def growth_curves(lines, methods, path):
    """Time, memory beyond the table's and log loss above the Bayes limit against the number of rows."""
    panels = {
        "training time in seconds": lambda line: line["fit_seconds"],
        "memory that training added, MB": lambda line: line["peak_megabytes"] - line["peak_megabytes_before"],
        "log loss above the Bayes limit": lambda line: line["above_bayes"],
    }
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(10, 3.4))
        for axis, (title, value) in zip(axes, panels.items(), strict=True):
            for i, method in enumerate(methods):
                of_method = [line for line in lines if line["method"] == method]
                axis.plot([d["n_train"] for d in of_method], [value(d) for d in of_method], label=method, **marked(i))
            axis.set(xlabel="rows", title=title)
            logarithmic(axis)
            axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        logarithmic(axes[0], "y")
        axes[1].set_ylim(bottom=0)
        axes[2].set_ylim(bottom=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(figure, path)


def heat_map(lines, labels, names, path):
    """Log loss over that of the best method of the set that saw all folds; darker is worse."""
    sets = [name for name in names if any(line["set"] == name for line in lines)]
    cells = {(line["protocol"], line["method"], line["set"]): (line["log_loss"], line["folds"]) for line in lines}
    never = np.nan, 0
    titles = {"contiguous": "the paper's protocol", "shuffled": "ours"}
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(1, len(labels), figsize=(11, 4.4))
        for axis, (protocol, methods) in zip(axes, labels.items(), strict=True):
            losses, folds = np.moveaxis(
                np.array([[cells.get((protocol, m, name), never) for name in sets] for m in methods]), -1, 0
            )
            whole = (folds == folds.max(axis=0)) & (folds > 0)  # a lucky fold is no yardstick
            ratios = losses / np.min(losses, axis=0, where=whole, initial=np.inf)
            shade = np.where(whole, np.log(ratios), np.nan)
            axis.imshow(shade, cmap="Oranges", vmin=0, vmax=np.log(2), aspect="auto")
            for (i, j), ratio in np.ndenumerate(ratios):
                text = "" if np.isnan(ratio) else f"{ratio:.2f}"
                colour = "#7F7F7F" if not whole[i, j] else "white" if ratio > 1.6 else "black"
                axis.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
            axis.set_xticks(range(len(sets)), [names[name] for name in sets], rotation=30, ha="right")
            axis.set_yticks(range(len(methods)), [label.strip("*") for label in methods.values()])
            axis.set_title(titles[protocol])
            axis.tick_params(length=0)
        figure.suptitle("Log loss over that of the best method (grey: not all folds)")
        save(figure, path)
