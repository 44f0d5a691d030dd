"""Committees with their own scalings and effects in files: loading is bit-identical, and forged files are rejected."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import bayesvm
from bayesvm import BayesianSVC, persistence
from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import Sum
from tests.estimators.test_committees import LABELS, NEW, committee, said
from tests.storage.committees import with_fitted


@pytest.fixture(scope="module", params=LABELS, ids=lambda n: f"{n} classes")
def model(request):
    return committee(LABELS[request.param])


def saved(model, path):
    model.save(path)
    return bayesvm.load(path)


def test_a_committee_with_effects_is_loaded_bit_identically(model, tmp_path):
    again = saved(model, tmp_path / "m")
    assert said(again) == said(model)
    assert said(saved(again, tmp_path / "m2")) == said(model)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "m2").read_bytes()
    for one, other in zip(model.fitted_.members, again.fitted_.members, strict=True):
        assert one.link == other.link
        assert parts_of(one.scaler) == parts_of(other.scaler)
        assert [effect.columns for effect in one.features.effects] == [e.columns for e in other.features.effects]
        for mine, theirs in zip(one.features.effects, other.features.effects, strict=True):
            assert mine.features.kernel == theirs.features.kernel
            np.testing.assert_array_equal(mine.features.inducing_points, theirs.features.inducing_points)
    assert sum(len(member.features.effects) for member in again.fitted_.members) == 2


def parts_of(scaler):
    return type(scaler), [np.asarray(value).tobytes() for value in vars(scaler).values()]


def test_a_loaded_committee_learns_more_as_the_model_itself(model, tmp_path):
    y = model.classes_[np.arange(len(NEW)) % len(model.classes_)]
    again, here = saved(model, tmp_path / "m").partial_fit(NEW, y), copy.copy(model).partial_fit(NEW, y)
    np.testing.assert_allclose(again.predict_proba(NEW), here.predict_proba(NEW), atol=1e-9)


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])  # noqa: S301
def test_a_copy_is_saved_as_the_same_bytes(model, copied, tmp_path):
    model.save(tmp_path / "a")
    copied(model).save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_model_that_tuned_itself_is_loaded_bit_identically(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 0).astype(int)
    model = BayesianSVC(n_inducing=20, random_state=0).fit(X, y)
    assert len(model.fitted_.members) > 1
    assert isinstance(model.kernel_, Sum)
    again = saved(model, tmp_path / "m")
    assert said(again, X[:50]) == said(model, X[:50])
    assert again.kernel_ == model.kernel_
    assert str(again.tuning_report_) == str(model.tuning_report_)


# ---- forged files ----


def member(number, **changes):
    return lambda state: state["fitted"]["members"][number].update(changes)


def with_effects(state):
    """The member that has effects."""
    return next(one for one in state["fitted"]["members"] if "effects" in one["features"])


def effect(number, **changes):
    return lambda state: with_effects(state)["features"]["effects"][number].update(changes)


def effect_features(number, **changes):
    return lambda state: with_effects(state)["features"]["effects"][number]["features"].update(changes)


FORGERIES = {
    "a column beyond the table": (effect(0, columns=np.array([4])), "columns contains 4, but there are only 4 columns"),
    "a column far beyond": (effect(0, columns=np.array([2**62])), "but there are only 4 columns"),
    "a column before the first": (effect(0, columns=np.array([-1])), r"effects\[0\].columns must be .*from 0"),
    "no column": (
        effect(0, columns=np.zeros(0, int)),
        r"effects\[0\].columns must be distinct numbers of one or more columns",
    ),
    "a column twice": (effect(1, columns=np.array([2, 2])), r"effects\[1\].columns must be distinct"),
    "a column for a pair": (effect(1, columns=np.array([2])), r"effects\[1\].features.inducing_points must be .*D = 1"),
    "columns that are words": (effect(0, columns="age"), r"effects\[0\].columns must be an array"),
    "points without an end": (
        effect_features(0, inducing_points=np.full((5, 1), np.nan)),
        r"effects\[0\].features.inducing_points must be",
    ),
    "fewer points": (
        effect_features(0, inducing_points=np.zeros((4, 1)), whitening=np.eye(4)),
        r"functions\[0\].posterior.linear must be .*M = 30",
    ),
    "a whitening of other points": (
        effect_features(0, whitening=np.eye(4)),
        r"effects\[0\].features.whitening must be",
    ),
    "a kernel of other columns": (
        lambda state: with_effects(state)["features"]["effects"][1]["features"]["kernel"]["parameters"].update(
            length_scale=np.ones(3)
        ),
        "length_scale has shape",
    ),
    "an effect of an effect": (effect_features(0, effects=[]), "got 'effects'"),
    "effects that are no list": (
        lambda state: with_effects(state)["features"].update(effects={"columns": np.array([0])}),
        "effects must be a list",
    ),
    "no effects": (lambda state: with_effects(state)["features"].pop("effects"), "M = 20"),
    "a negative weight": (member(0, weight=-0.5), r"members\[0\].weight must be a positive number"),
    "a weight that is no number": (member(1, weight=np.inf), r"members\[1\].weight must be a positive number"),
    "a weight of text": (member(1, weight="heavy"), r"members\[1\].weight must be a positive number"),
    "no weights": (
        lambda state: [one.update(weight=0.0) for one in state["fitted"]["members"]],
        r"members\[0\].weight must be a positive number",
    ),
    "a weight of zero": (member(1, weight=0.0), r"members\[1\].weight must be a positive number"),
    "a scaling that is none": (member(0, scaler="standard"), r"members\[0\].scaler must be"),
    "a scaling without a centre": (
        member(0, scaler={"name": "ColumnScaler", "centre": None, "scale": np.ones(4)}),
        r"members\[0\].scaler.* must be",
    ),
    "one more member than rows were left out of": (
        lambda state: state["fitted"]["members"].append(dict(state["fitted"]["members"][0])),
        "left-out rows for every member",
    ),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "committee.bayesvm"
    committee().save(path)
    return path


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_committee_is_refused_by_what_is_wrong(name, stored, tmp_path):
    change, message = FORGERIES[name]
    kind, _, state = persistence.read(stored)
    change(state)
    persistence.write(tmp_path / "forged", kind, state)
    with pytest.raises(ValueError, match=message) as caught:
        bayesvm.load(tmp_path / "forged")
    assert str(tmp_path / "forged") in str(caught.value)


def test_what_is_forged_was_right_before(stored, tmp_path):
    kind, _, state = persistence.read(stored)
    persistence.write(tmp_path / "copy", kind, state)
    assert said(bayesvm.load(tmp_path / "copy")) == said(bayesvm.load(stored))
    assert state["fitted"]["members"][0].keys() >= {"scaler", "weight", "link"}


def test_members_may_have_quantile_scalings_of_other_knots(tmp_path):
    """A model that tuning does not produce, but that the format allows."""
    few, many = (committee(rows=rows, y=y) for rows, y in ((NEW, LABELS[2][: len(NEW)]), (NEW[:40], LABELS[2][:40])))
    knots = [
        next(one for one in model.fitted_.members if type(one.scaler).__name__ == "QuantileScaler")
        for model in (few, many)
    ]
    assert len(knots[0].scaler.knots) != len(knots[1].scaler.knots)
    fitted = replace(few.fitted_, members=tuple(replace(one, weight=0.5) for one in knots))
    model = with_fitted(few, fitted)
    assert isinstance(knots[0].features, InducingFeatures)
    assert said(saved(model, tmp_path / "m")) == said(model)
