"""Calibration: the sets, how each is split, and what all methods are asked about."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bayesvm.datasets import load_table, people

SEED = 0
MOST_TEST = 20_000  # rows
DISTANCES = (0, 1, 2, 3, 5, 10, 20)  # standard deviations that rows are moved by
MOVED = 1_000  # rows
SAME, BEYOND = "same region", "beyond"  # the two tests of a shift
QUICK = 20  # how many times fewer rows


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from, and parts of rows that are asked about: the test, or tests, and moved rows."""

    X: np.ndarray
    y: np.ndarray
    parts: dict[str, tuple[np.ndarray, np.ndarray]]

    @property
    def asked(self):
        """All parts one below the other."""
        return tuple(np.concatenate(columns) for columns in zip(*self.parts.values(), strict=True))


@dataclass(frozen=True)
class Set:
    """One line of the page's table; ``moved`` says which columns are moved away from the data, None for none."""

    about: str
    make: Callable[[int], Problem]  # of how many times fewer rows
    kind: str = "balanced"  # or "imbalanced", "shift" or "generated"
    moved: slice | None = None
    answers: tuple[str, ...] | None = None  # of whom; None for all


table = cache(load_table)


def split(X, y, n_train, fewer=1):
    """A random choice of each class's share; at most 20,000 rows are for the test."""
    n_train //= fewer
    n_test = min(len(y) - n_train, MOST_TEST // fewer)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n_train, test_size=n_test, random_state=SEED, stratify=y)
    return Problem(X, y, {"test": (X_test, y_test)})


def whole(name, n_train):
    return lambda fewer: split(*table(name), n_train, fewer)


def given_parts(train, test):
    """Of tables that come in two files."""

    def make(fewer):
        (X, y), (X_test, y_test) = table(train), table(test)
        return Problem(X[::fewer], y[::fewer], {"test": (X_test[::fewer], y_test[::fewer])})

    return make


def rarer(name, share, n_train):
    """Rows of the second class are left out at random until they are so rare."""

    def make(fewer):
        X, y = table(name)
        many, few = np.flatnonzero(y == -1), np.flatnonzero(y == 1)
        kept = round(len(many) * share / (1 - share))
        rows = np.concatenate([many, np.random.default_rng(SEED).choice(few, kept, replace=False)])
        return split(X[rows], y[rows], n_train, fewer)

    return make


def eights(fewer):
    X, y = load_digits(return_X_y=True)
    return split(X, np.where(y == 8, 1, -1), 900, min(fewer, 3))


def shifted(name, column, learned, beyond, n_train):
    """Learned where a column is at most at one quantile; tested there, and where it is above another one."""

    def make(fewer):
        X, y = table(name)
        low, high = np.quantile(X[:, column], [learned, beyond])
        inside, outside = X[:, column] <= low, X[:, column] > high
        problem = split(X[inside], y[inside], n_train, fewer)
        n_test = min(outside.sum(), MOST_TEST // fewer)
        rows = np.random.default_rng(SEED).choice(np.flatnonzero(outside), n_test, replace=False)
        return Problem(problem.X, problem.y, {SAME: problem.parts["test"], BEYOND: (X[rows], y[rows])})

    return make


def synthetic(n_train):
    """People, with text one-hot, missing numbers filled in and marked; the id is left out."""

    def make(fewer):
        made = people((n_train + MOST_TEST) // fewer, random_state=SEED)
        columns = []
        for values in (made.columns[name] for name in made.columns if name != "id"):
            if values.dtype == object:
                columns += [values == level for level in sorted({value for value in values if value is not None})]
            else:
                gap = np.isnan(values.astype(float))
                columns += [np.where(gap, np.nanmedian(values), values), *([gap] if gap.any() else [])]
        return split(np.column_stack(columns).astype(float), np.where(made.income == "high", 1, -1), n_train, fewer)

    return make


SETS = {
    "adult": Set("income above 50,000 dollars", whole("adult", 10_000)),
    "covtype": Set("lodgepole pine or another tree", whole("covtype", 20_000), moved=slice(0, 10)),
    "flights": Set("arrival late or not, New York 2013", whole("flights_nyc13", 10_000)),
    "german": Set("bad credit or good", whole("german_raetsch", 500), moved=slice(None)),
    "higgs": Set(
        "collisions with a Higgs boson or without", given_parts("higgs_train", "higgs_test"), moved=slice(None)
    ),
    "magic": Set("gamma rays or hadrons in a telescope", whole("magic", 10_000), moved=slice(None)),
    "splice": Set("splice junctions in DNA", whole("splice_raetsch", 1_500)),
    "protein": Set("homologous proteins", whole("protein_homology", 20_000), "imbalanced"),
    "adult, 5 %": Set(
        "adult, with rows of the second class removed at random until they are 5%",
        rarer("adult", 0.05, 10_000),
        "imbalanced",
    ),
    "digits, eight": Set("the digit eight or another digit, from scikit-learn", eights, "imbalanced"),
    "covtype, higher": Set(
        "trained where the elevation is below its median, evaluated on the highest 30%",
        shifted("covtype", 0, 0.5, 0.7, 10_000),
        "shift",
    ),
    "adult, older": Set(
        "trained on the younger half, evaluated on the oldest 30%", shifted("adult", 0, 0.5, 0.7, 10_000), "shift"
    ),
    "people": Set(
        "`bayesvm.datasets.people`, a synthetic table, for the shape of our link only",
        synthetic(160_000),
        "generated",
        answers=("ours", "boosting"),
    ),
}


def problem(name, fewer=1):
    """The rows of a set, those moved away among them."""
    chosen = SETS[name]
    made = chosen.make(fewer)
    if chosen.moved is not None:
        made.parts.update(moved(made, chosen.moved))
    return made


def moved(made, columns):
    """Test rows moved in random directions; every column by so many standard deviations, root mean square."""
    X, y = (values[:MOVED] for values in made.parts["test"])
    rng = np.random.default_rng(SEED)
    direction = np.zeros(X.shape)
    drawn = rng.standard_normal(X[:, columns].shape)
    direction[:, columns] = drawn / np.sqrt(np.mean(drawn**2, axis=1, keepdims=True)) * made.X[:, columns].std(axis=0)
    return {f"moved {distance}": (X + distance * direction, y) for distance in DISTANCES}
