"""Runs: one method on one split, as a flat record fit for JSON. What goes wrong is part of the record."""

import os
import platform
import time
import warnings
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from zlib import crc32

import numpy as np
import sklearn
from joblib.externals.loky import ProcessPoolExecutor
from threadpoolctl import threadpool_limits

from experiments.registry.method import n_threads
from experiments.registry.metrics import score
from experiments.runs.memory import forget_peak, peak_megabytes

BLOCK = 100_000  # rows


def measure(method, split, seed):
    """Fit, predict and score; or study."""
    if method.needs:
        import_module(method.needs)  # not on the method's time
    classes = np.unique(split.y_train)
    record = {
        "version": method.version,
        "seed": seed,
        "n_train": len(split.y_train),
        "n_test": len(split.y_test),
        "n_features": split.X_train.shape[1],
        "n_classes": len(classes),
        "rows": fingerprint(split),
        "n_threads": n_threads(),
        "machine": machine(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "failure": None,
    }
    if split.probability is not None:
        record["bayes"] = score(split.y_test, np.column_stack([1 - split.probability, split.probability]), classes)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record |= method.study(split, seed) if method.study else fit_and_score(method, split, seed, classes)
        except Exception as error:  # noqa: BLE001  (a failure is a result)
            record["failure"] = f"{type(error).__name__}: {error}"
    record["seconds"] = time.perf_counter() - start
    record["warnings"] = Counter(warning.category.__name__ for warning in caught)
    return record


def fit_and_score(method, split, seed, classes):
    start = time.perf_counter()
    model = method.make(len(split.y_train), seed).fit(split.X_train, split.y_train)
    fitted = time.perf_counter()
    P = model.predict_proba(split.X_test)
    seconds = {"fit_seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted}
    return seconds | score(split.y_test, P, classes) | (method.tell(model) if method.tell else {})


def measure_alone(method, data, seed):
    """The same in a process of its own, which makes its split by itself, with the most memory that it held."""
    with ProcessPoolExecutor(max_workers=1) as pool:
        return pool.submit(_measure_here, method, data, seed, n_threads()).result()


def _measure_here(method, data, seed, threads):
    with threadpool_limits(limits=threads):
        split = data.split(seed)
        forget_peak()
        before = peak_megabytes()
        record = measure(method, split, seed)
    return record | {"peak_megabytes": peak_megabytes(), "peak_megabytes_before": before}


@cache
def machine():
    """What figures of time depend on, in one line."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
    return f"{(models or [platform.machine()])[0]}, {os.cpu_count()} cores, {versions}"


def fingerprint(split):
    """Of all rows and labels, so that figures of different rows are never compared unnoticed."""
    digest = 0
    for part in (split.X_train, split.y_train, split.X_test, split.y_test):
        for start in range(0, len(part), BLOCK):  # millions of rows are not copied at once
            digest = crc32(np.ascontiguousarray(part[start : start + BLOCK], np.float64), digest)
    return f"{digest:08x}"
