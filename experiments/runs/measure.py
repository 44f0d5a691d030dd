"""Runs: one method on one split, as a flat record fit for JSON. What goes wrong is part of the record."""

import time
import warnings
from collections import Counter
from datetime import UTC, datetime
from zlib import crc32

import numpy as np

from experiments.registry.methods import METHODS, n_threads
from experiments.registry.metrics import score


def measure(name, split, seed):
    """Fit, predict and score."""
    method = METHODS[name]
    classes = np.unique(split.y_train)
    record = {
        "method": name,
        "version": method.version,
        "seed": seed,
        "n_train": len(split.y_train),
        "n_test": len(split.y_test),
        "n_features": split.X_train.shape[1],
        "n_classes": len(classes),
        "rows": fingerprint(split),
        "n_threads": n_threads(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "failure": None,
    }
    if split.probability is not None:
        record["bayes"] = score(split.y_test, np.column_stack([1 - split.probability, split.probability]), classes)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = method.make(len(split.y_train), seed).fit(split.X_train, split.y_train)
            record["fit_seconds"] = time.perf_counter() - start
            P = model.predict_proba(split.X_test)
            record["predict_seconds"] = time.perf_counter() - start - record["fit_seconds"]
            record |= score(split.y_test, P, classes)
        except Exception as error:  # noqa: BLE001  (a failure is a result)
            record["failure"] = f"{type(error).__name__}: {error}"
    record["seconds"] = time.perf_counter() - start
    record["warnings"] = Counter(warning.category.__name__ for warning in caught)
    return record


def fingerprint(split):
    """Of all rows and labels, so that figures of different rows are never compared unnoticed."""
    digest = 0
    for part in (split.X_train, split.y_train, split.X_test, split.y_test):
        digest = crc32(np.ascontiguousarray(part, np.float64), digest)
    return f"{digest:08x}"
