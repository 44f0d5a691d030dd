"""save and load: the same bits, whatever the model; a file of version 1 stays readable."""

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from bayesvm.estimators._prediction import prediction_view
from sklearn.datasets import load_wine

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, persistence
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Constant, Linear, Matern
from bayesvm.storage.kernels import kernel_state

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


def forge(path, change):
    """Write another state, with a checksum that fits."""
    kind, state = persistence.read(path)
    change(state)
    persistence.write(path, kind, state)


def _with_nan(array):
    array[(0,) * array.ndim] = np.nan


FORGERIES = {
    "no machines": (lambda s: s.pop("machines"), "'machines'"),
    "no linear part": (lambda s: s["machines"][0]["posterior"].pop("linear"), r"machines\[0\]"),
    "too few machines": (lambda s: s["machines"].pop(), "the number of state.machines must be 3"),
    "another label": (lambda s: s["lenses"][0].update(label=2), "state.lenses must be those of the classes"),
    "a lens without its axes": (lambda s: s["lenses"][1].update(rotation=None), "lenses fit its machines"),
    "an attribute that does not belong": (lambda s: s["attributes"].update(_view=None), "got '_view'"),
    "a method as attribute": (lambda s: s["attributes"].update(predict="x"), "got 'predict'"),
    "another parameter": (lambda s: s["parameters"].update(nope=1), "got 'nope'"),
    "a value that no parameter has": (lambda s: s["parameters"].update(link="x"), "link must be one of"),
    "a kernel that there is not": (
        lambda s: s["features"]["kernel"].update(name="Sigmoid"),
        "kernel.name must be one of",
    ),
    "a kernel's name that there is not": (lambda s: s["parameters"].update(kernel="x"), "kernel must be one of"),
    "other columns": (lambda s: s["attributes"].update(n_features_in_=12), "must be .*D = 12"),
    "another shape": (lambda s: s.update(prepared=s["prepared"][:-2]), "state.prepared must be an array"),
    "whole numbers": (lambda s: s.update(rates=s["rates"].astype(int)), "state.rates must be an array"),
    "NaN in a tensor": (lambda s: _with_nan(s["lenses"][0]["spread"]), "without NaN"),
    "NaN in a number": (lambda s: s["lenses"][0].update(offset=np.nan), "offset must be a finite number"),
    "a negative scale": (lambda s: s["scaler"].update(scale=-s["scaler"]["scale"]), "state.scaler.scale must"),
    "no covariance": (lambda s: s["machines"][0]["posterior"]["precision"].fill(0.0), "not positive definite"),
    "another link": (lambda s: s.update(link={"name": "Paper", "parameters": {}}), "state.link"),
    "nested sums": (lambda s: s["features"].update(kernel=nested_sum(300)), "nested too deeply|does not hold"),
}


def nested_sum(depth):
    kernel = kernel_state(RBF())
    for _ in range(depth):
        kernel = {"sum": [kernel], "weights": [1.0]}
    return kernel


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_state_is_refused_by_name_before_anything_is_built(name, tmp_path):
    change, message = FORGERIES[name]
    path = tmp_path / "model.bayesvm"
    BayesianSVC(n_inducing=6, tune=None, random_state=0).fit(X, y).save(path)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)  # of the forger
    try:
        forge(path, change)
    finally:
        sys.setrecursionlimit(limit)
    with pytest.raises(ValueError, match=message) as caught:
        bayesvm.load(path)
    assert str(path) in str(caught.value)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = BayesianSVC(n_inducing=6, tune=None, random_state=0).fit(X, y)
    model._rates = model._rates * np.nan
    with pytest.raises(ValueError, match="state.rates must be .*without NaN"):
        model.save(tmp_path / "model")

    class Other(BayesianSVC):
        pass

    with pytest.raises(TypeError, match="a Other cannot be saved, because load would not know it"):
        Other(n_inducing=6, tune=None, random_state=0).fit(X, y).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_attribute_of_the_user_is_left_out_with_a_warning(tmp_path):
    model = BayesianSVC(n_inducing=6, tune=None, random_state=0).fit(X, y)
    model.notes_ = "mine"
    with pytest.warns(UserWarning, match="notes_ is not a fitted attribute of BayesianSVC and is not saved") as warned:
        model.save(tmp_path / "model")
    assert warned[0].filename == __file__
    assert not hasattr(bayesvm.load(tmp_path / "model"), "notes_")


def test_a_model_that_a_full_disk_refused_is_saved_elsewhere(tmp_path, monkeypatch):
    model = BayesianSVC(n_inducing=6, tune=None, random_state=0).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match="m.bayesvm could not be written .No space left") as caught:
            model.save(tmp_path / "m.bayesvm")
    assert caught.value.errno == errno.ENOSPC
    assert ".tmp" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "elsewhere")
    np.testing.assert_array_equal(bayesvm.load(tmp_path / "elsewhere").predict_proba(X), model.predict_proba(X))


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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


def test_a_kernel_whose_bounds_have_no_end_is_saved(tmp_path):
    kernel = RBF(length_scale_bounds=(1e-3, np.inf), variance_bounds=np.array([1e-2, np.inf]))
    model = BayesianSVC(kernel, n_inducing=5, tune=None).fit(X, y)
    model.save(tmp_path / "m")
    assert bayesvm.load(tmp_path / "m").kernel_.length_scale_bounds[1] == np.inf
