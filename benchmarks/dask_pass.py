"""What a training pass costs on a Dask cluster, against threads in memory on the same cores, in one run.

Two worker processes with one thread each hold the rows; the other side is two threads in this process. The second
table says where a worker's time goes. Run with `python benchmarks/dask_pass.py [--rows 200000]`.
"""

import argparse
import logging
import time
from functools import partial

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream

from bayesvm import BayesianSVC
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.statistics import block_statistics
from bayesvm.data.blocks import block_rows
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.estimators._dask import dask_rows
from bayesvm.kernels import RBF

D, M, WORKERS, REPEAT = 18, 256, 2, 5


def seconds(work):
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def pass_over_rows(X, y):
    """The function of a pass, in single precision, from a model of some of the rows."""
    how = {"kernel": RBF(4.0, 4.0), "inducing": X[:M].astype(float), "scale": None, "tune": None}
    model = BayesianSVC(**how, precision="single", random_state=0).fit(X[:20_000], y[:20_000])
    return partial(block_statistics, view=model._view, likelihood=LIKELIHOODS[model.bound])  # noqa: SLF001


def worker_times(stream):
    """Seconds by what workers did, summed over tasks."""
    spent = {"compute": 0.0, "transfer": 0.0, "deserialize": 0.0}
    for task in stream.data:
        for part in task["startstops"]:
            spent[part["action"]] = spent.get(part["action"], 0.0) + part["stop"] - part["start"]
    return spent


def main(n_rows, rows_per_partition):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, D), dtype=np.float32)
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.standard_normal(n_rows) > 0).astype(np.int8)
    function = pass_over_rows(X, y)
    size = block_rows(M, D)
    with Workers(WORKERS, small_matrices=True) as workers:
        memory = MemorySource(X, y, None, ColumnScaler(), workers, size)
        memory.reduce(function)
        here = seconds(lambda: memory.reduce(function))
        with (
            LocalCluster(
                processes=True,
                n_workers=WORKERS,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(WORKERS)
            chunks = (rows_per_partition, D)
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                table = dask.persist(da.from_array(X, chunks=chunks), da.from_array(y, chunks=rows_per_partition))
            client.rebalance()
            far = dask_rows(BayesianSVC(), *table, None).source(workers, size, rng)
            far.reduce(function)
            with get_task_stream(client) as stream:
                there = seconds(lambda: far.reduce(function))
            spent = worker_times(stream)
    print(f"{n_rows:,} rows, {D} columns, M = {M}, partitions of {rows_per_partition:,} rows")
    print(f"{'threads in memory':>34}  {here:8.3f} s a pass")
    print(f"{'Dask, two processes':>34}  {there:8.3f} s a pass, ratio {there / here:.2f}")
    print("where the time of a worker goes, seconds a pass:")
    spent = {name: time_ / REPEAT / WORKERS for name, time_ in spent.items()}
    spent["scheduling, graph, waiting"] = there - sum(spent.values())
    for name, time_ in spent.items():
        print(f"{name:>34}  {time_:8.3f}  {time_ / there:5.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partition", type=int, default=100_000)
    given = parser.parse_args()
    main(given.rows, given.partition)
