"""Runs: the most memory that this process has held."""

import sys
from pathlib import Path

STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # Linux only


def forget_peak():
    """Count from here on; elsewhere than on Linux from the beginning.

    Linux hands a parent's peak down to its children, so that without this a child seems to hold what its parent did.
    """
    if REFERENCES.exists():
        REFERENCES.write_text("5")


def peak_megabytes():
    """Since ``forget_peak``; NaN where it cannot be told."""
    if STATUS.exists():
        peak = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return float("nan")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS reports bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
