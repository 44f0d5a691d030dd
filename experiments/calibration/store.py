"""Calibration: answers kept in files, one for every set and method, so that a run resumes where it was stopped.

The page is computed from these and from nothing else.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

FOLDER, QUICK_FOLDER = Path("out/calibration"), Path("out/calibration-quick")


def path(folder, set_name, answer_name):
    plain = set_name.replace(", ", "_").replace(" %", "").replace(" ", "_")
    return Path(folder) / plain / f"{answer_name}.npz"


def keep_rows(folder, set_name, problem):
    """The labels of all parts, and what the training rows are like."""
    _write(
        path(folder, set_name, "rows"),
        {f"label {part}": y == problem.y.max() for part, (_, y) in problem.parts.items()},
        {"n_train": len(problem.y), "n_columns": problem.X.shape[1], "share": float(np.mean(problem.y > 0))},
    )


def keep(folder, set_name, answer_name, answer):
    arrays = {f"said {method}": p for method, p in answer.said.items()} | answer.more
    when = datetime.now(UTC).isoformat(timespec="minutes")
    _write(
        path(folder, set_name, answer_name),
        arrays,
        {"n_rows": answer.n_rows, "seconds": answer.seconds, "when": when},
    )


def _write(where, arrays, about):
    where.parent.mkdir(parents=True, exist_ok=True)
    part = where.with_suffix(".part.npz")
    np.savez_compressed(part, about=json.dumps(about), **arrays)
    part.replace(where)


def read(folder, set_name, answer_name):
    """Arrays by name and their metadata; None if they were not measured."""
    where = path(folder, set_name, answer_name)
    if not where.exists():
        return None
    with np.load(where) as file:
        arrays = {name: file[name] for name in file.files if name != "about"}
        return arrays, json.loads(str(file["about"]))
