"""The command line with a target that is a number."""

import json

import numpy as np
import pytest

from tests.cli.conftest import read_csv, write_csv
from tests.cli.driver import bayesvm


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with houses.csv and houses.bayesvm, and the output of fit."""
    folder = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(0)
    a, colour = rng.normal(size=200), rng.choice(["red", "blue"], 200)
    price = 50_000 + 8_000 * np.sin(a) + 5_000 * (colour == "red") + 500 * rng.normal(size=200)
    columns = {"a": a, "colour": colour, "price": np.round(price, 1), "rooms": rng.integers(1, 5, 200)}
    write_csv(folder / "houses.csv", columns)
    fitted = bayesvm("fit", "houses.csv", "-t", "price", "--inducing", "30", folder=folder)
    assert fitted.code == 0, fitted.err
    (folder / "fit.out").write_text(fitted.out)
    (folder / "fit.err").write_text(fitted.err)
    return folder


def value_of(text, name):
    """The value of a metric in a printed table."""
    line = next(line for line in text.splitlines() if line.startswith(name))
    return float(line.removeprefix(name).split()[0].replace(",", ""))


def test_fit_prints_its_progress(home):
    assert "Note: the target 'price' looks like a regression target: BayesianSVR is fitted" in (
        (home / "fit.err").read_text()
    )
    out = (home / "fit.out").read_text()
    assert "price: 4" in out
    assert "5-fold cross-validation of houses.csv (200 rows)" in out
    assert value_of(out, "RMSE") < 1_000
    assert value_of(out, "R²") > 0.95
    assert 0.8 < value_of(out, "coverage of 90% intervals") < 0.97


def test_the_task_overrules(home):
    refused = bayesvm("fit", "houses.csv", "-t", "price", "--task", "classification", folder=home)
    assert refused.code == 1
    assert "Labels must be classes" in refused.err
    refused = bayesvm("fit", "houses.csv", "-t", "colour", "--task", "regression", folder=home)
    assert refused.code == 1
    assert "line 2: the target 'colour' is the text" in refused.err
    refused = bayesvm("fit", "houses.csv", "-t", "price", "--task", "regression", "--linear", folder=home)
    assert refused.code == 2
    asked = ("fit", "houses.csv", "-t", "rooms", "--task", "regression", "--holdout", "0", "--inducing", "10")
    done = bayesvm(*asked, "-o", "rooms.bayesvm", "--json", "-q", folder=home)
    facts = json.loads(done.out)
    assert (facts["task"], facts["classes"]) == ("regression", None)
    assert {"loo_rmse", "loo_log_density"} <= set(facts)
    assert list(facts["metrics"]) == ["rmse", "mae", "r2", "log_density", "coverage"]


def test_evaluate(home):
    done = bayesvm("evaluate", "houses.bayesvm", "houses.csv", folder=home)
    assert value_of(done.out, "R²") > 0.95
    assert "Share of the rows inside central intervals" in done.out
    facts = json.loads(bayesvm("evaluate", "houses.bayesvm", "houses.csv", "--json", folder=home).out)
    assert [each["predicted"] for each in facts["interval_coverage"]] == [0.5, 0.8, 0.9, 0.95, 0.99]


def test_predict_writes_intervals(home):
    done = bayesvm("predict", "houses.bayesvm", "houses.csv", "--keep", "price", "--coverage", "0.5", folder=home)
    assert "200 rows predicted" in done.err
    assert "expected error" not in done.err
    found = read_csv(done.out)
    names = ["price", "prediction", "std", "total", "aleatoric", "epistemic", "lower", "upper"]
    assert found.column_names == names
    price, lower, upper = (found[name].to_numpy().astype(float) for name in ("price", "lower", "upper"))
    assert 0.4 < np.mean((lower < price) & (price < upper)) < 0.7
    wider = read_csv(bayesvm("predict", "houses.bayesvm", "houses.csv", folder=home).out)
    assert (wider["upper"].to_numpy() > upper).all()
    refused = bayesvm("predict", "houses.bayesvm", "houses.csv", "--abstain", "0.1", folder=home)
    assert "abstain is for classification" in refused.err
    refused = bayesvm("predict", "houses.bayesvm", "houses.csv", "--coverage", "1.5", folder=home)
    assert refused.code == 1
    assert "coverage" in refused.err


def test_compare(home):
    done = bayesvm("compare", "houses.csv", "-t", "price", "--rows", "120", "-q", folder=home)
    assert done.code == 0, done.err
    for name in ("BayesianSVR", "SVR", "gradient boosting", "linear regression", "mean log density"):
        assert name in done.out


def test_inspect(home):
    done = bayesvm("inspect", "houses.bayesvm", folder=home)
    assert "target price; regression" in done.out
    assert "in the units of the target" in done.out
    assert "leave-one-out:   RMSE" in done.out
    facts = json.loads(bayesvm("inspect", "houses.bayesvm", "--json", folder=home).out)
    assert facts["classes"] is None
    assert facts["importance"]["a"] > 1_000


def test_report(home):
    pytest.importorskip("jinja2")
    done = bayesvm("report", "houses.bayesvm", folder=home)
    assert done.code == 0, done.err
    assert "it shows" not in done.out  # single rows
    page = (home / "houses.html").read_text()
    assert "This model predicts price, is off by" in page
    for part in ("predicted", "residuals", "intervals", "importance", "dependence0"):
        assert f'id="plot-{part}"' in page
    assert 'id="metric-rmse"' in page
    assert "Classes</h3>" not in page
    done = bayesvm("report", "houses.bayesvm", "houses.csv", "--out", "on.html", folder=home)
    assert "evaluated on houses.csv (200 rows)" in (home / "on.html").read_text()
