"""Regression: tables, most of them synthetic; two are read from the folder that BAYESVM_DATA names."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3

N = 4_000


def read(name):
    columns = pq.read_table(Path(os.environ["BAYESVM_DATA"]) / f"{name}_regression.parquet").to_pydict()
    y = np.array(columns.pop("y"), float)
    return np.column_stack([np.array(column, float) for column in columns.values()]), y


def growing_noise(seed=0):
    """Noise in proportion to the mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    return X, np.exp(0.5 * X[:, 0] + 0.3 * X[:, 1]) * (1 + 0.3 * rng.standard_normal(N))


def outliers(seed=0):
    """friedman1 with one number in twenty moved far away."""
    X, y = make_friedman1(N, noise=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    return X, y + 30 * (rng.random(N) < 0.05) * rng.standard_normal(N)


def jumps(seed=0):
    """Steps in two columns of whole numbers, and a smooth part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 8))
    X[:, :2] = np.round(2 * X[:, :2])
    return X, 2.0 * (X[:, 0] % 2) + (X[:, 1] > 1) + np.sin(X[:, 2]) * X[:, 3] + 0.3 * rng.standard_normal(N)


SETS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman1": lambda: make_friedman1(N, noise=1.0, random_state=0),
    "friedman1, noiseless": lambda: make_friedman1(N, noise=0.0, random_state=0),
    "friedman2": lambda: make_friedman2(N, noise=125.0, random_state=0),
    "friedman3": lambda: make_friedman3(N, noise=0.1, random_state=0),
    "growing noise": growing_noise,
    "outliers": outliers,
    "jumps": jumps,
    "california": lambda: read("california"),
    "computers": lambda: read("computers"),
}
