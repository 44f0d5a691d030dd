"""Scaling: docs/scaling.md, written from stored rows. A section without rows says so."""

from benchmarks.scaling import arithmetic, tables
from benchmarks.scaling.machine import CORES

INTRODUCTION = """# Many rows

Written by `make scaling`; do not edit by hand. Each table states when and where it was measured. Ratios were measured
in one run, relative to the machine's own matrix product or to another method; seconds are additional information.

## What runs where

- A table is divided into **blocks** of 2,048 to 8,192 rows. Features are computed, used and overwritten block by
  block.
- A worker thread takes a **stripe**, up to eight blocks, and returns sums. The division depends on the table only,
  and sums are added in its order, so results are bit-identical for any number of threads.
- Rows in files are read again in every pass, ahead of the workers. Rows on a Dask cluster stay where they are; only
  sums are transferred.
- A random sample of the rows of a large table is **held** in memory: 40,000,000 values, or 2.2 million rows of 18
  columns. Tuning, inducing points, growing subsets and leave-one-out use this sample. A smaller table is held as a
  whole and read once.

How often a default fit reads the whole table:

| purpose | reads | how often |
| --- | --- | --- |
| classes and their weights | labels and weights; with Dask all columns | once |
| rows to hold, scaling | all columns | once; twice with Dask |
| training, after growing subsets of the held rows | all columns | until the ELBO converges, a few times |
| [local models](local.md), which replace the training on all rows | all columns | once, into a copy sorted by leaf |

Tuning uses at most 8,000 rows for any N, so its time is constant. Leave-one-out and the link use 20,000 held rows.
With `checkpoint=`, the state after tuning and after updates is written to a file, from which the same call resumes.

The guide is [big files](big_data.md).
"""

LOCAL = """[Local models](local.md) need no passes: rows are moved once to the worker of their leaf, and leaves are
independent.
The table is arithmetic for {workers} workers with one core each and {columns} columns, from {milliseconds:.0f} ms of
one core for a leaf of {leaf_rows} rows (covtype; features, training and the refits for leave-one-out), {network:.0f}
GB per second into a machine, and partitions of {per_partition:,} rows.
"""
LOCAL_STOPS = """What fails first:

- **The tree** is grown from {tree_rows:,} rows. At 10^8 rows that is half a row per leaf, so leaves become uneven;
  the tree must then be grown level by level where the rows are.
- **The model** is gathered on one machine. Beyond some 10^8 rows, leaves must be stored separately and loaded when
  needed.
- **The task graph** has an edge for every pair of a partition and a batch of leaves; there are four batches for each
  partition.
- **Stragglers.** A leaf is a unit of {milliseconds:.0f} ms and batches are small, so a lost worker costs little.
"""

CLUSTER = """The numbers below are computed, not measured. A pass is divided into partitions of {per_partition:,}
rows. Every
partition is one task that returns an M×M matrix; a tree adds {fan_in} of them at a time; the client gets one. The
model is sent to every worker once per pass. We assume {task:.0f} ms of Dask's scheduler per task, one after the
other, {latency:.0f} ms for a level of the tree, {network:.0f} GB per second into a machine, and cores as fast as
those measured here. {passes} training passes are those of the largest fit measured, rounded up; larger tables may
need others. With the {other} other reads, each counted like a training pass, this gives the seconds of a fit.
"""
STOPS = """Where it stops scaling:

- **Scheduling.** A partition must take much longer than a task's {task:.0f} ms times the number of cores. Partitions
  of {per_partition:,} rows keep {keeps} cores busy at M = 64, 256 and 1000. Larger partitions keep more.
- **Few partitions.** Cores beyond the number of partitions do nothing.
- **The client.** Its work of order M³ is done once per pass, by one machine.
- **The tree.** Its levels grow as the logarithm of the partitions; at M = 1000 a sum has {sum_megabytes:.0f} MB.
- **Stragglers.** A pass ends with its slowest worker. The table does not count that, nor reading from disk.
"""
MEMORY = """The memory of a fit from disk, computed in the same way, for 18 columns and {threads} threads, in MB. It
does not
depend on N. Libraries and Parquet's buffers are additional; the measured peaks above include them.
"""


