"""Scaling: what a cluster and a machine's memory would have to do, computed from measured figures."""

from math import ceil

from benchmarks.scaling.machine import pass_flops

from bayesvm.data.blocks import block_rows, most_held, stripe_rows
from bayesvm.data.dask_rows import BATCHES_PER_PARTITION, FAN_IN
from bayesvm.inference.leaves import LEAF_ROWS, TREE_ROWS
from bayesvm.inference.local import MOST_POINTS

TASK = 1e-3  # seconds of Dask's scheduler for a task, one after the other
LATENCY = 5e-3  # seconds of one level of the tree of sums, besides its bytes
NETWORK = 1e9  # bytes a second into one machine
PARTITION = 2**20  # rows
LEAF_SECONDS = 0.03  # of one core, for a leaf of covtype: (27 s - 9 s of tuning) x 2 cores / 1,250 leaves
OTHER_READS = 3  # of a fit besides its training passes: labels, rows to hold, scaling


def tree(partitions, fan_in=FAN_IN):
    """Tasks and levels of a pass: a sum for every partition, then sums of ``fan_in`` sums until one is left."""
    tasks, levels, left = partitions, 0, partitions
    while left > 1:
        left = ceil(left / fan_in)
        tasks, levels = tasks + left, levels + 1
    return tasks, levels


def sum_bytes(m):
    """Of the sums of one partition: an M×M matrix, a vector and two numbers in double precision."""
    return 8 * (m * m + m + 2)


def model_bytes(m, d):
    """That every worker gets for a pass in single precision: the whitening, the points, mean and spread."""
    return 4 * (m * m + m * (d + 2) + 2 * m)


def core_seconds(passes, m, d, cores):
    """Seconds of one core for a row, from the nearest measured number of points, by the operations of a pass."""
    nearest = min(passes, key=lambda row: abs(row["m"] - m))
    return nearest["seconds_per_million"] * 1e-6 * cores * pass_flops(m, d) / pass_flops(nearest["m"], d)


def step_seconds(passes, m):
    """Seconds of the work of order M³ on the client."""
    nearest = min(passes, key=lambda row: abs(row["m"] - m))
    return nearest["step_seconds"] * (m / nearest["m"]) ** 3


def cluster(n_rows, m, cores, row_seconds, step, training_passes, d=18, bytes_per_row=76.0, per_partition=PARTITION):
    """A pass and a whole fit on a cluster. All reads of the rows are counted like training passes, the dearest."""
    partitions = ceil(n_rows / per_partition)
    tasks, levels = tree(partitions)
    parts = {
        "rows": ceil(partitions / cores) * min(per_partition, n_rows) * row_seconds,
        "scheduling": tasks * TASK,
        "tree": levels * (LATENCY + FAN_IN * sum_bytes(m) / NETWORK),
        "client": step,
    }
    # The scheduler hands out tasks while others are computed; the tree's last levels and the client wait for all.
    one = max(parts["rows"], parts["scheduling"]) + parts["tree"] + parts["client"]
    return {
        "n_rows": n_rows,
        "m": m,
        "cores": cores,
        "partitions": partitions,
        "tasks": tasks,
        "levels": levels,
        "sums_moved": (tasks - 1) * sum_bytes(m),
        "model_moved": cores * model_bytes(m, d),
        "read": n_rows * bytes_per_row,
        "pass_seconds": one,
        "fit_seconds": (ceil(training_passes) + OTHER_READS) * one,
        "efficiency": n_rows * row_seconds / cores / one,
        "largest": max(parts, key=parts.get),
    }


def memory(m, d, threads, itemsize=4):
    """Bytes of what a fit from disk holds, by what it is."""
    rows = block_rows(m, d)
    per_thread = rows * (8 * d + itemsize * (d + 2) + 2 * itemsize * m)  # scaled rows, kernel's rows, features, scratch
    return {
        "held rows": most_held(d) * d * itemsize,
        "stripes read": (2 * threads + 4) * stripe_rows(10**9, rows, d) * d * itemsize,  # ahead, and under way
        "blocks": threads * per_thread,
        "sums": 2 * threads * sum_bytes(m),  # under way, and waiting to be added
        "model": 6 * 8 * m * m,  # P, its factor, root, S, the kernel's factor and the next P
    }


def local_models(n_rows, workers, d):
    """Leaves, hours of one core, minutes of all workers, bytes of the shuffle and of the model, edges of the graph."""
    leaves, partitions = ceil(n_rows / LEAF_ROWS), ceil(n_rows / PARTITION)
    shuffled = 8 * n_rows * (d + 1)
    return {
        "n_rows": n_rows,
        "leaves": leaves,
        "hours": leaves * LEAF_SECONDS / 3600,
        "minutes": leaves * LEAF_SECONDS / workers / 60,
        "shuffled": shuffled,
        "shuffle_minutes": shuffled / workers / NETWORK / 60,
        "model": leaves * (2 * 4 * MOST_POINTS**2 + 4 * MOST_POINTS * d),
        "edges": partitions * min(leaves, BATCHES_PER_PARTITION * partitions),
        "sample": TREE_ROWS / leaves,
    }
