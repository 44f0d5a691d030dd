"""Effects of one column or of a pair, as users see them, and the relevance of columns that counts them."""

import pickle
from copy import copy
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import numpy as np
import pytest

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, ColumnEffect
from bayesvm.core.workspace import Workspace
from tests.effects import NAMES, categories, checkerboard, gains, given_effects, plain_model

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def jumpy():
    X, y = gains()
    return plain_model().fit(pd.DataFrame(X, columns=NAMES), y)


@pytest.fixture(scope="module")
def together():
    """A committee whose members have the same pair."""
    model = BayesianSVC(n_inducing=60, random_state=0).fit(*checkerboard())
    assert len(model.fitted_.members) > 1
    return model


def component_means(model, X):
    """Posterior means of the main kernel and of each effect at rows, from all features at once; of the first member."""
    member, rows = model.fitted_.member, model.fitted_.scaler(np.asarray(X))
    rows = member.rows(rows)
    phi, _ = member.features.prepared(None, np.float64)(rows, Workspace())
    ends = np.cumsum(
        [0, len(member.features.inducing_points), *(e.features.n_weights for e in member.features.effects)]
    )
    mean = member.functions[0].posterior.mean
    return [phi[:, a:b] @ mean[a:b] for a, b in pairwise(ends)]


def test_a_column_with_jumps_has_an_effect_and_comes_first(jumpy):
    (effect,) = jumpy.effects_
    assert isinstance(effect, ColumnEffect)
    assert (effect.columns, effect.names, effect.factors, effect.is_pair) == ((3,), ("gain",), ((3,),), False)
    assert str(effect) == "gain"
    assert repr(effect).startswith("ColumnEffect(gain, share=0.")
    assert 0.5 < effect.share < 1
    kernel = jumpy.fitted_.member.features.effects[0].features.kernel
    assert effect.variance == pytest.approx(kernel.variance)
    assert jumpy.relevance_.argmax() == 3
    assert jumpy.relevance_.sum() == pytest.approx(1)


def test_without_jumps_there_is_none():
    model = plain_model().fit(*gains(jumps=False))
    assert model.effects_ == ()
    assert model.relevance_.argmax() != 3 or model.relevance_[3] < 0.3
    assert not hasattr(BayesianLinearSVC().fit(*gains(200)), "effects_")


def test_a_pair_is_found_by_every_member_and_reported_once(together):
    (effect,) = together.effects_
    assert (effect.columns, effect.names, effect.is_pair) == ((2, 4), None, True)
    assert str(effect) == "column 2 × column 4"
    assert set(np.argsort(-together.relevance_)[:2]) == {2, 4}
    assert together.relevance_.sum() == pytest.approx(1)
    mean, _ = effect.mean_and_variance([[1, 1], [1, 2], [2, 2], [2, 3]])
    assert (np.sign(mean) == [-1, 1, -1, 1]).all()


def test_shares_and_relevance_of_a_committee_are_averaged_by_weight(together):
    alone = []
    for member in together.fitted_.members:
        scaler = member.scaler or together.fitted_.scaler
        one = copy(together)
        members = (replace(member, weight=1.0, scaler=None),)
        one.fitted_ = replace(together.fitted_, scaler=scaler, members=members, left_out=together.fitted_.left_out[:1])
        alone.append(one)
    weights = [member.weight for member in together.fitted_.members]
    shares = [one.effects_[0].share for one in alone]
    assert together.effects_[0].share == pytest.approx(np.average(shares, weights=weights))
    relevance = np.average([one.relevance_ for one in alone], axis=0, weights=weights)
    np.testing.assert_allclose(together.relevance_, relevance)
    at = [[3, 4], [7, 7]]
    means, variances = zip(*(one.effects_[0].mean_and_variance(at) for one in alone), strict=True)
    mean, variance = together.effects_[0].mean_and_variance(at)
    np.testing.assert_allclose(mean, np.average(means, axis=0, weights=weights))
    second = np.average(np.square(means) + variances, axis=0, weights=weights)
    np.testing.assert_allclose(variance, second - mean**2)


def test_an_effect_is_its_part_of_f(jumpy):
    X, _ = gains()
    rest, own = component_means(jumpy, X)
    offset = jumpy.fitted_.member.functions[0].offset
    np.testing.assert_allclose(jumpy.latent_mean_and_variance(pd.DataFrame(X, columns=NAMES))[0], offset + rest + own)
    mean, variance = jumpy.effects_[0].mean_and_variance(X[:, 3], reference=X[:, 3])
    np.testing.assert_allclose(mean, own - own.mean(), atol=1e-9)
    assert (variance > 0).all()


