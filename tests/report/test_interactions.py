"""Interactions of columns: none where log odds are additive, and exactly those of a product."""

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.report.influence import setting
from bayesvm.report.interactions import grid_of, interaction_plots, interactions
from bayesvm.workflow import TableModel
from tests.recipes import with_recipe

RECIPE = Recipe((NumberColumn("a", 0.0), NumberColumn("b", 0.0), CategoryColumn("place", ("city", "coast", "sea"))))


class Product:
    """Log odds with a product of two features, and draws in which it has another factor."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, factor):
        self.factor = factor

    def odds(self, X, factor):
        return X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 3] + factor * X[:, 0] * X[:, 1]

    def predict_proba(self, X):
        p = expit(self.odds(X, self.factor))
        return np.column_stack([1 - p, p])

    def sample_proba(self, X, n, random_state):
        factors = self.factor + np.random.default_rng(random_state).normal(0, 0.05, n)
        p = np.array([expit(self.odds(X, factor)) for factor in factors])
        return np.stack([1 - p, p], axis=-1)


def rows(n_rows=100):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(-2, 2, (n_rows, 2)), np.eye(3)[rng.integers(3, size=n_rows)]])


def test_additive_log_odds_have_no_interaction():
    model, X = TableModel(with_recipe(Product(0.0), RECIPE)), rows()
    grid = grid_of(model, ("a", "place"), X, X)
    assert grid.rows.shape == (8 * 3 * 16, 5)
    np.testing.assert_allclose(grid.beyond_additive(model.estimator.predict_proba(grid.rows)), 0, atol=1e-9)
    assert interactions(model, ("a", "b", "place"), X, X) == []


def test_a_product_is_found_and_has_its_size():
    model, X = TableModel(with_recipe(Product(0.6), RECIPE)), rows()
    (found,) = interactions(model, ("place", "b", "a"), X, X)
    assert found.grid.names == ("b", "a")
    b, a = (at.values[:, 0] for at in found.grid.settings)
    np.testing.assert_allclose(found.mean, 0.6 * np.outer(b - b.mean(), a - a.mean()), atol=1e-9)
    factors = 0.6 + np.random.default_rng(0).normal(0, 0.05, 200)
    low = np.quantile(factors, 0.025) * np.outer(b - b.mean(), a - a.mean())
    positive = found.mean > 0
    np.testing.assert_allclose(found.low[positive], low[positive], rtol=1e-6)
    ((title, svg),) = interaction_plots(model, [found])
    assert title == "b × a"
    assert svg.startswith("<svg")


def test_settings_of_columns_of_all_kinds():
    rng = np.random.default_rng(0)
    recipe = Recipe(
        (
            NumberColumn("marked", 7.0, indicator=True),
            NumberColumn("bare", np.nan),
            NumberColumn("flag", np.nan),
            CategoryColumn("place", ("city", "coast", "sea")),
        )
    )
    gone = rng.random(200) < 0.2
    numbers = rng.normal(size=200)
    X = np.column_stack(
        [
            np.where(gone, 7.0, numbers),
            gone,
            np.where(gone, np.nan, numbers),
            numbers > 0,
            np.eye(3)[rng.integers(3, size=200)],
        ]
    )
    X[:5, 3] = np.nan
    marked, bare, flag, place = (setting(recipe, name, X) for name in recipe.groups)
    low, high = np.percentile(numbers[~gone], (2, 98))
    for found in (marked, bare):
        assert found.labels is None
        np.testing.assert_allclose(found.values[[0, -1], 0], [low, high])
    np.testing.assert_array_equal(marked.missing, [7.0, 1.0])
    assert not marked.values[:, 1].any()
    assert np.isnan(bare.missing).all()
    assert flag.labels == ["0", "1", "(missing)"]
    np.testing.assert_array_equal(flag.values, [[0], [1], [np.nan]])
    assert (place.labels, place.missing) == (["city", "coast", "sea"], None)
    np.testing.assert_array_equal(place.values, np.eye(3))
    X[:, 2] = np.nan  # nothing but missing values among the rows
    assert setting(recipe, "bare", X).labels == ["(missing)"]
