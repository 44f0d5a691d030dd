"""save and load: the same bits, whatever the model; a file of version 1 stays readable."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.estimators._prediction import prediction_view
from bayesvm.kernels import RBF, Constant, Linear, Matern

X, y = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])
MODELS = {
    "tuned": BayesianSVC(n_inducing=20, random_state=0),
    "kernel": BayesianSVC(n_inducing=20, tune=None, random_state=0),
    "single precision": BayesianSVC(n_inducing=20, tune=None, random_state=0, precision="single"),
    "sum of kernels": BayesianSVC(
        0.5 * RBF(np.full(13, 3.0)) + Matern(2.0, nu=2.5) + Linear(0.1) + Constant(), n_inducing=20, tune=None
    ),
    "given points, class weights": BayesianSVC(inducing=X[:9], tune=None, class_weight={0: 2.0, 2: 0.5}, link="hinge"),
    "linear": BayesianLinearSVC(prior_variance=np.full(13, 0.5)),
    "diagonal": BayesianLinearSVC(covariance="diagonal", scale=None, prior_variance=1e-4, max_iter=500),
    "paper": BayesianSVC(n_inducing=20, link="paper", tune=None, random_state=np.random.RandomState(0)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("labels", [y, NAMES[y], y == 1], ids=["numbers", "names", "two classes"])
def test_same_bits_after_loading(model, labels, tmp_path):
    if model.class_weight is not None and labels.dtype.kind != "i":
        model = model.set_params(class_weight="balanced")
    fitted = model.fit(X, labels)
    fitted.save(tmp_path / "model.bayesvm")
    again = bayesvm.load(tmp_path / "model.bayesvm")
    assert type(again) is type(fitted)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    for name, values in fitted.predict_uncertainty(X).items():
        np.testing.assert_array_equal(again.predict_uncertainty(X)[name], values)
    np.testing.assert_allclose(
        again.sample_latent(X[:4], 3, random_state=0), fitted.sample_latent(X[:4], 3, random_state=0)
    )
    public = [name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")]
    for name in public:
        np.testing.assert_equal(getattr(again, name), getattr(fitted, name))
    if hasattr(fitted, "partial_fit"):
        np.testing.assert_allclose(
            again.partial_fit(X, labels).predict_proba(X), fitted.partial_fit(X, labels).predict_proba(X), atol=1e-9
        )


@pytest.mark.parametrize("labels", [y, y == 1], ids=["three classes", "two classes"])
@pytest.mark.parametrize("name", ["single precision", "linear", "diagonal"])
def test_a_file_with_matrices_in_single_precision_predicts_in_double(name, labels, tmp_path):
    fitted = MODELS[name].fit(X, labels)
    said = fitted.predict_proba(X)
    fitted._view = prediction_view(fitted._features, fitted._machines, np.float32)
    fitted.save(tmp_path / "model.bayesvm")
    np.testing.assert_array_equal(bayesvm.load(tmp_path / "model.bayesvm").predict_proba(X), said)


def test_names_of_columns_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(frame, y).save(tmp_path / "m")
    with pytest.raises(ValueError, match="feature names"):
        bayesvm.load(tmp_path / "m").predict(frame[frame.columns[::-1]])


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        BayesianSVC().save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_version_1_is_still_read():
    """The file was written by tests/make_fixture.py; probabilities may differ in the last digits on another machine."""
    folder = Path(__file__).parent.parent / "fixtures"
    model = bayesvm.load(folder / "version1.bayesvm")
    expected = np.loadtxt(folder / "version1.txt")
    np.testing.assert_allclose(model.predict_proba(waveform(20, random_state=5).X)[:, 1], expected, atol=1e-6)
