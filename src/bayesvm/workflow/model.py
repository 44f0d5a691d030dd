"""Workflow: an estimator with the story of its training and what it says of rows that judge it, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm.data.blocks import HELD_ENTRIES, random_rows
from bayesvm.data.tables import Table
from bayesvm.data.tables.files import find_files
from bayesvm.estimators import BayesianOneClassSVM
from bayesvm.estimators.columns import feature_names, n_features, recipe_of
from bayesvm.estimators.files import load_both
from bayesvm.preparation import Frame, Recipe, open_table, prepared
from bayesvm.preparation.recipe import RECIPE
from bayesvm.schema import anything, each, either, nothing, number, record, text, whole
from bayesvm.storage.models import write_model
from bayesvm.workflow.judging import JUDGED, Judged, predicts_numbers
from bayesvm.workflow.splitting import CROSS_VALIDATION

MOST_JUDGED = 1_000_000  # rows of a test table; of more, a random choice

# What is kept in the file of an estimator beside it; a card may have more on it. Earlier files have the recipe here.
CARD = {
    "files": each(text),
    **dict.fromkeys(("target", "weight"), either(nothing, text)),
    **dict.fromkeys(("n_rows", "n_train", "n_holdout", "seed"), whole),
    "seconds": number,
    **dict.fromkeys(("created", "version"), text),
}
STORED_WITH_ESTIMATOR = record(
    {
        "card": either(record({}), record(CARD, others=anything)),
        "holdout": either(nothing, JUDGED),
    },
    {"recipe": RECIPE},
)


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with where it comes from and how good it is; ``fit_table`` makes it, a file keeps it.

    Attributes
    ----------
    estimator : the fitted BayesianSVC, BayesianLinearSVC or BayesianSVR
    card : where it comes from: files, target, numbers of rows, seed, seconds, version
    holdout : what it says of rows that were held out, or of all rows in cross-validation; or None
    numbered : of LIBSVM files, whose features have numbers for names, or None

    Examples
    --------
    >>> from bayesvm.workflow import TableModel, fit_table
    >>> model = fit_table("people.csv", target="income")  # doctest: +SKIP
    >>> model.judged("more_people.csv").predictions.proba  # doctest: +SKIP
    """

    estimator: Any
    card: dict[str, Any] = field(default_factory=dict)
    holdout: Judged | None = None
    numbered: Recipe | None = None

    @property
    def recipe(self) -> Recipe:
        """How columns become its features."""
        if self.numbered is not None:
            return self.numbered
        recipe = recipe_of(self.estimator)
        if recipe is not None:
            return recipe
        names = feature_names(self.estimator)
        return Recipe.plain([f"x{i}" for i in range(self.estimator.n_features_in_)] if names is None else names)

    @property
    def predicts_numbers(self) -> bool:
        """Whether its estimator is a regressor."""
        return predicts_numbers(self.estimator)

    @property
    def is_cross_validated(self) -> bool:
        """Whether ``holdout`` has the predictions of cross-validation, each by a model of the other folds."""
        return self.holdout is not None and CROSS_VALIDATION in self.holdout.source

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted; a regressor has none."""
        labels: np.ndarray = self.estimator.classes_
        return labels

    def table(self, source: Any, target: str | None = None, **opening: Any) -> Table:
        """Files, as the features of the model."""
        if isinstance(source, Table):
            return source
        paths = [source] if isinstance(source, str | PathLike) else source
        if not isinstance(paths, Sequence) or not all(isinstance(path, str | PathLike) for path in paths):
            raise TypeError(f"give the path of a table or several paths; got {type(source).__name__}")
        if self._takes_numbers_of(source):
            opening.pop("keep", None)  # there are no other columns
            return open_table(source, n_features=self.estimator.n_features_in_, **opening)
        weight = self.card.get("weight") if target is not None else None
        text_labels = not self.predicts_numbers and self.classes_.dtype.kind == "U"
        return prepared(source, self.recipe, target, weight, text_labels=text_labels, **opening)

    def _takes_numbers_of(self, source: Any) -> bool:
        """Whether columns had no names in the fit, and have none in the LIBSVM files of this table."""
        unnamed = not hasattr(self.estimator, "feature_names_in_") and self.recipe.numbered is None
        return unnamed and find_files(source)[0] == "LIBSVM"

    def rows(self, source: Any) -> Any:
        """Files, or a data frame, as rows to predict; a frame may have its columns in any order, and others beside."""
        frame = Frame.of(source)
        if frame is None:
            return self.table(source)
        recipe = recipe_of(self.estimator)
        return source if recipe is None else recipe.encoded_frame(frame)

    def predict(self, source: Any) -> np.ndarray:
        """The most probable class of each row, or the mean of the number."""
        predicted: np.ndarray = self.estimator.predict(self.rows(source))
        return predicted

    def predict_interval(self, source: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals for the number of each row; of a regressor."""
        ends: tuple[np.ndarray, np.ndarray] = self.estimator.predict_interval(self.rows(source), coverage)
        return ends

    def predict_proba(self, source: Any) -> np.ndarray:
        """Probabilities of the classes, columns in the order of ``classes_``."""
        probabilities: np.ndarray = self.estimator.predict_proba(self.rows(source))
        return probabilities

    def predict_set(self, source: Any, coverage: float = 0.9, *, per_class: bool = False) -> np.ndarray:
        """Sets of classes that contain the class of a new row about that often; as the estimator's.

        Parameters
        ----------
        source : paths, data frame or Table
            Rows to predict.
        coverage : float, default=0.9
            Share of new rows whose set contains their class.
        per_class : bool, default=False
            Whether that holds for the rows of each class.

        Returns
        -------
        array of bool of shape (n_rows, n_classes)
            Whether a class is in the set; columns in the order of ``classes_``.
        """
        sets: np.ndarray = self.estimator.predict_set(self.rows(source), coverage, per_class=per_class)
        return sets

    def predict_uncertainty(self, source: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why; as the estimator's."""
        parts: dict[str, np.ndarray] = self.estimator.predict_uncertainty(self.rows(source))
        return parts

    def judged(self, source: Any, target: str | None = None, name: str | None = None, **opening: Any) -> Judged:
        """What it says of a table whose targets are known, at most a million of its rows."""
        target = target or self.card.get("target")
        if target is None and self.recipe.numbered is None and not self._takes_numbers_of(source):
            raise ValueError("the model has no stored target name; set --target (target=)")
        table = self.table(source, target, **opening)
        numbers, name = None, name or "the test table"
        if table.n_rows > MOST_JUDGED:
            numbers = random_rows(table.n_rows, MOST_JUDGED, np.random.default_rng(0))
            name = f"{name}, a random {MOST_JUDGED:,} of its {table.n_rows:,} rows"
            table = table.subset(numbers)
        if table.n_rows * table.n_features <= HELD_ENTRIES:
            table = table.in_memory()
        table = table.labelled()
        return Judged.of(self.estimator, table, name, numbers)

    @property
    def judged_by_default(self) -> Judged:
        """What it says of the rows that were held out, else the leave-one-out predictions of the training rows."""
        return self.holdout or Judged.left_out(self.estimator)

    def save(self, path: str | PathLike[str]) -> None:
        """Write all of it to one file; ``bayesvm.load`` reads the estimator back, ``TableModel.load`` all of it."""
        holdout = None if self.holdout is None else self.holdout.state()
        beside: dict[str, Any] = {"card": self.card, "holdout": holdout}
        if self.numbered is not None:
            beside["recipe"] = self.numbered.state()
        write_model(Path(path), replace(self.estimator.as_model(), beside=beside), STORED_WITH_ESTIMATOR)

    @classmethod
    def load(cls, path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> TableModel:
        """Read a file of ``save``, or one of an estimator alone."""

        def made(estimator: Any, beside: dict[str, Any] | None) -> Any:
            return estimator if isinstance(estimator, BayesianOneClassSVM) else cls.of(estimator, beside)

        found = load_both(Path(path), made, STORED_WITH_ESTIMATOR, trusted)
        if not isinstance(found, cls):
            raise TypeError(
                f"{path} holds a BayesianOneClassSVM, which predicts neither classes nor numbers; read it with "
                "bayesvm.load"
            )
        return found

    @classmethod
    def of(cls, estimator: Any, beside: dict[str, Any] | None) -> TableModel:
        """An estimator with what was kept beside it in its file."""
        if beside is None:
            return cls(estimator)
        judged, numbered = beside["holdout"], beside.get("recipe")
        if numbered is not None and numbered["numbered"] != n_features(estimator):
            raise ValueError(f"the recipe makes {numbered['numbered']} features of {n_features(estimator)}")
        return cls(
            estimator,
            beside["card"],
            None if judged is None else Judged.from_state(judged, getattr(estimator, "classes_", None)),
            None if numbered is None else Recipe.from_state(numbered),
        )


def load(path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> Any:
    """Read the estimator of a file that ``save`` or ``bayesvm fit`` wrote. Runs no code of the file.

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
    >>> model.predict_proba(frame)  # doctest: +SKIP
    """
    return load_both(Path(path), lambda estimator, _: estimator, STORED_WITH_ESTIMATOR, trusted)
