"""Data: available memory, to reject tables that are too wide before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from pathlib import Path

from bayesvm.warn import warn_user

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # in containers
REFUSED_FROM, REPORTED_FROM = 1 / 2, 1 / 8  # of the memory


def require_memory(name: str, n_features: int, n_vectors: int) -> None:
    """Raise an error if ``n_vectors`` vectors as wide as the table do not fit into memory; warn if it is close."""
    needed, present = 8.0 * n_features * n_vectors, memory_bytes()
    about = f"X has {n_features:,} columns, for which {name} needs about {needed / 1e9:,.1f} GB of memory"
    remedy = (
        "Use fewer columns (for example with scikit-learn's FeatureHasher) or fewer inducing points. For a LIBSVM "
        "file, check that the largest index is correct: it determines the number of columns"
    )
    if needed > REFUSED_FROM * present:
        raise ValueError(f"{about}; the limit is half of the {present / 1e9:,.1f} GB available. {remedy}")
    if needed > REPORTED_FROM * present:
        warn_user(f"{about}. {remedy}")


def memory_bytes() -> float:
    """The memory of this machine, or the part that this process may use; infinite if unknown."""
    return min(_limits(), default=inf)


def _limits() -> Iterator[float]:
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        yield float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in map(Path, _LIMITS):
        limit = path.read_text().strip() if path.is_file() else ""
        if limit.isdigit():  # "max" means no limit
            yield float(limit)
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return
    limit_of_process, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_of_process != resource.RLIM_INFINITY:
        yield float(limit_of_process)
