"""The recipe on small stages: who is chosen, on which rows it is judged, and what the report says of it."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.cluster import KMeans

from bayesvm.core.features import InducingFeatures
from bayesvm.core.heads import Binary, classes
from bayesvm.core.latent import Block
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.linalg import NotPositiveDefiniteError
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import hyperparameters, judgements, tuning
from bayesvm.inference.screening import Found
from bayesvm.inference.tuning import Candidates, Tuner
from bayesvm.inference.tuning_report import HEADER, Report, Trial, TrialLog
from bayesvm.kernels import RBF, Laplacian

D = 4
PLAIN, SAME = ColumnScaler(), ColumnScaler(np.zeros(D), np.ones(D))
HIDING = ColumnScaler(np.zeros(D), np.array([1e3, 1.0, 1.0, 1.0]))  # makes the first column invisible
ONE_KERNEL = {"rbf": RBF(2.0, 4.0)}


@pytest.fixture(autouse=True)
def small_stages(monkeypatch):
    monkeypatch.setattr(tuning, "FIRST", tuning.Stage(150, 15, 4))
    monkeypatch.setattr(tuning, "RELEVANCE", tuning.Stage(300, 15, 8, on_few=12))
    monkeypatch.setattr(tuning, "REFINED", tuning.Stage(800, 20, 3, on_few=4))
    monkeypatch.setattr(tuning, "FRESH_POINTS", 15)
    monkeypatch.setattr(tuning, "FEWEST_REFINED", 200)
    monkeypatch.setattr(tuning, "RELEVANCE_FROM", 300)


def a_sample(n_rows, share=0.5, seed=0):
    """Two classes by the sign of the first column times the second; the others say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n_rows, D))
    y = (X[:, 0] * X[:, 1] > np.quantile(X[:, 0] * X[:, 1], 1 - share)).astype(int)
    return Block(X, y, None)


