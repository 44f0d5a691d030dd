"""The ONNX graph against predict_proba on real rows: largest difference of a probability, and time.

Needs onnx and onnxruntime; tables from the folder that BAYESVM_DATA names, and scikit-learn's own.
"""

import argparse
import os
import time

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split

from bayesvm import BayesianLinearSVC, BayesianSVC, to_onnx
from bayesvm.datasets import load_table, waveform
from bayesvm.inference.settings import SINGLE_FROM

ROWS = 20_000  # of a table: half to learn from, half to predict
BATCH = 4_000  # rows that a session is given at once
LEAST_SECONDS = 0.5  # that a time is the best of


def tables():
    """Names, rows and labels."""
    yield "iris", *load_iris(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    data = waveform(ROWS, random_state=0)
    yield "waveform", data.X, data.y
    for name in ("magic", "adult", "covtype"):
        try:
            X, y = load_table(name)
        except FileNotFoundError as error:
            print(f"skipped: {error}")
            continue
        some = np.random.default_rng(0).permutation(len(y))[:ROWS]
        yield name, X[some], y[some]


def precision(model, n_features):
    """In which a model was fitted to rows with so many features in all."""
    chosen = "single" if n_features >= SINGLE_FROM else "double"
    return chosen if model.precision == "auto" else model.precision


def session(model, dtype):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    return onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString(), options)


def probabilities(graph, X):
    """Batch by batch, as a server would."""
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[graph.get_inputs()[0].type]
    X = X.astype(kind)
    parts = [graph.run(["probabilities"], {"X": X[i : i + BATCH]})[0] for i in range(0, len(X), BATCH)]
    return np.concatenate(parts)


def seconds(work):
    """The best of some runs."""
    best, began = np.inf, time.perf_counter()
    while time.perf_counter() - began < LEAST_SECONDS:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def compare(name, model, Xa, ya, X):
    said = model.fit(Xa, ya).predict_proba(X)
    n_weights = model.fitted_.member.features.n_weights
    ours, one = (seconds(lambda rows=rows: model.predict_proba(rows)) for rows in (X, X[:1]))
    kernel = type(model.kernel_).__name__ if hasattr(model, "kernel_") else "-"
    row = f"| {name} | {len(model.classes_)} | {kernel} | {n_weights} "
    row += f"| {precision(model, len(ya) * n_weights)} | {1e3 * one:.1f} "
    for dtype in ("double", "single"):
        graph = session(model, dtype)
        gap = np.abs(probabilities(graph, X) - said).max()
        all_rows, one_row = (seconds(lambda g=graph, rows=rows: probabilities(g, rows)) for rows in (X, X[:1]))
        row += f"| {gap:.0e} | {all_rows / ours:.1f} | {1e3 * one_row:.2f} "
    print(row + "|", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--precision", default="auto", help="of the fits")
    arguments.add_argument("--only", nargs="*", help="names of tables")
    options = arguments.parse_args()
    print(f"onnxruntime {onnxruntime.__version__}, {os.cpu_count()} cores, batches of {BATCH:,} rows\n")
    print("| table | classes | kernel | M | fitted in | ms | double | time | ms | single | time | ms |")
    print("|---|--:|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, X, y in tables():
        if options.only and name not in options.only:
            continue
        Xa, Xb, ya, _ = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        for kind in (BayesianSVC, BayesianLinearSVC):
            compare(name, kind(random_state=0, precision=options.precision), Xa, ya, Xb)


if __name__ == "__main__":
    main()
