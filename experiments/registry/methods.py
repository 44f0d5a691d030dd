"""Registry: methods, each a name for a classifier made anew for every run. One line each.

A method's version changes with whatever could change its figures: the recipe, scikit-learn's version and, for ours,
the code of the library. Comments do not count.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC


@dataclass(frozen=True)
class Method:
    """A classifier for so many training rows and a seed."""

    make: Callable[[int, int], Any]
    version: str
    is_ours: bool = False


def n_threads():
    """Of BLAS and OpenMP, as OMP_NUM_THREADS and the like have it; ours take as many."""
    return max(pool["num_threads"] for pool in threadpool_info())


def peer(make):
    """Another library's classifier."""
    return Method(make, f"sklearn-{sklearn.__version__}-{_digest(repr(make(10**6, 0)))}")


def ours(estimator=BayesianSVC, **parameters):
    """One of our classifiers with these parameters; the others are defaults."""

    def make(_, seed):
        return estimator(random_state=seed, n_jobs=n_threads(), **parameters)

    recipe = f"{estimator.__name__} {sorted(parameters.items())}"
    return Method(make, f"{_source_digest()}-{_digest(recipe)}", is_ours=True)


def _digest(text):
    return f"{crc32(text.encode()):08x}"


@cache
def _source_digest():
    files = sorted(Path(bayesvm.__file__).parent.rglob("*.py"))
    return _digest("".join(ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in files))


def _nystroem(n_rows, seed):
    features = Nystroem(n_components=min(500, n_rows), random_state=seed)
    return make_pipeline(StandardScaler(), features, LogisticRegression())


METHODS = {
    "hgb": peer(lambda _n, _seed: HistGradientBoostingClassifier(random_state=0)),
    "svc": peer(lambda _n, _seed: make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False))),
    "nystroem": peer(_nystroem),
    "logistic": peer(lambda _n, _seed: make_pipeline(StandardScaler(), LogisticRegression())),
    "default": ours(),
    "fixed": ours(tune=None),
    "one_length": ours(tune="loo"),
    "elbo": ours(tune="elbo", max_inducing=300),
    "rbf": ours(kernel="rbf"),
    "standard": ours(scale="standard"),
    "points_300": ours(max_inducing=300),
    "linear": ours(BayesianLinearSVC),
}

PEERS = tuple(name for name, method in METHODS.items() if not method.is_ours)