def noisy_sample(n_rows, seed=0):
    """Two classes whose log odds are linear, so that no kernel is certain of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n_rows, D))
    return Block(X, (rng.random(n_rows) < ndtr(X[:, 0] + 0.5 * X[:, 1])).astype(int), None)


def a_tuner(sample, rate=None, **changes):
    """With a base rate, prior means follow it."""
    given = {"workers": Workers(1), "rng": np.random.default_rng(0), "log": TrialLog()}
    head = Binary((rate or 0.5,))
    return Tuner(sample, sample.total_weight, head, LIKELIHOODS["exact"], rate is not None, **(given | changes))


def candidates(scalers=None, kernels=None, *, relevance=False, whole_recipe=False):
    return Candidates(scalers or {"plain": PLAIN}, kernels or ONE_KERNEL, whole_recipe, relevance)


def committee(sample, scalers=None, kernels=None, relevance=False, whole_recipe=True, **changes):
    """All entries that are worth averaging, and the report."""
    tuner = a_tuner(sample, **changes)
    found = candidates(scalers, kernels, relevance=relevance, whole_recipe=whole_recipe)
    return tuner.tune(found), tuner.log.report


def tuned(sample, *given, **changes):
    """The best entry, of a recipe without effects and averages."""
    entries, report = committee(sample, *given, whole_recipe=False, **changes)
    return entries[0], report


# ---- who is chosen ----


@pytest.mark.parametrize("relevance", [False, True])
def test_the_better_scaling_is_chosen_wherever_it_stands(relevance):
    for scalers in ({"hiding": HIDING, "plain": PLAIN}, {"plain": PLAIN, "hiding": HIDING}):
        entry, _ = tuned(a_sample(600), scalers, relevance=relevance)
        assert entry.scale == "plain"


def test_of_equals_the_first_is_chosen():
    for names in ("ab", "ba"):
        entry, _ = tuned(a_sample(600), dict.fromkeys(names, SAME))
        assert entry.scale == names[0]


def test_every_feature_gets_a_length_scale_where_rows_suffice_and_relevance_may_be_learned():
    entry, _ = tuned(a_sample(700), relevance=True)
    scales = np.asarray(entry.kernel.length_scale)
    assert scales.shape == (D,)
    assert scales[2:].min() > 2 * scales[:2].max()
    for n_rows, allowed in ((700, False), (250, True)):
        entry, _ = tuned(a_sample(n_rows), relevance=allowed)
        assert np.ndim(entry.kernel.length_scale) == 0


@pytest.mark.slow
def test_pure_noise_keeps_one_length_scale():
    for seed in range(3):
        sample = a_sample(700, seed=seed)
        noise = sample._replace(y=np.random.default_rng(seed).permutation(sample.y))
        entry, _ = tuned(noise, relevance=True)
        assert np.ndim(entry.kernel.length_scale) == 0


def test_relevance_must_be_clearly_better_unless_rows_are_many(monkeypatch):
    for clearly, safely, n_scales in ((0.5, 1e9, 1), (0.003, 1e9, D), (0.5, 700, D)):
        monkeypatch.setattr(tuning, "CLEARLY", clearly)
        monkeypatch.setattr(tuning, "SAFE_RELEVANCE", safely)
        entry, report = tuned(a_sample(700), relevance=True)
        assert np.size(entry.kernel.length_scale) == n_scales
        anew = [trial.kernel for trial in report.trials if trial.what == "on fresh rows"]
        assert ("rbf" in anew) == (safely == 1e9)  # one length-scale for all is a rival, or is not even tried
        assert "rbf, relevance" in anew


def test_scalings_that_fresh_rows_cannot_tell_apart_go_on_together():
    ranks = ColumnScaler(np.zeros(D), np.full(D, 1.1))  # only those are another model with relevance
    scalers = {"plain": PLAIN, "quantile": ranks}
    entries, report = committee(noisy_sample(900, seed=1), scalers, relevance=True, whole_recipe=False)
    assert sorted(entry.scale for entry in entries) == ["plain", "quantile"]
    last = [trial for trial in report.trials if trial.what == "refined"]
    assert sorted(trial.scale for trial in last) == ["plain", "quantile"]
    best, other = entries
    assert best.trial.loo == min(trial.loo for trial in last)
    assert other.trial in report.trials
    entries, _ = committee(a_sample(900), {"plain": PLAIN, "quantile": HIDING}, relevance=True, whole_recipe=False)
    assert [entry.scale for entry in entries] == ["plain"]


def test_what_is_far_behind_after_refinement_is_dropped():
    found = candidates({"plain": PLAIN, "hiding": HIDING})
    for scales in (("plain", "hiding"), ("hiding", "plain")):
        tuner = a_tuner(a_sample(900))
        entries = tuner._refined([tuner._first("rbf", scale, found) for scale in scales], found)
        assert [entry.scale for entry in entries] == ["plain"]
        refined = [trial.scale for trial in tuner.log.report.trials if trial.what == "refined"]
        assert refined == list(scales)


def test_more_rows_refine_the_kernel():
    few, _ = tuned(a_sample(200))
    many, report = tuned(a_sample(900))
    assert few.rows.source.n_rows <= 200
    assert many.rows.source.n_rows == 800
    assert [(trial.what, trial.n_rows) for trial in report.trials] == [
        ("first", 150),
        ("refined", 800),
        ("more points", 800),
    ]
    assert report.trials[-1].n_inducing == 2 * report.trials[-2].n_inducing
    assert many.gained == pytest.approx(report.trials[-2].loo - report.trials[-1].loo)


def test_the_last_search_has_as_many_points_as_the_sample_supports():
    found = candidates({"plain": PLAIN})
    for n_rows, n_points in ((450, 18), (900, 20), (300, 15)):  # one for 25 rows, between those of other stages
        tuner = a_tuner(a_sample(n_rows))
        (entry,) = tuner._refined([tuner._first("rbf", "plain", found)], found)
        assert len(entry.features.inducing_points) == n_points


def test_what_twice_the_points_gain_is_recorded_and_nothing_else_changes():
    """The loss with more points is that of another choice of them, from a cold start."""
    tuner, found = a_tuner(a_sample(900)), candidates({"plain": PLAIN})
    lines = tuner._refined([tuner._first("rbf", "plain", found)], found)
    before = len(tuner.log.report.trials)
    first, other = lines[0], dataclasses.replace(lines[0], name="other")
    entry, still = tuner._with_gain([first, other])
    (trial,) = tuner.log.report.trials[before:]
    assert (trial.what, trial.n_inducing) == ("more points", 2 * first.trial.n_inducing)
    assert entry.gained == pytest.approx(first.trial.loo - trial.loo)
    assert still is other
    assert all(
        getattr(entry, field.name) is getattr(first, field.name)
        for field in dataclasses.fields(entry)
        if field.name != "gained"
    )
    centres = KMeans(trial.n_inducing, n_init=1, random_state=1).fit(first.rows.source.gathered().X).cluster_centers_
    again = judgements.judge(first.rows, InducingFeatures.build(first.kernel, centres), updates=100)
    assert trial.loo == pytest.approx(again.loo, abs=0.003)


@pytest.mark.parametrize("because", ["too few rows", "too few points allowed"])
def test_what_more_points_gain_is_not_asked_where_a_fit_could_not_have_them(because):
    few = because == "too few rows"
    tuner, found = a_tuner(a_sample(190 if few else 900), most_points=1_000 if few else 20), candidates()
    lines = [tuner._first("rbf", "plain", found)]
    before = len(tuner.log.report.trials)
    assert tuner._with_gain(lines) == lines
    assert len(tuner.log.report.trials) == before


def test_what_is_fixed_stays_and_is_tried_once():
    kernel = RBF(2.0, 4.0, "fixed", "fixed")
    entry, report = tuned(a_sample(500), kernels={"RBF": kernel})
    assert entry.kernel == kernel
    assert [trial.what for trial in report.trials] == ["first", "more points"]


TWO_KERNELS = {"rbf": RBF(2.0, 4.0), "laplacian": Laplacian(4.0, 4.0)}


@pytest.mark.parametrize("few", [True, False])
def test_every_kernel_is_kept_and_other_scalings_only_of_few_rows(monkeypatch, few):
    monkeypatch.setattr(tuning, "ONE_SCALING_FROM", 1e9 if few else 0)
    ranks = ColumnScaler(np.zeros(D), np.full(D, 1.1))
    scalers = {"plain": PLAIN, "quantile": ranks}
    entries, report = committee(noisy_sample(900), scalers, TWO_KERNELS, relevance=True, whole_recipe=False)
    assert {entry.name for entry in entries} == set(TWO_KERNELS)
    assert len(entries) == (tuning.MOST_LINES if few else 2)
    assert entries[0].score == min(trial.loo for trial in report.trials if trial.what == "refined")


def test_without_relevance_and_the_whole_recipe_the_better_kernel_is_chosen():
    for kernels in (TWO_KERNELS, dict(reversed(TWO_KERNELS.items()))):
        entry, report = tuned(a_sample(140), kernels=kernels)
        assert entry.score == min(trial.loo for trial in report.trials)
        assert {trial.kernel for trial in report.trials} == set(TWO_KERNELS)


def test_a_scaling_that_one_kernel_cannot_use_is_not_tried_with_the_next():
    _, report = tuned(a_sample(140), {"plain": PLAIN, "hiding": HIDING}, TWO_KERNELS)
    assert [(trial.kernel, trial.scale) for trial in report.trials if trial.what == "first"] == [
        ("rbf", "plain"),
        ("rbf", "hiding"),
        ("laplacian", "plain"),
    ]


# ---- committees of few rows ----


SCALINGS = {"plain": PLAIN, "stretched": ColumnScaler(np.zeros(D), np.full(D, 0.7))}


def test_few_rows_are_averaged_over_kernels_and_scalings_that_they_cannot_distinguish():
    entries, report = committee(noisy_sample(150), SCALINGS, TWO_KERNELS)
    assert {(entry.name, entry.scale) for entry in entries} == {(k, s) for k in TWO_KERNELS for s in SCALINGS}
    scores = [entry.score for entry in entries]
    assert scores == sorted(scores)
    assert all(entry.trial in report.trials for entry in entries)


def test_what_is_clearly_behind_is_not_averaged():
    entries, report = committee(a_sample(250), {"plain": PLAIN, "hiding": HIDING})
    assert [entry.scale for entry in entries] == ["plain"]
    assert {trial.scale for trial in report.trials} == {"plain", "hiding"}


def test_without_the_whole_recipe_there_is_one_entry():
    for n_rows in (250, 700):
        entries, report = committee(noisy_sample(n_rows), whole_recipe=False)
        assert len(entries) == 1
        assert not entries[0].features.effects
        assert "effects" not in {trial.what for trial in report.trials}


# ---- effects ----


@pytest.fixture
def a_jump():
    """A smooth function of two columns, and a jump in a third."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (1500, D))
    f = 1.5 * X[:, 0] + X[:, 1] + 4.0 * (np.floor(4 * X[:, 2]) % 2) - 2.0
    return Block(X, (rng.random(1500) < ndtr(f)).astype(int), None)


