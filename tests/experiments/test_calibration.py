"""The page about calibration: its arithmetic, its rows, a small run from rows to page, and the page in docs/."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("experiments", reason="experiments do not come with the source distribution")

from experiments.calibration import __main__ as run
from experiments.calibration import judged, link_shapes, methods, page, sets, store
from scipy.special import ndtr
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC
from bayesvm.core.links import fit_probit
from bayesvm.datasets import waveform
from bayesvm.evaluation import Predictions, risk_coverage

ROOT = Path(__file__).parents[2]


def small(fewer):
    data = waveform(500, random_state=0)
    return sets.split(data.X, data.y, 250 * fewer, fewer)


def small_shift(fewer):
    inside, outside = small(fewer), waveform(80, random_state=2)
    return sets.Problem(inside.X, inside.y, {sets.SAME: inside.parts["test"], sets.BEYOND: (outside.X, outside.y)})


@pytest.fixture
def few_sets(monkeypatch):
    monkeypatch.setattr(
        sets,
        "SETS",
        made := {
            "one": sets.Set("a set", small, moved=slice(0, 5)),
            "moved on": sets.Set("a shift", small_shift, "shift"),
        },
    )
    monkeypatch.setattr(page, "SETS", made)
    monkeypatch.setattr(page, "TWO_PROBITS_FROM", 0)
    monkeypatch.setattr(
        methods, "fitted", lambda X, y: (BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(X, y), 0.5)
    )
    return made


def test_rows_are_moved_by_as_many_standard_deviations(few_sets):
    made = sets.problem("one")
    X, _ = made.parts["test"]
    for distance in sets.DISTANCES:
        moved, _ = made.parts[f"moved {distance}"]
        away = (moved - X) / made.X.std(axis=0)
        np.testing.assert_allclose(np.sqrt(np.mean(away[:, :5] ** 2, axis=1)), distance, atol=1e-9)
        assert not away[:, 5:].any()


def test_a_class_is_made_as_rare_as_requested(monkeypatch):
    X, y = np.arange(2000.0)[:, None], np.where(np.arange(2000) < 800, 1, -1)
    monkeypatch.setattr(sets, "table", lambda name: (X, y))
    made = sets.rarer("any", 0.05, 600)(1)
    assert np.mean(made.y == 1) == pytest.approx(0.05, abs=0.002)
    rows = np.concatenate([made.X, made.parts["test"][0]])[:, 0]
    assert len(np.unique(rows)) == len(rows)  # no row twice, none in both parts


def test_a_shift_is_learned_below_one_quantile_and_asked_above_another(monkeypatch):
    X, y = np.random.default_rng(0).random((1000, 2)), np.arange(1000) % 2 * 2 - 1
    monkeypatch.setattr(sets, "table", lambda name: (X, y))
    made = sets.shifted("any", 1, 0.5, 0.7, 200)(1)
    assert made.X[:, 1].max() <= np.median(X[:, 1])
    assert made.parts[sets.SAME][0][:, 1].max() <= np.median(X[:, 1])
    assert made.parts[sets.BEYOND][0][:, 1].min() > np.quantile(X[:, 1], 0.7)


def test_a_method_is_evaluated_against_ours_on_the_same_rows():
    rng = np.random.default_rng(0)
    p, ours = rng.random(500), rng.random(500)
    label = rng.random(500) < p
    found = judged.judged_part(p, label, judged.losses(ours, label), 50)
    assert found.behind[0] == pytest.approx(log_loss(label, p) - log_loss(label, ours))
    assert found.behind[1] < found.behind[0] < found.behind[2] < 0
    said = Predictions.of([False, True], label, np.column_stack([1 - p, p]))
    assert found.area[0] == pytest.approx(risk_coverage(said).area)
    assert found.area[1] < found.area[0] < found.area[2]


def test_the_area_of_tied_rows_lies_in_its_interval():
    rng = np.random.default_rng(1)
    p = rng.integers(0, 5, 2000) / 4
    label = rng.random(2000) < p
    order = np.argsort(label)  # one that would matter
    said = Predictions.of([False, True], label[order], np.column_stack([1 - p, p])[order])
    low, high = judged.area_interval(said, 100)
    assert low < risk_coverage(said).area < high


def test_the_process_is_tuned_on_half_and_learns_from_all():
    data = waveform(60, random_state=0)
    model = methods.gaussian_process(data.X.shape[1], 1, 0).fit(data.X, data.y)
    assert len(model[-1].base_estimator_.X_train_) == 60
    assert model[-1].kernel_.k2.length_scale != pytest.approx(np.sqrt(data.X.shape[1]))
    assert model.predict_proba(data.X).shape == (60, 2)


def test_from_rows_to_page(few_sets, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(judged, "RESAMPLES", 20)
    answers = ["ours", "boosting"]
    run.measure(tmp_path / "kept", few_sets, answers)
    assert capsys.readouterr().out.count("rows") == 2 * 2
    run.measure(tmp_path / "kept", few_sets, answers)  # all is kept
    assert capsys.readouterr().out == ""
    found = {name: judged.judged_set(tmp_path / "kept", name, 20) for name in few_sets}
    monkeypatch.setattr(judged, "judge", lambda folder: found)
    page.write(tmp_path / "kept", tmp_path / "calibration.md")
    text = (tmp_path / "calibration.md").read_text()
    assert "| one | a set | 21 | 250 | 250 |" in text
    assert "Our epistemic part** rises on one" in text
    assert "nan" not in text
    for plot in re.findall(r"\((calibration/\w+\.\w+)\)", text):
        assert (tmp_path / plot).exists()
    lines = (tmp_path / "calibration/metrics.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 5 * 7  # parts, methods, metrics
    one = store.read(tmp_path / "kept", "one", "ours")
    assert {f"said {method}" for method in methods.LINKS} < set(one[0])
    assert "| one | " in text.split("## The shape of our link")[1]


def test_three_probits_follow_kinks_that_two_cannot():
    rng = np.random.default_rng(0)
    m, v = 1.5 * rng.standard_normal(20_000), np.full(20_000, 0.01)

    def probability(m):
        return 0.6 * ndtr(0.7 * m) + 0.25 * ndtr(8 * (m + 1)) + 0.15 * ndtr(8 * (m - 1))

    sign = np.where(rng.random(20_000) < probability(m), 1.0, -1.0)
    found = link_shapes.fit_three(m, v, sign, fit_probit(m, v, sign, np.ones(20_000)))
    np.testing.assert_allclose(found[4:6], [-1, 1], atol=0.1)
    at = np.linspace(-3, 3, 61)
    np.testing.assert_allclose(link_shapes.mixture(found, at, 0.0), probability(at), atol=0.05)


def test_the_page_has_all_sets_and_methods():
    text = (ROOT / "docs/calibration.md").read_text()
    for name, each in sets.SETS.items():
        assert f"### {name}" in text or each.kind == "generated"
        assert f"| {name} | {each.about} |" in text
    for section in text.split("## Every set")[1].split("## Far")[0].split("\n### ")[1:]:
        for method in methods.METHODS:
            assert f"\n| {method} |" in section, (section[:20], method)
