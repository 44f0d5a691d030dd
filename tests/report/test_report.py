"""A report is one HTML file with everything in it, whatever the model and however its columns are called."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from bayesvm import BayesianSVC
from bayesvm.evaluation import Predictions, metrics
from bayesvm.evaluation.formatting import decimals_of
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import NumberColumn
from bayesvm.report import n_rows_shown, sections, write_report
from bayesvm.report.influence import setting
from bayesvm.workflow import EvaluatedRows, TableModel
from tests.recipes import with_recipe

from .conftest import NASTY, people

VOID = {"meta", "br", "hr", "img", "input", "link"}
PREDICTED = {"reliability", "histogram", "coverage", "roc", "precision"}
OF_TWO = {"thresholds", "lift"}
ALL = PREDICTED | OF_TWO | {"uncertainty", "tuning", "elbo", "importance"}


class Page(HTMLParser):
    """Checks that every tag is closed in order, and keeps what tests ask about."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []
        self.inside_figure = self.svgs = 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    @property
    def plots(self):
        return {name.removeprefix("plot-") for name in self.ids if name.startswith("plot-")}


@pytest.fixture(scope="session")
def written(folder):
    def write(name, model, test=None):
        return write_report(model, folder / f"{name}.html", test).read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="session")
def page(binary, written):
    return written("binary", binary)


def test_a_report_is_well_formed_and_whole(page, binary):
    parsed, estimator = Page(page), binary.estimator
    missing = set() if len(estimator.elbo_trace_) > 1 else {"elbo"}
    assert parsed.plots == (ALL - missing) | {f"dependence{i}" for i in range(4)}
    drawings = [attributes.get("class") for tag, attributes in parsed.tags if tag == "svg"]
    assert drawings.count(None) == len(parsed.plots)
    assert drawings.count("small") == 4  # a histogram of each column
    assert len(parsed.ids) == len(set(parsed.ids))
    order = ("quality", "probabilities", "columns", "decisions", "data", "rows", "model", "tuning")
    assert tuple(name for name in parsed.ids if name in order) == order
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in parsed.tags


def test_every_name_that_a_plot_refers_to_is_there(page):
    ids = set(Page(page).ids)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', page))
    assert used
    assert used <= ids


def test_nothing_is_loaded_and_nothing_runs(page):
    assert not re.search(r"https?://", page)
    assert "@import" not in page
    assert "@font-face" not in page
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in parsed.tags}
    for _, attributes in parsed.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_names_and_values_of_the_table_are_escaped(page, binary):
    assert NASTY not in page
    assert "<b>" not in re.sub(r"<b>(?=[\w&])", "", page)  # the level; our own bold words follow directly
    parsed = Page(page)
    assert NASTY in parsed.words
    assert 'a "quote"' in parsed.words
    assert "#010203 0.123456 收入" in parsed.words  # not taken for a colour, and no digit less
    assert "cost in $ or $" in parsed.words
    assert "</title>" in parsed.words
    assert "not & never" in parsed.words


def test_colours_are_those_of_the_page(page):
    plots = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    tags = "".join(re.findall(r"<[^>]+>", plots))
    assert "currentColor" in tags
    assert "var(--c0)" in tags
    assert not re.search(r"(?:fill|stroke): (?:#|black|white)", tags)
    assert "font-family" not in tags
    assert "prefers-color-scheme: dark" in page
    for number in range(6):
        assert len(re.findall(rf"--c{number}: #", page)) == 2


def test_metrics_are_those_of_the_evaluation(page, binary):
    for name, metric in metrics(binary.holdout.predictions).items():
        tile = re.search(rf'<div id="metric-{name}">.*?</div>', page, flags=re.DOTALL)[0]
        if name == "calibration_error" and metric.low <= 0:
            assert f"at most {metric.high:.3f}" in tile
            continue
        digits = decimals_of(metric.low, metric.high)
        assert f'<dd class="value">{metric.value:.{digits}f}</dd>' in tile
        assert f'<dd class="interval">{metric.low:.{digits}f} to {metric.high:.{digits}f}</dd>' in tile


def test_the_confusion_table_counts_all_rows(page, binary):
    table = re.search(r'<table class="confusion">.*?</table>', page, flags=re.DOTALL)[0]
    counts = [int(n) for n in re.findall(r'<td class="n (?:hit|miss|none)"[^>]*>(\d+)</td>', table)]
    said = binary.holdout.predictions
    assert counts == [int(((said.y == i) & (said.predicted == j)).sum()) for i in range(2) for j in range(2)]


