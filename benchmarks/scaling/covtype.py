"""Scaling: half a million rows of covtype, against what a user would pick instead. Each method has its own process."""

import sys
from pathlib import Path

from benchmarks.scaling.processes import FailedError, told_by

LOGISTIC, SGD = "Nystroem + logistic regression", "Nystroem + SGD hinge + sigmoid"
PEERS = {500: (LOGISTIC, SGD), 1000: (LOGISTIC,)}  # by M; SGD gains little from more points
GPYTORCH = Path(".venv-gpytorch/bin/python")
SVGP_LIMIT, SVGP_SECONDS = 10, 300  # times our seconds, but no more than so many


def measured(quick):
    n_train = 500_000 // (50 if quick else 1)
    sizes = [size // (10 if quick else 1) for size in PEERS]
    ours = {}
    for m, peers in zip(sizes, PEERS.values(), strict=True):
        ours[m] = row = told_by("covtype_fit", {"method": "ours", "m": m, "n_train": n_train})
        yield row | {"ratio": 1.0, "to": m}
        for method in peers:
            yield compared({"method": method, "m": m, "n_train": n_train}, row)
    for method in ("ours, by default", "LightGBM", "LightGBM, 500 rounds", "LightGBM, 500 rounds, 255 leaves"):
        yield compared({"method": method, "m": None, "n_train": n_train}, ours[sizes[0]], sizes[0])
    limit = min(SVGP_LIMIT * ours[sizes[0]]["seconds"], SVGP_SECONDS)
    given = {"m": sizes[0], "n_train": n_train, "limit": limit, "goal": ours[sizes[0]]["log_loss"]}
    yield compared({"method": "GPyTorch SVGP", **given}, ours[sizes[0]], module="svgp_curve", interpreter=GPYTORCH)


def compared(given, ours, to=None, module="covtype_fit", interpreter=sys.executable):
    """A peer's row, with its time over ours at ``to`` points; or why there is none."""
    head = {"method": given["method"], "m": given["m"], "to": to or given["m"]}
    try:
        row = told_by(module, given, interpreter)
    except (FailedError, FileNotFoundError) as error:
        return head | {"failed": str(error)}
    return head | row | {"ratio": row["seconds"] / ours["seconds"]}
