"""Weights (and groups) reach the estimator through scikit-learn's tools, by metadata routing."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform

DATA = waveform(240, random_state=0)
X, Y = DATA.X[:, 4:9], DATA.y
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
MODELS = {
    "kernel": BayesianSVC(n_inducing=12, tune=None, random_state=0),
    "linear": BayesianLinearSVC(tune=None, random_state=0),
}


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def test_what_the_methods_take_can_be_requested(model):
    requests = model.get_metadata_routing()
    assert {"sample_weight", "held_out", "callback"} <= set(requests.fit.requests)
    assert {"classes", "sample_weight"} == set(requests.partial_fit.requests)
    assert set(requests.score.requests) == {"sample_weight"}
    asked = {name for name, request in requests.fit.requests.items() if request}
    assert asked == {"groups"}, "nothing else is requested unless the user does"


def test_in_a_pipeline(model):
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), model.set_fit_request(sample_weight=True)
    ).fit(X, Y, sample_weight=WEIGHT)
    alone = clone(model).fit(StandardScaler().fit_transform(X), Y, sample_weight=WEIGHT)
    without = clone(model).fit(StandardScaler().fit_transform(X), Y)
    said = pipeline.predict_proba(X)
    assert np.array_equal(said, alone.predict_proba(StandardScaler().fit_transform(X)))
    assert not np.allclose(said, without.predict_proba(StandardScaler().fit_transform(X)), atol=1e-4)


def test_in_cross_validation_every_row_keeps_its_weight(model):
    model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    folds = StratifiedKFold(3)
    found = cross_validate(model, X, Y, cv=folds, params={"sample_weight": WEIGHT}, return_estimator=True)
    for (train, test), fitted, score in zip(folds.split(X, Y), found["estimator"], found["test_score"], strict=True):
        by_hand = clone(model).fit(X[train], Y[train], sample_weight=WEIGHT[train])
        assert np.array_equal(fitted.predict_proba(X), by_hand.predict_proba(X))
        assert score == pytest.approx(accuracy_score(Y[test], by_hand.predict(X[test]), sample_weight=WEIGHT[test]))


def test_in_a_grid_search_with_a_scorer_that_is_weighted(model):
    model.set_fit_request(sample_weight=True)
    scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"bound": ["exact", "augmented"]}, cv=3, scoring=scorer)
    search.fit(X, Y, sample_weight=WEIGHT)
    by_hand = clone(search.best_estimator_).fit(X, Y, sample_weight=WEIGHT)
    assert np.array_equal(search.predict_proba(X), by_hand.predict_proba(X))


def test_weights_that_were_not_requested_are_an_error(model):
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(model, X, Y, cv=3, params={"sample_weight": WEIGHT}, error_score="raise")


def test_a_clone_keeps_what_was_requested(model):
    again = clone(model.set_fit_request(sample_weight=True))
    assert again.get_metadata_routing().fit.requests["sample_weight"] is True


def test_groups_go_to_the_splitter(model):
    groups = np.arange(len(Y)) % 60
    found = cross_validate(model, X, Y, cv=GroupKFold(3), params={"groups": groups}, return_indices=True)
    for train, test in zip(found["indices"]["train"], found["indices"]["test"], strict=True):
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_groups_of_a_cross_validation_leave_together_in_every_fit(model):
    groups = np.arange(len(Y)) % 60
    found = cross_validate(
        model, X, Y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True, return_indices=True
    )
    for each, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        again = clone(model).fit(X[train], Y[train], groups=groups[train])
        alone = clone(model).fit(X[train], Y[train])
        assert each.loo_log_loss_ == again.loo_log_loss_ != alone.loo_log_loss_
