"""Committees whose members have scalings of their own, and effects, in onnxruntime."""

from dataclasses import replace

import numpy as np
import pytest

from bayesvm import BayesianSVC, to_onnx
from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.kernels import Constant
from tests.estimators.test_committees import LABELS, NEW, X, committee
from tests.export.test_members import require_the_same
from tests.export.test_onnx import said
from tests.storage.committees import alone, with_fitted


@pytest.fixture(scope="module", params=LABELS, ids=lambda n: f"{n} classes")
def model(request):
    return committee(LABELS[request.param])


def test_scalings_of_their_own_and_effects(model):
    assert {type(member.scaler).__name__ for member in model.fitted_.members} == {"ColumnScaler", "QuantileScaler"}
    assert any(member.features.effects for member in model.fitted_.members)
    require_the_same(model, NEW)
    require_the_same(model, NEW * 5)  # beyond the knots


def test_one_member_with_effects(model):
    number = next(i for i, member in enumerate(model.fitted_.members) if member.features.effects)
    require_the_same(alone(model, number), NEW)


def test_a_model_that_tuned_itself(model):
    """The broad component of the kernel is part of the graph."""
    y = LABELS[len(model.classes_)]
    tuned = BayesianSVC(n_inducing=20, random_state=0).fit(X, y)
    assert len(tuned.fitted_.members) > 1
    require_the_same(tuned, NEW)


def test_effects_beside_a_constant_kernel():
    """Whose matrix has one row for all."""
    fitted = BayesianSVC(Constant(2.0), n_inducing=3, tune=None, random_state=0).fit(X, LABELS[2])
    member = fitted.fitted_.member
    effect = Effect((1,), InducingFeatures.build(Constant(0.5), np.zeros((1, 1))))
    other = InducingFeatures.build(Constant(2.0), member.features.inducing_points[:2], effects=(effect,))
    model = with_fitted(fitted, replace(fitted.fitted_, members=(replace(member, features=other),)))
    assert other.n_weights == member.features.n_weights
    require_the_same(model, NEW)


def test_no_rows(model):
    found = said(to_onnx(model, uncertainty=True), NEW[:0])
    assert {len(values) for values in found.values()} == {0}


# ---- single precision ----


def test_in_single_precision_it_is_close(model):
    rows = NEW.astype(np.float32).astype(np.float64)
    found = said(to_onnx(model, dtype="single", uncertainty=True), rows)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=2e-3)
    for name, values in model.predict_uncertainty(rows).items():
        np.testing.assert_allclose(found[name], values, atol=5e-3, err_msg=name)


def test_columns_that_single_precision_cannot_hold_are_named_whatever_the_scaling():
    """Values around 1e9 that differ by ones: what a member's own scaling sees decides, not the units of X."""
    rows = X.copy()
    rows[:, 1] += 1e9
    model = committee(LABELS[2], rows)
    assert all(member.scaler is not None for member in model.fitted_.members)
    with pytest.raises(ValueError, match="rounds the values of column 1 so coarsely"):
        to_onnx(model, dtype="single")
    require_the_same(model, rows[:40])


def test_columns_of_large_units_are_no_obstacle():
    """Rows at plus and minus one would be all the same here, or far from all data."""
    rows = X * [1e-6, 1e6, 1.0, 1e3]
    model = committee(LABELS[2], rows)
    new = (NEW * [1e-6, 1e6, 1.0, 1e3]).astype(np.float32).astype(np.float64)
    found = said(to_onnx(model, dtype="single"), new)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=2e-3)
