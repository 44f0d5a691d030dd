"""Columns that alone explain the target, or nearly, are named with the share; others are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from bayesvm import BayesianLinearSVC, BayesianSVR
from bayesvm.estimators.leakage import MOST_ROWS, leaks, warn_of_leakage
from bayesvm.preparation import Recipe
from bayesvm.report import write_report
from bayesvm.workflow import TableModel, fit_table

N = 800


def table(wrong=0.02):
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.3
    flag = np.where(rng.random(N) < wrong, ~y, y)
    return pd.DataFrame({"x": rng.normal(size=N) + y, "t": rng.choice(["a", "b"], N), "flag": flag.astype(int)}), y


def test_nearly_all_rows_are_reported_with_the_share():
    X, y = table()
    share = np.mean(X["flag"] == y)
    with pytest.warns(UserWarning, match=f"column 'flag' alone predicts the classes of {share:.1%} of all 800 rows"):
        BayesianLinearSVC().fit(X, y)


def test_a_good_column_is_no_leak():
    X, y = table(wrong=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLinearSVC().fit(X, y)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_real_tables_have_no_leak(load):
    data = load()
    recipe = Recipe.plain([str(name) for name in range(data.data.shape[1])])
    assert leaks(data.data, data.target, recipe, numbers=load is load_diabetes) == []


def test_regression():
    rng = np.random.default_rng(0)
    y = rng.normal(size=N)
    X = pd.DataFrame(
        {"x": y + rng.normal(size=N), "copy": np.exp(y + 0.01 * rng.normal(size=N)), "t": ["a", "b"] * 400}
    )
    with pytest.warns(
        UserWarning, match=r"column 'copy' alone explains 99\.\d% of the variance of the target in all 800"
    ):
        BayesianSVR(n_inducing=20, tune=None).fit(X, y)


def test_of_many_rows_some_are_checked():
    y = np.arange(3 * MOST_ROWS) % 2
    with pytest.warns(UserWarning, match="alone determines the classes of 5,000 of 15,000 rows, chosen at random"):
        warn_of_leakage(np.column_stack([y, y * 0]).astype(float), y, Recipe.plain(["a", "b"]), numbers=False)


def test_the_report_opens_with_a_caveat(tmp_path):
    X, y = table()
    X.assign(y=np.where(y, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match="column 'flag' alone predicts"):
        model = fit_table(tmp_path / "t.csv", "y", estimator=BayesianLinearSVC())
    model.save(tmp_path / "m.bayesvm")
    page = write_report(TableModel.load(tmp_path / "m.bayesvm"), tmp_path / "r.html").read_text()
    assert "Caution: flag alone predicts the class of 9" in page
    assert page.index("Caution") < page.index("This model predicts")
