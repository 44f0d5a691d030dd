"""Small models of all kinds, fitted once, and their reports."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.workflow import TableModel, fit_table

NASTY = "<script>alert('&')</script>"


def people(n_rows=400, seed=0):
    """Text, numbers, missing values, and names that are no good HTML, SVG or mathtext."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "cost in $ or $": rng.normal(100, 20, n_rows),
            NASTY: rng.choice(["<b>", 'a "quote"', "#010203 0.123456 收入"], n_rows, p=[0.5, 0.3, 0.2]),
            "member": rng.choice(["yes", "no"], n_rows),
            "id": [f"C{i}" for i in range(n_rows)],
        }
    )
    f = 0.08 * (table.age - 45) + 1.5 * (table.member == "yes") + rng.logistic(size=n_rows)
    table["buys"] = np.where(f > 0.5, "</title>", "not & never")
    table.loc[rng.random(n_rows) < 0.1, "cost in $ or $"] = np.nan
    table.loc[rng.random(n_rows) < 0.1, NASTY] = None
    return table


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


def fit(folder, name, table, target, **options):
    path = folder / f"{name}.csv"
    table.to_csv(path, index=False)
    options = {"estimator": BayesianSVC(n_inducing=40, random_state=0)} | options
    return fit_table(path, target, **options)


@pytest.fixture(scope="session")
def binary(folder):
    return fit(folder, "people", people(), "buys")


@pytest.fixture(scope="session")
def linear(folder):
    return fit(folder, "linear", people(), "buys", estimator=BayesianLinearSVC(random_state=0))


@pytest.fixture(scope="session")
def many(folder):
    data = load_iris(as_frame=True)
    table = data.frame.assign(target=data.target_names[data.target])
    return fit(folder, "iris", table, "target", estimator=BayesianSVC(n_inducing=30, tune=None, random_state=0))


@pytest.fixture(scope="session")
def without_holdout(folder):
    estimator = BayesianSVC(n_inducing=30, tune=None, random_state=0)
    return fit(folder, "all", people(200), "buys", holdout=0, estimator=estimator)


@pytest.fixture(scope="session")
def from_libsvm(folder):
    rng = np.random.default_rng(0)
    X, lines = rng.normal(size=(200, 4)), []
    for row in X:
        features = " ".join(f"{j + 1}:{value:.3f}" for j, value in enumerate(row) if j != 2 or value > 0)
        lines.append(f"{'+1' if row[0] + 0.3 * rng.normal() > 0 else '-1'} {features}")
    path = folder / "rows.libsvm"
    path.write_text("\n".join(lines) + "\n")
    return fit_table(path, estimator=BayesianSVC(n_inducing=20, tune=None, scale="common", random_state=0))


@pytest.fixture(scope="session")
def plain(folder):
    """An estimator that was saved alone, and a table to evaluate it."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    two = y < 2
    BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X[two], y[two]).save(folder / "plain.bayesvm")
    X[two].assign(kind=y[two]).to_csv(folder / "test.csv", index=False)
    model = TableModel.load(folder / "plain.bayesvm")
    return model, model.evaluate(folder / "test.csv", "kind", "test.csv")
