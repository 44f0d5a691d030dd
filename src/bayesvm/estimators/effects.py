"""Estimators: the effects of columns that a model admitted, as users see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np

from bayesvm.estimators.columns import feature_names, input_names, recipe_of
from bayesvm.inference.effects import FittedEffect, fitted_effects, relevance
from bayesvm.inference.fitted import Fitted
from bayesvm.preparation import Recipe

SEPARATORS = " =_.:-[("  # between the name of a column and a category


@dataclass(frozen=True, repr=False)
class ColumnEffect:
    """A function of one column, or of a pair of columns, that a model adds to f because its residuals asked for it.

    It prints as the names of its columns: ``capital-gain``, ``month × day``.

    Attributes
    ----------
    columns : tuple of int
        Numbers of the columns; of a categorical column in one-hot form, of all its columns. Where the model has a
        recipe, of the features that it makes, ``recipe_.names``.
    names : tuple of str or None
        Their names, if the model knows them.
    factors : tuple of tuples of int
        The same numbers in one group, or in two for a pair: the one-hot columns of a categorical one are together.
    variance : float
        Of its prior.
    share : float
        In the variation of f: the variance of its posterior mean over the inducing points, relative to the sum over the
        main kernel and all effects. Of a committee, averaged by weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(1500, 2)), rng.integers(12, size=1500)])
    >>> y = X[:, 0] + 4 * (X[:, 2] % 2) - 2 + rng.logistic(size=1500) > 0
    >>> model = BayesianSVC(RBF(), scale="standard", n_inducing=50, random_state=0).fit(X, y)
    >>> [str(effect) for effect in model.effects_]
    ['column 2']
    >>> mean, variance = model.effects_[0].mean_and_variance([[0], [1]])
    >>> bool(mean[0] < mean[1])
    True
    """

    columns: tuple[int, ...]
    names: tuple[str, ...] | None
    factors: tuple[tuple[int, ...], ...]
    variance: float
    share: float
    fitted: FittedEffect = field(compare=False)
    labels: tuple[str, ...] | None = None

    @property
    def is_pair(self) -> bool:
        """Whether it is a function of two columns."""
        return len(self.factors) == 2

    @property
    def points(self) -> np.ndarray:
        """Values of its columns, in the units of X, between which the function is interpolated."""
        return self.fitted.points

    def mean_and_variance(self, values: Any, reference: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of what it adds to f; with many classes a column for each.

        f has other parts, which may hold any constant. So both are relative to the mean over ``reference``.

        Parameters
        ----------
        values : array of shape (n, number of columns)
            Of its columns, in the units of X.
        reference : array of shape (m, number of columns) or None
            Values of its columns in some rows; by default the inducing points stand for the training rows.
        """
        given = None if reference is None else self._checked(reference, "reference")
        mean, variance = self.fitted.moments(self._checked(values, "values"), given)
        return (mean[:, 0], variance[:, 0]) if mean.shape[1] == 1 else (mean, variance)

    def _checked(self, values: Any, called: str) -> np.ndarray:
        found = np.asarray(values, np.float64)
        found = found[:, None] if found.ndim == 1 and len(self.columns) == 1 else found
        if found.ndim != 2 or found.shape[1] != len(self.columns) or not len(found):
            raise ValueError(
                f"{called} must have rows and {len(self.columns)} columns, those of {self}; got shape {found.shape}"
            )
        return found

    def factor_names(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Of its column, or of its two; ``names`` are those of all columns of X, in the place of the model's."""
        if names is None and self.labels is not None:
            return self.labels
        if names is not None:
            own = {column: names[column] for column in self.columns}
        else:
            own = dict(zip(self.columns, self.names or (), strict=self.names is not None))
        return tuple(_label(factor, [own[column] for column in factor if own]) for factor in self.factors)

    def __str__(self) -> str:
        return " × ".join(self.factor_names())

    def __repr__(self) -> str:
        return f"ColumnEffect({self}, share={self.share:.3g}, variance={self.variance:.3g})"


def column_effects(fitted: Fitted, estimator: Any) -> tuple[ColumnEffect, ...]:
    """The effects of a fitted model, those with the largest shares first."""
    names, recipe = feature_names(estimator), recipe_of(estimator)
    return tuple(
        ColumnEffect(
            effect.columns,
            None if names is None else tuple(str(names[column]) for column in effect.columns),
            effect.factors,
            effect.variance,
            effect.share,
            effect,
            None if recipe is None else tuple(column_name(factor, recipe) for factor in effect.factors),
        )
        for effect in fitted_effects(fitted)
    )


def column_relevance(fitted: Fitted, estimator: Any) -> np.ndarray | None:
    """Share of every column in the variation of f, those of its features together; None without distances."""
    shares, recipe = relevance(fitted), recipe_of(estimator)
    if shares is None or recipe is None:
        return shares
    return np.array([float(shares[recipe.groups.get(name, [])].sum()) for name in input_names(estimator)])


def column_name(factor: Sequence[int], recipe: Recipe) -> str:
    """The column that the features of a factor come from; one feature of several by its own name."""
    owner = {feature: name for name, features in recipe.groups.items() for feature in features}
    if len(factor) == 1 and len(recipe.groups[owner[factor[0]]]) > 1:
        return recipe.names[factor[0]]
    return ", ".join(dict.fromkeys(owner[feature] for feature in factor))


def _label(columns: Sequence[int], names: Sequence[str]) -> str:
    """One-hot columns are called by what their names have in common.

    >>> _label([3], []), _label([3, 4, 5], []), _label([0, 1], ["x1", "x2"])
    ('column 3', 'columns 3 to 5', 'x1 to x2')
    >>> _label([3, 4], ["city=New York", "city=New Delhi"]), _label([3, 4], ["home_city_Paris", "home_city_Prague"])
    ('city', 'home_city')
    """
    if len(columns) == 1:
        return names[0] if names else f"column {columns[0]}"
    if not names:
        return f"columns {columns[0]} to {columns[-1]}"
    in_turn = zip(*names, strict=False)
    shared = "".join(letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, in_turn))
    # Categories may begin with the same letters: "city_" and not "city_P".
    name = shared.partition("=")[0] if "=" in shared else shared[: 1 + max(map(shared.rfind, SEPARATORS))]
    return name.rstrip(SEPARATORS) or f"{names[0]} to {names[-1]}"