def test_the_variance_is_that_of_draws(jumpy):
    """Differences between two values of the column, with the rest of the row fixed, in joint draws of f."""
    X = np.zeros((2, 5))
    X[:, 3] = (1.0, 1.25)
    member = jumpy.fitted_.member
    phi, _ = member.features.prepared(None, np.float64)(jumpy.fitted_.scaler(X), Workspace())
    own = slice(len(member.features.inducing_points), None)
    q = member.functions[0].posterior
    apart = phi[0, own] - phi[1, own]
    mean, variance = jumpy.effects_[0].mean_and_variance([1.0], reference=[1.25])
    assert mean[0] == pytest.approx(apart @ q.mean[own])
    draws = q.mean[own] + q.spread(np.random.default_rng(0).standard_normal((20_000, len(q.mean))))[:, own]
    assert variance[0] == pytest.approx(np.var(draws @ apart), rel=0.05)


def test_shares_are_about_those_among_the_rows(jumpy, together):
    for model, X in ((jumpy, gains()[0]), (together, checkerboard()[0])):
        rest, own = component_means(model, X)
        assert model.effects_[0].share == pytest.approx(np.var(own) / (np.var(rest) + np.var(own)), abs=0.15)


def test_one_hot_columns_are_one_column():
    X, y, names = categories()
    model = given_effects(pd.DataFrame(X, columns=names), y, (1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 4), (0, 5, 6, 7))
    found = {str(effect): effect for effect in model.effects_}
    assert set(found) == {"place × day", "place", "x × day"}
    assert [effect.share for effect in model.effects_] == sorted((e.share for e in found.values()), reverse=True)
    assert found["place × day"].factors == ((1, 2, 3, 4), (5, 6, 7))
    assert found["place"].factors == ((1, 2, 3, 4),)
    assert found["x × day"].factors == ((0,), (5, 6, 7))
    assert [effect.is_pair for effect in found.values()] == [len(effect.factors) == 2 for effect in found.values()]
    unnamed = given_effects(X, y, (1, 2, 3, 4))
    assert str(unnamed.effects_[0]) == "columns 1 to 4"


@pytest.mark.parametrize(("columns", "pair"), [((1, 2), False), ((0, 1), True), ((1, 3), True)])
def test_two_columns_are_a_pair_unless_they_exclude_each_other_side_by_side(columns, pair):
    rng = np.random.default_rng(0)
    which = rng.integers(3, size=300)
    X = np.column_stack([rng.integers(2, size=300), which == 0, which == 1, which == 2]).astype(float)
    model = given_effects(X, rng.random(300) < 0.2 + 0.6 * X[:, 1], columns, n_inducing=6)
    assert model.effects_[0].is_pair == pair


def test_relevance_is_the_mean_of_parts():
    """Effects that take all of f leave nothing to other columns; each column of a pair has half."""
    X, y, _ = categories()
    model = given_effects(X, y, (0,), (1, 5))
    effects, relevance = {effect.columns: effect for effect in model.effects_}, model.relevance_
    rest = 1 - sum(effect.share for effect in effects.values())
    assert relevance[2:5].sum() + relevance[6:].sum() < rest
    assert relevance[0] > effects[0,].share
    assert relevance[1] > effects[1, 5].share / 2
    assert relevance.sum() == pytest.approx(1)


def test_both_columns_of_a_pair_have_the_same_part_whatever_number_of_one_hot_columns_they_are():
    X, y, _ = categories()
    model = given_effects(X, y, (1, 2, 3, 4, 5, 6, 7))
    share, relevance = model.effects_[0].share, model.relevance_
    rest = given_effects(X, y).relevance_ * (1 - share)  # the same points
    np.testing.assert_allclose([(relevance - rest)[1:5].sum(), (relevance - rest)[5:].sum()], share / 2)


def test_with_more_classes_there_is_a_column_for_each():
    X, _, _ = categories()
    y = np.where(X[:, 0] > 0.5, "a", np.where(X[:, 1] > 0, "b", "c"))
    model = given_effects(X, y, (0,), (1, 2, 3, 4))
    mean, variance = model.effects_[0].mean_and_variance(np.linspace(-1, 1, 5))
    assert mean.shape == variance.shape == (5, 3)
    assert mean[-1, 0] > mean[0, 0]
    assert model.relevance_.sum() == pytest.approx(1)


def test_saving_and_loading_keeps_effects(jumpy, tmp_path):
    jumpy.save(tmp_path / "model")
    for again in (bayesvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(jumpy))):  # noqa: S301
        assert again.effects_ == jumpy.effects_
        np.testing.assert_array_equal(again.relevance_, jumpy.relevance_)
        for mine, theirs in zip(*(m.effects_[0].mean_and_variance([0, 1]) for m in (jumpy, again)), strict=True):
            np.testing.assert_allclose(mine, theirs)


def test_an_effect_is_frozen_and_refuses_other_columns(jumpy, together):
    with pytest.raises(FrozenInstanceError):
        jumpy.effects_[0].share = 1.0
    with pytest.raises(ValueError, match="values must have rows and 2 columns, those of column 2 × column 4"):
        together.effects_[0].mean_and_variance([1.0, 2.0])
    with pytest.raises(ValueError, match="reference must have rows"):
        jumpy.effects_[0].mean_and_variance([1.0], reference=np.zeros((0, 1)))
