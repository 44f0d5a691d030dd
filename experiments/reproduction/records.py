"""Reproduction: stored runs as means, deviations and tables.

A page is written from the newest record of every run, so that it can be written again after the code has changed.
"""

from collections import defaultdict

import numpy as np


def found(store, runs):
    """The newest record of each run that has one, whatever its version; failures among them."""
    wanted = {(run.method, run.set, run.seed) for run in runs}
    newest = {}
    for record in sorted(store.records.values(), key=lambda record: record["when"]):
        key = record["method"], record["set"], record["seed"]
        if key in wanted:
            newest[key] = record
    return list(newest.values())


def grouped(records, *fields):
    """Lists of those records that did not fail, by the values of these fields."""
    groups = defaultdict(list)
    for record in records:
        if not record["failure"]:
            groups[tuple(record[field] for field in fields)].append(record)
    return dict(groups)


def mean(records, field):
    return float(np.mean([record[field] for record in records]))


def deviation(records, field):
    """Over folds; nothing for a single one."""
    return float(np.std([record[field] for record in records], ddof=1)) if len(records) > 1 else float("nan")


def markdown(header, rows):
    """A table; cells are text."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
