"""Scaling: one method on covtype, in a process of its own. It prints one line of JSON.

Peers see standardised columns in single precision, which halves the memory and the time of Nystroem features.
"""

import json
import sys
import time
import warnings

import numpy as np
from benchmarks.scaling.machine import CORES
from experiments.runs.memory import forget_peak, peak_megabytes
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianSVC
from bayesvm.datasets import load_table

D = 54


def split(n_train):
    """Training and test rows; all that are not for training are for the test, at most 81,012."""
    X, y = load_table("covtype")
    return train_test_split(
        X.astype(np.float32), y, train_size=n_train, test_size=min(len(y) - n_train, 81_012), random_state=0, stratify=y
    )


def boosting(**how):
    from lightgbm import LGBMClassifier  # noqa: PLC0415  (only here)

    return LGBMClassifier(n_jobs=CORES, random_state=0, verbose=-1, **how)


def method(name, m):
    nystroem = Nystroem(gamma=1 / (2 * D), n_components=m or 1, random_state=0)
    return {
        "ours": lambda: BayesianSVC(n_inducing=m, local=False, n_jobs=CORES, random_state=0),
        "ours, by default": lambda: BayesianSVC(n_jobs=CORES, random_state=0),
        "Nystroem + logistic regression": lambda: make_pipeline(
            StandardScaler(), nystroem, LogisticRegression(C=10, max_iter=300)
        ),
        "Nystroem + SGD hinge + sigmoid": lambda: make_pipeline(
            StandardScaler(), nystroem, CalibratedClassifierCV(SGDClassifier(random_state=0), method="sigmoid", cv=3)
        ),
        "LightGBM": boosting,
        "LightGBM, 500 rounds": lambda: boosting(n_estimators=500),
        "LightGBM, 500 rounds, 255 leaves": lambda: boosting(n_estimators=500, num_leaves=255),
    }[name]()


def main(given):
    X, X_test, y, y_test = split(given["n_train"])
    model = method(given["method"], given["m"])
    forget_peak()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    elapsed = time.perf_counter() - start
    peak = peak_megabytes()
    p = model.predict_proba(X_test)
    print(
        json.dumps(
            {
                "method": given["method"],
                "m": given["m"],
                "n_rows": len(y),
                "seconds": elapsed,
                "log_loss": log_loss(y_test, p),
                "error": float(np.mean(model.classes_[p.argmax(axis=1)] != y_test)),
                "peak_megabytes": peak,
            }
        )
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
