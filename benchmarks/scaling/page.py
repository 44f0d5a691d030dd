"""Scaling: docs/scaling.md, written from stored rows. A section without rows says so."""

from benchmarks.scaling import arithmetic, tables
from benchmarks.scaling.machine import CORES

INTRODUCTION = """# Many rows

Written by `make scaling`; do not edit by hand. Each table states when and where it was measured. Ratios were measured
in one run, relative to the machine's own matrix product or to another method; seconds are additional information.

## What runs where

- A table is cut into **blocks** of 2,048 to 8,192 rows. Block by block, features are made, used and overwritten.
- A worker thread takes a **stripe**, up to eight blocks, and returns sums. The cut depends on the table alone, and
  sums are added in its order, so the result does not depend on the number of threads, to the last bit.
- Rows in files are read again in every pass, ahead of the workers. Rows on a Dask cluster stay there, and only sums
  move.
- Of a large table a random choice of rows is **held** in memory: 40,000,000 numbers, 2.2 million rows of 18 columns.
  Tuning, inducing points, growing subsets and leave-one-out use these. A smaller table is held as a whole and read
  once.

A default fit reads the whole table this often:

| what for | reads | how often |
| --- | --- | --- |
| classes and their weights | labels and weights; with Dask all columns | once |
| rows to hold, scaling | all columns | once; twice with Dask |
| training, after growing subsets of the held rows | all columns | until the bound settles, a few times |
| [local models](local.md), which replace the training on all rows | all columns | once, into a copy sorted by leaf |

Tuning sees at most 8,000 rows whatever N is, so its time is constant. Leave-one-out and the link see 20,000 held
rows. With `checkpoint=` the state after tuning and after updates is written to a file; the same call resumes from
there.

[Big files](big_data.md) is the guide.
"""

LOCAL = """[Local models](local.md) need no passes: rows are moved once to the worker of their leaf, and leaves are
independent. The table is arithmetic for {workers} workers with one core each and {columns} columns, from
{milliseconds:.0f} ms of one core for a leaf of {leaf_rows} rows (covtype; features, training and the refits for
leave-one-out), {network:.0f} GB a second into a machine, and partitions of {per_partition:,} rows.
"""
LOCAL_STOPS = """What breaks first:

- **The tree** is grown from {tree_rows:,} rows. At 10^8 rows that is half a row per leaf, so leaves become uneven;
  the tree must then be grown level by level where the rows are.
- **The model** is gathered on one machine. Beyond some 10^8 rows, leaves must be stored separately and loaded when
  needed.
- **The task graph** has an edge for every pair of a partition and a batch of leaves; there are four batches for each
  partition.
- **Stragglers.** A leaf is a unit of {milliseconds:.0f} ms and batches are small, so a lost worker costs little.
"""

CLUSTER = """The figures below are arithmetic, not measurements. A pass is cut into partitions of {per_partition:,}
rows. Every partition is one task that returns an M×M matrix; a tree adds {fan_in} of them at a time; the client gets
one. The model goes to every worker once a pass. Assumed are {task:.0f} ms of Dask's scheduler a task, one after the
other, {latency:.0f} ms for a level of the tree, {network:.0f} GB a second into a machine, and every core as fast as
one of those measured here. {passes} training passes are those of the largest fit measured, rounded up; larger tables
may need others. With the {other} other reads, all counted as dear as a training pass, this gives the seconds of a
fit.
"""
STOPS = """Where it stops scaling:

- **Scheduling.** A partition must take much longer than a task's {task:.0f} ms times the number of cores. Partitions
  of {per_partition:,} rows keep {keeps} cores busy at M = 64, 256 and 1000. Larger partitions keep more.
- **Few partitions.** Cores beyond the number of partitions do nothing.
- **The client.** Its work of order M³ is done once a pass, by one machine.
- **The tree.** Its levels grow as the logarithm of the partitions; at M = 1000 a sum has {sum_megabytes:.0f} MB.
- **Stragglers.** A pass ends with its slowest worker. The table does not count that, nor reading from disk.
"""
MEMORY = """What a fit from disk holds, by the same kind of arithmetic, for 18 columns and {threads} threads, in MB.
It does not depend on N. Libraries and Parquet's own buffers come on top; the measured peaks above include them.
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
