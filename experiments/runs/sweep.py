"""Runs: everything that is asked for and not in the store yet.

Every set has its first seed before any has its second, so that a sweep that is stopped leaves figures of all sets.
"""

from itertools import groupby
from statistics import mean

from experiments.registry.methods import METHODS
from experiments.registry.sets import SETS
from experiments.runs.measure import measure


def sweep(methods, sets, n_seeds, store):
    """Fill the store; print a line for every run."""
    todo = [
        (name, seed, method)
        for turn in range(n_seeds)
        for name in sets
        for seed in seeds_of(name, turn + 1)[-SETS[name].repeats :]
        for method in methods
        if (method, METHODS[method].version, name, seed) not in store
    ]
    done = 0
    missing = set()
    for (name, seed), runs in groupby(todo, key=lambda run: run[:2]):
        try:
            split = None if name in missing else SETS[name].split(seed)
        except FileNotFoundError as error:
            print(f"{name} is skipped: {error}", flush=True)
            missing.add(name)
        for _, _, method in runs:
            done += 1
            if name in missing:
                continue
            record = {"set": name} | measure(method, split, seed)
            store.add(record)
            left = time_left([run for run in todo[done:] if run[0] not in missing], store.records.values())
            print(f"{done}/{len(todo)}, {left} left: {line(record)}", flush=True)


def seeds_of(name, n_seeds):
    """Small sets take several seeds for each one asked for."""
    return range(n_seeds * SETS[name].repeats)


def time_left(todo, records):
    """From what the same method took on that set; failing that, from what others took there or anyone anywhere."""
    took = {}
    for record in records:
        for key in ((record["set"], record["method"]), record["set"], "anywhere"):
            took.setdefault(key, []).append(record["seconds"])
    known = {key: mean(seconds) for key, seconds in took.items()}
    seconds = sum(known.get((name, method), known.get(name, known["anywhere"])) for name, _, method in todo)
    is_guess = any((name, method) not in known for name, _, method in todo)
    return f"{'perhaps ' * is_guess}{int(seconds // 3600)}:{int(seconds // 60 % 60):02d}:{int(seconds % 60):02d}"


def line(record):
    what = f"{record['method']} on {record['set']}, seed {record['seed']}"
    if record["failure"]:
        return f"{what} FAILED: {record['failure']}"
    warned = sum(record["warnings"].values())
    return f"{what}: log loss {record['log_loss']:.4f}, {record['seconds']:.1f} s" + f", {warned} warnings" * (
        warned > 0
    )
