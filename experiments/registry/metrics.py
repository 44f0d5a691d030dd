"""Registry: metrics of probabilities P, one row per test row, against the truth T, one-hot.

Smaller is better, except for the area under the curve, which there is for two classes only.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

LEAST = 1e-15
BINS = 10  # of the calibration error, equally wide


def log_loss(T, P):
    P = np.clip(P, LEAST, 1 - LEAST)
    return float(-np.mean(np.sum(T * np.log(P / P.sum(axis=1, keepdims=True)), axis=1)))


def error(T, P):
    return float(np.mean(T.argmax(axis=1) != P.argmax(axis=1)))


def brier(T, P):
    """Mean squared distance; for two classes that of P(y = +1) alone, half the sum over both."""
    return float(np.mean(np.sum((T - P) ** 2, axis=1))) / (2 if T.shape[1] == 2 else 1)


def calibration_error(T, P):
    """Expected calibration error: mean distance of share and mean probability within bins of the probability."""
    return float(np.abs(calibration_sums(T, P)).sum() / len(P))


def calibration_sums(T, P):
    """Probability minus truth, summed within the bins; small folds are to be added up before anything is averaged.

    Of P(y = +1) for two classes, of the most probable class for more.
    """
    rows = np.arange(len(P))
    chosen = np.ones(len(P), int) if P.shape[1] == 2 else P.argmax(axis=1)
    claimed, true = P[rows, chosen], T[rows, chosen]
    which = np.minimum((claimed * BINS).astype(int), BINS - 1)
    return np.bincount(which, claimed - true, minlength=BINS)


def auc(T, P):
    return float(roc_auc_score(T[:, 1], P[:, 1]))


METRICS = {"log_loss": log_loss, "error": error, "brier": brier, "calibration_error": calibration_error}


def score(y, P, classes):
    """Every metric of probabilities whose columns are those classes."""
    y, P = np.asarray(y), np.asarray(P, float)
    if P.shape != (len(y), len(classes)):
        raise ValueError(f"probabilities have shape {P.shape}; {len(y)} rows and {len(classes)} classes were expected")
    broken = ~(np.isfinite(P).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-6) & (P >= 0).all(axis=1))
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        raise ValueError(f"{broken.sum()} rows are no probabilities; the first is test row {row}: {P[row]}")
    T = (y[:, None] == classes).astype(float)
    scores = {name: metric(T, P) for name, metric in METRICS.items()}
    scores["calibration_sums"] = calibration_sums(T, P).tolist()
    return scores | ({"auc": auc(T, P)} if len(classes) == 2 and 0 < T[:, 1].sum() < len(T) else {})
