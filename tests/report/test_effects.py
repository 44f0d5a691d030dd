"""The report lists effects and members, by the columns of the table."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.report import write_report
from bayesvm.workflow import TableModel
from tests.effects import NAMES, categories, gains, given_effects, plain_model
from tests.recipes import with_recipe
from tests.storage.committees import committee, local_models

from .conftest import NASTY, fit
from .test_report import Page

pd = pytest.importorskip("pandas")


def page_of(model, folder, name):
    return Page(write_report(model, folder / f"{name}.html").read_text(encoding="utf-8"))


def of_gains(folder, name, **how):
    X, y = gains(**how)
    return fit(folder, name, pd.DataFrame(X, columns=NAMES).assign(y=y), "y", estimator=plain_model())


@pytest.mark.slow
def test_a_jump_is_listed_and_plotted(folder):
    model = of_gains(folder, "jumps")
    page = page_of(model, folder, "jumps")
    share = model.estimator.effects_[0].share
    assert f"effect of kind share gain one column {100 * share:.0f}%" in page.words
    assert "of gain, added to the kernel of all columns" in page.words
    assert {"effect0", "importance"} <= page.plots
    assert "committee" not in page.words


@pytest.mark.slow
def test_what_is_not_there_is_not_listed(folder):
    page = page_of(of_gains(folder, "smooth", jumps=False), folder, "smooth")
    assert "effects" not in page.ids
    assert not [name for name in page.plots if name.startswith("effect")]


def test_one_hot_columns_are_called_by_their_column_whatever_its_name(folder):
    X, y, _ = categories(400)
    X[:, 0] = X[:, 0].round(1)
    places = CategoryColumn(NASTY, ("city", "<b>", "coast", "$_{ $"))
    recipe = Recipe((NumberColumn("x", 0.0), places, CategoryColumn("day", ("Mo", "Tu", "We"))))
    estimator = given_effects(X, np.where(y, "</title>", "no"), tuple(range(1, 8)), (1, 2, 3, 4))
    page = page_of(TableModel(with_recipe(estimator, recipe)), folder, "places")
    assert f"{NASTY} × day pair of columns" in page.words
    assert f"{NASTY} one column" in page.words
    assert {"effect0", "effect1"} <= page.plots
    assert len(page.ids) == len(set(page.ids))
    assert "relative to its mean over the inducing points" in page.words


def test_of_many_classes_one_is_shown(folder):
    X, _, names = categories(400)
    y = np.where(X[:, 0] > 0.5, "a", np.where(X[:, 1] > 0, "b", "c"))
    page = page_of(TableModel(with_recipe(given_effects(X, y, (0,)), Recipe.plain(names))), folder, "three")
    assert "effect0" in page.plots


def test_the_members_of_a_committee_are_listed(folder):
    X, y = gains(300)
    models = [given_effects(X, y, (3,), n_inducing=size) for size in (20, 30)]
    together = committee(models, weights=(0.25, 0.75))
    page = page_of(TableModel(with_recipe(together, Recipe.plain(NAMES))), folder, "committee")
    assert "committee of 2 models, whose predictions are averaged" in page.words
    assert "25% standard RBF, one length-scale 20 0." in page.words
    assert "75% standard RBF, one length-scale 30 0." in page.words
    assert "leaves with local models" not in page.words
    local = TableModel(with_recipe(local_models(models), Recipe.plain(NAMES)))
    assert "leaves with local models" in page_of(local, folder, "local").words
