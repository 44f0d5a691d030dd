"""Reproduction: the run-time figure: held-out error, Brier score and log loss against training time on Waveform.

A point is a fit of its own with so large a budget; budgets are passes, iterations or epochs, whatever a method has.
"""

from functools import partial

from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp_kernels

from bayesvm.kernels import RBF
from experiments.competitors.ecm import ECMClassifier
from experiments.competitors.svgp import SVGPClassifier
from experiments.registry.method import ours, peer, written_here
from experiments.registry.paper_methods import AS_PRINTED, GAMMA, LENGTH, STOCHASTIC, C, platt
from experiments.registry.paper_sets import PAPER_SETS
from experiments.registry.sets import DataSet, Split
from experiments.reproduction.figures import time_curves
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "run_time"
TITLE = "Run-time figure: held-out performance against training time"
KEY = ("method", "budget")  # of a line
SET = "waveform/held_out"
N_INDUCING = 100
NEAR = 1.01  # times the best
METRICS = {"error": "error", "brier": "Brier score", "log_loss": "log loss"}


def sbsvm(passes):
    return ours(kernel=RBF(LENGTH, 1.0), n_inducing=N_INDUCING, max_iter=passes, tol=0.0, **AS_PRINTED, **STOCHASTIC)


def sbsvm_exact(passes):
    how = {"bound": "exact", "inference": "batch", "scale": None, "tune": None}
    return ours(kernel=RBF(LENGTH, 1.0), n_inducing=N_INDUCING, max_iter=passes, tol=0.0, **how)


def bbsvm(passes):
    return ours(kernel=RBF(LENGTH, 1.0), n_inducing=None, inference="batch", max_iter=passes, tol=0.0, **AS_PRINTED)


def ecm(iterations):
    return written_here(
        lambda _n, _seed: ECMClassifier(LENGTH, max_iter=iterations, tol=0.0, link="paper"), "ecm", "dense"
    )


def gpc(iterations):
    return peer(
        lambda _n, _seed: GaussianProcessClassifier(gp_kernels.RBF(LENGTH), optimizer=None, max_iter_predict=iterations)
    )


def sgpc(optimizer, natural_rate, epochs):
    how = {"n_inducing": N_INDUCING, "batch_size": 10, "optimizer": optimizer, "natural_rate": natural_rate}
    how["epochs"] = epochs
    return written_here(lambda _n, seed: SVGPClassifier(LENGTH, random_state=seed, **how), "svgp", needs="gpytorch")


def svm(iterations):
    return peer(lambda _n, _seed: platt(C=C, gamma=GAMMA, max_iter=iterations))


LADDERS = {
    "S-BSVM as in the paper": (sbsvm, (2, 4, 8, 16, 32, 64)),
    "S-BSVM, exact bound": (sbsvm_exact, (1, 2, 4, 8, 16)),
    "B-BSVM": (bbsvm, (1, 2, 4, 8)),
    "ECM": (ecm, (1, 2, 4, 8, 16, 32, 64)),
    "GPC": (gpc, (1, 2, 4, 8, 16)),
    "S-GPC, natural gradients": (partial(sgpc, "natural", None), (1, 2, 4, 8, 16)),
    "S-GPC, natural, full steps": (partial(sgpc, "natural", 1.0), (1, 2, 4, 8)),
    "S-GPC, Adam": (partial(sgpc, "adam", None), (1, 2, 4, 8, 16, 32)),
    "SVM + Platt": (svm, (100, 300, 1000, 3000, 10_000, -1)),
}
REFERENCE = "S-BSVM as in the paper"


def runs(quick=False):
    name, data, most = (f"{SET}, 600 rows", _first(PAPER_SETS[SET], 600), 4) if quick else (SET, PAPER_SETS[SET], 99)
    return [
        Run(f"{method}, budget {budget}", make(budget), name, data, 0)
        for method, (make, budgets) in LADDERS.items()
        for budget in budgets[:most]
    ]


def _first(data, n_rows):
    """A cheaper set: so many of its training rows."""

    def split(seed):
        whole = data.split(seed)
        return Split(whole.X_train[:n_rows], whole.y_train[:n_rows], whole.X_test, whole.y_test)

    return DataSet(split)


def rows(records):
    """One line for every point of the curves, failures among them."""
    by_method = {record["method"]: record for record in records}
    return [
        {"method": method, "budget": budget, "n_train": record["n_train"], "failure": record["failure"]}
        | {figure: record.get(figure) for figure in ("fit_seconds", *METRICS)}
        for method, (_, budgets) in LADDERS.items()
        for budget in budgets
        if (record := by_method.get(f"{method}, budget {budget}"))
    ]


def curves(lines):
    """Points by method, in the order of their budgets."""
    good = [line for line in lines if not line.get("failure")]
    return {method: found for method in LADDERS if (found := [line for line in good if line["method"] == method])}


def arrival(points, metric="brier"):
    """Seconds until a metric is within 1 % of the method's own best."""
    best = min(point[metric] for point in points)
    return min(point["fit_seconds"] for point in points if point[metric] <= NEAR * best)


def arrivals(lines, metric="brier"):
    return {method: arrival(points, metric) for method, points in curves(lines).items()}


def section(lines):
    seconds = {metric: arrivals(lines, metric) for metric in ("brier", "log_loss")}

    def arrived(method, metric):
        found = seconds[metric]
        ratio = f" ({found[method] / found[REFERENCE]:.1f})" if REFERENCE in found else ""
        return f"{found[method]:.2f}{ratio}"

    table = [
        [
            method,
            *(f"{min(point[metric] for point in points):.4f}" for metric in METRICS),
            arrived(method, "brier"),
            arrived(method, "log_loss"),
        ]
        for method, points in curves(lines).items()
    ]
    header = ["method", *(f"best {title}" for title in METRICS.values())]
    header += ["seconds to within 1% of its best Brier score (over S-BSVM's)", "of its best log loss (over S-BSVM's)"]
    return (
        f"Waveform, {lines[0]['n_train']} training rows, 1000 held-out rows, θ = 5, σ² = 1, 100 inducing points "
        "and, for stochastic methods, minibatches of 10. Each point is a separate fit with a given budget of "
        "passes, iterations or epochs; S-BSVM's last pass goes over all rows. With the printed link, the log "
        "loss decreases slowly during the whole training, so verdicts use the Brier score, as the paper does. "
        "'Exact bound' is this library with the same fixed kernel and points, its own bound, batch inference and "
        "calibrated link; 'full steps' are natural gradients with rate 1. B-BSVM's pass costs about ten products of "
        "N×N matrices, ECM's iteration one factorisation. S-GPC's step is mostly GPyTorch's overhead.\n\n"
        + markdown(header, table)
    )


def draw(lines, path):
    time_curves(curves(lines), METRICS, path)
