"""Registry: data sets, from small to large. A seed gives one split into training and test rows.

`small`, `medium` and `large` split a real table by the rules below, `given` keeps a test part that was given, `drawn`
generates both parts. Tables are looked for in the folder that BAYESVM_DATA names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from bayesvm.datasets import load_table, ringnorm, twonorm, waveform
from experiments.registry import problems

MOST_ROWS = 10_000  # of either part
SMALL_REPEATS = 5  # few rows mean noisy figures, and quick ones: so many splits for each one of a larger set


@dataclass(frozen=True)
class Split:
    """Training and test rows; P(y = +1) at the test rows where it is known."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    probability: np.ndarray | None = None


@dataclass(frozen=True)
class DataSet:
    """A split for every seed, and how many seeds it takes where a large set takes one."""

    split: Callable[[int], Split]
    repeats: int = 1
    alone: bool = False  # whether a run has a process of its own, so that its memory can be told


def small(load):
    """Below 1000 rows: 30 % for testing, several times."""
    return DataSet(partial(_shared_out, load, test_share=0.3), SMALL_REPEATS)


def medium(load):
    """From 1000 to 2000 rows: 20 % for testing."""
    return DataSet(partial(_shared_out, load, test_share=0.2))


def large(load):
    """From 2000 rows on: 30 % for testing, and no more than 10,000 rows in either part."""
    return DataSet(partial(_shared_out, load, test_share=0.3))


def given(load_train, load_test):
    """A test part of its own; training rows are drawn only if there are more than 10,000.

    If there are not, all seeds have the same rows and the standard error is the method's own randomness.
    """
    return DataSet(lambda seed: Split(*_at_most(*load_train(), seed), *_at_most(*load_test(), seed)))


def drawn(problem, n_rows):
    """So many training rows and 10,000 test rows of a generator."""

    def split(seed):
        data = problem(n_rows + MOST_ROWS, seed)
        X, y, p = data.X, data.y, data.probability
        return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], p[n_rows:])

    return DataSet(split, SMALL_REPEATS if n_rows < 1000 else 1)


def table(name):
    """A table of the folder BAYESVM_DATA; raises FileNotFoundError where there is none."""
    return partial(_load_table, name)


def bundled(load):
    """A set that comes with scikit-learn."""
    return partial(load, return_X_y=True)


# Kept for the splits of a small set, which follow each other; two, for sets with a test table.
_load_table = lru_cache(maxsize=2)(load_table)


def _shared_out(load, seed, test_share):
    X, y = load()
    n_train = min(MOST_ROWS, round((1 - test_share) * len(y)))
    n_test = min(MOST_ROWS, len(y) - n_train)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n_train, test_size=n_test, random_state=seed, stratify=y)
    return Split(X, y, X_test, y_test)


def _at_most(X, y, seed):
    if len(y) <= MOST_ROWS:
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, random_state=seed, stratify=y)
    return X, y


SETS = {
    "flare_raetsch": small(table("flare_raetsch")),
    "iris": small(bundled(load_iris)),
    "wine": small(bundled(load_wine)),
    "thyroid_raetsch": small(table("thyroid_raetsch")),
    "breast_cancer_raetsch": small(table("breast_cancer_raetsch")),
    "heart_raetsch": small(table("heart_raetsch")),
    "breast_cancer": small(bundled(load_breast_cancer)),
    "diabetes_raetsch": small(table("diabetes_raetsch")),
    "gen_waveform_300": drawn(waveform, 300),
    "gen_twonorm_300": drawn(twonorm, 300),
    "gen_ringnorm_300": drawn(ringnorm, 300),
    "gen_moons_300": drawn(problems.moons, 300),
    "gen_ellipses_300": drawn(problems.ellipses, 300),
    "gen_sparse_linear_300": drawn(problems.sparse_linear, 300),
    "gen_friedman_300": drawn(problems.friedman, 300),
    "german_raetsch": medium(table("german_raetsch")),
    "usps_3v5": medium(table("usps_3v5")),
    "digits": medium(bundled(load_digits)),
    "gen_moons_1500": drawn(problems.moons, 1500),
    "gen_xor_1500": drawn(problems.xor, 1500),
    "gen_sparse_linear_1500": drawn(problems.sparse_linear, 1500),
    "gen_additive_1500": drawn(problems.additive, 1500),
    "gen_friedman_1500": drawn(problems.friedman, 1500),
    "gen_heavy_tailed_1500": drawn(problems.heavy_tailed, 1500),
    "gen_categories_1500": drawn(problems.categories, 1500),
    "gen_imbalanced_1500": drawn(problems.imbalanced, 1500),
    "image_raetsch": large(table("image_raetsch")),
    "splice_raetsch": large(table("splice_raetsch")),
    "waveform_raetsch": large(table("waveform_raetsch")),
    "banana": large(table("banana")),
    "ringnorm": large(table("ringnorm")),
    "twonorm": large(table("twonorm")),
    "gen_xor_6000": drawn(problems.xor, 6000),
    "gen_additive_6000": drawn(problems.additive, 6000),
    "gen_friedman_6000": drawn(problems.friedman, 6000),
    "gen_categories_6000": drawn(problems.categories, 6000),
    "gen_imbalanced_6000": drawn(problems.imbalanced, 6000),
    "higgs": given(table("higgs_train"), table("higgs_test")),
    "susy": given(table("susy_train"), table("susy_test")),
    "magic": large(table("magic")),
    "adult": large(table("adult")),
    "protein_homology": large(table("protein_homology")),
    "flights_nyc13": large(table("flights_nyc13")),
    "covtype": large(table("covtype")),
}

# Few, but of every sort: small and large, raw and one-hot, smooth and not, relevant features and others, many classes.
QUICK = (
    "heart_raetsch",
    "diabetes_raetsch",
    "gen_moons_300",
    "gen_sparse_linear_300",
    "digits",
    "gen_xor_1500",
    "gen_friedman_1500",
    "gen_heavy_tailed_1500",
    "gen_imbalanced_1500",
    "image_raetsch",
    "splice_raetsch",
    "higgs",
    "adult",
    "covtype",
)
