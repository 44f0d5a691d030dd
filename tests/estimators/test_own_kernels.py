"""A kernel that a user writes outside the package, with one method, does all that those inside do."""

import pickle

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bayesvm
from bayesvm import BayesianSVC, to_onnx
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Linear
from tests.own_kernels import Cauchy, PowerExponential

data = waveform(400, random_state=0)
X, y, rows = data.X[:300], data.y[:300], data.X[300:]
KERNELS = [
    Cauchy(4.0, 4.0),
    PowerExponential(np.full(21, 6.0), 4.0, 1.5),
    RBF(8.0) + 0.5 * Cauchy(3.0) + 0.1 * Linear(),
]
PATHS = ["tests.own_kernels.Cauchy", "tests.own_kernels.PowerExponential"]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def fitted(kernel, **given):
    return BayesianSVC(kernel, n_inducing=30, random_state=0, **given).fit(X, y)


@every_kernel
def test_it_is_tuned_saved_and_exported(kernel, tmp_path):
    before = repr(kernel)
    fixed, model = fitted(kernel, tune=None), fitted(clone(kernel), tune="loo")
    assert repr(kernel) == before
    assert type(model.kernel_) is type(kernel)
    assert model.kernel_ != kernel
    assert model.loo_log_loss_ < fixed.loo_log_loss_ + 0.01
    expected = model.predict_proba(rows)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), expected)  # noqa: S301

    model.save(tmp_path / "model")
    with pytest.raises(
        ImportError, match=r"model: .*kernel.* is an instance of tests.own_kernels.*trusted=\['tests.own_ker"
    ):
        bayesvm.load(tmp_path / "model")
    again = bayesvm.load(tmp_path / "model", trusted=PATHS)
    assert again.kernel_ == model.kernel_
    assert np.array_equal(again.predict_proba(rows), expected)

    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    np.testing.assert_allclose(session.run(["probabilities"], {"X": rows})[0], expected, atol=1e-9)


def test_a_shape_parameter_is_learned():
    start = PowerExponential(6.0, 4.0, 0.3)
    found = fitted(start, tune="loo").kernel_
    assert abs(np.log(found.power / 0.3)) > 0.1
    assert 0.1 <= found.power <= 2.0


def test_it_resumes_from_a_checkpoint(tmp_path):
    class StopError(Exception):
        """From a callback."""

    def stop(_):
        raise StopError

    model = BayesianSVC(Cauchy(4.0, 4.0), n_inducing=30, random_state=0)
    with pytest.raises(StopError):
        clone(model).fit(X, y, checkpoint=tmp_path / "c", checkpoint_every=0, callback=stop)
    again = clone(model).fit(X, y, checkpoint=tmp_path / "c", checkpoint_every=0)
    np.testing.assert_array_equal(again.predict_proba(rows), model.fit(X, y).predict_proba(rows))


def test_its_parameters_are_found_by_a_grid_search():
    search = GridSearchCV(
        BayesianSVC(Cauchy(), n_inducing=20, tune=None, random_state=0), {"kernel__length_scale": [0.1, 4.0]}, cv=2
    )
    assert search.fit(X, y).best_params_ == {"kernel__length_scale": 4.0}


def test_a_kernel_of_a_script_is_refused_when_it_is_saved(tmp_path):
    class Local(Cauchy):
        """Of this function."""

    with pytest.raises(TypeError, match="Local cannot be saved because load could not import .*; define the class at"):
        fitted(Local(4.0), tune=None).save(tmp_path / "model")


@pytest.mark.parametrize("kernel", ["matern12", "rational_quadratic"])
def test_names_of_new_kernels_are_tuned(kernel):
    model = fitted(kernel)
    assert 1 - model.score(rows, data.y[300:]) < 0.2


@pytest.mark.parametrize("trusted", [PATHS[0], Cauchy, [Cauchy], (PATHS[0],)], ids=["path", "class", "list", "tuple"])
def test_one_class_or_several_can_be_trusted(trusted, tmp_path):
    model = fitted(Cauchy(4.0, 4.0), tune=None)
    model.save(tmp_path / "model")
    assert np.array_equal(
        bayesvm.load(tmp_path / "model", trusted=trusted).predict_proba(rows), model.predict_proba(rows)
    )


def test_a_kernel_that_a_checkpoint_could_not_hold_is_refused_at_once(tmp_path):
    class Local(Cauchy):
        """Nobody can import it."""

    with pytest.raises(TypeError, match="the kernel Local cannot be saved.*define the class at the top level"):
        BayesianSVC(Local(4.0), n_inducing=30).fit(X, y, checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
