"""Prediction sets beside MAPIE's split conformal, on ten sets: the table of docs/prediction_sets.md.

Both sides have the same training rows and the same estimator. Split conformal learns from 70 % of them and takes its
threshold from the other 30 %; leave-one-out uses all for both. Needs ``pip install mapie``, and tables of
``BAYESVM_DATA``. Arguments are names of sets; default: all.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from bayesvm.datasets import load_table, ringnorm, twonorm, waveform

COVERAGE, MOST_TRAIN, MOST_TEST, REPEATS, CALIBRATED_ON = 0.9, 500, 3_000, 4, 0.3
BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
GENERATED = {"waveform": waveform, "twonorm": twonorm, "ringnorm": ringnorm}
TABLES = {"German credit": "german_raetsch", "diabetes": "diabetes_raetsch", "image": "image_raetsch"}


def rows_of(name):
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    if name in GENERATED:
        made = GENERATED[name](MOST_TRAIN + MOST_TEST, random_state=0)
        return made.X, made.y
    return load_table(TABLES[name])


def ours(X, y, new):
    return BayesianSVC(random_state=0).fit(X, y).predict_set(new, COVERAGE)


def split_conformal(X, y, new):
    from mapie.classification import SplitConformalClassifier  # noqa: PLC0415

    X, held, y, y_held = train_test_split(X, y, test_size=CALIBRATED_ON, random_state=0, stratify=y)
    model = SplitConformalClassifier(
        BayesianSVC(random_state=0).fit(X, y), confidence_level=COVERAGE, conformity_score="lac"
    )
    return model.conformalize(held, y_held).predict_set(new)[1][:, :, 0]


def measured(method, name):
    """Coverage, mean size and share of empty sets, over some random splits."""
    X, y = rows_of(name)
    n_train = min(MOST_TRAIN, len(y) // 2)
    n_test = min(MOST_TEST, len(y) - n_train)
    found = []
    for seed in range(REPEATS):
        a, b, ya, yb = train_test_split(X, y, train_size=n_train, test_size=n_test, random_state=seed, stratify=y)
        sets = method(a, ya, b)
        inside = sets[np.arange(n_test), np.searchsorted(np.unique(ya), yb)]
        found.append((inside.mean(), sets.sum(axis=1).mean(), (~sets.any(axis=1)).mean()))
    return n_train, len(np.unique(y)), np.mean(found, axis=0)


def main(names):
    print("| set | rows | classes | coverage | MAPIE | size | MAPIE | empty | MAPIE |")
    print("|---|---|---|---|---|---|---|---|---|")
    total = []
    for name in names:
        n_train, n_classes, mine = measured(ours, name)
        theirs = measured(split_conformal, name)[2]
        total.append((mine, theirs))
        pairs = " | ".join(f"{one:.3f} | {other:.3f}" for one, other in zip(mine, theirs, strict=True))
        print(f"| {name} | {n_train} | {n_classes} | {pairs} |", flush=True)
    mine, theirs = np.mean(total, axis=0)
    print("| mean | | | " + " | ".join(f"{a:.3f} | {b:.3f}" for a, b in zip(mine, theirs, strict=True)) + " |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:] or [*BUNDLED, *GENERATED, *TABLES])
