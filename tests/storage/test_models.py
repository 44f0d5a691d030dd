"""Fitted models in files: several members are restored unchanged, and invalid states are rejected."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, persistence
from bayesvm.data.scaling import ColumnScaler
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Matern
from tests.storage.committees import alone, committee, local_models, some_leaves, with_fitted

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
        "local models": local_models,
    }.items()
    for kind, make in {"kernel": kernel_models, "linear": linear_models}.items()
    for y in (TWO, THREE)
}


@pytest.fixture(scope="module", params=MADE)
def model(request):
    build, make, y = MADE[request.param]
    return build(make(y))


def said(model):
    """All predictions of a model for new rows and for its training rows."""
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
def test_several_members_are_loaded_bit_identically(model, copied, tmp_path):
    before, after = said(model), said(copied(model, tmp_path / "m"))
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_the_members_are_those_that_were_saved(model, tmp_path):
    before, after = model.fitted_.members, saved(model, tmp_path / "m").fitted_.members
    for one, other in zip(before, after, strict=True):
        assert (one.weight, one.link) == (other.weight, other.link)
        assert (one.leaves is None) == (other.leaves is None)
        if one.leaves is not None:
            assert one.leaves.kernel == other.leaves.kernel
            for name in ("directions", "thresholds", "below", "beyond"):
                np.testing.assert_array_equal(getattr(other.leaves.tree, name), getattr(one.leaves.tree, name))
            for mine, theirs in zip(one.leaves.leaves, other.leaves.leaves, strict=True):
                require_same_leaf(mine, theirs)


def require_same_leaf(one, other):
    for name in ("inducing_points", "whitening"):
        np.testing.assert_array_equal(getattr(other.features, name), getattr(one.features, name))
    for mine, theirs in zip(one.functions, other.functions, strict=True):
        assert mine.target == theirs.target
        np.testing.assert_array_equal(theirs.posterior.mean, mine.posterior.mean)
        np.testing.assert_array_equal(theirs.posterior.root, mine.posterior.root)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_a_committee_predicts_the_weighted_mean(y):
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


def test_local_models_are_the_posterior_of_their_leaf_on_the_mean_of_the_member():
    """By dense matrices: m_g + k_Z(x)ᵀ K⁻¹ u with whitened u, and the variances of u, of what Z leaves, and of m_g."""
    for y in (TWO, THREE):
        model, plain = local_models(kernel_models(y)), committee(kernel_models(y)[:2])
        first = replace(model.fitted_.members[0], weight=1.0)
        alone = with_fitted(model, replace(model.fitted_, members=(first,), left_out=model.fitted_.left_out[:1]))
        below = with_fitted(plain, replace(alone.fitted_, members=(replace(first, leaves=None),)))
        mean, variance = (part.reshape(len(NEW), -1) for part in alone.latent_mean_and_variance(NEW))
        mean_below, variance_below = (part.reshape(len(NEW), -1) for part in below.latent_mean_and_variance(NEW))
        rows, (a, b) = model.fitted_.scaler(NEW), first.leaves.tree.thresholds
        leaf_of = np.where(rows[:, 0] <= a, 0, np.where(rows[:, 1] <= b, 1, 2))
        assert set(leaf_of) == {0, 1, 2}
        kernel, features = first.leaves.kernel, first.features
        cross = features.kernel(rows, features.inducing_points)
        inducing = features.kernel(features.inducing_points, features.inducing_points)
        for i, x in enumerate(rows):
            leaf, at = first.leaves.leaves[leaf_of[i]], x[None]
            points = leaf.features.inducing_points.astype(float)
            phi = np.linalg.solve(np.linalg.cholesky(kernel(points, points)), kernel(points, at))[:, 0]
            residual = features.kernel(at, at)[0, 0] - cross[i] @ np.linalg.solve(inducing, cross[i])
            for k, function in enumerate(leaf.functions):
                q = function.posterior
                assert mean[i, k] == pytest.approx(mean_below[i, k] + phi @ q.mean, abs=2e-4)
                explained, left = np.sum((phi @ q.root) ** 2), kernel(at, at)[0, 0] - phi @ phi
                expected = variance_below[i, k] - residual + explained + left
                assert variance[i, k] == pytest.approx(expected, rel=2e-3)


def test_local_models_see_the_scaling_of_their_member():
    fitted = kernel_models(TWO)
    other = BayesianSVC(RBF(2.0), n_inducing=8, tune=None, scale="quantile", random_state=0).fit(X, TWO)
    first = replace(fitted[0].fitted_.member, leaves=some_leaves(4, 1))
    second = replace(fitted[1].fitted_.member, weight=0.5, scaler=fitted[1].fitted_.scaler)
    members = (replace(first, scaler=other.fitted_.scaler), second)
    together = replace(committee(fitted[:2]).fitted_, members=members, scaler=ColumnScaler(None, None))
    model = with_fitted(fitted[0], together)
    parts = [alone(model, number).predict_proba(NEW) for number in range(2)]
    np.testing.assert_allclose(model.predict_proba(NEW), (parts[0] + 0.5 * parts[1]) / 1.5, rtol=1e-12)
    standard = with_fitted(model, replace(together, members=(replace(first, scaler=second.scaler), second)))
    assert np.abs(parts[0] - alone(standard, 0).predict_proba(NEW)).max() > 0.01


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = local_models(kernel_models(TWO))
    first, second = model.fitted_.members
    short = replace(first.leaves, leaves=first.leaves.leaves[:2])
    wrong = {
        "one leaf for every end of the tree": {"members": (replace(first, leaves=short), second)},
        "a positive number": {"members": (replace(first, weight=-1.0), second)},
        "left-out rows for every member": {"left_out": model.fitted_.left_out[:1]},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            with_fitted(model, replace(model.fitted_, **change)).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def member(number, **changes):
    return lambda state: state["fitted"]["members"][number].update(changes)


def leaves_of(state):
    return state["fitted"]["members"][0]["leaves"]


def tree(**changes):
    return lambda state: leaves_of(state)["tree"].update(changes)


def leaf(number, **changes):
    return lambda state: leaves_of(state)["leaves"][number].update(changes)


def leaf_function(number, **changes):
    return lambda state: leaves_of(state)["leaves"][number]["functions"][0].update(changes)


NO_TREE = r"members\[0\].leaves.tree must be a tree that contains every split and every leaf exactly once"
EVERY_END = r"members\[0\].leaves must be one leaf for every end of the tree"
FORGERIES = {
    "a tree whose root is below itself": (tree(beyond=np.array([0, ~2])), NO_TREE),
    "a tree with a cycle beside it": (tree(below=np.array([~0, ~2]), beyond=np.array([~1, 1])), NO_TREE),
    "a tree with a cycle of two": (
        tree(
            directions=np.eye(4)[:3],
            thresholds=np.zeros(3),
            below=np.array([~0, 2, 1]),
            beyond=np.array([~1, ~2, ~3]),
        ),
        NO_TREE,
    ),
    "a leaf twice": (tree(below=np.array([~0, ~0])), NO_TREE),
    "a leaf that there is not": (tree(beyond=np.array([1, ~8])), NO_TREE),
    "a split that there is not": (tree(beyond=np.array([9, ~2])), NO_TREE),
    "a split far beyond": (tree(beyond=np.array([2**62, ~2])), NO_TREE),
    "a tree of other columns": (tree(directions=np.eye(2, 3)), "leaves.tree.directions must be .*D = 4"),
    "a split without a threshold": (tree(thresholds=np.zeros(1)), "leaves.tree.thresholds must be .*S = 2"),
    "a threshold that is no number": (tree(thresholds=np.array([0.0, np.nan])), "leaves.tree.thresholds must be"),
    "children that are no numbers": (tree(below=np.array([-1.0, -2.0])), "leaves.tree.below must be .* kind 'i'"),
    "a missing leaf": (lambda state: leaves_of(state)["leaves"].pop(), EVERY_END),
    "one leaf too many": (lambda state: leaves_of(state)["leaves"].append(leaves_of(state)["leaves"][0]), EVERY_END),
    "a smaller tree": (
        tree(directions=np.eye(1, 4), thresholds=np.zeros(1), below=np.array([~0]), beyond=np.array([~1])),
        EVERY_END,
    ),
    "a root of the wrong length": (
        leaf_function(1, root=np.zeros(5, np.float32)),
        r"leaves\[1\].functions\[0\].root must be the upper triangle of a matrix over all points",
    ),
    "a root in full": (leaf_function(2, root=np.eye(4, dtype=np.float32)), r"leaves\[2\].functions\[0\].root must be"),
    "a mean of other points": (leaf_function(1, mean=np.zeros(4)), r"leaves\[1\].functions\[0\].mean must be .*P = 3"),
    "a leaf with fewer points": (
        leaf(2, points=np.zeros((2, 4), np.float32)),
        r"leaves\[2\].functions\[0\].mean must be .*P = 2",
    ),
    "points of other columns": (leaf(0, points=np.zeros((1, 3), np.float32)), r"leaves\[0\].points must be .*D = 4"),
    "points without an end": (leaf(0, points=np.full((1, 4), np.inf)), r"leaves\[0\].points must be"),
    "a leaf without functions": (leaf(1, functions=[]), r"the number of .*leaves\[1\].functions must be 1"),
    "a leaf of words": (lambda state: leaves_of(state).update(leaves=["left", "right"]), r"leaves\[0\] must be a dict"),
    "leaves of words": (member(0, leaves="left"), r"members\[0\].leaves must be a dictionary"),
    "leaves without a kernel": (
        lambda state: leaves_of(state).pop("kernel"),
        "leaves must be a dictionary with 'kernel'",
    ),
    "a kernel of local models for other columns": (
        lambda state: leaves_of(state)["kernel"]["parameters"].update(length_scale=np.ones(3)),
        "length_scale has shape",
    ),
    "a region, as no version had": (member(0, region={"directions": np.eye(4)}), r"members\[0\].region must be None"),
    "a parent, as no version had": (member(1, parent=0), r"members\[1\].parent must be None"),
    "a negative weight": (member(1, weight=-0.5), "weight must be a positive number"),
    "a weight of zero": (member(1, weight=0.0), "weight must be a positive number"),
    "a weight that is no number": (member(1, weight=np.nan), "weight must be a positive number"),
    "no members": (lambda state: state["fitted"].update(members=[]), "members must be one or more members"),
    "no rows left out": (lambda state: state["fitted"].update(left_out=[]), "left_out must be one for every member"),
    "rows left out of one member": (lambda state: state["fitted"]["left_out"].pop(), "left-out rows for every member"),
    "fewer rows left out of one": (
        lambda state: state["fitted"]["left_out"][1].update(weight=np.ones(149)),
        r"left_out\[1\].weight must be",
    ),
    "features of another estimator": (
        lambda state: state["fitted"]["members"][1].update(
            features={"root": np.ones(4), "intercept": False},
            functions=[{"target": 0, "offset": 0.0, "posterior": {"precision": np.eye(4), "linear": np.zeros(4)}}],
        ),
        "the members of a BayesianSVC have InducingFeatures",
    ),
    "weights whose sum is infinite": (
        lambda state: [one.update(weight=1e308) for one in state["fitted"]["members"]],
        "members must be one or more members",
    ),
    "a class that there is not": (
        lambda state: state["fitted"]["left_out"][1].update(y=np.full(150, 2)),
        "class numbers from 0 to 1",
    ),
    "numbers of other rows": (
        lambda state: state["fitted"].update(left_out_rows=np.arange(149)),
        "left_out_rows must be",
    ),
    "the link of more classes": (
        member(1, link={"name": "Softmax", "parameters": {"scale": 1.0, "bias": [0.0, 0.0]}}),
        r"members\[1\].link",
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
        lambda state: state["fitted"]["members"][1]["functions"].extend(state["fitted"]["members"][1]["functions"]),
        r"the number of .*members\[1\].functions must be 1",
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
    assert state.keys() == {"parameters", "classes", "n_features", "feature_names", "fitted", "beside", "completion"}
    first, second = state["fitted"]["members"]
    assert second.keys() == {"features", "functions", "weight", "link"}
    assert first.keys() == {*second, "leaves"}
    assert first["leaves"].keys() == {"tree", "kernel", "leaves"}
    assert first["leaves"]["tree"].keys() == {"directions", "thresholds", "below", "beyond"}
    assert first["leaves"]["leaves"][0].keys() == {"points", "functions"}
    assert second["functions"][0].keys() == {"target", "offset", "posterior"}


def test_a_checkpoint_is_no_model(tmp_path):
    BayesianSVC(n_inducing=5, tune=None, random_state=0).fit(X, TWO, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="contains a 'checkpoint', which .* cannot read as a model; pass a model"):
        bayesvm.load(tmp_path / "c")
    persistence.write(tmp_path / "later", "BayesianOther", {})
    with pytest.raises(ValueError, match="contains a 'BayesianOther', .*; upgrade bayesvm"):
        bayesvm.load(tmp_path / "later")
