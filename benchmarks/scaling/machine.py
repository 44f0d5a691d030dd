"""Scaling: the machine that a measurement ran on, and its own matrix product, which figures are compared with."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

CORES = 2  # that every measurement uses


def seconds(work, repeat=3):
    """The best of some times."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def gemm_rate(dtype=np.float32, size=3000):
    """Floating point operations a second of a large matrix product with all threads of the BLAS."""
    a = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    return 2 * size**3 / seconds(lambda: a @ a)


def pass_flops(m, d):
    """Of a training pass, for one row: kernel 2MD, features 2M², sums M²."""
    return 3 * m * m + 2 * m * d


def others(watched=2.0):
    """The share of the cores that other work uses while this process sleeps; it makes ratios doubtful."""
    times = Path("/proc/stat")
    if not times.exists():
        return 0.0
    counts = []
    for pause in (watched, 0.0):
        ticks = [int(tick) for tick in times.read_text().splitlines()[0].split()[1:9]]
        counts.append((sum(ticks), ticks[3] + ticks[4]))  # all, idle
        time.sleep(pause)
    whole, idle = (after - before for before, after in zip(*counts, strict=True))
    return 1 - idle / whole


def machine():
    """What the figures of a run depend on; no names and no places."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = sorted(pools, key=lambda pool: "numpy" not in pool["filepath"])  # SciPy may bring another one
    return {
        "others": others(),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": (models or ["unknown processor"])[0],
        "cores": os.cpu_count(),
        "blas": f"{blas[0]['internal_api']} {blas[0]['version']}" if blas else "unknown",
        "numpy": np.__version__,
        "gemm_single": gemm_rate(np.float32),
        "gemm_double": gemm_rate(np.float64),
    }