def test_a_jump_that_residuals_show_becomes_an_effect(a_jump):
    entries, report = committee(a_jump)
    without, _ = tuned(a_jump)
    (effect, *_) = entries[0].features.effects
    assert effect.columns == (2,)
    assert entries[0].judgement.loo < without.judgement.loo - 0.02
    (refined, found) = (next(t for t in report.trials if t.what == what) for what in ("refined", "effects"))
    assert found.n_rows == len(a_jump.y) > refined.n_rows  # more rows show smaller effects
    assert found.loo < refined.loo - 0.02


def test_an_effect_lowers_the_leave_one_out_loss(a_jump):
    entries, report = committee(a_jump)
    losses = {trial.what: trial.loo for trial in report.trials}
    assert losses["effects"] < losses["refined"] - 0.01
    assert entries[0].features.effects == entries[0].effects


def test_a_smooth_function_has_no_effects():
    entries, report = committee(noisy_sample(900))
    assert not entries[0].features.effects
    assert "effects" not in {trial.what for trial in report.trials}


def blind_after_refinement(monkeypatch, found):
    """The residuals of the refined kernel ask for nothing; those of the kernel before it, for what is given."""
    answers = iter([[], found])
    monkeypatch.setattr(tuning, "screened", lambda *_: next(answers))