def test_the_most_and_the_least_certain_rows_are_reported_as_the_table_has_them(page, binary):
    table = people()
    rows = page[page.index('<section id="rows">') : page.index('<section id="model">')]
    first, last = (re.findall(r"<tr><td class=\"n\">(\d+)</td>", part) for part in rows.split(">Most certain<"))
    said = binary.holdout.predictions
    doubt = dict(zip(binary.holdout.rows.tolist(), said.doubt[binary.holdout.sample], strict=True))
    ranked = sorted(doubt, key=doubt.get)
    assert sorted(map(int, last), key=doubt.get) == ranked[:10]
    assert sorted(map(int, first), key=doubt.get) == ranked[-10:]
    row = re.search(rf'<tr><td class="n">{first[0]}</td>(.*?)</tr>', rows)[1]
    assert re.search(rf'<td class="n">{table.age[int(first[0])]}<', row)


def test_the_same_model_gives_the_same_bytes_and_a_light_file(page, binary, written, folder):
    assert written("again", binary) == page
    assert len(page.encode()) < 500_000
    assert not list(folder.glob("*.tmp"))


@pytest.mark.slow
def test_a_saved_model_gives_the_same_report(page, binary, written, folder):
    binary.save(folder / "people.bayesvm")
    again = written("loaded", TableModel.load(folder / "people.bayesvm"))
    assert Page(again).words == Page(page).words


def test_many_classes(many, written):
    parsed = Page(written("many", many))
    assert PREDICTED | {"uncertainty", "elbo", "importance", "dependence0"} <= parsed.plots
    for word in ("setosa", "versicolor", "virginica", "without tuning", "petal length (cm)"):
        assert word in parsed.words


def test_a_linear_model(linear, written):
    parsed = Page(written("linear", linear))
    assert ALL - {"tuning", "elbo"} <= parsed.plots
    assert "tunes the size of its weights" in parsed.words


def test_without_rows_held_out_it_is_evaluated_by_leave_one_out(without_holdout, written):
    text = written("left_out", without_holdout)
    parsed = Page(text)
    assert "uncertainty" not in parsed.plots
    assert PREDICTED | OF_TWO | {"importance", "dependence0"} <= parsed.plots  # by inducing points
    assert "200 training rows, each left out in turn" in parsed.words
    assert "No rows were kept" in parsed.words
    assert f"{metrics(EvaluatedRows.left_out(without_holdout.estimator).predictions)['log_loss'].value:.4f}" in text


def test_a_linear_model_without_rows_says_what_is_missing(folder, written, linear):
    bare = TableModel(linear.estimator, linear.card)
    parsed = Page(written("bare", bare))
    assert "importance" not in parsed.plots
    assert "cannot be measured: no rows were kept" in parsed.words


@pytest.mark.slow
def test_an_estimator_alone_with_a_table_to_evaluate_it(plain, written):
    model, test = plain
    parsed = Page(written("plain", model, test))
    assert ALL - {"tuning"} <= parsed.plots
    assert "test.csv (100 rows)" in parsed.words
    assert "sepal length (cm)" in parsed.words


@pytest.mark.slow
def test_a_model_of_libsvm_files(from_libsvm, written):
    parsed = Page(written("libsvm", from_libsvm))
    assert "features of a LIBSVM file" in parsed.words
    assert {"importance", "dependence3"} <= parsed.plots


def test_a_test_table_comes_before_the_rows_held_out(binary, folder, written):
    people(100, seed=1).to_csv(folder / "other.csv", index=False)
    text = written("tested", binary, binary.evaluate(folder / "other.csv", name="other.csv"))
    assert "other.csv (100 rows)" in Page(text).words


def test_one_class_only_has_no_curves(binary, written):
    said = binary.holdout.predictions
    kept = np.flatnonzero(said.y[binary.holdout.sample] == 1)
    only = EvaluatedRows(
        said.take(binary.holdout.sample[kept]),
        np.arange(len(kept)),
        binary.holdout.X[kept],
        binary.holdout.rows[kept],
        "one class",
    )
    parsed = Page(written("one", binary, only))
    assert "roc" not in parsed.plots
    assert "–" in parsed.words  # there is no AUC


