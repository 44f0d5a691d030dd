"""Fitted models in files: several members come back as they were, and states that make no sense are refused."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, persistence
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Matern
from tests.storage.committees import committee, local_models, with_fitted

DATA = waveform(150, random_state=0)
X, TWO = DATA.X[:, 4:8], DATA.y
THREE = np.where(DATA.X[:, 12] > 2.0, "c", np.where(TWO > 0, "b", "a"))
NEW = waveform(40, random_state=1).X[:, 4:8]


def kernel_models(y):
    kernels = (RBF(2.0), Matern(1.5), RBF(1.0, 2.0) + Matern(4.0))
    return [
        BayesianSVC(kernel, n_inducing=size, tune=None, random_state=size).fit(X, y)
        for kernel, size in zip(kernels, (8, 5, 12), strict=True)
    ]


def linear_models(y):
    how = [{"noise": 0.5}, {"covariance": "diagonal", "max_iter": 500}, {"prior_variance": np.full(4, 0.1)}]
    return [BayesianLinearSVC(random_state=0, tune=None, **each).fit(X, y) for each in how]


MADE = {
    f"{shape}, {kind}, {len(np.unique(y))} classes": (build, make, y)
    for shape, build in {
        "committee": lambda models: committee(models[:2]),
        "pooled committee": lambda models: pooled(committee(models[:2])),
        "local models": local_models,
    }.items()
    for kind, make in {"kernel": kernel_models, "linear": linear_models}.items()
    for y in (TWO, THREE)
}


def pooled(model):
    """One set of leave-one-out marginals for all members."""
    return with_fitted(model, replace(model.fitted_, left_out=model.fitted_.left_out[:1]))


@pytest.fixture(scope="module", params=MADE)
def model(request):
    build, make, y = MADE[request.param]
    return build(make(y))


def said(model):
    """All that a model says of new rows and of the rows it has learned from."""
    return {
        "probabilities": model.predict_proba(NEW),
        "classes": model.predict(NEW),
        "decision": model.decision_function(NEW),
        "latent": np.stack(model.latent_mean_and_variance(NEW)),
        "samples": model.sample_latent(NEW, 3, random_state=0),
        "sampled probabilities": model.sample_proba(NEW, 3, random_state=0),
        "left out": model.loo_proba_,
        "loss": model.loo_log_loss_,
        "error": model.loo_error_,
    } | model.predict_uncertainty(NEW)


def saved(model, path):
    model.save(path)
    return bayesvm.load(path)


@pytest.mark.parametrize(
    "copied",
    [
        saved,
        lambda model, path: saved(saved(model, path), path),
        lambda model, path: pickle.loads(pickle.dumps(model)),  # noqa: S301
        lambda model, path: copy.deepcopy(model),
    ],
    ids=["file", "file of a file", "pickle", "deepcopy"],
)
def test_several_members_come_back_with_the_same_bits(model, copied, tmp_path):
    before, after = said(model), said(copied(model, tmp_path / "m"))
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_the_members_are_those_that_were_saved(model, tmp_path):
    before, after = model.fitted_.members, saved(model, tmp_path / "m").fitted_.members
    for one, other in zip(before, after, strict=True):
        assert (one.weight, one.parent, one.link) == (other.weight, other.parent, other.link)
        assert (one.region is None) == (other.region is None)
        if one.region is not None:
            for name, value in vars(one.region).items():
                np.testing.assert_array_equal(getattr(other.region, name), value)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_a_committee_says_the_weighted_mean(y):
    models = kernel_models(y)
    together = committee(models[:2], (1.0, 3.0))
    own = with_fitted(models[1], replace(models[1].fitted_, link=together.fitted_.members[1].link))
    parts = [part.predict_proba(NEW) for part in (models[0], own)]
    np.testing.assert_allclose(together.predict_proba(NEW), 0.25 * parts[0] + 0.75 * parts[1], rtol=1e-12)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_sampled_probabilities_of_a_committee_go_through_the_links_of_its_members(y):
    plain = [
        with_fitted(one, replace(one.fitted_, link=one.fitted_.head.named_link("probit")))
        for one in kernel_models(y)[:2]
    ]
    model = committee(plain, (1.0, 1.0))
    draws = model.sample_proba(NEW[:6], 6_000, random_state=0)
    # Of two classes the probit averages over f; of more, the normalised one is near to that.
    np.testing.assert_allclose(draws.mean(axis=0), model.predict_proba(NEW[:6]), atol=0.02 if y is TWO else 0.06)


def test_a_row_in_no_region_is_an_error_and_not_nan():
    model = local_models(kernel_models(TWO))
    parent, left, right, _ = model.fitted_.members
    gap = replace(left, region=replace(left.region, upper=left.region.upper - 0.5))
    fitted = replace(model.fitted_, members=(parent, gap, right), left_out=model.fitted_.left_out[:2])
    along = model.fitted_.scaler(NEW)[:, 0]
    lost = (along > -0.3) & (along <= 0.2)
    model = with_fitted(model, fitted)
    assert np.isfinite(model.predict_proba(NEW[~lost])).all()
    for say in (model.predict, model.predict_uncertainty, model.sample_latent):
        with pytest.raises(ValueError, match=f"{lost.sum()} rows lie in no region"):
            say(NEW)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = local_models(kernel_models(TWO))
    members = model.fitted_.members
    wrong = {
        "earlier parents": {"members": (members[1], members[0], *members[2:])},
        "a weight from 0": {"members": (replace(members[0], weight=-1.0), *members[1:])},
        "left-out rows fit its members": {"left_out": model.fitted_.left_out[:2]},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            with_fitted(model, replace(model.fitted_, **change)).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def member(number, **changes):
    return lambda state: state["fitted"]["members"][number].update(changes)


def region(number, **changes):
    return lambda state: state["fitted"]["members"][number]["region"].update(changes)


FORGERIES = {
    "its own parent": (member(1, parent=1), "earlier parents"),
    "a parent that comes later": (member(1, parent=2), "earlier parents"),
    "a parent that there is not": (member(3, parent=9), "earlier parents"),
    "a parent before the first": (member(1, parent=-1), "parent must be a whole number"),
    "a parent for the first": (member(0, parent=0), "earlier parents"),
    "a negative weight": (member(2, weight=-0.5), "weight must be a weight from 0"),
    "a weight that is no number": (member(2, weight=np.nan), "weight must be a finite number"),
    "nobody with a weight": (
        lambda state: [each.update(weight=0.0) for each in state["fitted"]["members"]],
        "members with some weight",
    ),
    "one more member that predicts": (member(0, weight=1.0), "left-out rows fit its members"),
    "no rows left out": (lambda state: state["fitted"].update(left_out=[]), "one, or one for every member"),
    "rows left out of two members": (lambda state: state["fitted"]["left_out"].pop(), "left-out rows fit its members"),
    "fewer rows left out of one": (
        lambda state: state["fitted"]["left_out"][1].update(weight=np.ones(149)),
        r"left_out\[1\].weight must be",
    ),
    "features of another estimator": (
        lambda state: state["fitted"]["members"][3].update(
            features={"root": np.ones(4), "intercept": False},
            functions=[{"target": 0, "offset": 0.0, "posterior": {"precision": np.eye(4), "linear": np.zeros(4)}}],
        ),
        "the members of a BayesianSVC have InducingFeatures",
    ),
    "weights whose sum is infinite": (
        lambda state: [one.update(weight=1e308) for one in state["fitted"]["members"]],
        "members with some weight",
    ),
    "a class that there is not": (
        lambda state: state["fitted"]["left_out"][2].update(y=np.full(150, 2)),
        "numbers of 2 classes",
    ),
    "numbers of other rows": (
        lambda state: state["fitted"].update(left_out_rows=np.arange(149)),
        "left_out_rows must be",
    ),
    "a region of other columns": (region(1, directions=np.ones((1, 3))), "region.directions must be"),
    "a region without an end": (region(1, upper=np.zeros(2)), "region.upper must be"),
    "a region that ends nowhere": (region(1, upper=np.array([np.nan])), "region.upper must be"),
    "a region of words": (member(1, region="left"), "region must be"),
    "the link of more classes": (
        member(2, link={"name": "Softmax", "parameters": {"scale": 1.0, "bias": [0.0, 0.0]}}),
        r"members\[2\].link",
    ),
    "another number of points": (
        lambda state: state["fitted"]["members"][1]["features"].update(whitening=np.eye(7)),
        r"members\[1\].features.whitening must be .*P = 5",
    ),
    "a kernel for other columns": (
        lambda state: state["fitted"]["members"][1]["features"]["kernel"]["parameters"].update(length_scale=np.ones(3)),
        "length_scale has shape",
    ),
    "one function too many": (
        lambda state: state["fitted"]["members"][3]["functions"].extend(state["fitted"]["members"][3]["functions"]),
        r"the number of .*members\[3\].functions must be 1",
    ),
}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "local.bayesvm"
    local_models(kernel_models(TWO)).save(path)
    return path


@pytest.mark.parametrize("name", FORGERIES)
def test_members_that_make_no_sense_are_refused(name, local, tmp_path):
    change, message = FORGERIES[name]
    kind, _, state = persistence.read(local)
    change(state)
    persistence.write(tmp_path / "forged", kind, state)
    with pytest.raises(ValueError, match=message) as caught:
        bayesvm.load(tmp_path / "forged")
    assert str(tmp_path / "forged") in str(caught.value)


def test_a_file_has_no_prepared_views(local):
    *_, state = persistence.read(local)
    assert state.keys() == {"parameters", "classes", "n_features", "feature_names", "fitted", "beside"}
    assert state["fitted"]["members"][1].keys() == {"features", "functions", "weight", "region", "parent", "link"}
    assert state["fitted"]["members"][1]["functions"][0].keys() == {"target", "offset", "posterior"}


def test_a_checkpoint_is_no_model(tmp_path):
    BayesianSVC(n_inducing=5, tune=None, random_state=0).fit(X, TWO, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="holds a 'checkpoint', which is no model .*; give a model"):
        bayesvm.load(tmp_path / "c")
    persistence.write(tmp_path / "later", "BayesianSVR", {})
    with pytest.raises(ValueError, match="holds a 'BayesianSVR', .*; upgrade bayesvm"):
        bayesvm.load(tmp_path / "later")
