"""Registry: data sets, from small to large. A seed gives one split into training and test rows.

`small`, `medium` and `large` split a real table by the rules below, `given` keeps a test part that was given, `drawn`
generates both parts. Tables are looked for in the folder that BAYESVM_DATA names; `r_table` reads them from a package.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from bayesvm.datasets import load_table, ringnorm, twonorm, waveform
from experiments.registry import problems
from experiments.registry.mixed import r_table, text_table

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


# Numbers, text and missing values. Dropped: identifiers, what is known only after the outcome or repeats it (share and
# expenditure need a card, injSeverity says who died, mortgage insurance is refused to almost nobody else), survey
# weights, times, and the given division into parts. Attrition and churn are realistic, but artificial. Encoded,
# adult_text has the rows of adult and its columns in another order.
MIXED = {
    "glass": small(r_table("MASS", "fgl", "type")),
    "alzheimer": small(r_table("modeldata", "ad_data", "Class", "Impaired")),
    "pbc": small(r_table("survival", "pbc", "status", 2, drop=("id", "time"))),
    "affairs": small(r_table("AER", "Affairs", "affairs", 0)),
    "biopsy": small(r_table("MASS", "biopsy", "class", "malignant", drop=("ID",))),
    "orange_juice": medium(r_table("ISLR", "OJ", "Purchase", "MM", drop=("Store7", "STORE"), categories=("StoreID",))),
    "credit_card": medium(r_table("AER", "CreditCard", "card", "no", drop=("share", "expenditure"))),
    "attrition": medium(r_table("modeldata", "attrition", "Attrition", "Yes")),
    "titanic": medium(r_table("vcdExtra", "Titanicp", "survived", "survived")),
    "cells": large(r_table("modeldata", "cells", "class", "WS", drop=("case",))),
    "hmda": large(r_table("AER", "HMDA", "deny", "yes", drop=("insurance",))),
    "chile": large(r_table("carData", "Chile", "vote")),
    "head_injury": large(r_table("DAAG", "headInjury", "clinically.important.brain.injury", 1)),
    "email": large(r_table("openintro", "email", "spam", 1, drop=("time",))),
    "credit_data": large(r_table("modeldata", "credit_data", "Status", "bad")),
    "churn": large(r_table("modeldata", "mlc_churn", "churn", "yes")),
    "caravan": large(r_table("ISLR", "Caravan", "Purchase", "Yes", categories=("MOSTYPE", "MOSHOOFD"))),
    "lending_club": large(r_table("modeldata", "lending_club", "Class", "bad")),
    "crashes": large(r_table("DAAG", "nassCDS", "dead", "dead", drop=("caseid", "weight", "injSeverity"))),
    "adult_text": large(text_table("adult_text", "income", ">50K")),
}

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
} | MIXED

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

# A third of all sets, which developers do not look at until the end of an experiment. Drawn once at random from sets
# that are not quick and not well known here, in proportion to their sorts and sizes. Do not draw again. Four of them
# have been looked at since: flare_raetsch, thyroid_raetsch, gen_ringnorm_300 and susy (docs/tuning.md).
UNTOUCHED = (
    "flare_raetsch",
    "thyroid_raetsch",
    "breast_cancer",
    "gen_ringnorm_300",
    "gen_ellipses_300",
    "usps_3v5",
    "gen_sparse_linear_1500",
    "gen_additive_1500",
    "banana",
    "twonorm",
    "gen_additive_6000",
    "gen_friedman_6000",
    "susy",
    "protein_homology",
    "glass",
    "alzheimer",
    "attrition",
    "cells",
    "chile",
    "email",
    "lending_club",
)
TOUCHED = tuple(name for name in SETS if name not in UNTOUCHED)
