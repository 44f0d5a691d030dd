"""What parts of a model are called."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core import kernels
from bayesvm.evaluation import Predictions, RegressionPredictions, metrics
from bayesvm.evaluation.formatting import METRIC_NAMES
from bayesvm.preparation import Recipe
from bayesvm.workflow import TableModel
from bayesvm.workflow.describing import SCALING_DESCRIPTIONS, describe_kernel, described
from tests.recipes import with_recipe
from tests.storage.committees import local_models


def a_model(kernel):
    """What the words are about: a kernel, without local models."""
    return SimpleNamespace(kernel_=kernel, fitted_=SimpleNamespace(member=SimpleNamespace(leaves=None)))


@pytest.mark.parametrize("scale", SCALING_DESCRIPTIONS)
def test_the_scaling_is_the_one_that_was_used(scale):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = BayesianSVC(n_inducing=9, tune=None, scale=scale).fit(X, X[:, 0] > 0)
    assert described(TableModel(with_recipe(model, Recipe.plain(["a", "b"]))))["scaling"] == SCALING_DESCRIPTIONS[scale]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (kernels.RBF(0.5), "RBF (very smooth), with one length-scale for all features: 0.5"),
        (
            kernels.RBF(np.array([0.5, 2.0])),
            "RBF (very smooth), with one length-scale per feature, from 0.5 to 2",
        ),
        (kernels.Matern(2.0, nu=2.5), "Matérn 5/2 (less smooth), with one length-scale for all features: 2"),
        (kernels.Linear(), "linear in the features"),
    ],
)
def test_kernels_in_words(kernel, expected):
    assert describe_kernel(a_model(kernel)).startswith(expected)
    both = describe_kernel(a_model(kernel + kernels.Constant()))
    assert both.startswith(f"sum of: {expected}")
    assert "; constant, variance 1" in both
    weighted = describe_kernel(a_model(kernel + 3 * kernels.Constant(0.5)))
    assert weighted.endswith("; constant, variance 1.5")


def test_local_models_are_described():
    X = np.random.default_rng(0).normal(size=(90, 2))
    models = [BayesianSVC(n_inducing=9, tune=None, random_state=seed).fit(X, X[:, 0] * X[:, 1] > 0) for seed in (0, 1)]
    local = TableModel(with_recipe(local_models(models), Recipe.plain(["a", "b"])))
    assert "plus local models in 3 leaves, 8 inducing points in total" in described(local)["kernel"]
    assert [member["leaves"] for member in described(local)["members"]] == [3, 0]


@pytest.mark.parametrize("made", [BayesianSVC(n_inducing=9, tune=None), BayesianLinearSVC()])
def test_every_model_can_be_described(made):
    X = np.random.default_rng(0).normal(size=(60, 2))
    known = described(TableModel(with_recipe(made.fit(X, X[:, 0] > 0), Recipe.plain(["a", "b"]))))
    assert known["scaling"] == SCALING_DESCRIPTIONS["standard"]
    assert known["link"]
    assert known["kernel"].startswith("none: linear" if "Linear" in type(made).__name__ else "RBF")


def test_every_metric_has_a_name():
    of_classes = metrics(Predictions.of([0, 1], [0, 1], [[0.5, 0.5]] * 2), n_bootstrap=0)
    is_regression = metrics(RegressionPredictions.of([0, 1], [0, 1], [1, 1]), n_bootstrap=0)
    assert list(METRIC_NAMES) == [*of_classes, *is_regression]
