"""Graphs of models with local models: rows are routed to their leaves, and predictions are those of the estimator."""

import numpy as np
import onnx
import onnxruntime
import pytest

from bayesvm import BayesianSVC, BayesianSVR, to_onnx
from bayesvm.export import graph as graphs
from tests.estimators.test_local import FEW, NEW, THREE, TWO, X

ROWS = np.vstack([NEW, NEW[:20] * 100, NEW[:3] * 1e9])


def run(graph, rows=ROWS, dtype=np.float64):
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows.astype(dtype)}), strict=True))


@pytest.fixture(scope="module")
def model():
    return BayesianSVC(**FEW, local=True).fit(X, TWO)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_probabilities_and_moments(kernel, y):
    model = BayesianSVC(**FEW | {"kernel": kernel, "local": True}).fit(X, y)
    assert model.fitted_.member.leaves.tree.n_leaves > 2
    found = run(to_onnx(model, uncertainty=True))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(ROWS), atol=1e-9)
    mean, variance = model.latent_mean_and_variance(ROWS)
    np.testing.assert_allclose(found["latent_mean"], mean, atol=1e-8)
    np.testing.assert_allclose(found["latent_variance"], variance, rtol=1e-8, atol=1e-8)


def test_a_committee_whose_members_have_trees_of_their_own():
    model = BayesianSVC(local=True, random_state=0).fit(X, TWO)
    assert len(model.fitted_.members) > 1
    np.testing.assert_allclose(run(to_onnx(model))["probabilities"], model.predict_proba(ROWS), atol=1e-9)


def test_numbers():
    y = np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) + 0.1 * np.random.default_rng(0).standard_normal(len(X))
    model = BayesianSVR(local=True, random_state=0).fit(X, y)
    assert any(member.leaves is not None for member in model.fitted_.members)
    mean, std = model.predict(NEW, return_std=True)
    found = run(to_onnx(model), NEW)
    np.testing.assert_allclose(found["mean"], mean, atol=1e-8)
    np.testing.assert_allclose(found["std"], std, atol=1e-8)


def test_single_precision_and_any_number_of_rows(model):
    graph = to_onnx(model, dtype="single")
    for n_rows in (0, 1, 600):
        rows = NEW[:n_rows].astype(np.float32)
        found = run(graph, rows, np.float32)["probabilities"]
        expected = model.predict_proba(rows.astype(np.float64)) if n_rows else np.zeros((0, 2))
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_one_leaf():
    same = BayesianSVC(local=True, random_state=0).fit(np.ones((50, 2)), TWO[:50])
    assert same.fitted_.member.leaves.tree.n_leaves == 1
    np.testing.assert_allclose(run(to_onnx(same), NEW)["probabilities"], same.predict_proba(NEW), atol=1e-9)


def test_a_graph_that_is_too_large_names_the_remedy(model, monkeypatch):
    monkeypatch.setattr(graphs, "LARGEST", 100_000)
    with pytest.raises(ValueError, match="larger than 2 GB.*fewer inducing points.*local=False"):
        to_onnx(model)
