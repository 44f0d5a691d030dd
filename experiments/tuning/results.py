"""Tuning: stored runs as numbers: means over seeds, standard errors, regrets, paired differences.

Standard errors are over seeds. On real tables the splits overlap, so there they are too small for claims about new
tables, yet fair between methods, which all see the same splits.
"""

from dataclasses import dataclass

import numpy as np

from experiments.runs.sweep import seeds_of

RIVALS = ("catboost", "hgb", "svc", "nystroem")
KERNEL_RIVALS = ("svc", "nystroem")
TOLERANCE = 0.01  # by which a log loss may be above that of the best rival and count as level
MANY_ROWS = 1000  # of training, from which on kernel peers are compared by their ratio


@dataclass(frozen=True)
class Column:
    """A method in the version that is shown."""

    label: str
    method: str
    version: str
    is_ours: bool


class Results:
    """The runs of some columns on some sets: ``runs[set][label]`` is a list of records."""

    def __init__(self, store, columns, sets, n_seeds):
        def stored(name, column):
            keys = [(column.method, column.version, name, seed) for seed in seeds_of(name, n_seeds)]
            return [store.records[key] for key in keys if key in store]

        everything = {name: {c.label: stored(name, c) for c in columns} for name in sets}
        self.runs = {name: runs for name, runs in everything.items() if any(runs.values())}
        self.columns = [c for c in columns if any(runs[c.label] for runs in self.runs.values())]
        self.labels = [c.label for c in self.columns]
        self.never_run = [name for name in sets if name not in self.runs]
        self.wanted = {name: len(seeds_of(name, n_seeds)) for name in sets}
        self.losses = {name: losses for name in self.runs if (losses := self._common_losses(name))}

    def _common_losses(self, name):
        """Log losses by label, on the seeds that all columns have; None if there is no such seed or one failed."""
        by_label = {label: {run["seed"]: run for run in self.runs[name][label]} for label in self.labels}
        seeds = sorted(set.intersection(*map(set, by_label.values())))
        if not seeds or any(run["failure"] for runs in by_label.values() for run in runs.values()):
            return None
        return {label: np.array([runs[seed]["log_loss"] for seed in seeds]) for label, runs in by_label.items()}

    def all_runs(self, label):
        return [run for runs in self.runs.values() for run in runs[label]]

    def any_run(self, name):
        return next(run for runs in self.runs[name].values() for run in runs)

    def values(self, name, label, metric):
        """One number for every run that did not fail."""
        return np.array([run[metric] for run in self.runs[name][label] if not run["failure"]])

    def unfinished(self):
        """Sets in the comparison that lack seeds."""
        return [name for name, losses in self.losses.items() if len(losses[self.labels[0]]) < self.wanted[name]]

    def left_out(self):
        """Sets with runs that cannot be compared."""
        return [name for name in self.runs if name not in self.losses]

    def has(self, labels):
        return set(labels) <= set(self.labels)

    def best(self, name, labels):
        return min(self.losses[name][label].mean() for label in labels)

    def regrets(self, label):
        """Mean log loss minus that of the best column, by set."""
        return {name: losses[label].mean() - self.best(name, self.labels) for name, losses in self.losses.items()}

    def ratios(self, label):
        """Mean log loss over that of the best kernel peer, by set with many rows."""
        many = [name for name in self.losses if self.any_run(name)["n_train"] >= MANY_ROWS]
        return {name: self.losses[name][label].mean() / self.best(name, KERNEL_RIVALS) for name in many}

    def wins(self, label, rivals=RIVALS, tolerance=0.0):
        """Sets where it is at or below the best rival, or above it by no more than a share."""
        return [
            name
            for name, losses in self.losses.items()
            if losses[label].mean() <= (1 + tolerance) * self.best(name, rivals)
        ]

    def differences(self, label, reference):
        """Means and standard errors, over sets, of log loss minus that of the reference on the same split."""
        pairs = [losses[label] - losses[reference] for losses in self.losses.values()]
        return np.array([d.mean() for d in pairs]), np.array([standard_error(d) for d in pairs])

    def unequal_rows(self):
        """Sets whose definition has changed between the runs that are compared here."""
        found = {
            name: {(r["seed"], r["rows"]) for runs in self.runs[name].values() for r in runs} for name in self.runs
        }
        return [name for name, pairs in found.items() if len(pairs) > len({seed for seed, _ in pairs})]


def standard_error(values):
    """Of the mean; a single value says nothing about it."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
