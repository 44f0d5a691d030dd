"""Reproduction: the run-time figure: held-out error, Brier score and log loss against training time on Waveform.

A point is a fit of its own with so large a budget; budgets are passes, iterations or epochs, whatever a method has.
"""

from functools import partial

from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.svm import SVC

from bayesvm.kernels import RBF
from experiments.competitors.ecm import ECMClassifier
from experiments.competitors.svgp import SVGPClassifier
from experiments.registry.method import ours, peer, written_here
from experiments.registry.paper_methods import AS_PRINTED, GAMMA, LENGTH, STOCHASTIC, THETA, C
from experiments.registry.paper_sets import PAPER_SETS
from experiments.registry.sets import DataSet, Split
from experiments.reproduction.figures import time_curves
from experiments.reproduction.records import grouped, markdown
from experiments.runs.sweep import Run

NAME = "run_time"
TITLE = "Run-time figure: held-out performance against training time"
SET = "waveform/held_out"
N_INDUCING = 100
NEAR = 1.01  # of the best log loss
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
    return written_here(lambda _n, seed: SVGPClassifier(THETA, random_state=seed, **how), "svgp", needs="gpytorch")


def svm(iterations):
    return peer(lambda _n, _seed: CalibratedClassifierCV(SVC(C=C, gamma=GAMMA, max_iter=iterations), ensemble=False))


LADDERS = {
    "S-BSVM as in the paper": (sbsvm, (1, 2, 4, 8, 16, 32, 64)),
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
    """One line for every point of the curves."""
    by_method = grouped(records, "method")
    return [
        {"method": method, "budget": budget, "n_train": record["n_train"], "fit_seconds": record["fit_seconds"]}
        | {metric: record[metric] for metric in METRICS}
        for method, (_, budgets) in LADDERS.items()
        for budget in budgets
        for record in by_method.get((f"{method}, budget {budget}",), [])
    ]


def curves(lines):
    return {method: found for method in LADDERS if (found := [line for line in lines if line["method"] == method])}


def arrival(points):
    """Seconds until the log loss is within 1 % of the method's own best."""
    best = min(point["log_loss"] for point in points)
    return min(point["fit_seconds"] for point in points if point["log_loss"] <= NEAR * best)


def arrivals(lines):
    return {method: arrival(points) for method, points in curves(lines).items()}


def section(lines):
    seconds = arrivals(lines)
    table = [
        [
            method,
            *(f"{min(point[metric] for point in points):.4f}" for metric in METRICS),
            f"{seconds[method]:.2f}",
            f"{seconds[method] / seconds[REFERENCE]:.1f}",
        ]
        for method, points in curves(lines).items()
    ]
    header = ["method", *(f"best {title}" for title in METRICS.values()), "seconds to within 1 %", "ratio to S-BSVM"]
    n_train = lines[0]["n_train"]
    return (
        f"Waveform, {n_train} rows to learn from, 1000 held out, θ = 5, σ² = 1, 100 inducing points and minibatches of "
        "10 where there are any. Within 1 %: of the method's own best log loss. Training only; B-BSVM and GPC need N³ "
        "a step. 'Exact bound' is our library at the same fixed kernel and points, with its own bound, batch inference "
        "and calibrated link.\n\n" + markdown(header, table)
    )


def draw(lines, path):
    time_curves(curves(lines), METRICS, path)