def an_effect_of(column, sample):
    cells = np.floor(4 * (sample.X[:, column] + 1.5)).astype(int)
    return Found((column,), 1, cells, gain=50.0, prior_variance=3.0)


def test_an_effect_that_a_refined_kernel_hides_is_admitted_if_it_is_clearly_better(monkeypatch, a_jump):
    blind_after_refinement(monkeypatch, [an_effect_of(2, a_jump)])
    entries, _ = committee(a_jump)
    assert [effect.columns for effect in entries[0].effects] == [(2,)]


def test_an_effect_that_gains_nothing_after_refinement_is_not_admitted(monkeypatch):
    sample = noisy_sample(1500)
    blind_after_refinement(monkeypatch, [an_effect_of(3, sample)])
    entries, report = committee(sample)
    assert not entries[0].effects
    assert "effects" in {trial.what for trial in report.trials}  # it was tried


# ---- on which rows ----


@pytest.mark.parametrize("share", [0.5, 0.04], ids=["balanced", "a rare class"])
def test_relevance_is_judged_on_rows_that_it_was_not_learned_on(monkeypatch, share):
    learned, judged = [], []
    search, judge = tuning.search, tuning.judge

    def searched(rows, family, *given):
        if np.size(family.kernel.length_scale) > 1:
            learned.append({tuple(row) for row in rows.source.X})
        return search(rows, family, *given)

    def seen(rows, features, *given):
        if np.size(features.kernel.length_scale) > 1:
            judged.append({tuple(row) for row in rows.source.X})
        return judge(rows, features, *given)

    monkeypatch.setattr(tuning, "search", searched)
    monkeypatch.setattr(tuning, "judge", seen)
    monkeypatch.setattr(tuning, "REFINED", tuning.Stage(1, 1, 1, on_few=1))  # that is, not at all
    tuned(a_sample(700, share), relevance=True, most_points=15)
    assert learned
    assert judged
    assert not set.union(*learned) & set.union(*judged)


