"""Our model and its peers on the same rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesvm import BayesianLinearSVC, open_table
from bayesvm.evaluation import Predictions, metrics
from bayesvm.evaluation.peers import PEERS, evaluate_peer
from bayesvm.workflow import comparing
from bayesvm.workflow.comparing import compare_on
from bayesvm.workflow.splitting import split, with_codes


def near(expected):
    """Metrics with their intervals; the rows of the two computations may lie otherwise in memory."""
    return {name: pytest.approx(tuple(metric)) for name, metric in expected.items()}


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] + rng.normal(size=300) > 0})
    pq.write_table(table, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.fixture
def one_peer(monkeypatch):
    peer = PEERS["Nystroem + logistic regression"]
    monkeypatch.setattr("bayesvm.workflow.comparing.PEERS", {peer.name: peer})
    return peer


def test_all_are_evaluated_on_the_rows_that_fit_would_hold_out(path, one_peer):
    begun = []
    found = compare_on(path, "y", estimator=BayesianLinearSVC(), seed=2, begin=begun.append)
    table = open_table(path, "y")
    train, test = (table.rows(numbers) for numbers in split(with_codes(table)[1], 0.2, 2))
    ours = BayesianLinearSVC().fit(train.X, train.y)
    expected = metrics(Predictions.of(ours.classes_, test.y, ours.predict_proba(test.X)))
    assert found.competitors[0].metrics == near(expected)
    theirs = evaluate_peer(one_peer, train.X, train.y, test.X, test.y, n_points=300, seed=2)
    assert found.competitors[1].metrics == near(metrics(theirs.predictions))
    assert begun == ["BayesianLinearSVC", one_peer.name]
    assert found.limited == {}
    assert found.n_train + found.n_test == 300


def test_the_best_of_a_figure_and_who_was_limited(path, one_peer, monkeypatch):
    monkeypatch.setitem(comparing.PEERS, one_peer.name, replace(one_peer, most_rows=50))
    found = compare_on(path, "y", estimator=BayesianLinearSVC(), rows=200)
    assert found.n_train + found.n_test == 200
    assert found.limited == {one_peer.name: 50}
    for metric in ("error", "auc"):
        values = {each.name: round(each.metrics[metric].value, 4) for each in found.competitors}
        best = (max if metric == "auc" else min)(values.values())
        assert found.best(metric) == {name for name, value in values.items() if value == best}


def test_what_cannot_be_compared(path):
    with pytest.raises(ValueError, match="needs evaluation rows"):
        compare_on(path, "y", holdout=0)
    with pytest.raises(ValueError, match="too few"):
        compare_on(path, "y", rows=3)


def test_ctrl_c_ends_the_comparison(path, one_peer, monkeypatch):
    fit = BayesianLinearSVC.fit

    def stopped(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        self.fitted_ = replace(self.fitted_, training=replace(self.fitted_.training, interrupted=True))
        return self

    monkeypatch.setattr(BayesianLinearSVC, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare_on(path, "y", estimator=BayesianLinearSVC(random_state=0))


def test_weights_count_in_training_and_in_evaluation(path, one_peer):
    weighted = pq.read_table(path).append_column("w", pa.array(np.random.default_rng(1).integers(1, 9, 300)))
    pq.write_table(weighted, path)
    found = compare_on(path, "y", weight="w", estimator=BayesianLinearSVC(), seed=2)
    table = open_table(path, "y", weight="w")
    train, test = (table.rows(numbers) for numbers in split(with_codes(table)[1], 0.2, 2))
    ours = BayesianLinearSVC().fit(train.X, train.y, sample_weight=train.weight)
    expected = metrics(Predictions.of(ours.classes_, test.y, ours.predict_proba(test.X), weight=test.weight))
    assert found.competitors[0].metrics == near(expected)
    given = {"weight": train.weight, "weight_test": test.weight}
    theirs = evaluate_peer(one_peer, train.X, train.y, test.X, test.y, n_points=300, seed=2, **given)
    assert found.competitors[1].metrics == near(metrics(theirs.predictions))


def test_groups_stay_together(tmp_path, one_peer, monkeypatch):
    rng = np.random.default_rng(0)
    who = np.arange(200) % 20
    table = pa.table({"x": rng.normal(size=200), "who": who, "y": rng.choice(["a", "b"], 200)})
    pq.write_table(table, tmp_path / "t.parquet")
    found = []

    def recorded(*arguments):
        found.append(split(*arguments))
        return found[-1]

    monkeypatch.setattr(comparing, "split", recorded)
    result = compare_on(tmp_path / "t.parquet", "y", group="who", estimator=BayesianLinearSVC())
    ((train, test),) = found
    assert not set(who[train]) & set(who[test])
    assert (result.n_train, result.n_test) == (len(train), len(test))
