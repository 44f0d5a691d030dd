"""save and load: the same bits, whatever the model; forged files are refused."""

import errno
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, persistence
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


def fitted_attributes(model):
    """The names of scikit-learn's attributes that this model has."""
    names = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    return {name for name in names if hasattr(model, name)} - {"fitted_", "completion_"}


def test_a_file_that_does_not_exist_gives_the_nearest_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file: wien.bayesvm; check the path"):
        bayesvm.load("wien.bayesvm")
    (tmp_path / "wine.bayesvm").touch()
    for wanted in ("wien.bayesvm", "wine", "Wine.bayesvm"):
        with pytest.raises(FileNotFoundError, match=f"no such file: {wanted}; did you mean 'wine.bayesvm'?"):
            bayesvm.load(wanted)
    with pytest.raises(FileNotFoundError, match=r"no such file: heart.bayesvm; the folder has wine.bayesvm"):
        bayesvm.load("heart.bayesvm")
    with pytest.raises(FileNotFoundError, match="the folder .*nowhere does not exist"):
        bayesvm.load(tmp_path / "nowhere" / "wine.bayesvm")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        bayesvm.load(tmp_path)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("labels", [y, NAMES[y], y == 1], ids=["numbers", "names", "two classes"])
def test_predictions_are_bit_identical_after_loading(model, labels, tmp_path):
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
    for name in fitted_attributes(fitted):
        np.testing.assert_equal(getattr(again, name), getattr(fitted, name))
    assert fitted_attributes(again) == fitted_attributes(fitted)
    if hasattr(fitted, "partial_fit"):
        np.testing.assert_allclose(
            again.partial_fit(X, labels).predict_proba(X), fitted.partial_fit(X, labels).predict_proba(X), atol=1e-9
        )


def test_names_of_columns_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(frame, y).save(tmp_path / "m")
    with pytest.raises(ValueError, match="feature names"):
        bayesvm.load(tmp_path / "m").predict(frame[frame.columns[::-1]])


def forge(path, change):
    """Write another state, with a checksum that fits."""
    kind, _, state = persistence.read(path)
    change(state)
    persistence.write(path, kind, state)


def _with_nan(array):
    array[(0,) * array.ndim] = np.nan


def _posterior(state):
    return state["fitted"]["members"][0]["functions"][0]["posterior"]


def _standard(n_features, scale):
    """The state of a scaler."""
    return {"name": "ColumnScaler", "centre": np.zeros(n_features), "scale": np.full(n_features, scale)}


