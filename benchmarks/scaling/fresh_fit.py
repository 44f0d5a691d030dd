"""Scaling: one default fit in a process of its own, with what it cost. It prints one line of JSON.

The limit of memory is set before anything large is imported.
"""

import json
import resource
import sys

GIVEN = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
if GIVEN.get("limit"):
    kind = getattr(resource, GIVEN["limit"])
    resource.setrlimit(kind, (GIVEN["limit_bytes"],) * 2)

import time  # noqa: E402
import warnings  # noqa: E402
from collections import Counter  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from benchmarks.scaling.machine import CORES  # noqa: E402
from experiments.runs.memory import forget_peak, peak_megabytes  # noqa: E402
from experiments.runs.spent import added_up  # noqa: E402

from bayesvm import BayesianSVC, open_table  # noqa: E402
from bayesvm.data.tables import Table  # noqa: E402
from bayesvm.inference.kernel_model import KernelModel  # noqa: E402


def reads_counted():
    """How often a table's files are read from beginning to end, by what is read of them."""
    reads = Counter()

    def counted(name, method):
        def counting(*args, **kwargs):
            reads[name] += 1
            return method(*args, **kwargs)

        return counting

    for name in ("targets", "rows", "batches"):
        setattr(Table, name, counted(name, getattr(Table, name)))
    return reads


def main(given):
    reads = reads_counted()
    if given["form"] == "parquet":
        data, input_bytes = (open_table(given["path"], target="y"),), 0
        n_rows = data[0].n_rows
    else:
        data = tuple(np.load(Path(given["path"]) / f"{name}.npy") for name in "Xy")
        input_bytes, n_rows = sum(array.nbytes for array in data), len(data[1])
    model = BayesianSVC(n_inducing=given["m"], local=False, n_jobs=CORES, random_state=0)
    tuning = []
    forget_peak()
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, added_up(KernelModel, "prepare", tuning):
        warnings.simplefilter("always")
        model.fit(*data)
    elapsed = time.perf_counter() - start
    peak = peak_megabytes()
    if given.get("save"):
        model.save(given["save"])
    told = {
        "n_rows": n_rows,
        "form": given["form"],
        "seconds": elapsed,
        "tuning_seconds": sum(tuning),
        "passes": model.n_passes_,
        "peak_megabytes": peak,
        "beyond_input_megabytes": peak - input_bytes / 2**20,
        "reads": dict(reads),
        "warnings": dict(Counter(warning.category.__name__ for warning in caught)),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(GIVEN)