def text(kept):
    """The whole page from stored measurements by name."""
    parts = [INTRODUCTION, "## Measured"]
    for name, (title, section) in tables.SECTIONS.items():
        measured = kept.get(name)
        told = (
            "Not measured yet." if measured is None else f"{about(measured['machine'])}\n\n{section(measured['rows'])}"
        )
        parts.append(f"### {title}\n\n{told}")
    parts += ["## The arithmetic of a cluster", cluster_section(kept)]
    parts += ["## The arithmetic of local models", local_section()]
    parts += ["## The arithmetic of memory", memory_section()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def about(machine):
    """When and on what it was measured."""
    others = machine["others"]
    return (
        f"*Measured {machine['when'][:10]} on {machine['processor']}, {machine['cores']} cores, {machine['blas']}, "
        f"NumPy {machine['numpy']}; matrix product {machine['gemm_single'] / 1e9:.0f} GFLOP/s in single and "
        f"{machine['gemm_double'] / 1e9:.0f} in double precision.*"
        + (f" *Other work used {others:.0%} of the cores when it began.*" if others > 0.05 else "")
    )


def cluster_section(kept):
    if "gemm" not in kept:
        return "It needs the measured seconds of a pass."
    passes = [row for row in kept["gemm"]["rows"] if row["what"] == "pass"]
    rows = kept.get("growth", {"rows": []})["rows"]
    fits = [row for row in rows if row["what"] == "fit" and row["form"] == "parquet"]
    largest = max(fits, key=lambda row: row["n_rows"], default={"passes": 3.0, "file_bytes_per_row": 76.0})
    rows, per_core = [], {m: arithmetic.core_seconds(passes, m, 18, CORES) for m in (64, 256, 1000)}
    for n_rows in (10**9, 10**11):
        for m, row_seconds in per_core.items():
            step = arithmetic.step_seconds(passes, m)
            for cores in (16, 256, 4096):
                how = {"training_passes": largest["passes"], "bytes_per_row": largest["file_bytes_per_row"]}
                rows.append(arithmetic.cluster(n_rows, m, cores, row_seconds, step, **how))
    units = {"task": arithmetic.TASK * 1e3, "per_partition": arithmetic.PARTITION}
    keeps = [f"{arithmetic.PARTITION * seconds / arithmetic.TASK:,.0f}" for seconds in per_core.values()]
    told = CLUSTER.format(
        **units,
        fan_in=arithmetic.FAN_IN,
        latency=arithmetic.LATENCY * 1e3,
        network=arithmetic.NETWORK / 1e9,
        passes=arithmetic.ceil(largest["passes"]),
        other=arithmetic.OTHER_READS,
    )
    stops = STOPS.format(
        **units, keeps=f"{keeps[0]}, {keeps[1]} and {keeps[2]}", sum_megabytes=arithmetic.sum_bytes(1000) / 1e6
    )
    return "\n\n".join([told.strip(), tables.cluster(rows), stops.strip()])


def local_section(workers=100, columns=54):
    rows = [arithmetic.local_models(10**power, workers, columns) for power in (7, 8, 9)]
    given = {"leaf_rows": arithmetic.LEAF_ROWS, "tree_rows": arithmetic.TREE_ROWS, "columns": columns}
    units = {"milliseconds": 1e3 * arithmetic.LEAF_SECONDS, "network": arithmetic.NETWORK / 1e9}
    given |= units | {"workers": workers, "per_partition": arithmetic.PARTITION}
    told = LOCAL.format(**given), tables.local_models(rows), LOCAL_STOPS.format(**given)
    return "\n\n".join(part.strip() for part in told)


def memory_section():
    rows = {m: arithmetic.memory(m, 18, CORES) for m in (64, 256, 1000)}
    return MEMORY.format(threads=CORES).strip() + "\n\n" + tables.memory(rows)
