"""Weights and copies must not let tuning memorise, and leave-one-out must not hide it (D10, D23).

Losses are means over many tables: with uneven weights a single one is noise. Log-normal weights get 30 tables, because
the mean over ten still varies by .01.
"""

import json

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from bayesvm import BayesianLinearSVC, BayesianSVC
from tests.cli.conftest import write_csv
from tests.cli.driver import bayesvm

SEEDS = range(10)
SMALL = {"n_inducing": 60, "random_state": 0}


def noisy(n_rows, rng):
    X = rng.normal(size=(n_rows, 2))
    return X, X[:, 0] + rng.normal(size=n_rows) > 0


def rare(n_rows, rng):
    X = rng.normal(size=(n_rows, 4))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n_rows) > 2.4


def loss_of(model, X, y):
    return log_loss(y, model.predict_proba(X)[:, 1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*exact copies", "ignore:the weights are so uneven")
@pytest.mark.parametrize(("kind", "tables"), [("all 2", 10), ("rows twice", 10), ("log-normal", 30)])
def test_weights_and_copies_do_not_make_a_tuned_fit_memorise(kind, tables):
    plain, test, loo = [], [], []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        (X, y), new = noisy(300, rng), noisy(5_000, rng)
        given = {
            "all 2": (X, y, np.full(300, 2.0)),
            "rows twice": (np.repeat(X, 2, 0), np.repeat(y, 2)),
            "log-normal": (X, y, np.exp(rng.normal(size=300) - 0.5)),
        }
        plain.append(loss_of(BayesianSVC(**SMALL).fit(X, y), *new))
        model = BayesianSVC(**SMALL).fit(*given[kind])
        test.append(loss_of(model, *new))
        loo.append(model.loo_log_loss_)
    assert np.mean(test) < np.mean(plain) + 0.02
    assert abs(np.mean(loo) - np.mean(test)) < 0.05


@pytest.mark.slow
def test_balanced_classes_keep_the_order_of_rows():
    areas = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        (X, y), (new, truth) = rare(500, rng), rare(5_000, rng)
        models = (BayesianSVC(class_weight=weight, **SMALL).fit(X, y) for weight in (None, "balanced"))
        areas.append([roc_auc_score(truth, model.predict_proba(new)[:, 1]) for model in models])
    plain, balanced = np.mean(areas, axis=0)
    assert balanced > plain - 0.02


@pytest.mark.slow
def test_importance_weights_correct_a_biased_sample():
    """Nine of ten rows of one class were thrown away; the others stand for ten."""
    losses, shares = [], []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        (X, y), new = noisy(600, rng), noisy(5_000, rng)
        kept = y | (rng.random(600) < 0.1)
        weight = np.where(y, 1.0, 10.0)[kept]
        models = [
            BayesianSVC(**SMALL).fit(*given) for given in ((X[kept], y[kept]), (X[kept], y[kept], weight), (X, y))
        ]
        losses.append([loss_of(model, *new) for model in models])
        shares.append(models[1].predict_proba(new[0])[:, 1].mean())
    biased, weighted, complete = np.mean(losses, axis=0)
    assert weighted < biased - 0.1
    assert weighted < complete + 0.08
    assert np.mean(shares) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("make", [BayesianSVC, BayesianLinearSVC])
def test_the_unit_of_weights_does_not_matter_for_what_is_tuned(make):
    X, y = noisy(200, np.random.default_rng(0))
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 200)
    losses = [make(random_state=0).fit(X, y, unit * weight).loo_log_loss_ for unit in (0.3, 1.0, 30.0)]
    assert np.ptp(losses) < 0.02


@pytest.mark.slow
def test_the_effective_number_of_rows_decides_about_relevance():
    """With equal weights 1,200 rows learn a length-scale for every column; with uneven ones they count as 300."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_200, 3))
    y = np.sin(2 * X[:, 0]) > 0
    weight = np.repeat([1.0, 0.01], [300, 900])
    even, uneven = (BayesianSVC(max_inducing=40, random_state=0).fit(X, y, w) for w in (None, weight))
    assert any("relevance" in trial.kernel for trial in even.tuning_report_.trials)
    assert not any("relevance" in trial.kernel for trial in uneven.tuning_report_.trials)


def test_very_uneven_weights_warn_once_with_the_effective_number():
    X, y = noisy(200, np.random.default_rng(0))
    with pytest.warns(UserWarning, match="200 rows count as 19 of equal weight") as caught:
        BayesianLinearSVC(tune=None).fit(X, y, np.repeat([100.0, 0.1], [19, 181]))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_copies_warn_once_at_the_line_of_the_caller():
    X, y = noisy(100, np.random.default_rng(0))
    with pytest.warns(UserWarning, match="50.0% of the rows are exact copies") as caught:
        BayesianSVC(tune=None, n_inducing=10).fit(np.repeat(X, 2, 0), np.repeat(y, 2))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.slow
def test_weights_of_the_command_line_do_not_make_it_memorise(tmp_path):
    rng = np.random.default_rng(0)
    X, y = noisy(400, rng)
    columns = {"a": X[:, 0], "b": X[:, 1], "y": np.where(y, "yes", "no"), "w": np.exp(rng.normal(size=400) - 0.5)}
    write_csv(tmp_path / "table.csv", columns)
    for more in ((), ("--weight", "w")):
        drop = () if more else ("--drop", "w")
        fitted = bayesvm("fit", "table.csv", "-t", "y", "-o", f"m{len(more)}.bayesvm", *more, *drop, folder=tmp_path)
        assert fitted.code == 0, fitted.err
    new, truth = noisy(3_000, rng)
    write_csv(tmp_path / "new.csv", {"a": new[:, 0], "b": new[:, 1], "y": np.where(truth, "yes", "no")})
    losses = []
    for name in ("m0", "m2"):
        said = bayesvm("evaluate", f"{name}.bayesvm", "new.csv", "--json", folder=tmp_path)
        assert said.code == 0, said.err
        losses.append(json.loads(said.out)["metrics"]["log_loss"]["value"])
    assert losses[1] < losses[0] + 0.05


@pytest.mark.filterwarnings("ignore:.*exact copies")
def test_calibration_counts_copies_as_one_row():
    """Five copies of 700 rows are 700 rows: too few for a link of two probits, as with a weight of five."""
    X, y = noisy(700, np.random.default_rng(0))
    how = {"n_inducing": 20, "tune": None, "random_state": 0}
    weighted = BayesianSVC(**how).fit(X, y, np.full(700, 5.0))
    copied = BayesianSVC(**how, inducing=weighted.inducing_points_).fit(np.repeat(X, 5, 0), np.repeat(y, 5))
    np.testing.assert_allclose(copied.calibration_scale_, weighted.calibration_scale_, rtol=1e-3)
    assert np.ptp(copied.calibration_scale_) == 0


def test_copies_alone_are_not_called_uneven_weights():
    X, y = noisy(50, np.random.default_rng(0))
    with pytest.warns(UserWarning, match="exact copies") as caught:
        BayesianLinearSVC(tune=None).fit(np.repeat(X, 20, 0), np.repeat(y, 20))
    assert len(caught) == 1
