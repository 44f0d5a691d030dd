"""Registry: metrics of probabilities P, one row per test row, against the truth T, one-hot. Smaller is better."""

import numpy as np

LEAST = 1e-15


def log_loss(T, P):
    P = np.clip(P, LEAST, 1 - LEAST)
    return float(-np.mean(np.sum(T * np.log(P / P.sum(axis=1, keepdims=True)), axis=1)))


def error(T, P):
    return float(np.mean(T.argmax(axis=1) != P.argmax(axis=1)))


def brier(T, P):
    """Mean squared distance; for two classes that of P(y = +1) alone, half the sum over both."""
    return float(np.mean(np.sum((T - P) ** 2, axis=1))) / (2 if T.shape[1] == 2 else 1)


METRICS = {"log_loss": log_loss, "error": error, "brier": brier}


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
    return {name: metric(T, P) for name, metric in METRICS.items()}