FORGERIES = {
    "no members": (lambda s: s["fitted"].pop("members"), "'members'"),
    "an empty list of members": (lambda s: s["fitted"].update(members=[]), "members must be one or more members"),
    "no linear part": (
        lambda s: _posterior(s).pop("linear"),
        r"functions\[0\].posterior",
    ),
    "too few functions": (
        lambda s: s["fitted"]["members"][0]["functions"].pop(),
        "the number of .*functions must be 3",
    ),
    "another target": (
        lambda s: s["fitted"]["members"][0]["functions"][0].update(target=2),
        "functions must be one for every target",
    ),
    "a prior, which only checkpoints have": (
        lambda s: s["fitted"]["members"][0]["functions"][0].update(prior=6),
        "got 'prior'",
    ),
    "a prepared view, as in version 1": (lambda s: s.update(lenses=[]), "got 'lenses'"),
    "an attribute that does not belong": (lambda s: s["fitted"].update(views=None), "got 'views'"),
    "another parameter": (lambda s: s["parameters"].update(nope=1), "got 'nope'"),
    "a value that no parameter has": (lambda s: s["parameters"].update(link="x"), "link must be one of"),
    "a kernel that there is not": (
        lambda s: s["fitted"]["members"][0]["features"]["kernel"]["sum"][0].update(name="Sigmoid"),
        r"kernel.sum\[0\].name must be",
    ),
    "a kernel's name that there is not": (
        lambda s: s["parameters"].update(kernel="x"),
        "parameters.kernel must be one of",
    ),
    "other columns": (lambda s: s.update(n_features=12), "must be .*D = 12"),
    "other classes": (lambda s: s.update(classes=s["classes"][:2]), "needs 3 labels"),
    "classes that are not sorted": (lambda s: s.update(classes=s["classes"][::-1]), "state.classes must be .*sorted"),
    "another shape": (
        lambda s: s["fitted"]["members"][0]["features"].update(whitening=np.eye(5)),
        "whitening must be an array",
    ),
    "whole numbers": (
        lambda s: _posterior(s).update(linear=_posterior(s)["linear"].astype(int)),
        "posterior.linear must be an array",
    ),
    "NaN in a tensor": (lambda s: _with_nan(_posterior(s)["linear"]), "without NaN"),
    "NaN in a number": (
        lambda s: s["fitted"]["members"][0]["functions"][0].update(offset=np.nan),
        "offset must be a finite number",
    ),
    "a negative scale": (
        lambda s: s["fitted"].update(scaler=_standard(s["n_features"], -1.0)),
        "state.fitted.scaler.scale must",
    ),
    "a member with a negative scale": (
        lambda s: s["fitted"]["members"][1].update(scaler=_standard(s["n_features"], -1.0)),
        r"members\[1\].scaler.scale must",
    ),
    "a member with a scaling of other columns": (
        lambda s: s["fitted"]["members"][1].update(scaler=_standard(s["n_features"] + 1, 1.0)),
        r"members\[1\].scaler.centre must",
    ),
    "a member with a scaling that there is not": (
        lambda s: s["fitted"]["members"][1].update(scaler={"name": "LogScaler"}),
        r"members\[1\].scaler",
    ),
    "no covariance": (lambda s: _posterior(s)["precision"].fill(0.0), "not positive definite"),
    "another link": (lambda s: s["fitted"].update(link={"name": "Paper", "parameters": {}}), "state.fitted.link"),
    "the head of two classes": (
        lambda s: s["fitted"]["head"].update(name="Binary"),
        "invalid base rates for Binary",
    ),
    "a base rate of one": (lambda s: s["fitted"]["head"].update(rates=[1.0, 0.3, 0.3]), "invalid base rates"),
    "a negative noise": (lambda s: s["fitted"]["likelihood"].update(noise=-1.0), "nonnegative noise"),
    "a fraction of a row": (lambda s: s["fitted"].update(n_samples=0.5), "state.fitted.n_samples"),
    "a trial that there is not": (lambda s: s["fitted"]["report"].update(kept=99), "contains the kept trial"),
    "nested sums": (
        lambda s: s["fitted"]["members"][0]["features"].update(kernel=nested_sum(300)),
        "nested too deeply|does not hold",
    ),
}


def nested_sum(depth):
    kernel = kernel_state(RBF())
    for _ in range(depth):
        kernel = {"sum": [kernel], "weights": [1.0]}
    return kernel


@pytest.fixture(scope="module")
def small():
    return BayesianSVC(n_inducing=6, random_state=0).fit(X, y)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_state_is_refused_by_name_before_anything_is_built(name, small, tmp_path):
    change, message = FORGERIES[name]
    path = tmp_path / "model.bayesvm"
    small.save(path)
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
    model.fitted_ = replace(model.fitted_, n_samples=-1)
    with pytest.raises(ValueError, match="state.fitted.n_samples must be a whole number"):
        model.save(tmp_path / "model")

    class Other(BayesianSVC):
        pass

    with pytest.raises(TypeError, match="a Other cannot be saved, because load does not know this class"):
        Other(n_inducing=6, tune=None, random_state=0).fit(X, y).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_attribute_of_the_user_is_left_out_with_a_warning(tmp_path):
    model = BayesianSVC(n_inducing=6, tune=None, random_state=0).fit(X, y)
    model.notes_ = "mine"
    with pytest.warns(UserWarning, match="notes_ is not a fitted attribute of BayesianSVC and is not saved"):
        model.save(tmp_path / "model")
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


def test_a_kernel_whose_bounds_have_no_end_is_saved(tmp_path):
    kernel = RBF(length_scale_bounds=(1e-3, np.inf), variance_bounds=np.array([1e-2, np.inf]))
    model = BayesianSVC(kernel, n_inducing=5, tune=None).fit(X, y)
    model.save(tmp_path / "m")
    assert bayesvm.load(tmp_path / "m").kernel_.length_scale_bounds[1] == np.inf
