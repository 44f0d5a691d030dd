"""scikit-learn's own checks, and the tools around it that users combine us with."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesvm import BayesianLinearSVC, BayesianOneClassSVM, BayesianSVC, BayesianSVR
from bayesvm.kernels import RBF, Constant

X, y = load_breast_cancer(return_X_y=True)


# The only checks that are expected to fail, and only with the calibrated link: it is fitted to rows left out, and
# tuning minimises their loss. There a row of weight two is one row, while two equal rows of a table are two.
CALIBRATED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a row is left out with all its weight, for tuning and the link"
    for kind in ("dense", "sparse")
}

# scikit-learn counts the training rows that are taken for outliers; here `contamination` is the share among new rows.
ONE_CLASS = CALIBRATED | dict.fromkeys(
    ("check_outliers_train", "check_outliers_fit_predict"), "contamination is the rate of false alarms on new rows"
)


def expected_failures(estimator):
    if isinstance(estimator, BayesianOneClassSVM):
        return ONE_CLASS
    return {} if estimator.link == "probit" else CALIBRATED


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:the weights are so uneven", "ignore:.*exact copies", "ignore:.*too few for contamination"
)
@parametrize_with_checks(
    [
        BayesianSVC(),
        BayesianSVC(tune=None),
        BayesianSVC(tune=None, link="probit"),
        BayesianLinearSVC(),
        BayesianLinearSVC(tune=None, link="probit"),
        BayesianLinearSVC(covariance="diagonal"),
        BayesianOneClassSVM(),
        BayesianSVR(),
        BayesianSVR(tune=None),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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


def test_frames_carry_names_and_labels():
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    labels = pd.Series(np.where(y == 1, "benign", "malignant"))
    model = BayesianSVC(n_inducing=30, tune=None, random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.classes_) == ["benign", "malignant"]
    assert set(model.predict(frame[:9])) <= {"benign", "malignant"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])
