"""Estimators: the public view of the column effects of a fitted model (D26)."""

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

MOST_NAMED = 3  # columns whose names are listed
SEPARATORS = " =_.:-[("  # between the name of a column and a category


@dataclass(frozen=True, repr=False)
class ColumnEffect:
    """A function of one column, or of a pair of columns, that a model adds to f.

    The leave-one-out residuals select the effects (D27). An effect prints as the names of its columns, such as
    ``capital-gain`` or ``month × day``. Fitted models list theirs in ``effects_``; do not create them yourself.

    Parameters
    ----------
    columns : tuple of int
        Indices of the columns, including all columns of a one-hot encoded categorical column. If the model has a
        recipe, indices of its features, ``recipe_.names``.
    names : tuple of str or None
        Names of these columns, if the model knows them.
    factors : tuple of tuples of int
        The same indices in one group, or in two groups for a pair; the columns of a one-hot encoded categorical column
        are in the same group.
    variance : float
        Prior variance of the effect.
    share : float
        Share of the effect in the variation of f: the variance of its posterior mean over the inducing points, relative
        to the sum over the main kernel and all effects; averaged by weight over the members of a committee.
    fitted : FittedEffect
        The posterior of the effect.
    labels : tuple of str, optional
        Names of the original columns, if the model has a recipe.

    Attributes
    ----------
    is_pair : bool
        Whether the effect is a function of two columns.
    points : array of shape (n_points, n_columns)
        Inducing points of the effect, in the units of X.

    See Also
    --------
    BayesianSVC : Has the attribute ``effects_``.
    bayesvm.inspection.EffectDisplay : Plot an effect.

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
        """Whether the effect is a function of two columns."""
        return len(self.factors) == 2

    @property
    def points(self) -> np.ndarray:
        """Inducing points of the effect, in the units of X; the function is interpolated between them."""
        return self.fitted.points

    def mean_and_variance(self, values: Any, reference: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior mean and variance of the contribution of the effect to f.

        Other parts of f may contain any constant, so both are relative to the mean over ``reference``.

        Parameters
        ----------
        values : array of shape (n_values, n_columns)
            Values of the columns of the effect, in the units of X.
        reference : array of shape (n_reference, n_columns), optional
            Values of the same columns in reference rows; by default, the inducing points stand for the training rows.

        Returns
        -------
        mean : array of shape (n_values,), or (n_values, n_classes) for more than two classes
            Posterior means.
        variance : array of the same shape
            Posterior variances.
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
        """Return the name of the column, or the two names of a pair.

        Parameters
        ----------
        names : sequence of str, optional
            Names of all columns of X, to use instead of those that the model knows.

        Returns
        -------
        tuple of str
            One or two names.
        """
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
    """The effects of a fitted model, largest share first."""
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
    """Share of each column in the variation of f, summed over its features; None for kernels without distances."""
    shares, recipe = relevance(fitted), recipe_of(estimator)
    if shares is None or recipe is None:
        return shares
    return np.array([float(shares[recipe.groups.get(name, [])].sum()) for name in input_names(estimator)])


def column_name(factor: Sequence[int], recipe: Recipe) -> str:
    """The name of the original column of a factor; one of several features has its own name."""
    owner = {feature: name for name, features in recipe.groups.items() for feature in features}
    if len(factor) == 1 and len(recipe.groups[owner[factor[0]]]) > 1:
        return recipe.names[factor[0]]
    names = list(dict.fromkeys(owner[feature] for feature in factor))
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{names[0]} to {names[-1]}"


def _label(columns: Sequence[int], names: Sequence[str]) -> str:
    """The common part of the names of one-hot columns.

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
    # Categories may start with the same letters: "city_" and not "city_P".
    name = shared.partition("=")[0] if "=" in shared else shared[: 1 + max(map(shared.rfind, SEPARATORS))]
    return name.rstrip(SEPARATORS) or f"{names[0]} to {names[-1]}"