def test_a_rare_class_has_rows_enough_from_the_start():
    sample = a_sample(4000, share=0.02)
    _, report = tuned(sample)
    first = sample.y[: report.trials[0].n_rows]
    assert first.sum() >= 0.7 * classes.RARE_ROWS


@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_after_the_first_look_prior_means_are_those_of_the_base_rate(rate):
    sample = a_sample(500, share=rate)
    tuner = a_tuner(sample, rate)
    entry = tuner.tune(candidates())[0]
    (offset,) = tuner.offsets(entry)
    far = entry.judgement.link.score(np.array([offset]), np.array([entry.kernel.variance]))
    assert ndtr(far[0]) == pytest.approx(rate)
    assert a_tuner(sample).offsets(entry) == (0.0,)
    assert tuner.offsets(None) == (0.0,)


# ---- what is said of it ----


def test_the_report_has_a_line_for_every_trial_and_tells_who_listens():
    heard = []
    log = TrialLog(heard.append)
    _, report = tuned(a_sample(700), {"plain": PLAIN, "hiding": HIDING}, relevance=True, log=log)
    lines = str(report).splitlines()
    assert lines[0] == HEADER
    assert heard == list(report.trials)
    assert lines[1 : 1 + len(heard)] == [str(trial) for trial in heard]
    assert len({len(line) for line in lines[: 1 + len(heard)]}) == 1  # columns under each other
    assert "Chosen: scale 'plain'" in lines[1 + len(heard)]
    assert repr(report) == str(report)


def test_a_line_says_what_was_tried_and_its_loss():
    line = str(Trial("first", "quantile", "matern32, relevance", 12_345, 80, loo=0.54321, seconds=3.456))
    for word in ("first", "quantile", "matern32, relevance", "12,345", "80", "0.5432", "3.46"):
        assert f" {word} " in f" {line} "


def test_the_chosen_candidate_is_among_the_trials_with_its_own_loss():
    entry, report = tuned(a_sample(700), relevance=True)
    assert entry.trial in report.trials
    assert entry.score == entry.trial.loo


def test_kernels_that_failed_are_reported_once(monkeypatch):
    calls = []
    judge = judgements.judge

    def fragile(*given, **named):
        calls.append(given)
        if len(calls) % 3 == 0:
            raise NotPositiveDefiniteError("not")
        return judge(*given, **named)

    monkeypatch.setattr(hyperparameters, "judge", fragile)
    entry, report = tuned(a_sample(140))
    assert np.isfinite(entry.score)
    assert report.failed == len(calls) // 3 > 0
    assert str(report).count("kernels were skipped") == 1
    assert str(report.failed) in str(report).splitlines()[-1]
    assert "kernels were skipped" not in str(Report())


def test_more_points_whose_matrices_fail_are_not_taken(monkeypatch):
    def fragile(*_):
        raise NotPositiveDefiniteError("not")

    monkeypatch.setattr(tuning, "judge", fragile)  # not that of the searches
    entry, report = tuned(a_sample(900))
    assert (entry.gained, report.failed) == (0.0, 1)


def test_the_same_bits_whatever_the_number_of_threads():
    found = []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            entry, report = tuned(a_sample(700), {"plain": PLAIN, "same": SAME}, relevance=True, workers=workers)
            found.append([*entry.kernel.log_parameters(), *(trial.loo for trial in report.trials)])
    np.testing.assert_array_equal(*found)


# ---- the paper's way ----


@pytest.mark.parametrize("batch_size", [None, 100])
def test_evidence_notes_one_trial_and_learns(batch_size):
    tuner = a_tuner(a_sample(300))
    kernel = RBF(0.3, 1.0)
    entry = tuner.evidence(candidates(kernels={"rbf": kernel}), 15, 3, batch_size)
    assert [trial.what for trial in tuner.log.report.trials] == ["evidence"]
    assert "tune='elbo'" in str(tuner.log.report)
    assert entry.kernel.length_scale > 0.6
