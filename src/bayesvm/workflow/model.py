"""Workflow: an estimator with its history and its predictions for evaluation rows, in one file."""

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
from bayesvm.data.texts import Spellings, is_case_ignored
from bayesvm.estimators import BayesianOneClassSVM
from bayesvm.estimators.columns import feature_names, n_features, recipe_of
from bayesvm.estimators.files import load_both
from bayesvm.preparation import Frame, Recipe, open_table, prepared
from bayesvm.preparation.recipe import RECIPE
from bayesvm.schema import anything, each, either, nothing, number, record, text, whole
from bayesvm.storage.models import write_model
from bayesvm.workflow.evaluated_rows import EVALUATED_ROWS, EvaluatedRows, is_regression
from bayesvm.workflow.splitting import CROSS_VALIDATION

MOST_EVALUATED = 1_000_000  # rows of a test table; a random sample of larger tables

# The additional content of a model file; a card may have other members, too. Earlier files have the recipe here.
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
        "holdout": either(nothing, EVALUATED_ROWS),
    },
    {"recipe": RECIPE},
)


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with its history and its metrics: the result of ``fit_table`` and the content of a model file.

    Its predictions take files, tables or data frames; columns are matched by name, and additional ones are ignored.

    Parameters
    ----------
    estimator : BayesianSVC, BayesianLinearSVC or BayesianSVR
        The fitted estimator.
    card : dict, optional
        Its history: files, target, numbers of rows, seed, seconds, version. Empty for a file of ``model.save``.
    holdout : EvaluatedRows, optional
        Predictions for the held-out rows or, from cross-validation, for all rows.
    numbered : Recipe, optional
        The recipe of LIBSVM files, whose features have numbers for names.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels, sorted; a regressor has none.
    is_regression : bool
        Whether the estimator is a regressor.
    recipe : Recipe
        How columns become features.
    is_cross_validated : bool
        Whether ``holdout`` comes from cross-validation.
    default_evaluation : EvaluatedRows
        ``holdout``, or else the leave-one-out predictions for the training rows.

    See Also
    --------
    fit_table : Fit and evaluate a model.
    bayesvm.load : Read only the estimator of a file.
    bayesvm.report.write_report : Write an HTML report on a model.

    Examples
    --------
    >>> from bayesvm.workflow import TableModel, fit_table
    >>> model = fit_table("people.csv", target="income")  # doctest: +SKIP
    >>> model.evaluate("more_people.csv").predictions.proba  # doctest: +SKIP
    """

    estimator: Any
    card: dict[str, Any] = field(default_factory=dict)
    holdout: EvaluatedRows | None = None
    numbered: Recipe | None = None

    @property
    def recipe(self) -> Recipe:
        """How columns become features."""
        if self.numbered is not None:
            return self.numbered
        recipe = recipe_of(self.estimator)
        if recipe is not None:
            return recipe
        names = feature_names(self.estimator)
        return Recipe.plain([f"x{i}" for i in range(self.estimator.n_features_in_)] if names is None else names)

    @property
    def is_regression(self) -> bool:
        """Whether the estimator is a regressor."""
        return is_regression(self.estimator)

    @property
    def is_cross_validated(self) -> bool:
        """Whether ``holdout`` has the predictions of cross-validation, each by a model of the other folds."""
        return self.holdout is not None and CROSS_VALIDATION in self.holdout.source

    @property
    def classes_(self) -> np.ndarray:
        """The class labels, sorted; a regressor has none."""
        labels: np.ndarray = self.estimator.classes_
        return labels

    def table(self, source: Any, target: str | None = None, **opening: Any) -> Table:
        """Open files as a table with the features of the model.

        Parameters
        ----------
        source : path, list of paths or Table
            A file, a folder, a pattern or a list of files; a table is returned as it is.
        target : str, optional
            Name of the target column; None for rows to predict.
        **opening
            Parameters of ``open_table``: ``keep``, ``copy_to``, ``verbose``, and the format of CSV files.

        Returns
        -------
        Table
            The rows with the features of the model.
        """
        if isinstance(source, Table):
            return source
        paths = [source] if isinstance(source, str | PathLike) else source
        if not isinstance(paths, Sequence) or not all(isinstance(path, str | PathLike) for path in paths):
            raise TypeError(f"give the path of a table or several paths; got {type(source).__name__}")
        if self._takes_numbers_of(source):
            opening.pop("keep", None)  # there are no other columns
            return open_table(source, n_features=self.estimator.n_features_in_, **opening)
        weight = self.card.get("weight") if target is not None else None
        text_labels = not self.is_regression and self.classes_.dtype.kind == "U"
        table = prepared(source, self.recipe, target, weight, text_labels=text_labels, **opening)
        if not text_labels or target is None:
            return table
        names = tuple(self.classes_.tolist())
        return table.with_spelling(Spellings(names, is_case_ignored(names)))

    def _takes_numbers_of(self, source: Any) -> bool:
        """Whether columns had no names in the fit, and have none in the LIBSVM files of this table."""
        unnamed = not hasattr(self.estimator, "feature_names_in_") and self.recipe.numbered is None
        return unnamed and find_files(source)[0] == "LIBSVM"

    def rows(self, source: Any) -> Any:
        """Return files or a data frame as rows that the estimator predicts.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            The rows; a data frame may have its columns in any order, and additional ones.

        Returns
        -------
        Table, data frame or array
            The rows with the features of the model.
        """
        frame = Frame.of(source)
        if frame is None:
            return self.table(source)
        recipe = recipe_of(self.estimator)
        return source if recipe is None else recipe.encoded_frame(frame)

    def predict(self, source: Any) -> np.ndarray:
        """Predict the most probable class of each row or, for regression, the mean.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_rows,)
            Class labels or means.
        """
        predicted: np.ndarray = self.estimator.predict(self.rows(source))
        return predicted

    def predict_interval(self, source: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Predict a central interval that contains a new y with a given probability; regression only.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            Rows with the columns of the fit.
        coverage : float, default=0.9
            Probability of the interval, above 0 and below 1.

        Returns
        -------
        lower : array of shape (n_rows,)
            Lower ends.
        upper : array of shape (n_rows,)
            Upper ends.
        """
        ends: tuple[np.ndarray, np.ndarray] = self.estimator.predict_interval(self.rows(source), coverage)
        return ends

    def predict_proba(self, source: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities, with columns in the order of ``classes_``.
        """
        probabilities: np.ndarray = self.estimator.predict_proba(self.rows(source))
        return probabilities

    def predict_set(self, source: Any, coverage: float = 0.9, *, per_class: bool = False) -> np.ndarray:
        """Predict sets of classes that contain the class of a new row with about the probability ``coverage``.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            Rows with the columns of the fit.
        coverage : float, default=0.9
            Share of new rows whose set contains their class.
        per_class : bool, default=False
            Whether the coverage holds for the rows of each class, and not only on average.

        Returns
        -------
        array of bool of shape (n_rows, n_classes)
            Whether a class is in the set; columns in the order of ``classes_``.
        """
        sets: np.ndarray = self.estimator.predict_set(self.rows(source), coverage, per_class=per_class)
        return sets

    def predict_uncertainty(self, source: Any) -> dict[str, np.ndarray]:
        """Predict the uncertainty of each prediction, split into its aleatoric and epistemic parts.

        Parameters
        ----------
        source : path, list of paths, Table or data frame
            Rows with the columns of the fit.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            The result of ``predict_uncertainty`` of the estimator.
        """
        parts: dict[str, np.ndarray] = self.estimator.predict_uncertainty(self.rows(source))
        return parts

    def evaluate(
        self, source: Any, target: str | None = None, name: str | None = None, **opening: Any
    ) -> EvaluatedRows:
        """Evaluate the model on a table with known targets, on at most a million of its rows.

        Parameters
        ----------
        source : path, list of paths or Table
            The table.
        target : str, optional
            Name of the target column; default: that of the fit.
        name : str, optional
            Name of the table in reports.
        **opening
            Parameters of ``open_table``: ``copy_to``, ``verbose``, and the format of CSV files.

        Returns
        -------
        EvaluatedRows
            The predictions with the true targets, ``predictions``, which ``bayesvm.evaluation.metrics`` takes; and
            some rows of the table, for reports.
        """
        target = target or self.card.get("target")
        if target is None and self.recipe.numbered is None and not self._takes_numbers_of(source):
            raise ValueError("the model has no stored target name; set --target (target=)")
        table = self.table(source, target, **opening)
        numbers, name = None, name or "the test table"
        if table.n_rows > MOST_EVALUATED:
            numbers = random_rows(table.n_rows, MOST_EVALUATED, np.random.default_rng(0))
            name = f"{name}, a random {MOST_EVALUATED:,} of its {table.n_rows:,} rows"
            table = table.subset(numbers)
        if table.n_rows * table.n_features <= HELD_ENTRIES:
            table = table.in_memory()
        table = table.labelled()
        return EvaluatedRows.of(self.estimator, table, name, numbers)

    @property
    def default_evaluation(self) -> EvaluatedRows:
        """The predictions for the held-out rows, or else the leave-one-out predictions for the training rows."""
        return self.holdout or EvaluatedRows.left_out(self.estimator)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file, without pickle.

        ``bayesvm.load`` reads the estimator, ``TableModel.load`` also history and metrics.

        Parameters
        ----------
        path : path
            The file to write.
        """
        holdout = None if self.holdout is None else self.holdout.state()
        beside: dict[str, Any] = {"card": self.card, "holdout": holdout}
        if self.numbered is not None:
            beside["recipe"] = self.numbered.state()
        write_model(Path(path), replace(self.estimator.as_model(), beside=beside), STORED_WITH_ESTIMATOR)

    @classmethod
    def load(cls, path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> TableModel:
        """Read a file of ``save``, or of an estimator alone. No code from the file is executed.

        Parameters
        ----------
        path : path
            The file.
        trusted : iterable of str or classes, optional
            Kernel classes outside bayesvm that may be imported, as in ``bayesvm.load``.

        Returns
        -------
        TableModel
            The model with its history and metrics; for the file of an estimator alone, these are missing.
        """

        def made(estimator: Any, beside: dict[str, Any] | None) -> Any:
            return estimator if isinstance(estimator, BayesianOneClassSVM) else cls._of(estimator, beside)

        found = load_both(Path(path), made, STORED_WITH_ESTIMATOR, trusted)
        if not isinstance(found, cls):
            raise TypeError(f"{path} holds a BayesianOneClassSVM, which has no target; read it with bayesvm.load")
        return found

    @classmethod
    def _of(cls, estimator: Any, beside: dict[str, Any] | None) -> TableModel:
        """Combine an estimator with the additional content of its file."""
        if beside is None:
            return cls(estimator)
        evaluated, numbered = beside["holdout"], beside.get("recipe")
        if numbered is not None and numbered["numbered"] != n_features(estimator):
            raise ValueError(f"the recipe makes {numbered['numbered']} features of {n_features(estimator)}")
        return cls(
            estimator,
            beside["card"],
            None if evaluated is None else EvaluatedRows.from_state(evaluated, getattr(estimator, "classes_", None)),
            None if numbered is None else Recipe.from_state(numbered),
        )


def load(path: str | PathLike[str], trusted: Iterable[str | type] = ()) -> Any:
    """Read the estimator from a file that ``save`` or ``bayesvm fit`` wrote. No code from the file is executed.

    Parameters
    ----------
    path : path
        The file.
    trusted : iterable of str or classes, optional
        Kernel classes outside bayesvm that may be imported, or their import paths, ``"package.module.Class"``.

    Returns
    -------
    BayesianSVC, BayesianLinearSVC, BayesianSVR or BayesianOneClassSVM
        The fitted estimator. Predictions are bit-identical on the same machine with the same library versions.

    Raises
    ------
    ValueError
        If the file is truncated, altered, foreign or of a newer version; the message says which.
    FileNotFoundError
        If there is no such file.
    ImportError
        If the model has a kernel class outside bayesvm that is not in ``trusted``; nothing is imported.

    See Also
    --------
    BayesianSVC.save : Write a model to a file.
    bayesvm.workflow.TableModel.load : Also read history and metrics.

    Examples
    --------
    >>> import bayesvm
    >>> model = bayesvm.load("people.bayesvm")  # doctest: +SKIP
    >>> model.predict_proba(frame)  # doctest: +SKIP
    """
    return load_both(Path(path), lambda estimator, _: estimator, STORED_WITH_ESTIMATOR, trusted)
