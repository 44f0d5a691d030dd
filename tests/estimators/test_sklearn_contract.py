"""scikit-learn's own checks, and the tools around it that users combine us with."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.kernels import RBF, Constant

X, y = load_breast_cancer(return_X_y=True)


# The link is fitted to rows left out: there a weight of two is one row, and equal rows of a discrete table are two.
CALIBRATED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the link is fitted to rows left out"
    for kind in ("dense", "sparse")
}


@pytest.mark.filterwarnings("ignore:the weights are so uneven", "ignore:.*exact copies")
@parametrize_with_checks(
    [
        BayesianSVC(tune=None),
        BayesianSVC(tune=None, link="probit"),
        BayesianLinearSVC(),
        BayesianLinearSVC(tune=None, link="probit"),
        BayesianLinearSVC(covariance="diagonal"),
    ],
    expected_failed_checks=lambda estimator: {} if estimator.link == "probit" else CALIBRATED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_train,
        estimator_checks.check_fit_idempotent,
        estimator_checks.check_fit2d_1feature,
        estimator_checks.check_sample_weights_not_an_array,
        estimator_checks.check_dict_unchanged,
        estimator_checks.check_estimators_pickle,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learn_checks_of_what_tuning_touches(check):
    check("BayesianSVC", BayesianSVC(max_inducing=30, random_state=0))


def test_grid_search_reaches_kernel_parameters():
    search = GridSearchCV(
        BayesianSVC(kernel=RBF(1.0) + Constant(), n_inducing=30, tune=None, random_state=0),
        {"kernel__k0__length_scale": [0.1, 5.0], "bound": ["exact"]},
        cv=3,
        scoring="neg_log_loss",
        n_jobs=2,
    ).fit(X, y)
    assert search.best_params_["kernel__k0__length_scale"] == 5.0
    assert search.best_estimator_.kernel_.kernels[0].length_scale == 5.0


def test_pipeline_and_cross_validation():
    model = make_pipeline(PolynomialFeatures(2, include_bias=False), BayesianLinearSVC(prior_variance=0.1))
    assert cross_val_score(model, X[:, :5], y, cv=3).mean() > 0.9


@pytest.mark.parametrize("model", [BayesianSVC(n_inducing=20, random_state=0), BayesianLinearSVC()], ids=repr)
def test_pickle_and_clone(model):
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert not hasattr(clone(fitted), "classes_")


def test_frames_carry_names_and_labels():
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    labels = pd.Series(np.where(y == 1, "benign", "malignant"))
    model = BayesianSVC(n_inducing=30, tune=None, random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.classes_) == ["benign", "malignant"]
    assert set(model.predict(frame[:9])) <= {"benign", "malignant"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])
