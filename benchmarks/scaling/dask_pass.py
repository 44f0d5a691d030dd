"""Scaling: what a training pass costs on a Dask cluster, against threads in memory on the same cores, in one run.

Two worker processes with one thread each hold the rows; the other side is two threads in this process.
"""

import logging
from functools import partial

import dask
import dask.array as da
import numpy as np
from benchmarks.scaling.generated import D
from benchmarks.scaling.machine import CORES, seconds
from distributed import Client, LocalCluster, get_task_stream
from experiments.registry.problems import collisions

from bayesvm import BayesianSVC
from bayesvm.core.engine import NUMPY
from bayesvm.data.blocks import block_rows
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.estimators._inputs import training_rows
from bayesvm.kernels import RBF

M, REPEAT = 256, 5


def pass_over_rows(X, y):
    """The function of a pass, in single precision, from a model of some of the rows."""
    how = {"kernel": RBF(4.0, 4.0), "inducing": X[:M].astype(float), "scale": None, "tune": None}
    model = BayesianSVC(**how, precision="single", random_state=0).fit(X[:20_000], y[:20_000])
    fitted = model.fitted_
    view, _ = NUMPY.view(fitted.member.features, fitted.member.functions, len(X), np.float32)
    return partial(NUMPY.statistics, view=view, head=fitted.head, likelihood=fitted.likelihood)


def worker_times(stream):
    """Seconds by what workers did, summed over tasks."""
    spent = {"compute": 0.0, "transfer": 0.0, "deserialize": 0.0}
    for task in stream.data:
        for part in task["startstops"]:
            spent[part["action"]] = spent.get(part["action"], 0.0) + part["stop"] - part["start"]
    return spent


def measured(quick):
    n_rows = 2_000_000 // (50 if quick else 1)
    data = collisions(n_rows, 0)
    function = pass_over_rows(data.X, data.y)
    for per_partition in (n_rows // 20, n_rows // 200):
        here, there, spent = compared(data.X, data.y, function, per_partition)
        yield {
            "m": M,
            "n_rows": n_rows,
            "rows_per_partition": per_partition,
            "seconds_here": here,
            "seconds_there": there,
            "ratio": there / here,
            "worker": {name: time / REPEAT / CORES for name, time in spent.items()},
        }


def compared(X, y, function, per_partition):
    """Seconds of a pass in memory and on the cluster, and where the time of workers went in all passes."""
    size = block_rows(M, D)
    quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"}
    with Workers(CORES) as workers:
        memory = MemorySource(X, y, None, ColumnScaler(), workers, size)
        memory.reduce(function)
        here = seconds(lambda: memory.reduce(function), REPEAT)
        local = LocalCluster(
            processes=True,
            n_workers=CORES,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        with local as cluster, Client(cluster) as client:
            client.wait_for_workers(CORES)
            with dask.config.set(quiet):
                table = dask.persist(
                    da.from_array(X, chunks=(per_partition, D)), da.from_array(y, chunks=per_partition)
                )
            client.rebalance()
            remote = training_rows(BayesianSVC(), *table, None).source(workers, size, np.random.default_rng(0))
            remote.reduce(function)
            with get_task_stream(client) as stream:
                there = seconds(lambda: remote.reduce(function), REPEAT)
            return here, there, worker_times(stream)
