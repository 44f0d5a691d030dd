"""What is said of effects and of committees, in the columns of the table."""

import json

import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.estimators.effects import column_name
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.workflow import TableModel
from bayesvm.workflow.describing import described
from tests.effects import NAMES, checkerboard, gains, plain_model
from tests.recipes import with_recipe

RECIPE = Recipe(
    (
        NumberColumn("age", 40.0, indicator=True),
        CategoryColumn("place", ("city", "forest", "coast")),
        CategoryColumn("member", ("yes", "no")),
    )
)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        (((0,),), ["age"]),
        (((1,),), ["age (missing)"]),
        (((2, 3, 4),), ["place"]),
        (((3,),), ["place=forest"]),
        (((5,),), ["member"]),
        (((0,), (2, 3, 4)), ["age", "place"]),
        (((2, 3, 4, 5),), ["place, member"]),
    ],
)
def test_effects_are_of_the_columns_of_the_table(factors, expected):
    assert [column_name(factor, RECIPE) for factor in factors] == expected


def test_a_jump_is_reported_and_kept_in_the_file(tmp_path):
    X, y = gains()
    model = TableModel(with_recipe(plain_model().fit(X, y), Recipe.plain(NAMES)))
    model.save(tmp_path / "m")
    for known in (described(model), described(TableModel.load(tmp_path / "m"))):
        (effect,) = known["effects"]
        assert effect["columns"] == ["gain"]
        assert effect["share"] == model.estimator.effects_[0].share
        assert known["members"] == []


@pytest.mark.parametrize("made", [plain_model(), BayesianLinearSVC()])
def test_without_effects_none_are_reported(made):
    known = described(TableModel(with_recipe(made.fit(*gains(jumps=False)), Recipe.plain(NAMES))))
    assert known["effects"] == known["members"] == []


@pytest.mark.slow
def test_the_members_of_a_committee_are_reported():
    estimator = BayesianSVC(n_inducing=60, random_state=0).fit(*checkerboard())
    known = described(TableModel(with_recipe(estimator, Recipe.plain(["age", "height", "month", "gain", "day"]))))
    assert [effect["columns"] for effect in known["effects"]] == [["month", "day"]]
    members, trials = known["members"], estimator.tuning_report_.trials[estimator.tuning_report_.kept :]
    assert len(members) == len(estimator.fitted_.members) > 1
    assert sum(member["weight"] for member in members) == pytest.approx(1)
    assert [member["weight"] for member in members] == sorted((m["weight"] for m in members), reverse=True)
    assert [member["scaling"] for member in members] == [trial.scale for trial in trials]
    assert [m["leave_one_out_log_loss"] for m in members] == pytest.approx([trial.loo for trial in trials])
    assert all("Laplacian" in m["kernel"] or "RBF" in m["kernel"] for m in members)
    assert {m["inducing_points"] for m in members} == {60}


@pytest.mark.slow
def test_inspect_prints_a_few_lines(tmp_path):
    bayesvm = pytest.importorskip("tests.cli.driver").bayesvm
    estimator = BayesianSVC(n_inducing=40, random_state=0).fit(*checkerboard(2000))
    names = ["age", "height", "month", "gain", "day"]
    TableModel(with_recipe(estimator, Recipe.plain(names))).save(tmp_path / "m.bayesvm")
    said = bayesvm("inspect", "m.bayesvm", folder=tmp_path)
    assert said.code == 0, said.err
    n_members = len(estimator.fitted_.members)
    assert f"A committee of {n_members} members" in said.out
    assert any(line.startswith("month × day ") for line in said.out.splitlines())
    told = json.loads(bayesvm("inspect", "m.bayesvm", "--json", folder=tmp_path).out)
    assert told["effects"][0]["columns"] == ["month", "day"]
    assert len(told["members"]) == n_members
