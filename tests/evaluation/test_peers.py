import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm.evaluation import metrics
from bayesvm.evaluation.peers import PEERS, Peer, chosen_rows, evaluate_peer

HOW = {"n_points": 40, "seed": 0}


def split(X, y):
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def cancer():
    return split(*load_breast_cancer(return_X_y=True))


@pytest.fixture(scope="module")
def three_digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return split(X, np.array(["zero", "one", "two"])[y])


def test_there_are_those_that_one_would_otherwise_use():
    assert list(PEERS) == ["SVC + Platt", "Nystroem + logistic regression", "gradient boosting"]
    assert [peer.most_rows for peer in PEERS.values()] == [10_000, None, None]
    assert all(name == peer.name for name, peer in PEERS.items())


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_two_classes_are_learned(peer, cancer):
    Xa, Xb, ya, yb = cancer
    outcome = evaluate_peer(peer, Xa, ya, Xb, yb, **HOW)
    assert outcome.n_rows == len(ya)
    assert outcome.seconds > 0
    found = metrics(outcome.predictions, n_bootstrap=0)
    assert found["error"].value < 0.06
    assert found["auc"].value > 0.98


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_three_classes_with_names_are_learned(peer, three_digits):
    Xa, Xb, ya, yb = three_digits
    said = evaluate_peer(peer, Xa, ya, Xb, yb, **HOW).predictions
    assert said.classes.tolist() == ["one", "two", "zero"]
    assert np.mean(said.correct) > 0.95


def test_they_are_what_scikit_learn_makes(cancer):
    Xa, Xb, ya, yb = cancer
    svc = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False)).fit(Xa, ya)
    boosting = HistGradientBoostingClassifier(random_state=0).fit(Xa, ya)
    for name, classifier in (("SVC + Platt", svc), ("gradient boosting", boosting)):
        found = evaluate_peer(PEERS[name], Xa, ya, Xb, yb, **HOW).predictions
        assert found.proba == pytest.approx(classifier.predict_proba(Xb), abs=1e-9)


def test_more_points_than_rows_are_as_many_as_rows(cancer):
    Xa, Xb, ya, yb = cancer
    peer = PEERS["Nystroem + logistic regression"]
    outcome = evaluate_peer(peer, Xa[:60], ya[:60], Xb, yb, n_points=500, seed=0)  # scikit-learn would warn
    assert np.mean(outcome.predictions.correct) > 0.9


def test_many_rows_stop_early():
    for n_rows, stops in ((10_000, False), (10_001, True), (None, True)):
        made = PEERS["gradient boosting"].factory(3, 10, 0, n_rows=n_rows)
        assert made[-1].early_stopping is stops


def test_one_that_takes_few_rows_is_given_few(cancer):
    Xa, Xb, ya, yb = cancer
    seen = []

    def factory(n_features, n_points, seed, n_rows):
        seen.append((n_features, n_points, seed, n_rows))
        return PEERS["Nystroem + logistic regression"].factory(n_features, n_points, seed, n_rows)

    outcome = evaluate_peer(Peer("small", factory, most_rows=100), Xa, ya, Xb, yb, n_points=30, seed=7)
    assert outcome.n_rows == 100
    assert seen == [(30, 30, 7, 100)]
    assert outcome.predictions.n_rows == len(yb)


def test_the_chosen_rows_have_the_shares_of_all():
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, -1], [7000, 2900, 6, 94]))
    rows = chosen_rows(codes, 1000, seed=0)
    assert len(set(rows.tolist())) == len(rows) == 1000
    counts = np.bincount(codes[rows])
    assert counts == pytest.approx([703, 292, 5], abs=2)
    assert not np.array_equal(rows, chosen_rows(codes, 1000, seed=1))
    assert np.array_equal(rows, chosen_rows(codes, 1000, seed=0))
    assert len(chosen_rows(codes, 9905, seed=0)) == pytest.approx(9904, abs=1)  # of 9906
    assert np.array_equal(chosen_rows(codes, None, seed=0), np.flatnonzero(codes >= 0))


def test_a_class_of_few_rows_gets_its_share(three_digits):
    Xa, Xb, ya, yb = three_digits
    few = np.flatnonzero(ya == "two")[3:]
    Xa, ya = np.delete(Xa, few, axis=0), np.delete(ya, few)
    said = evaluate_peer(PEERS["SVC + Platt"], Xa, ya, Xb, yb, **HOW).predictions
    assert said.proba[:, 1] == pytest.approx(np.full(len(yb), 3 / len(ya)))
    assert said.proba.sum(axis=1) == pytest.approx(np.ones(len(yb)))
    assert np.mean(said.correct[yb != "two"]) > 0.95


def test_one_class_is_not_enough(cancer):
    Xa, Xb, ya, yb = cancer
    rows = np.concatenate([np.flatnonzero(ya == 0), np.flatnonzero(ya == 1)[:2]])
    with pytest.raises(ValueError, match=r"gradient boosting needs two classes of at least 5 rows; .* 1: 2\}"):
        evaluate_peer(PEERS["gradient boosting"], Xa[rows], ya[rows], Xb, yb, **HOW)


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_weights_are_passed_on(peer, cancer):
    Xa, Xb, ya, yb = cancer
    heavy = np.where(ya == 1, 20.0, 1.0)
    plain = evaluate_peer(peer, Xa, ya, Xb, yb, **HOW).predictions
    weighted = evaluate_peer(peer, Xa, ya, Xb, yb, weight=heavy, weight_test=np.arange(len(yb)), **HOW).predictions
    assert weighted.weight.tolist() == list(range(len(yb)))
    assert weighted.positive.mean() > plain.positive.mean()
    expected = log_loss(yb, weighted.proba, sample_weight=np.arange(len(yb)))
    assert metrics(weighted, n_bootstrap=0)["log_loss"].value == pytest.approx(expected)
