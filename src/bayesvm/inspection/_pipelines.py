"""Inspection: fitted estimators of bayesvm, alone or at the end of a pipeline, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


@dataclass(frozen=True)
class ModelInPipeline:
    """The given ``estimator``, the bayesvm ``model`` at its end, and the steps ``before`` it, if any."""

    estimator: Any
    model: Any
    before: Any

    @classmethod
    def of(cls, estimator: Any, *, classifier: bool = True) -> ModelInPipeline:
        """Check that an estimator is a fitted model (or classifier) of bayesvm, or a pipeline that ends with one."""
        steps = getattr(estimator, "steps", None)
        model = estimator if steps is None else steps[-1][1]
        if not hasattr(model, "sample_proba") and (classifier or not hasattr(model, "sample_y")):
            wanted = "a BayesianSVC, a BayesianLinearSVC" + ("" if classifier else ", a BayesianSVR")
            raise TypeError(f"this plot needs {wanted} or a pipeline that ends with one; got {type(model).__name__}")
        check_is_fitted(model)
        return cls(estimator, model, estimator[:-1] if steps is not None and len(steps) > 1 else None)

    def prepared(self, X: Any) -> Any:
        """Rows after the steps before the model."""
        return X if self.before is None else self.before.transform(X)

    @property
    def is_regression(self) -> bool:
        """Whether the model is a regressor."""
        return not hasattr(self.model, "sample_proba")

    def class_number(self, label: Any, called: str = "target") -> int:
        """The index of a label; ``None`` is the second of two classes. A regressor has no labels, and the index 0."""
        if self.is_regression:
            if label is not None:
                raise ValueError(f"{called} is a class; leave it out for a {type(self.model).__name__}")
            return 0
        classes = self.model.classes_
        if label is None and len(classes) == 2:
            return 1
        found = [k for k, other in enumerate(classes.tolist()) if other == label]
        if not found:
            wrong = "is needed with more than two classes" if label is None else f"{label!r} is not a class"
            raise ValueError(f"{called} {wrong}: the classes are {classes.tolist()}")
        return found[0]

    def names(self, X: Any, given: Sequence[str] | None) -> list[str]:
        """Names of the columns of X: given, from the fit, from the data frame, or numbered."""
        own_names = getattr(self.estimator, "feature_names_in_", None)
        if own_names is None:
            own_names = getattr(X, "columns", None)
        return checked_names(given, own_names, X.shape[1])

    def inner_features(self, X: Any) -> Any:
        """The features of the model, after the steps before it and its recipe."""
        rows = self.prepared(X)
        return rows if getattr(self.model, "recipe_", None) is None else self.model.features_of(rows)

    def feature_names(self, given: Sequence[str] | None) -> list[str]:
        """Names of these features."""
        recipe = getattr(self.model, "recipe_", None)
        return self.inner_names(given) if recipe is None else checked_names(given, recipe.names, len(recipe.names))

    def inner_names(self, given: Sequence[str] | None) -> list[str]:
        """Names of the columns of the model, after the steps before it."""
        own_names = getattr(self.model, "feature_names_in_", None)
        if own_names is None and self.before is not None:
            try:
                own_names = self.before.get_feature_names_out()
            except (AttributeError, ValueError):  # a step without output names, or one that needs input names
                own_names = None
        return checked_names(given, own_names, self.model.n_features_in_)


def checked_names(given: Sequence[str] | None, own_names: Any, n_columns: int) -> list[str]:
    """One name per column.

    >>> checked_names(None, None, 2), checked_names(None, ["age", "height"], 2)
    (['column 0', 'column 1'], ['age', 'height'])
    """
    if given is not None and len(given) != n_columns:
        raise ValueError(f"feature_names has {len(given)} names for {n_columns} columns")
    names = own_names if given is None else given
    return [f"column {i}" for i in range(n_columns)] if names is None else [str(name) for name in names]


def column_number(feature: Any, names: Sequence[str]) -> int:
    """The index of a column, given by name or index.

    >>> column_number("height", ["age", "height"]), column_number(-1, ["age", "height"])
    (1, 1)
    """
    if isinstance(feature, str):
        if feature not in names:
            close = get_close_matches(feature, names, n=3) or list(names[:10])
            raise ValueError(f"X has no column {feature!r}; did you mean one of {close}?")
        return names.index(feature)
    if not isinstance(feature, int | np.integer) or isinstance(feature, bool):
        raise TypeError(f"a column must be a name or an integer; got {feature!r}")
    if not -len(names) <= feature < len(names):
        raise ValueError(f"X has no column {feature}: it has {len(names)}, counted from 0")
    return int(feature) % len(names)
