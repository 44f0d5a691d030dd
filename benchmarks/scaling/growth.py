"""Scaling: time and memory of a default fit as the rows become more, from memory and from Parquet."""

import tempfile
from pathlib import Path

import numpy as np
from benchmarks.scaling.generated import forget, write_arrays, write_parquet
from benchmarks.scaling.processes import FailedError, told_by

M = 64
SIZES = (100_000, 316_228, 1_000_000, 5_000_000, 20_000_000)
LIMIT_BYTES = 2 * 2**30


def measured(quick):
    sizes = [size // (50 if quick else 1) for size in SIZES]
    with tempfile.TemporaryDirectory() as folder:
        arrays, table = Path(folder) / "arrays", Path(folder) / "rows.parquet"
        rows = []
        for n_rows in sizes:
            write_arrays(arrays, n_rows)
            rows.append(told_by("fresh_fit", {"form": "memory", "path": str(arrays), "m": M}))
            yield {"what": "fit", **rows[-1]}
            write_parquet(table, n_rows)
            row = told_by("fresh_fit", {"form": "parquet", "path": str(table), "m": M})
            rows.append(row | {"file_bytes_per_row": table.stat().st_size / n_rows})
            yield {"what": "fit", **rows[-1]}
        for form in ("memory", "parquet"):
            yield {"what": "exponent", "form": form} | exponents([row for row in rows if row["form"] == form])
        yield limited(table)


def exponents(rows):
    """Slopes of log time against log N, by least squares: over all sizes, and without the smallest."""
    n, t = (np.log([row[name] for row in rows]) for name in ("n_rows", "seconds"))
    slopes = [float(np.polyfit(n[start:], t[start:], 1)[0]) for start in (0, 1)]
    return {"over_all": slopes[0], "without_smallest": slopes[1]}


def limited(table):
    """The largest fit from disk with 2 GiB: of address space, or if that does not do, of data."""
    failed = {}
    for limit in ("RLIMIT_AS", "RLIMIT_DATA"):
        forget(table)
        given = {"form": "parquet", "path": str(table), "m": M, "limit": limit, "limit_bytes": LIMIT_BYTES}
        try:
            row = told_by("fresh_fit", given)
        except FailedError as error:
            failed[limit] = str(error)
            continue
        return {"what": "limited", "limit": limit, "limit_bytes": LIMIT_BYTES, "failed": failed, **row}
    return {"what": "limited", "limit": None, "limit_bytes": LIMIT_BYTES, "failed": failed}
