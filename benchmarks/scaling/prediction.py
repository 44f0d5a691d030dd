"""Scaling: rows a second that a fitted model predicts, in memory and from Parquet to Parquet."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.scaling.generated import D, forget, write_parquet
from benchmarks.scaling.machine import CORES, gemm_rate, seconds
from experiments.registry.problems import collisions

from bayesvm import BayesianSVC, open_table
from bayesvm.kernels import RBF

SIZES = (64, 256, 1000)


def measured(quick):
    rate = gemm_rate(np.float64)  # the precision of all predictions
    n_rows = 1_000_000 // (50 if quick else 1)
    data = collisions(n_rows, 0)
    with tempfile.TemporaryDirectory() as folder:
        table, written = Path(folder) / "rows.parquet", Path(folder) / "said.parquet"
        write_parquet(table, n_rows)
        for m in SIZES:
            how = {"kernel": RBF(4.0, 4.0), "n_inducing": m, "tune": None, "precision": "single"}
            model = BayesianSVC(**how, n_jobs=CORES, random_state=0).fit(data.X[:100_000], data.y[:100_000])
            rows = open_table(table, columns=[f"x{j}" for j in range(D)])
            forget(table)
            works = {
                "predict_proba in memory": (partial(model.predict_proba, data.X), 3),
                "predict_to, Parquet to Parquet": (partial(model.predict_to, rows, written, uncertainty=False), 1),
                "predict_to with uncertainty": (partial(model.predict_to, rows, written), 1),
            }
            for what, (work, repeat) in works.items():
                spent = seconds(work, repeat)
                flops = 2 * m * D + 2 * m * m  # kernel, features
                yield {"what": what, "m": m, "rows_per_second": n_rows / spent, "share": n_rows * flops / spent / rate}
