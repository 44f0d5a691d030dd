"""Workflow: an estimator with the recipe of its columns and the story of its training, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm.data.blocks import HELD_ENTRIES, random_rows
from bayesvm.data.tables import Table, open_table
from bayesvm.data.tables.arrow_parts import HeldPart
from bayesvm.data.tables.files import Paths, SourceFile, find_files
from bayesvm.data.tables.rows import FileRows
from bayesvm.estimators.files import load_both
from bayesvm.extras import optional
from bayesvm.preparation import Opened, Recipe, prepared
from bayesvm.preparation.recipe import RECIPE
from bayesvm.schema import anything, each, either, nothing, number, record, text, whole
from bayesvm.storage.models import write_model
from bayesvm.workflow.judging import JUDGED, Judged

MOST_JUDGED = 1_000_000  # rows of a test table; of more, a random choice

# What is kept in the file of an estimator beside it; a card may have more on it.
CARD = {
    "files": each(text),
    **dict.fromkeys(("target", "weight"), either(nothing, text)),
    **dict.fromkeys(("n_rows", "n_train", "n_holdout", "seed"), whole),
    "seconds": number,
    **dict.fromkeys(("created", "version"), text),
}
BESIDE = record(
    {
        "recipe": RECIPE,
        "card": either(record({}), record(CARD, others=anything)),
        "holdout": either(nothing, JUDGED),
    }
)


@dataclass(frozen=True)
class TableModel:
    """What ``bayesvm fit`` makes: it takes tables as they are, in files or data frames, text and gaps included.

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
        if self.unnamed and find_files(source)[0] == "LIBSVM":
            opening.pop("keep", None)  # there are no other columns
            return open_table(source, n_features=self.estimator.n_features_in_, **opening)
        return prepared(source, self.recipe, target, weight, text_labels=text_labels, **opening)

    @property
    def unnamed(self) -> bool:
        """Whether the estimator was fitted to columns without names."""
        return not hasattr(self.estimator, "feature_names_in_") and self.recipe.numbered is None

    def predict(self, source: Any) -> np.ndarray:
        """The most probable class of each row."""
        classes: np.ndarray = self.estimator.predict(self.table(source))
        return classes

    def predict_proba(self, source: Any) -> np.ndarray:
        """Probabilities of the classes, columns in the order of ``classes_``."""
        probabilities: np.ndarray = self.estimator.predict_proba(self.table(source))
        return probabilities

    def predict_uncertainty(self, source: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why; as the estimator's."""
        parts: dict[str, np.ndarray] = self.estimator.predict_uncertainty(self.table(source))
        return parts

    def judged(self, source: Any, target: str | None = None, name: str | None = None, **opening: Any) -> Judged:
        """What it says of a table whose labels are known, at most a million of its rows."""
        target = target or self.card.get("target")
        if target is None:
            self._require_labels_inside(source)
        table = self.table(source, target, **opening)
        numbers = None
        told = name or "the test table"
        if table.n_rows > MOST_JUDGED:
            numbers = random_rows(table.n_rows, MOST_JUDGED, np.random.default_rng(0))
            told = f"{told}, a random {MOST_JUDGED:,} of its {table.n_rows:,} rows"
            table = table.subset(numbers)
        if table.n_rows * table.n_features <= HELD_ENTRIES:
            table = table.in_memory()
        return Judged.of(self.estimator, table, told, numbers)

    def _require_labels_inside(self, source: Any) -> None:
        """LIBSVM files have the labels in them; all other tables must be told where."""
        if self.recipe.numbered is None and not (self.unnamed and find_files(source)[0] == "LIBSVM"):
            raise ValueError("the model does not know the name of its target; give it with --target")

    def save(self, path: str | PathLike[str]) -> None:
        """Write all of it to one file; ``bayesvm.load`` reads it back."""
        holdout = None if self.holdout is None else self.holdout.state()
        beside = {"recipe": self.recipe.state(), "card": self.card, "holdout": holdout}
        write_model(Path(path), replace(self.estimator.as_model(), beside=beside), BESIDE)

    @classmethod
    def load(cls, path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> TableModel:
        """Read a file of ``save``, or one of an estimator alone, whose columns must then be numbers."""
        return load_both(Path(path), cls.of, BESIDE, trusted)

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

    @staticmethod
    def fit(source: Paths, target: str | None = None, **options: Any) -> TableModel:
        """Learn from a table in files: see ``fit_table``."""
        from bayesvm.workflow.fitting import fit_table  # noqa: PLC0415  (which makes such models)

        return fit_table(source, target, **options)


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
        BESIDE,
        trusted,
    )


def _frame(source: Any) -> dict[str, Any]:
    """Columns of a data frame; pandas has its own way of missing text."""
    if hasattr(source, "to_arrow"):
        table = source.to_arrow()
        return {name: table.column(name) for name in table.column_names}
    pyarrow = optional("pyarrow", "tables")
    return {str(name): pyarrow.array(source[name], from_pandas=True) for name in source.columns}
