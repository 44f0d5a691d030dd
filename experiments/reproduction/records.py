"""Reproduction: stored runs as means and deviations.

A page is written from the newest version of every method, so that it can be written again after the code has changed.
"""

from collections import defaultdict

import numpy as np


def found(store, runs):
    """The records of these runs, failures among them: of every method on every set those of its newest version."""
    wanted = {(run.method, run.set, run.seed) for run in runs}
    mine = [record for record in store.records.values() if (*_place(record), record["seed"]) in wanted]
    newest = {_place(record): record["version"] for record in sorted(mine, key=lambda record: record["when"])}
    return [record for record in mine if record["version"] == newest[_place(record)]]


def _place(record):
    return record["method"], record["set"]


def unequal_rows(records):
    """Splits whose rows differ between the methods that are compared there."""
    prints = defaultdict(set)
    for record in records:
        prints[record["set"], record["seed"]].add(record["rows"])
    return sorted({name for (name, _), found_there in prints.items() if len(found_there) > 1})


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
