"""Registry: the paper's tables in ten folds, SUSY as far as it is at hand, and a generated stand-in of any size.

Fold i is seed i. Contiguous folds are those of the authors' script: the files are sorted, so every fold is a slab along
the first feature, and the last n mod 10 rows are never tested.
"""

from functools import lru_cache, partial

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from bayesvm.datasets import fetch_raetsch, fetch_usps_3v5
from experiments.registry import problems
from experiments.registry.sets import DataSet, Split, drawn, table

N_FOLDS = 10
NAMES = {
    "breast_cancer": "Breast Cancer",
    "diabetes": "Diabetes",
    "flare": "Flare",
    "german": "German",
    "heart": "Heart",
    "splice": "Splice",
    "waveform": "Waveform",
}

_raetsch = lru_cache(maxsize=1)(fetch_raetsch)


def contiguous(load):
    """Folds of neighbouring rows, as they stand in the file."""

    def split(fold):
        X, y = load()
        size = len(y) // N_FOLDS
        tested = np.zeros(len(y), bool)
        tested[fold * size : (fold + 1) * size] = True
        return Split(X[~tested], y[~tested], X[tested], y[tested])

    return DataSet(split, N_FOLDS)


def shuffled(load):
    """Stratified folds of shuffled rows."""

    def split(fold):
        X, y = load()
        folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y))
        train, test = folds[fold]
        return Split(X[train], y[train], X[test], y[test])

    return DataSet(split, N_FOLDS)


def held_out(load):
    """Four fifths to learn from, one fifth to test."""

    def split(seed):
        X, y = load()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
        return Split(X, y, X_test, y_test)

    return DataSet(split)


def raetsch(name):
    return partial(_raetsch, name)


def _susy(_):
    return Split(*table("susy_train")(), *table("susy_test")())


PAPER_SETS = (
    {f"{name}/contiguous": contiguous(raetsch(name)) for name in NAMES}
    | {f"{name}/shuffled": shuffled(raetsch(name)) for name in NAMES}
    | {
        "usps_3v5/shuffled": shuffled(fetch_usps_3v5),
        "waveform/held_out": held_out(raetsch("waveform")),
        "susy/at_hand": DataSet(_susy),
    }
)


def generated(n_rows):
    """A stand-in for SUSY with so many rows, measured in a process of its own."""
    return DataSet(drawn(problems.collisions, n_rows).split, alone=True)
