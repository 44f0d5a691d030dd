"""Runs: everything that is asked for and not in the store yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import mean

from joblib.externals.loky.process_executor import BrokenProcessPool

from experiments.registry.method import Method
from experiments.registry.methods import METHODS
from experiments.registry.sets import SETS, DataSet
from experiments.runs.measure import measure, measure_alone


@dataclass(frozen=True)
class Run:
    """A method on one split of a set, all under their names in the store."""

    method: str
    how: Method
    set: str
    data: DataSet
    seed: int

    @property
    def key(self):
        return self.method, self.how.version, self.set, self.seed


CANNOT_BE_HAD = (OSError, ImportError, ValueError)  # no such file, no network, no reader, an altered file


def sweep(runs: Sequence[Run], store, retry=False):
    """Fill the store; print a line for every run, with the time that the others will take.

    Splits are made once for runs that follow each other on the same one. A set that cannot be had is skipped with the
    reason. Failures count as done, unless they are to be tried again.
    """
    todo = [run for run in runs if run.key not in store or (retry and store.records[run.key]["failure"])]
    lacking = {}
    for run in todo:
        if not run.how.is_available():
            lacking.setdefault(run.how.needs, {})[run.method] = None
    for module, methods in lacking.items():
        print(f"{module} is not installed (see experiments/README.md), skipped: {', '.join(methods)}", flush=True)
    todo = [run for run in todo if run.how.is_available()]
    done = 0
    missing = set()
    for (name, seed), same_split in groupby(todo, key=lambda run: (run.set, run.seed)):
        group = list(same_split)
        data = group[0].data
        split = None
        for run in group:
            done += 1
            if name in missing:
                continue
            try:
                if data.alone:
                    measured = measure_alone(run.how, data, seed)
                else:
                    split = split or data.split(seed)
                    measured = measure(run.how, split, seed)
            except CANNOT_BE_HAD as error:
                print(f"{name} is skipped: {error}", flush=True)
                missing.add(name)
                continue
            except BrokenProcessPool:
                print(f"{run.method} on {name}: its process was killed, perhaps for want of memory", flush=True)
                continue
            record = {"method": run.method, "set": name} | measured
            store.add(record)
            left = time_left([run for run in todo[done:] if run.set not in missing], store.records.values())
            print(f"{done}/{len(todo)}, {left} left: {line(record)}", flush=True)


def crossed(methods, sets, n_seeds):
    """Registered methods on registered sets.

    Every set has its first seed before any has its second, so that a sweep that is stopped leaves figures of all sets.
    """
    return [
        Run(method, METHODS[method], name, SETS[name], seed)
        for turn in range(n_seeds)
        for name in sets
        for seed in seeds_of(name, turn + 1)[-SETS[name].repeats :]
        for method in methods
    ]


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
    seconds = sum(known.get((run.set, run.method), known.get(run.set, known["anywhere"])) for run in todo)
    is_guess = any((run.set, run.method) not in known for run in todo)
    return f"{'perhaps ' * is_guess}{int(seconds // 3600)}:{int(seconds // 60 % 60):02d}:{int(seconds % 60):02d}"


def line(record):
    what = f"{record['method']} on {record['set']}, seed {record['seed']}"
    if record["failure"]:
        return f"{what} FAILED: {record['failure']}"
    warned = sum(record["warnings"].values())
    loss = f"log loss {record['log_loss']:.4f}, " if "log_loss" in record else ""
    return f"{what}: {loss}{record['seconds']:.1f} s" + f", {warned} warnings" * (warned > 0)
