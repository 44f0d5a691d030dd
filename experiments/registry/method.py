"""Registry: what a method is, and the ways to make one.

A method's version changes with its recipe, its library's version and the code of ours that it runs. Comments do not
count. A recipe may depend on the number of training rows; it is looked at for a few of them.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any
from zlib import crc32

import sklearn
from threadpoolctl import threadpool_info

import bayesvm
from bayesvm import BayesianSVC

LIBRARY = Path(bayesvm.__file__).parent
ROOMS = ("core", "data", "inference", "estimators")  # of the library, whose code decides about figures
SIZES = (100, 1000, 10**6)  # of training parts, for which recipes are compared


@dataclass(frozen=True)
class Method:
    """A classifier for so many training rows and a seed, or a study of its own kind."""

    make: Callable[[int, int], Any] | None
    version: str
    is_ours: bool = False
    needs: str | None = None  # a module that may be missing
    tell: Callable[[Any], dict[str, Any]] | None = None  # what a fitted classifier adds to the record
    study: Callable[[Any, int], dict[str, Any]] | None = None  # from split and seed to figures, in place of a fit

    def is_available(self):
        return self.needs is None or find_spec(self.needs) is not None


def n_threads():
    """Of BLAS, as OMP_NUM_THREADS and the like have it; ours take as many."""
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def peer(make):
    """Another library's classifier."""
    return Method(make, f"sklearn-{sklearn.__version__}-{_digest(repr(make(10**6, 0)))}")


def optional_peer(module, name, **parameters):
    """A classifier of a package that may be missing; its version stands in for scikit-learn's."""

    def make(_n_rows, _seed):
        return getattr(import_module(module), name)(**parameters)

    installed = metadata.version(module) if find_spec(module) else "missing"
    return Method(make, f"{module}-{installed}-{_digest(f'{name} {sorted(parameters.items())}')}", needs=module)


def ours(estimator=BayesianSVC, tell=None, **parameters):
    """One of our classifiers with these parameters; a function is called with the number of training rows."""

    def make(n_rows, seed):
        given = {
            name: value(n_rows) if isinstance(value, FunctionType) else value for name, value in parameters.items()
        }
        return estimator(random_state=seed, n_jobs=n_threads(), **given)

    shown = {
        name: [value(n) for n in SIZES] if isinstance(value, FunctionType) else value
        for name, value in parameters.items()
    }
    recipe = f"{estimator.__name__} {sorted(shown.items())}"
    return Method(make, f"{_source_digest(*_rooms())}-{_digest(recipe)}", is_ours=True, tell=tell)


def written_here(make, *modules, needs=None, tell=None):
    """A competitor whose code lives in these modules of ``competitors/``; some use our kernels and links."""
    recipe = sklearn.__version__ + "".join(repr(make(n, 0)) for n in SIZES)
    version = f"{_source_digest(LIBRARY / 'core', *_competitors(modules))}-{_digest(recipe)}"
    return Method(make, version, needs=needs, tell=tell)


def study(function, *modules, recipe=""):
    """Figures of another kind, from our library and these modules of ``experiments/competitors/``."""
    version = f"{_source_digest(*_rooms(), *_competitors(modules))}-{_digest(function.__name__ + recipe)}"
    return Method(None, version, is_ours=True, study=function)


def _rooms():
    return [LIBRARY / room for room in ROOMS]


def _competitors(modules):
    return [Path(__file__).parent.parent / "competitors" / f"{module}.py" for module in modules]


def _digest(text):
    return f"{crc32(text.encode()):08x}"


@cache
def _source_digest(*places):
    files = sorted(file for place in places for file in ([place] if place.is_file() else place.rglob("*.py")))
    return _digest("".join(ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in files))
