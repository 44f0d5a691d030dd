"""Datasets: every table by name, with what is known of it before it is made or fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayesvm.datasets.breiman import Problem, ringnorm, twonorm, waveform
from bayesvm.datasets.collisions import HIGGS, SUSY, Collisions, fetch_higgs, fetch_susy
from bayesvm.datasets.paper import fetch_raetsch, fetch_usps_3v5
from bayesvm.datasets.people import people
from bayesvm.datasets.tables import load_rows
from bayesvm.extras import optional

Part = dict[str, Any]  # columns of some rows, by name
AT_ONCE = 250_000  # rows of a large table


@dataclass(frozen=True)
class CatalogueEntry:
    """A table: what is known of it, and how ``rows`` of it are made; of generated ones, any number."""

    name: str
    n_rows: int  # of generated ones, if nothing else is asked for
    n_columns: int  # without the target
    n_classes: int
    target: str
    origin: str
    make: Callable[[int, int], Iterator[Part]]
    megabytes: float | None = None  # to download, unless it is here already
    generated: bool = False

    def parts(self, n_rows: int | None = None, seed: int = 0) -> Iterator[Part]:
        """Columns, some rows at a time; ``seed`` decides about generated rows, and which ones of fewer than all."""
        wanted = self.n_rows if n_rows is None else n_rows
        if wanted < 1:
            raise ValueError(f"{wanted} rows were asked for; there must be 1 or more")
        if wanted > self.n_rows and not self.generated:
            raise ValueError(f"{self.name} has {self.n_rows:,} rows; {wanted:,} were asked for")
        return self.make(wanted, seed)


def _made_people(n_rows: int, seed: int) -> Iterator[Part]:
    made = people(n_rows, seed)
    yield made.columns | {"income": made.income}


def _made(generate: Callable[[int, int], Problem], n_rows: int, seed: int) -> Iterator[Part]:
    problem = generate(n_rows, seed)
    yield _numbered(problem.X) | {"y": problem.y}


def _bundled(loader: str, target: str, n_rows: int, seed: int) -> Iterator[Part]:
    bunch = getattr(optional("sklearn.datasets", "datasets"), f"load_{loader}")()
    names = np.array([str(name) for name in bunch.target_names], object)
    columns = {str(name): bunch.data[:, k] for k, name in enumerate(bunch.feature_names)}
    # The ten digits are numbers; the others have names.
    yield _some(columns | {target: bunch.target if loader == "digits" else names[bunch.target]}, n_rows, seed)


def _of_the_paper(fetch: Callable[[], tuple[Any, Any]], n_rows: int, seed: int) -> Iterator[Part]:
    X, y = fetch()
    yield _some(_numbered(X) | {"y": y}, n_rows, seed)


def _collided(fetch: Callable[[], Any], n_rows: int, _: int) -> Iterator[Part]:
    """The first rows: they are in no order."""
    path = fetch()
    for start in range(0, n_rows, AT_ONCE):
        X, y = load_rows(path, start, min(start + AT_ONCE, n_rows))
        yield {f"x{k}": column for k, column in enumerate(X.T)} | {"y": y}


def _numbered(X: Any) -> Part:
    return {f"x{number}": column for number, column in enumerate(X.T, 1)}


def _some(columns: Part, n_rows: int, seed: int) -> Part:
    """All rows in their order, or some at random."""
    n_all = len(next(iter(columns.values())))
    if n_rows == n_all:
        return columns
    chosen = np.sort(np.random.default_rng(seed).choice(n_all, n_rows, replace=False))
    return {name: np.asarray(column)[chosen] for name, column in columns.items()}


def _all() -> Iterator[CatalogueEntry]:
    yield CatalogueEntry(
        "people",
        5_000,
        9,
        2,
        "income",
        "generated: text, missing values and an id; the best error is known",
        _made_people,
        generated=True,
    )
    for generate, n_columns in ((waveform, 21), (twonorm, 20), (ringnorm, 20)):
        origin = f"generated: Breiman's {generate.__name__}; the best error is known"
        yield CatalogueEntry(
            generate.__name__, 5_000, n_columns, 2, "y", origin, partial(_made, generate), generated=True
        )
    bundled = {
        "iris": (150, 4, 3, "species"),
        "wine": (178, 13, 3, "cultivar"),
        "breast_cancer": (569, 30, 2, "diagnosis"),
        "digits": (1_797, 64, 10, "digit"),
    }
    for name, (n_rows, n_columns, n_classes, target) in bundled.items():
        yield CatalogueEntry(
            name, n_rows, n_columns, n_classes, target, "comes with scikit-learn", partial(_bundled, name, target)
        )
    for name, (n_rows, n_columns, size) in _RAETSCH.items():
        fetch = partial(_of_the_paper, partial(fetch_raetsch, name))
        origin = "Rätsch's benchmark, as the paper's authors published it"
        yield CatalogueEntry(f"raetsch_{name}", n_rows, n_columns, 2, "y", origin, fetch, size)
    usps = partial(_of_the_paper, fetch_usps_3v5)
    yield CatalogueEntry("usps_3v5", 1_540, 256, 2, "y", "handwritten digits 3 (1) and 5 (-1)", usps, 2.9)
    large: list[tuple[str, Collisions, Callable[[], Any], float]] = [
        ("susy", SUSY, fetch_susy, 879.0),
        ("higgs", HIGGS, fetch_higgs, 2_816.0),
    ]
    for name, known, fetch_file, size in large:
        make = partial(_collided, fetch_file)
        yield CatalogueEntry(
            name, known.n_rows, known.n_features, 2, "y", "simulated particle collisions, UCI", make, size
        )


# Rows, columns, megabytes.
_RAETSCH = {
    "breast_cancer": (263, 9, 0.03),
    "diabetes": (768, 8, 0.07),
    "flare": (144, 9, 0.003),
    "german": (1_000, 20, 0.23),
    "heart": (270, 13, 0.04),
    "splice": (2_991, 60, 0.37),
    "waveform": (5_000, 21, 1.2),
}
CATALOGUE: Mapping[str, CatalogueEntry] = {entry.name: entry for entry in _all()}


def entry_of(name: str) -> CatalogueEntry:
    """The entry of that name."""
    if name not in CATALOGUE:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def missing_as_null(part: Part) -> Part:
    """Columns for files, in which a missing number is no NaN."""
    pyarrow = optional("pyarrow", "datasets")
    return {name: pyarrow.array(column, from_pandas=True) for name, column in part.items()}
