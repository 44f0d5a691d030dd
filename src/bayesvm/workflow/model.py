"""Workflow: an estimator with the recipe of its columns and the story of its training, in one file."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesvm.data.blocks import HELD_ENTRIES, RowNumbers, random_rows
from bayesvm.data.tables import Table, open_table
from bayesvm.data.tables.arrow_parts import HeldPart
from bayesvm.data.tables.files import Paths, SourceFile, find_files
from bayesvm.data.tables.rows import FileRows
from bayesvm.estimators import BayesianSVC
from bayesvm.estimators.files import load_both
from bayesvm.extras import optional
from bayesvm.inference.linear_model import WIDEST_FULL_COVARIANCE
from bayesvm.preparation import Opened, Recipe, prepared
from bayesvm.preparation.recipe import RECIPE
from bayesvm.schema import anything, each, either, nothing, number, record, text, whole
from bayesvm.storage.models import write_model
from bayesvm.warn import warn_user
from bayesvm.workflow.judging import JUDGED, Judged
from bayesvm.workflow.splitting import opened, require_share, split

MOST_JUDGED = 1_000_000  # rows of a test table; of more, a random choice
FEW_HELD_OUT = 2_000  # rows that judge a model if somebody is waiting for it

# What is kept in the file of an estimator beside it; a card may have more on it.
CARD = {
    "files": each(text),
    **dict.fromkeys(("target", "weight"), either(nothing, text)),
    **dict.fromkeys(("n_rows", "n_train", "n_holdout", "seed"), whole),
    "seconds": number,
    **dict.fromkeys(("created", "version"), text),
}
STORED_WITH_ESTIMATOR = record(
    {
        "recipe": RECIPE,
        "card": either(record({}), record(CARD, others=anything)),
        "holdout": either(nothing, JUDGED),
    }
)


@dataclass(frozen=True)
class TableModel:
    """What ``bayesvm fit`` makes: it takes tables in files or data frames, text and missing values included.

    Attributes
    ----------
    estimator : the fitted BayesianSVC or BayesianLinearSVC
    recipe : how columns become its features
    card : where it comes from: files, target, numbers of rows, seed, seconds, version
    holdout : what it says of rows that were held out, or None

    Examples
    --------
    >>> from bayesvm import TableModel
    >>> model = TableModel.fit("people.csv", target="income")  # doctest: +SKIP
    >>> model.predict_proba("more_people.csv")  # doctest: +SKIP
    """

    estimator: Any
    recipe: Recipe
    card: dict[str, Any] = field(default_factory=dict)
    holdout: Judged | None = None

    @classmethod
    def fit(
        cls,
        source: Paths,
        target: str | None = None,
        *,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        drop: Collection[str] = (),
        categories: Collection[str] = (),
        holdout: float = 0.2,
        estimator: Any = None,
        seed: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        copy_to: str | PathLike[str] | None = None,
        verbose: int = 0,
    ) -> TableModel:
        """Learn from a table in files: Parquet, Arrow, CSV or LIBSVM; text and missing values included.

        Parameters
        ----------
        source : a file, a folder, a pattern or a list of files
        target : name of the column of labels; LIBSVM files hold them
        weight : name of a column of row weights
        columns, drop : names of the columns to learn from, or to leave out; default: all
        categories : names of columns whose numbers are names, such as postal codes; also of the target
        holdout : share of the rows, at most 50,000 of them, that are not learned from but judge the model; 0 for none
        estimator : a BayesianSVC or BayesianLinearSVC to fit; default: ``BayesianSVC(random_state=seed)``
        seed : controls which rows are held out, and all other randomness
        checkpoint : a file from which an interrupted fit resumes
        copy_to : a folder for the working copy of text files
        verbose : 1 shows progress
        """
        began = time.perf_counter()
        require_share(holdout)
        estimator = BayesianSVC(random_state=seed) if estimator is None else clone(estimator)
        estimator.set_params(verbose=verbose)
        opening: dict[str, Any] = {"copy_to": copy_to, "verbose": verbose}
        unprepared = opened(source, target, weight, columns, drop, categories, opening)
        with unprepared.labelled:
            train, test = split(unprepared.labelled, holdout, seed)
            recipe, table = unprepared.prepared(train, seed)
            learned = table if train is None else table.subset(train)
            held = None if test is None else table.subset(test).in_memory()
            if getattr(estimator, "covariance", None) == "full" and table.n_features >= WIDEST_FULL_COVARIANCE:
                warn_user(
                    f"{table.n_features:,} features are too many for their covariance matrix; only their variances are "
                    "fitted (covariance='diagonal')"
                )
                estimator.set_params(covariance="diagonal")
            estimator.fit(learned, checkpoint=checkpoint, held_out=held)
            judged = None
            if held is not None and test is not None:
                judged = _judged(estimator, held, test, unprepared.names, table.n_rows, seed)
        card = {
            "files": unprepared.names[:100],
            "target": target,
            "weight": weight,
            "n_rows": table.n_rows,
            "n_train": learned.n_rows,
            "n_holdout": 0 if held is None else held.n_rows,
            "seed": seed,
            "seconds": time.perf_counter() - began,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": version("bayesvm"),
        }
        return cls(estimator, recipe, card, judged)

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted."""
        labels: np.ndarray = self.estimator.classes_
        return labels

    def table(self, source: Any, target: str | None = None, **opening: Any) -> Table:
        """Files, or a data frame (pandas, polars, Arrow), as the features of the model."""
        if isinstance(source, Table):
            return source
        weight = self.card.get("weight") if target is not None else None
        text_labels = self.classes_.dtype.kind == "U"
        if not isinstance(source, str | PathLike) and (hasattr(source, "columns") or hasattr(source, "schema")):
            pyarrow = optional("pyarrow", "tables")
            held = source if isinstance(source, pyarrow.Table) else pyarrow.table(_frame(source))
            part = HeldPart(SourceFile(Path("the data frame"), 0, 0), held)
            rows = FileRows("memory", [part.file], [part])
            rows.require_some()
            opened = Opened(rows, [(part.file, part.schema)])
            return opened.table(self.recipe, target, opened.if_there(weight), text_labels=text_labels)
        paths = [source] if isinstance(source, str | PathLike) else source
        if not isinstance(paths, Sequence) or not all(isinstance(path, str | PathLike) for path in paths):
            raise TypeError(
                "give the path of a table, several paths, or a data frame with the columns that the model learned "
                f"from; got {type(source).__name__}"
            )
        if self._takes_numbers_of(source):
            opening.pop("keep", None)  # there are no other columns
            return open_table(source, n_features=self.estimator.n_features_in_, **opening)
        return prepared(source, self.recipe, target, weight, text_labels=text_labels, **opening)

    def _takes_numbers_of(self, source: Any) -> bool:
        """Whether columns had no names in the fit, and have none in the LIBSVM files of this table."""
        unnamed = not hasattr(self.estimator, "feature_names_in_") and self.recipe.numbered is None
        return unnamed and find_files(source)[0] == "LIBSVM"

    def predict(self, source: Any) -> np.ndarray:
        """The most probable class of each row."""
        classes: np.ndarray = self.estimator.predict(self.table(source))
        return classes

    def predict_proba(self, source: Any) -> np.ndarray:
        """Probabilities of the classes, columns in the order of ``classes_``."""
        probabilities: np.ndarray = self.estimator.predict_proba(self.table(source))
        return probabilities

    def predict_set(self, source: Any, coverage: float = 0.9, *, per_class: bool = False) -> np.ndarray:
        """Sets of classes that contain the class of a new row about that often; as the estimator's."""
        sets: np.ndarray = self.estimator.predict_set(self.table(source), coverage, per_class=per_class)
        return sets

    def predict_uncertainty(self, source: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why; as the estimator's."""
        parts: dict[str, np.ndarray] = self.estimator.predict_uncertainty(self.table(source))
        return parts

    def judged(self, source: Any, target: str | None = None, name: str | None = None, **opening: Any) -> Judged:
        """What it says of a table whose labels are known, at most a million of its rows."""
        target = target or self.card.get("target")
        if target is None and self.recipe.numbered is None and not self._takes_numbers_of(source):
            raise ValueError("the model does not know the name of its target; give it with --target")
        table = self.table(source, target, **opening)
        numbers, name = None, name or "the test table"
        if table.n_rows > MOST_JUDGED:
            numbers = random_rows(table.n_rows, MOST_JUDGED, np.random.default_rng(0))
            name = f"{name}, a random {MOST_JUDGED:,} of its {table.n_rows:,} rows"
            table = table.subset(numbers)
        if table.n_rows * table.n_features <= HELD_ENTRIES:
            table = table.in_memory()
        return Judged.of(self.estimator, table, name, numbers)

    @property
    def judged_by_default(self) -> Judged:
        """What it says of the rows that were held out, else the leave-one-out predictions of the training rows."""
        return self.holdout or Judged.left_out(self.estimator)

    def save(self, path: str | PathLike[str]) -> None:
        """Write all of it to one file; ``bayesvm.load`` reads it back."""
        holdout = None if self.holdout is None else self.holdout.state()
        beside = {"recipe": self.recipe.state(), "card": self.card, "holdout": holdout}
        write_model(Path(path), replace(self.estimator.as_model(), beside=beside), STORED_WITH_ESTIMATOR)

    @classmethod
    def load(cls, path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> TableModel:
        """Read a file of ``save``, or one of an estimator alone, whose columns must then be numbers."""
        return load_both(Path(path), cls.of, STORED_WITH_ESTIMATOR, trusted)

    @classmethod
    def of(cls, estimator: Any, beside: dict[str, Any] | None) -> TableModel:
        """An estimator with what was kept beside it in its file."""
        if beside is None:
            numbers = [f"x{number}" for number in range(estimator.n_features_in_)]
            return cls(estimator, Recipe.plain(getattr(estimator, "feature_names_in_", numbers)))
        judged, recipe = beside["holdout"], Recipe.from_state(beside["recipe"])
        if len(recipe.names) != estimator.n_features_in_:
            raise ValueError(f"the recipe makes {len(recipe.names)} features of {estimator.n_features_in_}")
        return cls(
            estimator,
            recipe,
            beside["card"],
            None if judged is None else Judged.from_state(judged, estimator.classes_),
        )


def _judged(
    estimator: Any, held: Table, test: RowNumbers, names: Sequence[str], n_rows: int, seed: int
) -> Judged | None:
    """What the model says of the rows held out; Ctrl-C ends this only, since the model is there already."""
    try:
        if estimator.interrupted_ and held.n_rows > FEW_HELD_OUT:
            few = random_rows(held.n_rows, FEW_HELD_OUT, np.random.default_rng(seed))
            held, test = held.subset(few), test[few]
        share = f"{held.n_rows / n_rows:.0%} of {names[0]}" + (", …" if len(names) > 1 else "")
        return Judged.of(estimator, held, f"held out: {share} ({held.n_rows:,} rows)", test)
    except KeyboardInterrupt:
        warn_user("stopped before the held-out rows were judged: the model is kept without metrics")
        return None


def load(path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> Any:
    """Read a ``TableModel`` of ``bayesvm fit``, or an estimator that ``save`` wrote. Runs no code of the file.

    A file that is cut short, altered, foreign or of a newer version is a ``ValueError`` that says which.

    Parameters
    ----------
    path : str or path
    trusted : collection of str or classes
        Classes of kernels outside bayesvm that may be imported, or their import paths, ``"package.module.Class"``. A
        model with another such kernel is an ``ImportError`` that names its class, and nothing is imported.

    Examples
    --------
    >>> import bayesvm
    >>> model = bayesvm.load("people.bayesvm")  # doctest: +SKIP
    >>> model.predict_proba("new.csv")  # doctest: +SKIP
    """
    return load_both(
        Path(path),
        lambda estimator, beside: estimator if beside is None else TableModel.of(estimator, beside),
        STORED_WITH_ESTIMATOR,
        trusted,
    )


def _frame(source: Any) -> dict[str, Any]:
    """Columns of a data frame; pandas has its own way of missing text."""
    if hasattr(source, "to_arrow"):
        table = source.to_arrow()
        return {name: table.column(name) for name in table.column_names}
    pyarrow = optional("pyarrow", "tables")
    return {str(name): pyarrow.array(source[name], from_pandas=True) for name in source.columns}
