"""ONNX graphs of a regressor: the mean and the standard deviation of the library."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from bayesvm import BayesianSVR, to_onnx
from bayesvm.kernels import RBF

runtime = pytest.importorskip("onnxruntime")

X, Y = make_friedman1(500, n_features=5, noise=1.0, random_state=0)
MODELS = {
    "one member": lambda: BayesianSVR(kernel=RBF(2.0), n_inducing=40, tune=None, random_state=0),
    "a committee": lambda: BayesianSVR(n_inducing=40, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_predicts_what_the_model_predicts(name):
    model = MODELS[name]().fit(X[:300], 100 * Y[:300])
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    rows = np.vstack([X[300:], X[300:310] + 50])
    mean, std = session.run(["mean", "std"], {"X": rows})
    expected = model.predict(rows, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-7)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def test_what_it_cannot_write_is_an_error():
    model = MODELS["one member"]().fit(X[:60], Y[:60])
    for options in ({"dtype": "single"}, {"uncertainty": True}):
        with pytest.raises(ValueError, match="mean and the standard deviation in double precision"):
            to_onnx(model, **options)
