"""A model with several members predicts the same in onnxruntime: committees, members with their own links."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC, to_onnx
from bayesvm.core.links import PLAIN_LINKS, Normalised, Probit, Softmax, TwoProbits
from bayesvm.kernels import RBF, Matern
from tests.export.test_onnx import LABELS, ROWS, SPLIT, X, said
from tests.storage.committees import some_leaves

LINKS = {
    2: [TwoProbits((2.0, 0.3), (0.5, -0.4), 0.3), Probit(0.7, 0.2), PLAIN_LINKS["hinge"], PLAIN_LINKS["paper"]],
    3: [Softmax(0.7, (0.1, -0.3, 0.2)), Normalised(PLAIN_LINKS["hinge"])],
}


@pytest.fixture(scope="module", params=LABELS, ids=lambda n: f"{n} classes")
def models(request):
    """Small models of the same rows in the same scaling, which know different things."""
    y = LABELS[request.param]
    how = {"n_inducing": 12, "tune": None, "scale": "standard", "precision": "double"}
    return [
        BayesianSVC(RBF(2.0, 3.0), random_state=0, **how).fit(X, y),
        BayesianSVC(Matern(1.0, 0.5), random_state=1, **how).fit(X, y),
        BayesianSVC(RBF(0.7, 2.0), random_state=2, bound="augmented", **how).fit(X, y),
        BayesianLinearSVC(2.0, tune=None, scale="standard").fit(X, y),
    ]


def made_of(model, members):
    """The same estimator with other members."""
    found = copy(model)
    found.fitted_ = replace(model.fitted_, members=tuple(members))
    return found


def require_the_same(model, rows=ROWS):
    n_classes = len(model.classes_)
    found = said(to_onnx(model, uncertainty=True), rows)
    expected = {"probabilities": model.predict_proba(rows), **model.predict_uncertainty(rows)}
    expected["latent_mean"], expected["latent_variance"] = model.latent_mean_and_variance(rows)
    assert set(found) == {"label", *expected}
    exact = {"probabilities", "total", "lower", "upper", "latent_mean", "latent_variance"}
    for name, values in expected.items():
        assert found[name].shape == values.shape
        assert np.isfinite(values).all(), name
        # The aleatoric part is read off a table here, as for one member.
        atol = 1e-9 if name in exact else SPLIT[n_classes]
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=atol, err_msg=name)
    np.testing.assert_allclose(expected["probabilities"].sum(axis=1), 1.0, atol=1e-12)
    ranked = np.sort(expected["probabilities"], axis=1)
    sure = ranked[:, -1] - ranked[:, -2] > 1e-6
    assert sure.sum() > len(rows) // 2
    np.testing.assert_array_equal(found["label"][sure], model.predict(rows)[sure])


def test_a_committee_with_weights(models):
    weights = (0.5, 1.0, 0.25, 2.0)
    members = [replace(m.fitted_.member, weight=w) for m, w in zip(models, weights, strict=True)]
    model = made_of(models[0], members)
    require_the_same(model)
    # The probabilities are the weighted mean of what the members say through the link of the model.
    alone = [made_of(models[0], [replace(member, weight=1.0)]).predict_proba(ROWS) for member in members]
    np.testing.assert_allclose(model.predict_proba(ROWS), np.average(alone, axis=0, weights=weights), atol=1e-12)


def test_members_with_links_of_their_own(models):
    links = LINKS[len(models[0].classes_)]
    members = [replace(m.fitted_.member, link=link) for m, link in zip(models[1:], links, strict=False)]
    require_the_same(made_of(models[0], [models[0].fitted_.member, *members]))


def test_in_single_precision_a_committee_is_close(models):
    model = made_of(models[0], [replace(m.fitted_.member, weight=w) for m, w in zip(models, (1, 2, 3, 4), strict=True)])
    found = said(to_onnx(model, dtype="single", uncertainty=True), X)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=2e-3)


def test_no_rows(models):
    members = [models[0].fitted_.member, replace(models[1].fitted_.member, link=LINKS[len(models[0].classes_)][0])]
    found = said(to_onnx(made_of(models[0], members), uncertainty=True), X[:0])
    assert {len(values) for values in found.values()} == {0}


def test_some_members_have_local_models(models):
    member = models[0].fitted_.member
    leaves = some_leaves(X.shape[1], len(member.functions))
    require_the_same(made_of(models[0], [replace(member, leaves=leaves), models[1].fitted_.member]))
    require_the_same(made_of(models[0], [replace(member, leaves=leaves)] * 2))
