"""Datasets: a catalogue of all tables, with facts that need no download."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayesvm.datasets.breiman import ringnorm, twonorm, waveform
from bayesvm.datasets.collisions import HIGGS, SUSY, fetch_higgs, fetch_susy
from bayesvm.datasets.paper import fetch_raetsch, fetch_usps_3v5
from bayesvm.datasets.people import people
from bayesvm.datasets.tables import load_rows
from bayesvm.extras import optional

NamedColumns = dict[str, Any]  # for some rows
AT_ONCE = 250_000  # rows of a large table per part


@dataclass(frozen=True)
class CatalogueEntry:
    """A table: facts, and a function that makes a number of rows from a seed; synthetic tables have any number."""

    name: str
    n_rows: int  # the default for synthetic tables
    n_columns: int  # without the target
    n_classes: int
    target: str
    origin: str
    make: Callable[[int, int], Iterator[NamedColumns]]
    megabytes: float | None = None  # of the download, unless there is a local copy
    synthetic: bool = False

    def parts(self, n_rows: int | None = None, seed: int = 0) -> Iterator[NamedColumns]:
        """Columns, a chunk of rows at a time; ``seed`` controls synthetic rows, or the choice of some rows."""
        wanted = self.n_rows if n_rows is None else n_rows
        if wanted < 1:
            raise ValueError(f"the number of rows must be at least 1; got {wanted}")
        if wanted > self.n_rows and not self.synthetic:
            raise ValueError(f"{self.name} has {self.n_rows:,} rows, fewer than the requested {wanted:,}")
        return self.make(wanted, seed)


def _people(n_rows: int, seed: int) -> Iterator[NamedColumns]:
    made = people(n_rows, seed)
    yield made.columns | {"income": made.income}


def _synthetic(generate: Callable[..., Any], n_rows: int, seed: int) -> Iterator[NamedColumns]:
    problem = generate(n_rows, seed)
    yield _numbered(problem.X) | {"y": problem.y}


def _bundled(loader: str, target: str, n_rows: int, seed: int) -> Iterator[NamedColumns]:
    bunch = getattr(optional("sklearn.datasets", "datasets"), f"load_{loader}")()
    names = np.array([str(name) for name in bunch.target_names], object)
    columns = {str(name): bunch.data[:, k] for k, name in enumerate(bunch.feature_names)}
    # The ten digits are numbers; the others have names.
    yield _some(columns | {target: bunch.target if loader == "digits" else names[bunch.target]}, n_rows, seed)


def _fetched(fetch: Callable[[], tuple[Any, Any]], n_rows: int, seed: int) -> Iterator[NamedColumns]:
    X, y = fetch()
    yield _some(_numbered(X) | {"y": y}, n_rows, seed)


def _collisions(fetch: Callable[[], Any], n_rows: int, _: int) -> Iterator[NamedColumns]:
    """The first rows, which are in random order."""
    path = fetch()
    for start in range(0, n_rows, AT_ONCE):
        X, y = load_rows(path, start, min(start + AT_ONCE, n_rows))
        yield _numbered(X, first=0) | {"y": y}


def _numbered(X: Any, first: int = 1) -> NamedColumns:
    return {f"x{number}": column for number, column in enumerate(X.T, first)}


def _some(columns: NamedColumns, n_rows: int, seed: int) -> NamedColumns:
    """All rows in order, or a random choice."""
    n_all = len(next(iter(columns.values())))
    if n_rows == n_all:
        return columns
    chosen = np.sort(np.random.default_rng(seed).choice(n_all, n_rows, replace=False))
    return {name: np.asarray(column)[chosen] for name, column in columns.items()}


def _entries() -> Iterator[CatalogueEntry]:
    origin = "synthetic: text, missing values and an id; the best error is known"
    yield CatalogueEntry("people", 5_000, 9, 2, "income", origin, _people, synthetic=True)
    for generate, n_columns in ((waveform, 21), (twonorm, 20), (ringnorm, 20)):
        name, make = generate.__name__, partial(_synthetic, generate)
        origin = f"synthetic: Breiman's {name}; the best error is known"
        yield CatalogueEntry(name, 5_000, n_columns, 2, "y", origin, make, synthetic=True)
    for name, n_rows, n_columns, n_classes, target in (
        ("iris", 150, 4, 3, "species"),
        ("wine", 178, 13, 3, "cultivar"),
        ("breast_cancer", 569, 30, 2, "diagnosis"),
        ("digits", 1_797, 64, 10, "digit"),
    ):
        origin, make = "comes with scikit-learn", partial(_bundled, name, target)
        yield CatalogueEntry(name, n_rows, n_columns, n_classes, target, origin, make)
    for name, n_rows, n_columns, megabytes in (
        ("breast_cancer", 263, 9, 0.03),
        ("diabetes", 768, 8, 0.07),
        ("flare", 144, 9, 0.003),
        ("german", 1_000, 20, 0.23),
        ("heart", 270, 13, 0.04),
        ("splice", 2_991, 60, 0.37),
        ("waveform", 5_000, 21, 1.2),
    ):
        origin = "Rätsch's benchmark, as the paper's authors published it"
        make = partial(_fetched, partial(fetch_raetsch, name))
        yield CatalogueEntry(f"raetsch_{name}", n_rows, n_columns, 2, "y", origin, make, megabytes)
    origin, make = "handwritten digits 3 (1) and 5 (-1)", partial(_fetched, fetch_usps_3v5)
    yield CatalogueEntry("usps_3v5", 1_540, 256, 2, "y", origin, make, 2.9)
    for name, table, fetch, megabytes in (("susy", SUSY, fetch_susy, 879.0), ("higgs", HIGGS, fetch_higgs, 2_816.0)):
        origin, make = "simulated particle collisions, UCI", partial(_collisions, fetch)
        yield CatalogueEntry(name, table.n_rows, table.n_features, 2, "y", origin, make, megabytes)


CATALOGUE: Mapping[str, CatalogueEntry] = {entry.name: entry for entry in _entries()}


def entry_of(name: str) -> CatalogueEntry:
    """The entry with a given name."""
    if name not in CATALOGUE:
        raise ValueError(f"data set {name!r} does not exist; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def missing_as_null(part: NamedColumns) -> NamedColumns:
    """Columns for files, with missing numbers as null instead of NaN."""
    pyarrow = optional("pyarrow", "datasets")
    return {name: pyarrow.array(column, from_pandas=True) for name, column in part.items()}
