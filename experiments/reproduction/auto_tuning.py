"""Reproduction: the auto-tuning figure: validation loss over a grid of length-scales, and what gradients find.

The variance is fixed, as in the paper. Every model has its prior mean at the base rate. There is a grid for each bound.
"""

import numpy as np

from bayesvm.kernels import RBF
from experiments.registry.method import ours
from experiments.registry.paper_sets import N_FOLDS, NAMES, PAPER_SETS
from experiments.reproduction import paper
from experiments.reproduction.figures import tuning_curves
from experiments.reproduction.records import grouped, mean
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "auto_tuning"
TITLE = "Auto-tuning figure: the length-scale found by gradients"
KEY = ("set", "method")  # of a line
SETS = ("diabetes", "german", "waveform")
GRID = np.geomspace(0.5, 64, 29)
START, NEAR_START = 1.0, 5.0  # of the gradients: well below the optimum, and the θ of the authors' scripts
VARIANCE = 1.0
BOUNDS = ("exact", "augmented")
MODEL = {"n_inducing": 100, "scale": "standard", "noise": 0.0}  # the hinge of the paper


def at(theta, bound):
    return ours(kernel=RBF(float(theta / np.sqrt(2)), VARIANCE, "fixed", "fixed"), tune="loo", bound=bound, **MODEL)


def found_theta(model):
    """The paper's θ, √2 times our length-scale."""
    return {"theta": float(np.sqrt(2) * model.kernel_.length_scale)}


def climbed(model):
    return found_theta(model) | {"climb": [float(np.sqrt(2) * step[1]) for step in model.tuning_report_.climb]}


def free(start):
    return RBF(start / np.sqrt(2), VARIANCE, variance_bounds="fixed")


AS_IN_THE_PAPER = "ELBO gradients, augmented bound"
FROM_NEAR = f"{AS_IN_THE_PAPER}, from θ = {NEAR_START:g}"
FOUND = {
    AS_IN_THE_PAPER: ours(kernel=free(START), tune="elbo", bound="augmented", tell=climbed, **MODEL),
    FROM_NEAR: ours(kernel=free(NEAR_START), tune="elbo", bound="augmented", tell=climbed, **MODEL),
    "ELBO gradients, exact bound": ours(kernel=free(START), tune="elbo", tell=climbed, **MODEL),
    "leave-one-out gradients": ours(kernel=free(START), tune="loo", tell=found_theta, **MODEL),
}


def runs(quick=False):
    sets, folds, grid = (SETS[:1], 2, GRID[::4]) if quick else (SETS, N_FOLDS, GRID)
    methods = {f"{bound} bound, θ = {theta:.3f}": at(theta, bound) for bound in BOUNDS for theta in grid} | FOUND
    return [
        Run(method, how, f"{name}/shuffled", PAPER_SETS[f"{name}/shuffled"], fold)
        for name in sets
        for fold in range(folds)
        for method, how in methods.items()
    ]


def rows(records):
    """One line for every length-scale of the grid and for every way to find one."""
    lines = []
    for (where, method), group in grouped(records, "set", "method").items():
        theta = mean(group, "theta") if method in FOUND else float(method.split()[-1])
        lines.append(
            {
                "set": where.partition("/")[0],
                "method": method if method in FOUND else f"grid, {method.split()[0]} bound",
            }
            | {"theta": theta}
            | {metric: mean(group, metric) for metric in ("log_loss", "error", "brier")}
            | {"fit_seconds": mean(group, "fit_seconds"), "folds": len(group)}
            | ({"steps": steps(group)} if "ELBO" in method else {})
        )
    return sorted(lines, key=lambda line: (SETS.index(line["set"]), line["method"], line["theta"]))


def steps(group):
    """Gradient steps until the length-scale stays within 10 % of where it ends, on average over folds."""

    def of(record):
        away = np.abs(np.log(np.divide(record["climb"], record["theta"]))) > np.log(1.1)
        return np.flatnonzero(away)[-1] + 1 if away.any() else 0

    return float(np.mean([of(record) for record in group]))


def by_set(lines):
    """Of each set: the grids in order, and what was found, both by name."""
    sets = {}
    for line in lines:
        grids, found = sets.setdefault(line["set"], ({}, {}))
        if line["method"].startswith("grid"):
            grids.setdefault(line["method"], []).append(line)
        else:
            found[line["method"]] = line
    return sets


def optimum(grid):
    return min(grid, key=lambda line: line["log_loss"])


def grid_of(method):
    """The grid with the same bound."""
    return "grid, augmented bound" if "augmented" in method else "grid, exact bound"


def grid_seconds(grid):
    """Of a search over the paper's number of length-scales, from the mean of those that were tried."""
    return paper.GRID_SIZE * N_FOLDS * float(np.mean([line["fit_seconds"] for line in grid]))


def section(lines):
    table = []
    for name, (grids, found) in by_set(lines).items():
        table += [
            [NAMES[name], how, f"{best['theta']:.2f}", f"{best['log_loss']:.4f}", "", "", ""]
            for how, best in ((how, optimum(grid)) for how, grid in grids.items())
        ]
        table += [
            [
                NAMES[name],
                method,
                f"{line['theta']:.2f}",
                f"{line['log_loss']:.4f}",
                f"{line['steps']:.0f}" if "steps" in line else "",
                f"{line['fit_seconds']:.2f}",
                f"{grid_seconds(grids[grid_of(method)]) / line['fit_seconds']:.0f}" if grid_of(method) in grids else "",
            ]
            for method, line in found.items()
        ]
    header = ["set", "found by", "θ", "log loss", "steps to within 10%", "seconds", "grid search's time over ours"]
    return (
        "RBF with fixed variance 1 on standardised features, 100 inducing points, calibrated link; ten shuffled folds. "
        f"Gradients start at θ = {START:g} unless said otherwise; ten variational updates between two steps "
        f"(Adam, 0.1 in log θ). The grid search is that of the paper: {paper.GRID_SIZE} length-scales in ten "
        f"folds, with a time computed from the mean of the {len(GRID)} that were run. The paper does not name its "
        "data set.\n\n" + markdown(header, table)
    )


def draw(lines, path):
    tuning_curves(by_set(lines), NAMES, path)
