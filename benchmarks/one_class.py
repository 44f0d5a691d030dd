"""Rows of one class against rows of others: areas under the ROC curve and rates of false alarms of four methods.

Prints the table of docs/one_class.md. Each method learns from up to 600 rows of one class, without labels, and is
asked about other rows of it and rows of the other classes. Needs tables of ``BAYESVM_DATA``. Arguments are names of
sets; default: all.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from bayesvm import BayesianOneClassSVM
from bayesvm.datasets import load_table

MOST_TRAIN, MOST_TEST, RATE, REPEATS = 600, 3_000, 0.1, 3
# Name, origin, which label is learned. Some, marked in the page, were used to choose the background; others were not.
DECIDED_WITH = {
    "banana": ("banana", 1),
    "twonorm": ("twonorm", 1),
    "heart": ("heart_raetsch", -1),
    "diabetes": ("diabetes_raetsch", -1),
    "German credit": ("german_raetsch", -1),
    "USPS 3 or 5": ("usps_3v5", 1),
    "breast cancer (Raetsch)": ("breast_cancer_raetsch", -1),
    "splice": ("splice_raetsch", 1),
    "wine, class 1": (load_wine, 1),
    "digits, 8": (load_digits, 8),
}
CAME_LATER = {
    "banana, other class": ("banana", -1),
    "twonorm, other class": ("twonorm", -1),
    "diabetes, other class": ("diabetes_raetsch", 1),
    "splice, other class": ("splice_raetsch", -1),
    "wine, class 2": (load_wine, 2),
    "iris, versicolor": (load_iris, 1),
    "digits, 3": (load_digits, 3),
    "digits, 5": (load_digits, 5),
}
METHODS = {
    "BayesianOneClassSVM": lambda seed: BayesianOneClassSVM(contamination=RATE, random_state=seed),
    "OneClassSVM": lambda _: make_pipeline(StandardScaler(), OneClassSVM(nu=RATE)),
    "IsolationForest": lambda seed: IsolationForest(contamination=RATE, random_state=seed),
    "LocalOutlierFactor": lambda _: make_pipeline(
        StandardScaler(), LocalOutlierFactor(novelty=True, contamination=RATE)
    ),
}


def rows_of(source, label):
    X, y = source(return_X_y=True) if callable(source) else load_table(source)
    return np.asarray(X, np.float64), y == label


def measured(X, usual, seed):
    """Area under the curve, false alarms and seconds of each method."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(usual))
    train = rows[: min(MOST_TRAIN, len(rows) // 2)]
    test = rng.permutation(np.setdiff1d(np.arange(len(X)), train))[:MOST_TEST]
    found = []
    for make in METHODS.values():
        began = time.perf_counter()
        model = make(seed).fit(X[train])
        took = time.perf_counter() - began
        alarms = (model.predict(X[test][usual[test]]) == -1).mean()
        found.append((roc_auc_score(usual[test], model.score_samples(X[test])), alarms, took))
    return len(train), X.shape[1], np.array(found)


def main(wanted):
    names = list(METHODS)
    print("| set | rows | columns | " + " | ".join(names) + " | " + " | ".join(f"alarms, {n}" for n in names) + " |")
    print("|---" * (3 + 2 * len(names)) + "|")
    for title, sets in (("mean, used for the choice", DECIDED_WITH), ("mean, not used", CAME_LATER)):
        total = []
        for name, of in sets.items():
            if wanted and name not in wanted:
                continue
            runs = [measured(*rows_of(*of), seed) for seed in range(REPEATS)]
            found = np.mean([run[2] for run in runs], axis=0)
            total.append(found)
            print(row(name, *runs[0][:2], found), flush=True)
        if total:
            print(row(title, "", "", np.mean(total, axis=0)), flush=True)


def row(name, n_rows, n_columns, found):
    best = found[:, 0].round(3).max()
    areas = [f"**{area:.3f}**" if round(area, 3) == best else f"{area:.3f}" for area in found[:, 0]]
    return "| " + " | ".join([name, str(n_rows), str(n_columns), *areas, *(f"{a:.3f}" for a in found[:, 1])]) + " |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
