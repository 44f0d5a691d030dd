"""Plots of how a model was fitted: the ELBO, tuning, relevance."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.inspection import ElboTraceDisplay, RelevanceDisplay, TuningPathDisplay
from bayesvm.kernels import RBF

DATA = waveform(300, random_state=0)
X, y = DATA.X, DATA.y


@pytest.fixture(scope="module")
def tuned():
    return BayesianSVC(n_inducing=20, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def plain():
    return BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def relevant():
    """A length-scale for every feature, known because nothing is tuned."""
    kernel = RBF(np.linspace(2.0, 6.0, 21), 4.0)
    return BayesianSVC(kernel, n_inducing=20, tune=None, random_state=0).fit(X, y)


@pytest.mark.parametrize("display", [ElboTraceDisplay, TuningPathDisplay, RelevanceDisplay])
def test_what_is_not_fitted_or_not_ours(display):
    with pytest.raises(NotFittedError, match="not fitted"):
        display.from_estimator(BayesianSVC())
    with pytest.raises(NotFittedError, match="not fitted"):
        display.from_estimator(make_pipeline(StandardScaler(), BayesianSVC()))
    with pytest.raises(TypeError, match="needs a BayesianSVC.*; got LogisticRegression"):
        display.from_estimator(LogisticRegression().fit(X, y))


def test_elbo_is_that_of_one_row_where_their_number_is_known(plain, ax):
    found = ElboTraceDisplay.from_estimator(plain, ax=ax)
    assert found.ax_ is ax
    assert found.figure_ is ax.figure
    updates, elbo = found.line_.get_data()
    np.testing.assert_array_equal(updates, np.arange(1, plain.n_iter_ + 1))
    np.testing.assert_allclose(elbo * 300, plain.elbo_trace_)
    assert ax.get_ylabel() == "ELBO per row (nats)"
    assert ElboTraceDisplay.from_estimator(plain, n_rows=150).line_.get_ydata()[-1] == pytest.approx(plain.elbo_ / 150)
    of_old_file = copy(plain)
    of_old_file.fitted_ = replace(plain.fitted_, n_samples=None)
    found = ElboTraceDisplay.from_estimator(of_old_file, color="red")
    np.testing.assert_allclose(found.line_.get_ydata(), plain.elbo_trace_)
    assert found.ax_.get_ylabel() == "ELBO of all rows (nats)"
    assert found.line_.get_color() == "red"


@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearSVC(),
        make_pipeline(StandardScaler(), BayesianLinearSVC()),
        BayesianSVC(n_inducing=10, tune=None, inference="stochastic", random_state=0),
    ],
    ids=["linear", "pipeline", "stochastic"],
)
def test_elbo_of_other_models(model):
    last = model.fit(X, y) if not hasattr(model, "steps") else model.fit(X, y)[-1]
    assert len(ElboTraceDisplay.from_estimator(model).line_.get_xdata()) == last.n_iter_


def test_tuning_path_has_every_trial_and_marks_the_chosen(tuned, ax):
    found = TuningPathDisplay.from_estimator(tuned, ax=ax)
    trials = tuned.tuning_report_.trials
    assert found.ax_ is ax
    drawn = [point.get_data() for point in found.points_]
    np.testing.assert_allclose(np.hstack([loss for _, loss in drawn]), [trial.loo for trial in trials])
    np.testing.assert_array_equal(np.hstack([number for number, _ in drawn]), np.arange(1, len(trials) + 1))
    kept = trials[tuned.tuning_report_.kept]
    assert trials[found.kept] is kept
    assert kept.what.startswith("fit")
    assert [i for i, point in enumerate(found.points_) if point.get_marker() == "*"] == [found.kept]
    for i, trial in enumerate(trials):
        same = (trial.scale, trial.kernel) == (kept.scale, kept.kernel)
        assert (i + 1 in found.rings_.get_xdata()) == same
    colour = {(trial.kernel, point.get_color()) for trial, point in zip(trials, found.points_, strict=True)}
    assert len(colour) == len({trial.kernel for trial in trials})
    legend = {text.get_text() for text in ax.get_legend().get_texts()}
    assert legend >= {trial.kernel for trial in trials} | {f"scale: {trial.scale}" for trial in trials}
    assert "first, 300 rows" in [text.get_text() for text in ax.get_xticklabels()]


def test_of_two_fits_the_one_that_was_kept_is_starred():
    trial = {"what": "fit", "scale": None, "kernel": "rbf", "n_rows": 600, "seconds": 1.0}
    trials = [SimpleNamespace(**trial, loo=loo, n_inducing=m) for loo, m in ((0.2, 300), (0.199, 1000))]
    model = SimpleNamespace(
        tuning_report_=SimpleNamespace(trials=trials, kept=0),
        sample_proba=None,
        fit=None,
        fitted_=True,
    )
    model.__sklearn_is_fitted__ = lambda: True
    model.__sklearn_tags__ = BayesianSVC().__sklearn_tags__
    found = TuningPathDisplay.from_estimator(model)
    assert found.kept == 0
    assert [point.get_marker() for point in found.points_] == ["*", "o"]
    assert found.ax_.get_legend().get_texts()[1].get_text() == "scale: none"
    without = TuningPathDisplay(trials).plot()
    assert without.rings_ is None


def test_tuning_path_from_a_file_and_by_the_evidence(tuned, tmp_path):
    tuned.save(tmp_path / "model.bayesvm")
    again = TuningPathDisplay.from_estimator(bayesvm.load(tmp_path / "model.bayesvm"))
    assert len(again.points_) == len(tuned.tuning_report_.trials)
    climbed = BayesianSVC("rbf", tune="elbo", n_inducing=10, random_state=0).fit(X, y)
    assert [trial.what for trial in TuningPathDisplay.from_estimator(climbed).trials] == ["evidence", "fit"]


def test_no_tuning_report(plain):
    for model in (plain, BayesianLinearSVC().fit(X, y)):
        with pytest.raises(ValueError, match=f"{type(model).__name__} has no tuning report"):
            TuningPathDisplay.from_estimator(model)


def test_relevance_bars_are_the_shares_in_order(relevant, ax):
    found = RelevanceDisplay.from_estimator(relevant, ax=ax)
    widths = [bar.get_width() for bar in found.bars_]
    order = np.argsort(-relevant.relevance_)
    np.testing.assert_allclose(widths[:20], relevant.relevance_[order[:20]])
    assert sum(widths) == pytest.approx(1)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [f"column {i}" for i in order[:20]] + ["1 other together"]
    assert ax.yaxis_inverted()
    assert "not learned" not in ax.get_xlabel()


def test_relevance_of_groups_is_added_up(relevant):
    share = relevant.relevance_
    names = [f"x{i}" for i in range(21)]
    groups = {"colour": [0, 1, 2], "place": [20]}
    found = RelevanceDisplay.from_estimator(relevant, feature_names=names, groups=groups, top=100)
    by_name = dict(zip(found.names, found.relevance, strict=True))
    assert by_name["colour"] == pytest.approx(share[:3].sum())
    assert by_name["place"] == pytest.approx(share[20])
    assert by_name["x3"] == pytest.approx(share[3])
    assert list(by_name) == ["colour", *names[3:20], "place"]
    assert len(found.bars_) == 19
    two_of_one_name = RelevanceDisplay.from_estimator(relevant, groups={"column 3": [0, 1]}, top=100)
    assert len(two_of_one_name.bars_) == 20


def test_relevance_says_when_it_was_not_learned(plain):
    assert "not learned" in RelevanceDisplay.from_estimator(plain).ax_.get_xlabel()
    mixed = BayesianSVC(RBF(np.full(21, 4.0)) + RBF(4.0), n_inducing=10, tune=None).fit(X, y)
    assert "not learned" not in RelevanceDisplay.from_estimator(mixed).ax_.get_xlabel()


def test_relevance_has_the_names_of_the_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["wind", "rain", "sun"])
    model = BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(frame, y)
    assert set(RelevanceDisplay.from_estimator(model).names) == {"wind", "rain", "sun"}
    piped = make_pipeline(StandardScaler(), BayesianSVC(n_inducing=10, tune=None)).fit(frame, y)
    assert set(RelevanceDisplay.from_estimator(piped).names) == {"wind", "rain", "sun"}


def test_relevance_errors(relevant):
    linear = BayesianSVC("linear", n_inducing=10, tune=None).fit(X, y)
    for model in (linear, BayesianLinearSVC().fit(X, y)):
        with pytest.raises(ValueError, match="no length-scales.*coef_"):
            RelevanceDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="2 names for 21 columns"):
        RelevanceDisplay.from_estimator(relevant, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="'place' has column 21, but the model has 21"):
        RelevanceDisplay.from_estimator(relevant, groups={"place": [20, 21]})
    with pytest.raises(ValueError, match="column 1 is in two groups, 'a' and 'b'"):
        RelevanceDisplay.from_estimator(relevant, groups={"a": [0, 1], "b": [1]})