def test_a_folder_that_does_not_exist_is_reported_before_the_work(binary, folder):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(binary, folder / "nowhere" / "report.html")


@pytest.mark.slow
def test_a_model_from_a_file_gives_the_same_bytes(binary, folder, written, page):
    binary.save(folder / "same.bayesvm")
    assert written("same", TableModel.load(folder / "same.bayesvm")) == page


def test_it_opens_with_the_conclusion(page, binary):
    lead = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert len(lead) == 2
    first, second = lead
    said, (regression, boosting) = binary.holdout.predictions, binary.card["baselines"]
    shares = np.bincount(said.y) / said.n_rows
    assert first.startswith("This model predicts buys (&lt;/title&gt; or not &amp; never) and has an accuracy of ")
    assert f"an accuracy of {100 * said.correct.mean():.1f}% (95%: " in first
    assert f"has {100 * shares.max():.1f}%, logistic regression {100 * (1 - regression['error']):.1f}%" in first
    assert first.endswith(f"gradient boosting {100 * (1 - boosting['error']):.1f}% on the same rows.")
    assert f"{100 * metrics(said)['calibration_error'].high:.1f}" in second or "percentage points" in second
    assert re.search(r"(age|member)", second)


def test_the_rows_of_the_evaluated_and_of_the_final_model_are_both_reported(binary, page):
    n_rows = binary.card["n_rows"]
    words = Page(page).words
    assert f"{n_rows * 4 // 5:,} rows in each fold (the final model: {n_rows:,})" in words
    assert f"all used; the metrics are those of models fitted without the {n_rows:,} evaluated rows" in words
    held_out = replace(binary.holdout, source="held out: 20% of people.csv (60 rows)")
    model = replace(binary, holdout=held_out, card=binary.card | {"n_holdout": 60, "refitted": True})
    assert sections.trained_on(model) == f"{n_rows - 60:,} rows (the final model: {n_rows:,})"
    assert (
        "the metrics are those of a first model fitted without the 60 evaluated rows"
        in dict(sections.data_card(model))["rows"]
    )
    kept = replace(model, card=model.card | {"n_train": n_rows - 60, "refitted": False})
    assert sections.trained_on(kept) == f"{n_rows - 60:,} rows"


def test_a_table_of_others_is_not_set_beside_baselines_of_the_hold_out(binary, folder, written):
    people(100, seed=1).to_csv(folder / "others.csv", index=False)
    parsed = Page(written("others", binary, binary.evaluate(folder / "others.csv", name="others.csv")))
    assert "gradient boosting" not in parsed.words
    assert "always guessing" in parsed.words


def test_no_rows_shows_none(binary, folder, page):
    text = write_report(binary, folder / "no_rows.html", show_rows=False).read_text(encoding="utf-8")
    assert "Single rows were left out of this report" in Page(text).words
    assert ">Most certain<" in page
    assert ">Most certain<" not in text
    assert n_rows_shown(binary.holdout) == 20
    assert page.count('class="part') > 20  # contributions


def test_the_costs_of_thresholds_are_counted(page, binary):
    table = page[page.index('<section id="decisions">') : page.index('id="plot-thresholds"')]
    said = binary.holdout.predictions
    for ratio in (1, 5, 50):
        flags = said.positive >= 1 / (1 + ratio)
        cost = 100 * np.mean(flags & (said.y == 0)) + 100 * ratio * np.mean(~flags & (said.y == 1))
        row = re.search(rf'<tr><td class="n">{ratio}</td>.*?</tr>', table)[0]
        assert float(re.search(r"<b>([\d.]+)</b>", row)[1]) == pytest.approx(cost, abs=0.0501)


def test_booleans_are_points_and_a_column_without_a_name_has_words(folder, written):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X[:, 1] = X[:, 1] > 0
    recipe = Recipe((NumberColumn(""), NumberColumn("flag")))
    estimator = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0.5)
    y = (X[:, 0] + X[:, 1] > 0.5).astype(int)
    said = Predictions(estimator.classes_, y, estimator.predict_proba(X))
    text = written(
        "flags",
        TableModel(with_recipe(estimator, recipe)),
        EvaluatedRows(said, np.arange(200), X, np.arange(200), "flags"),
    )
    parsed = Page(text)
    assert "(unnamed column)" in parsed.words
    assert "0 or 1" in parsed.words
    assert setting(recipe, "flag", X).labels == ["0", "1"]
    assert setting(recipe, "", X).labels is None
