"""The result of a fit is one value: frozen, replaced as a whole, and the source of every fitted attribute."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, open_table, persistence, stop_on_interrupt
from bayesvm.datasets import waveform
from bayesvm.inference import calibrating, kernel_model
from bayesvm.kernels import Linear

DATA = waveform(300, random_state=0)
X, Y = DATA.X[:, 4:9], DATA.y
THREE = np.where(DATA.X[:, 12] > 2.0, "c", np.where(Y > 0, "b", "a"))

MODELS = {
    "kernel": lambda **how: BayesianSVC(n_inducing=12, tune=None, random_state=0, **how),
    "tuned": lambda **how: BayesianSVC(n_inducing=12, random_state=0, **how),
    "linear": lambda **how: BayesianLinearSVC(random_state=0, **how),
}
EVERY = {
    "classes_",
    "n_features_in_",
    "recipe_",
    "completion_",
    "fitted_",
    "elbo_",
    "elbo_trace_",
    "n_iter_",
    "n_passes_",
    "converged_",
}
EVERY |= {"interrupted_", "noise_", "n_samples_", "scale_", "loo_proba_", "loo_log_loss_", "loo_error_", "loo_indices_"}
CALIBRATED = {"calibration_scale_", "calibration_bias_"}
KERNEL = {"kernel_", "inducing_points_", "effects_", "relevance_"}
LINEAR = {"coef_", "intercept_", "coef_covariance_", "prior_variance_"}


def attributes(model):
    """The names of the fitted attributes that there are."""
    names = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    return {name for name in names if hasattr(model, name)}


def said(model):
    """All that is known of a model, as bytes and values."""
    known = {name: getattr(model, name) for name in attributes(model) - {"fitted_", "tuning_report_", "kernel_"}}
    known |= {"probabilities": model.predict_proba(X), **model.predict_uncertainty(X)}
    return {name: value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else value
            for name, value in known.items()}  # fmt: skip


# ---- which attributes there are ----


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_before_fit_there_are_no_attributes(make):
    model = make()
    assert attributes(model) == set()
    own = {name for name in EVERY | CALIBRATED | KERNEL | LINEAR if hasattr(type(model), name)}
    for name in own - {"prior_variance_"}:
        with pytest.raises(AttributeError, match=f"{name} is available only after fit"):
            getattr(model, name)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        ("kernel", "tuning_report_", "this BayesianSVC has no tuning_report_, which needs a fit that tunes"),
        ("kernel", "calibration_scale_", "which needs link='calibrated'"),
        ("kernel", "calibration_share_", "which needs link='calibrated' and two classes"),
    ],
)
def test_an_attribute_that_does_not_apply_says_what_it_needs(model, name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(MODELS[model](link="probit").fit(X, THREE), name)


@pytest.mark.parametrize(
    ("model", "y", "expected"),
    [
        (MODELS["kernel"](), THREE, EVERY | CALIBRATED | KERNEL),
        (MODELS["kernel"](), Y, EVERY | CALIBRATED | KERNEL | {"calibration_share_"}),
        (MODELS["kernel"](link="probit"), Y, EVERY | KERNEL),
        (MODELS["kernel"](link="probit"), THREE, EVERY | KERNEL),
        (MODELS["kernel"](kernel=Linear()), Y, EVERY | CALIBRATED | KERNEL - {"relevance_"} | {"calibration_share_"}),
        (MODELS["tuned"](), THREE, EVERY | CALIBRATED | KERNEL | {"tuning_report_"}),
        (MODELS["linear"](), THREE, EVERY | CALIBRATED | LINEAR),
        (MODELS["linear"](covariance="diagonal", max_iter=500), THREE, EVERY | CALIBRATED | LINEAR),
    ],
)
def test_attributes_that_do_not_apply_are_not_there(model, y, expected):
    model.fit(X, y)
    assert attributes(model) == expected
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        _ = model.nothing_


def test_a_stream_does_not_know_its_rows():
    model = MODELS["kernel"]().partial_fit(X, THREE, np.unique(THREE))
    assert attributes(model) == (EVERY | CALIBRATED | KERNEL) - {"loo_indices_"}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_fit_assigns_one_value_and_what_scikit_learn_requires(make):
    model = make().fit(NAMED, Y)
    new = vars(model).keys() - make().get_params().keys()
    assert new == {"fitted_", "classes_", "n_features_in_", "feature_names_in_", "recipe_", "completion_"}


def test_the_value_is_frozen():
    fitted = MODELS["tuned"]().fit(X, Y).fitted_
    for part in (fitted, fitted.training, fitted.member, fitted.member.functions[0], fitted.report, fitted.head):
        for name in vars(part):
            with pytest.raises(FrozenInstanceError):
                setattr(part, name, None)


def test_an_attribute_is_read_and_not_set():
    model = MODELS["kernel"]().fit(X, Y)
    for name in (EVERY | CALIBRATED | KERNEL) - {"classes_", "n_features_in_", "recipe_", "completion_", "fitted_"}:
        with pytest.raises(AttributeError, match=f"{name} cannot be set: it is a result of fit"):
            setattr(model, name, None)


# ---- fits that fail ----


class CallbackError(Exception):
    pass


def raising(error):
    def callback(progress):
        raise error

    return callback


NAMED = pd.DataFrame(X, columns=list("abcde"))
FRAME = pd.DataFrame(X[:, :3], columns=list("uvw"))  # other columns than those of the fit before
FAILURES = {
    "one class": (lambda model: model.fit(FRAME, np.zeros(300)), ValueError),
    "missing values": (lambda model: model.fit(FRAME * np.nan, Y), ValueError),
    "too few labels": (lambda model: model.fit(FRAME, Y[:-1]), ValueError),
    "a parameter": (lambda model: model.set_params(link="x").fit(X, Y), ValueError),
    "weights": (lambda model: model.fit(X, Y, np.full(300, -1.0)), ValueError),
    "held out": (lambda model: model.fit(X, THREE, held_out=(X, np.full(300, "z"))), ValueError),
    "a callback": (lambda model: model.fit(X, THREE, callback=raising(CallbackError)), CallbackError),
    "Ctrl-C": (lambda model: model.fit(X, THREE, callback=raising(KeyboardInterrupt)), KeyboardInterrupt),
    "numbers out of range": (lambda model: model.set_params(scale=None).fit(X * 1e200, Y), ValueError),
    "a stream without classes": (lambda model: model.partial_fit(NAMED, np.full(300, "z")), ValueError),
    "a stream of other columns": (lambda model: model.partial_fit(FRAME, Y), ValueError),
    "a stream of infinite values": (lambda model: model.partial_fit(NAMED * np.inf, Y), ValueError),
    "a stream without weight": (lambda model: model.partial_fit(NAMED, Y, None, np.zeros(300)), ValueError),
}


@pytest.mark.parametrize("warm_start", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", MODELS)
def test_after_a_failed_fit_the_model_is_what_it_was(name, failure, warm_start):
    fail, error = FAILURES[failure]
    model = MODELS[name](warm_start=warm_start).fit(NAMED, Y)
    before, kept = vars(copy.copy(model)), model.fitted_
    parameters = model.get_params()
    with pytest.raises(error):
        fail(model)
    model.set_params(**parameters)
    assert model.fitted_ is kept
    assert vars(model).keys() == before.keys()
    for attribute, value in before.items():
        assert vars(model)[attribute] is value, attribute


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", MODELS)
def test_after_a_failed_first_fit_there_is_nothing(name, failure):
    fail, error = FAILURES[failure]
    model = MODELS[name]()
    with pytest.raises(error):
        fail(model)
    assert attributes(model) == set()
    assert vars(model).keys() == model.get_params(deep=False).keys()


def test_a_failure_in_the_middle_of_tuning_leaves_the_model(monkeypatch):
    model = MODELS["tuned"]().fit(X, Y)
    kept = model.fitted_

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_model.inducing, "select", interrupted)
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        model.fit(X, THREE)
    assert model.fitted_ is kept
    assert list(model.classes_) == [-1, 1]


# ---- fits that follow another ----


@pytest.mark.parametrize("name", MODELS)
def test_a_second_fit_replaces_everything(name):
    again = MODELS[name]().fit(pd.DataFrame(X[:100, :3], columns=list("uvw")), THREE[:100]).fit(X, Y)
    once = MODELS[name]().fit(X, Y)
    assert vars(again).keys() == vars(once).keys()  # no names of columns are left
    assert attributes(again) == attributes(once)
    assert said(again) == said(once)


def test_a_second_fit_without_tuning_leaves_no_report():
    model = MODELS["tuned"]().fit(X, Y)
    assert hasattr(model, "tuning_report_")
    model.set_params(tune=None, link="probit").fit(X, Y)
    assert attributes(model) == EVERY | KERNEL


def test_a_warm_fit_of_other_classes_starts_anew():
    warm = MODELS["kernel"](warm_start=True).fit(X, Y)
    np.testing.assert_array_equal(
        warm.fit(X, THREE).predict_proba(X), MODELS["kernel"]().fit(X, THREE).predict_proba(X)
    )


# ---- copies ----


@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "copied",
    [
        lambda model: pickle.loads(pickle.dumps(model)),  # noqa: S301
        copy.deepcopy,
        copy.copy,
        lambda model: clone(model).fit(X, model.y_given),
        lambda model: pickle.loads(pickle.dumps(copy.deepcopy(model))),  # noqa: S301
    ],
    ids=["pickle", "deepcopy", "copy", "clone", "pickle of a deepcopy"],
)
def test_copies_give_bit_identical_predictions(name, y, copied):
    model = MODELS[name]().fit(X, y)
    model.y_given = y
    assert said(copied(model)) == said(model)
    np.testing.assert_array_equal(
        copied(model).sample_proba(X[:5], 3, random_state=0), model.sample_proba(X[:5], 3, random_state=0)
    )


def test_a_clone_is_not_fitted():
    model = MODELS["kernel"]().fit(X, Y)
    assert attributes(clone(model)) == set()


def test_a_copy_does_not_follow_a_later_fit():
    model = MODELS["kernel"]().fit(X, Y)
    before, other = model.predict_proba(X), copy.copy(model)
    model.fit(X[:100], THREE[:100])
    np.testing.assert_array_equal(other.predict_proba(X), before)


# ---- facts: scaling ----


@pytest.mark.parametrize("scale", ["standard", "common", "quantile", None])
def test_the_scaling_is_the_one_requested(scale, tmp_path):
    for model in (MODELS["kernel"](scale=scale), MODELS["tuned"](scale=scale, kernel="rbf", tune="loo")):
        model.fit(X, Y).save(tmp_path / "m")
        assert model.scale_ == bayesvm.load(tmp_path / "m").scale_ == scale


def test_the_scaling_that_tuning_chose_is_stored(tmp_path):
    rng = np.random.default_rng(0)
    f = rng.normal(size=(300, 2))
    heavy, y = np.sinh(3 * f), f[:, 0] * f[:, 1] + 0.3 * rng.normal(size=300) > 0
    model = BayesianSVC(n_inducing=40, random_state=0).fit(heavy, y)
    assert model.scale_ == "quantile"
    kept = model.tuning_report_.trials[model.tuning_report_.kept]
    assert kept.scale == "quantile"
    model.save(tmp_path / "m")
    assert bayesvm.load(tmp_path / "m").scale_ == "quantile"
    assert MODELS["linear"]().fit(X, Y).scale_ == "standard"


# ---- facts: the number of rows ----

WEIGHT = np.where(np.arange(300) % 5 == 0, 0.0, 1.5)
N_WEIGHTED = 240


def test_the_number_of_rows_counts_those_with_a_weight(tmp_path):
    for name, make in MODELS.items():
        assert make().fit(X, Y).n_samples_ == 300, name
        model = make().fit(X, Y, WEIGHT)
        assert model.n_samples_ == N_WEIGHTED, name
        model.save(tmp_path / "m")
        assert bayesvm.load(tmp_path / "m").n_samples_ == N_WEIGHTED, name


def test_the_number_of_rows_of_a_table(tmp_path):
    columns = {f"c{i}": X[:, i] for i in range(5)}
    parquet.write_table(pa.table(columns | {"y": THREE, "w": WEIGHT}), tmp_path / "t.parquet", row_group_size=70)
    features = list(columns)
    plain = open_table(tmp_path / "t.parquet", "y", columns=features)
    weighted = open_table(tmp_path / "t.parquet", "y", weight="w", columns=features)
    assert MODELS["kernel"]().fit(plain).n_samples_ == 300
    model = MODELS["kernel"]().fit(weighted)
    assert model.n_samples_ == N_WEIGHTED == len(model.loo_indices_)


def test_the_number_of_rows_of_a_dask_array():
    da = pytest.importorskip("dask.array")
    rows = [da.from_array(part, chunks=(70, *part.shape[1:])) for part in (X, Y, WEIGHT)]
    assert MODELS["kernel"]().fit(*rows[:2]).n_samples_ == 300
    assert MODELS["linear"]().fit(*rows).n_samples_ == N_WEIGHTED


def test_the_number_of_rows_of_a_stream_adds_up(tmp_path):
    model = MODELS["kernel"]().partial_fit(X[:100], Y[:100], [-1, 1])
    assert model.n_samples_ == 100
    model.partial_fit(X[100:], Y[100:])
    assert model.n_samples_ == 300
    model.partial_fit(X, Y, sample_weight=WEIGHT)
    assert model.n_samples_ == 300 + N_WEIGHTED
    model.save(tmp_path / "m")
    assert bayesvm.load(tmp_path / "m").partial_fit(X, Y).n_samples_ == 600 + N_WEIGHTED
    assert MODELS["linear"]().fit(X, Y).partial_fit(X, Y).n_samples_ == 600


def test_a_warm_fit_counts_its_own_rows():
    assert MODELS["kernel"](warm_start=True).fit(X, Y).fit(X[:200], Y[:200]).n_samples_ == 200


# ---- facts: the trial that became the model ----


class Killed(BaseException):
    """Not caught by any handler."""


def killer(at):
    """A callback that ends a fit at its update number ``at``; those before are in the checkpoint."""
    updates = []

    def callback(progress):
        updates.append(progress)
        if len(updates) == at:
            raise Killed

    return callback


def wavy(n_rows):
    """Needs many points."""
    rows = np.random.default_rng(0).uniform(-4, 4, (n_rows, 2))
    return rows, np.sin(3 * rows[:, 0]) * np.sin(3 * rows[:, 1]) > 0


def assert_kept(model, n_inducing):
    """The kept trial is the model, or its heaviest member, and a line for each of the others follows."""
    report, fitted = model.tuning_report_, model.fitted_
    assert len(report.trials) == report.kept + len(fitted.members)
    kept = report.trials[report.kept]
    assert kept.what == ("fit" if len(fitted.members) == 1 else f"fit, {fitted.member.weight:.0%}")
    assert kept.n_inducing == len(model.inducing_points_) == n_inducing
    first = calibrating.mean_loss(fitted.links[0], fitted.left_out[0])
    assert kept.loo == pytest.approx(first, rel=1e-12)
    assert kept.scale == model.scale_
    if len(fitted.members) == 1:
        assert model.loo_log_loss_ == pytest.approx(first, rel=1e-12)


def test_the_kept_trial_is_the_model_after_a_file_and_a_resume(tmp_path):
    rows, y = wavy(300)
    make = lambda: BayesianSVC(n_inducing=40, tol=1e-7, random_state=0)
    whole = make().fit(rows, y)
    assert len(whole.fitted_.members) > 1
    assert_kept(whole, 40)
    whole.save(tmp_path / "m")
    assert_kept(bayesvm.load(tmp_path / "m"), 40)
    for _ in range(50):  # lives of one update each, until one of the second member was kept
        with pytest.raises(Killed):
            make().fit(rows, y, callback=killer(2), checkpoint=tmp_path / "c", checkpoint_every=0)
        if "training of member 1" in persistence.read(tmp_path / "c")[2]:
            break
    else:
        pytest.fail("the second member was never reached")
    resumed = make().fit(rows, y, checkpoint=tmp_path / "c", checkpoint_every=0)
    finished = make().fit(rows, y, checkpoint=tmp_path / "c", checkpoint_every=0)
    for model in (resumed, finished):
        assert model.tuning_report_.kept == whole.tuning_report_.kept
        assert_kept(model, 40)
        assert model.tuning_report_.chosen == whole.tuning_report_.chosen
        np.testing.assert_array_equal(model.predict_proba(rows), whole.predict_proba(rows))


@pytest.mark.parametrize("how", [{}, {"tune": "loo"}, {"tune": "elbo"}, {"learn_inducing": True}], ids=repr)
def test_the_kept_trial_of_every_way_of_tuning(how):
    assert_kept(MODELS["tuned"](kernel="rbf", **how).fit(X, Y), 12)


def test_a_warm_fit_and_a_stream_keep_the_report():
    model = MODELS["tuned"](warm_start=True).fit(X[:200], Y[:200])
    report = model.tuning_report_
    assert model.fit(X, Y).tuning_report_ == report
    assert model.partial_fit(X, Y).tuning_report_ == report
