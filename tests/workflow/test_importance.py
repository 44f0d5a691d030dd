"""Importance of columns and contributions to single rows, against functions whose answers are known."""

import numpy as np
import pytest
from scipy.special import expit

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.evaluation import Predictions
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.workflow import EvaluatedRows, TableModel
from bayesvm.workflow.contributions import contributions, reference
from bayesvm.workflow.importance import importance
from tests.recipes import with_recipe

RECIPE = Recipe((NumberColumn("age", 0.0), CategoryColumn("place", ("city", "coast", "forest")), NumberColumn("b", 0)))


class Shifted:
    """A model whose probability is a function of the features; draws add a shift of f that all rows share."""

    classes_ = np.array(["no", "yes"])

    def f(self, X):
        return X[:, 0] + 2 * X[:, 2]  # age, and place=coast; b does nothing

    def predict_proba(self, X):
        p = expit(self.f(X))
        return np.column_stack([1 - p, p])

    def sample_proba(self, X, n, random_state):
        shift = np.random.default_rng(random_state).normal(0, 0.3, n)
        p = expit(self.f(X) + shift[:, None])
        return np.stack([1 - p, p], axis=-1)


def rows(n_rows=150, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(size=n_rows), np.eye(3)[rng.integers(3, size=n_rows)], rng.integers(2, size=n_rows)]
    )


def evaluated(X):
    y = (X[:, 0] > 0).astype(int)
    p = np.full((len(X), 2), 0.5)
    return EvaluatedRows(
        Predictions.of(["no", "yes"], np.array(["no", "yes"])[y], p), np.arange(len(X)), X, np.arange(len(X)), "x"
    )


def test_importance_is_the_mean_over_all_pairs_of_rows():
    X = rows()
    found = importance(TableModel(with_recipe(Shifted(), RECIPE)), evaluated(X))
    assert found.names == ("age", "place", "b")
    assert not found.points
    place = np.where(X[:, 2] > 0, 2.0, 0.0)
    # All pairs of a row and the value of another one; importance tries ten of each row, and leaves out 20 rows.
    age = np.abs(expit(X[None, :, 0] + place[:, None]) - expit(X[:, 0] + place)[:, None]).mean()
    coast = np.abs(expit(X[:, :1] + place[None]) - expit(X[:, 0] + place)[:, None]).mean()
    np.testing.assert_allclose(found.change, [age, coast, 0], atol=0.02)


def test_of_three_classes_it_is_the_total_variation():
    class Three(Shifted):
        classes_ = np.array([0, 1, 2])

        def predict_proba(self, X):
            p = np.where(X[:, 4] > 0, 0.7, 0.1)  # moves .6 from the third class to the first
            return np.column_stack([p, np.full(len(X), 0.2), 0.8 - p])

    X = rows()
    found = importance(TableModel(with_recipe(Three(), RECIPE)), evaluated(X))
    share = X[:, 4].mean()
    assert found.names[0] == "b"
    assert found.change[0] == pytest.approx(0.6 * 2 * share * (1 - share), abs=0.03)


def test_without_rows_the_inducing_points_stand_for_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 1] > 0
    model = TableModel(
        with_recipe(BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, y), Recipe.plain("abc"))
    )
    found = importance(model, model.default_evaluation)
    assert found.points
    assert found.names[0] == "b"
    assert found.change[0] > 5 * found.change[1]
    linear = TableModel(with_recipe(BayesianLinearSVC().fit(X, y), Recipe.plain("abc")))
    assert importance(linear, linear.default_evaluation) is None


def test_very_many_columns_are_tried_by_their_weights(monkeypatch):
    monkeypatch.setattr("bayesvm.workflow.importance.MOST_TRIED", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    model = TableModel(with_recipe(BayesianLinearSVC().fit(X, X[:, 3] + 0.5 * X[:, 1] > 0), Recipe.plain("abcde")))
    found = importance(model, evaluated(X))
    assert found.names == ("d", "b")


def test_contributions_are_differences_from_the_usual_value():
    X = rows(20)
    names = ["age", "place", "b"]
    usual = [reference(X, RECIPE.groups[name]) for name in names]
    model = TableModel(with_recipe(Shifted(), RECIPE))
    found = contributions(model, X, names, usual, [1] * 20)
    p = expit(Shifted().f(X))
    place = np.where(X[:, 2] > 0, 2.0, 0.0)
    np.testing.assert_allclose(found.value[:, 0], p - expit(usual[0] + place))
    np.testing.assert_allclose(found.value[:, 1], p - expit(X[:, 0] + 2 * usual[1][1]))
    assert (found.value[:, 2] == 0).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    # The shift is the same for both probabilities of a draw: the interval is that of their difference.
    shift = np.random.default_rng(0).normal(0, 0.3, 200)
    exact = expit(Shifted().f(X)[:, None] + shift) - expit(usual[0] + place[:, None] + shift)
    np.testing.assert_allclose(found.low[:, 0], np.minimum(np.quantile(exact, 0.025, axis=1), found.value[:, 0]))


def test_towards_the_other_class_contributions_have_the_other_sign():
    X = rows(5)
    usual = [reference(X, [0])]
    model = TableModel(with_recipe(Shifted(), RECIPE))
    one, other = (contributions(model, X, ["age"], usual, [k] * 5).value for k in (0, 1))
    np.testing.assert_allclose(one, -other, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "features", "expected"),
    [
        (np.array([[1.0], [2.0], [np.nan], [9.0]]), [0], [2.0]),
        (np.array([[1.0, 0], [3.0, 0], [2.0, 1], [2.0, 1]]), [0, 1], [2.0, 0.0]),  # missing ones are no median
        (np.eye(3)[[0, 1, 1, 2]], [0, 1, 2], [0.0, 1.0, 0.0]),
        (np.array([[0.0], [1.0], [1.0]]), [0], [1.0]),
    ],
)
def test_the_usual_value(X, features, expected):
    np.testing.assert_array_equal(reference(X, features), expected)


def test_a_model_of_an_estimator_takes_part(tmp_path):
    X = rows(200)
    estimator = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, X[:, 0] > 0)
    found = contributions(TableModel(with_recipe(estimator, RECIPE)), X[:3], ["age"], [reference(X, [0])], [1] * 3)
    np.testing.assert_allclose(
        found.value[:, 0],
        estimator.predict_proba(X[:3])[:, 1]
        - estimator.predict_proba(np.column_stack([np.full(3, np.median(X[:, 0])), X[:3, 1:]]))[:, 1],
    )
