"""Reproduction: the inducing points figure: USPS 3 against 5, error and time by number of points and way to choose."""

from bayesvm.inference.inducing import HOW
from experiments.registry.method import ours
from experiments.registry.paper_sets import N_FOLDS, PAPER_SETS
from experiments.reproduction.figures import point_curves
from experiments.reproduction.records import deviation, grouped, markdown, mean
from experiments.runs.sweep import Run

NAME = "inducing_points"
TITLE = "Inducing points figure: how many, and chosen how"
SET = "usps_3v5/shuffled"
SIZES = (5, 10, 14, 20, 40, 80, 160, 320, 640)  # 14 is 1 % of the training rows
ONE_PERCENT = 14
WAYS = {"random": "random rows", "kmeans": "k-means", "gmm": "Gaussian mixture", "greedy": "greedy variance"}
METRICS = ("error", "brier", "log_loss", "fit_seconds")


def method(how, size):
    return ours(kernel="rbf", scale="common", tune=None, inducing=how, n_inducing=size)


def runs(quick=False):
    folds, sizes = (2, SIZES[2::3]) if quick else (N_FOLDS, SIZES)
    return [
        Run(f"{size} points by {how}", method(how, size), SET, PAPER_SETS[SET], fold)
        for fold in range(folds)
        for size in sizes
        for how in WAYS
    ]


def rows(records):
    """One line for every way and size."""
    lines = []
    for (name,), group in grouped(records, "method").items():
        size, _, _, how = name.split()
        figures = {metric: mean(group, metric) for metric in METRICS}
        spread = {f"{metric}_deviation": deviation(group, metric) for metric in METRICS}
        lines.append({"how": how, "points": int(size), "folds": len(group)} | figures | spread)
    return sorted(lines, key=lambda line: (HOW.index(line["how"]), line["points"]))


def section(lines):
    cells = {(line["how"], line["points"]): line for line in lines}
    sizes = sorted({line["points"] for line in lines})

    def cell(how, size, metric, digits):
        line = cells[how, size]
        return f"{line[metric]:.{digits}f} ± {line[f'{metric}_deviation']:.{digits}f}"

    def table(metric, digits):
        body = [[title, *(cell(how, size, metric, digits) for size in sizes)] for how, title in WAYS.items()]
        return markdown(["points", *map(str, sizes)], body)

    return (
        "1540 rows (the paper speaks of 1350, the public file has 1540), 256 grey values on a common scale, RBF "
        "with length-scale 16 (θ = 22.6) and σ² = 4, exact bound; ten shuffled folds. 14 points are 1 % of the "
        "training rows.\n\n"
        f"**Error**\n\n{table('error', 3)}\n\n**Log loss**\n\n{table('log_loss', 3)}\n\n"
        f"**Seconds to train**\n\n{table('fit_seconds', 2)}"
    )


def draw(lines, path):
    point_curves(lines, WAYS, ONE_PERCENT, path)
