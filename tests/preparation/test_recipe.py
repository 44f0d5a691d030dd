"""A recipe is learned from a table, kept, and applied to other tables."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bayesvm.data.tables import open_table
from bayesvm.preparation import Recipe, learn, open_files, prepared
from bayesvm.preparation.encoding import MISSING, RARE, CategoryColumn, NumberColumn


def frame(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    color = rng.choice(["red", "green", "blue", None], n_rows, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    color[:3] = ["mauve", "ochre", "taupe"]
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "count": rng.integers(0, 9, n_rows),
            "flag": rng.random(n_rows) < 0.3,
            "color": color,
            "sex": rng.choice(["f", "m"], n_rows),
            "id": [f"n{k}" for k in range(n_rows)],
            "constant": 1.0,
            "same": "x",
            "nothing": np.full(n_rows, np.nan),
            "y": rng.choice(["a", "b"], n_rows),
        }
    )


@pytest.fixture
def files(tmp_path):
    data = frame()
    data.to_parquet(tmp_path / "t.parquet")
    data.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


def learned(path, **choices):
    return learn(open_files(path), ["y"], **choices)


def test_what_is_learned(files):
    recipe = learned(files / "t.parquet")
    columns = {column.name: column for column in recipe.columns}
    data = frame()
    assert list(columns) == ["number", "count", "flag", "color", "sex"]
    assert [columns[name] for name in ("number", "count", "flag")] == [
        NumberColumn(name, complete=name != "number") for name in ("number", "count", "flag")
    ]
    assert recipe.medians[:3] == (data["number"].median(), data["count"].median(), 0.0)
    assert columns["color"] == CategoryColumn("color", ("red", "green", "blue", MISSING), rare=True, ignores_case=True)
    assert set(columns["sex"].categories) == {"f", "m"}
    assert recipe.names == (
        "number",
        "count",
        "flag",
        "color=red",
        "color=green",
        "color=blue",
        f"color={MISSING}",
        f"color={RARE}",
        f"sex={columns['sex'].categories[1]}",
    )
    assert recipe.groups["color"] == [3, 4, 5, 6, 7]
    assert recipe.inputs == tuple(name for name in data if name != "y")


def test_what_is_left_out_and_why(files):
    left_out = learned(files / "t.parquet", drop=["flag"]).left_out
    assert list(left_out) == ["flag", "id", "constant", "same", "nothing"]
    assert left_out["flag"] == "as requested"
    assert "an identifier?" in left_out["id"]
    assert left_out["constant"] == "the same value in all rows (1)"
    assert left_out["same"] == "the same value in all rows (x)"
    assert left_out["nothing"] == "no value in any row"


def test_features_are_those_of_pandas(files):
    recipe = learned(files / "t.parquet")
    data = frame()
    with prepared(files / "t.parquet", recipe, "y") as table:
        X, y, _ = table.rows(np.arange(table.n_rows))
    frequent = data["color"].where(data["color"].isin(["red", "green", "blue"]) | data["color"].isna(), RARE)
    dummies = pd.get_dummies(frequent.fillna(MISSING), dtype=float)
    expected = np.column_stack(
        [
            data["number"],
            data["count"],
            data["flag"],
            dummies[["red", "green", "blue", MISSING, RARE]],
            data["sex"] == recipe.columns[-1].categories[1],
        ]
    ).astype(float)
    np.testing.assert_allclose(X, expected, rtol=1e-12)
    assert y.tolist() == data["y"].tolist()


def test_csv_and_parquet_give_the_same_recipe_and_features(files):
    recipes = [learned(files / name) for name in ("t.parquet", "t.csv")]
    assert recipes[0] == recipes[1]
    rows = []
    for name in ("t.parquet", "t.csv"):
        with prepared(files / name, recipes[0]) as table:
            rows.append(table.rows(np.arange(table.n_rows)).X)
    np.testing.assert_array_equal(*rows)


def test_rows_and_back(files):
    recipe, data = learned(files / "t.parquet"), frame()
    decoded = recipe.decoded(recipe.encoded(pa.Table.from_pandas(data).to_batches()))
    assert decoded["number"] == [None if np.isnan(value) else value for value in data["number"]]
    assert decoded["count"] == data["count"].tolist()
    assert decoded["sex"] == data["sex"].tolist()
    rare = {"mauve": RARE, "ochre": RARE, "taupe": RARE, None: MISSING}
    assert decoded["color"] == [rare.get(c, c) for c in data["color"].astype(object).where(data["color"].notna(), None)]


def test_state_and_back(files):
    recipe = learned(files / "t.parquet", drop=["flag"])
    assert Recipe.from_state(recipe.state()) == recipe
    numbered = Recipe((), numbered=3, zero_based=True)
    assert Recipe.from_state(numbered.state()) == numbered
    old = {key: value for key, value in numbered.state().items() if key != "zero_based"}
    assert Recipe.from_state(old) == Recipe((), numbered=3)
    assert numbered.names == ("x1", "x2", "x3")
    assert numbered.decoded(np.eye(3)[:1]) == {"x1": [1.0], "x2": [0.0], "x3": [0.0]}


def test_values_that_training_had_not_are_reported_once(files):
    recipe = learned(files / "t.parquet")
    data = frame(50, seed=1)
    data.loc[3, "count"] = np.nan
    data.loc[4, "sex"] = "?"
    data.loc[5:9, "color"] = "never"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        X = recipe.encoded(pa.Table.from_pandas(data).to_batches())
    messages = [str(each.message) for each in told]
    assert messages == [
        "column 'count' has missing values, but had none in training; they are completed from the other columns",
        "column 'color' has categories not seen in training; they count as rare",
        f"column 'sex' has categories not seen in training; they count as {recipe.columns[-1].categories[0]}",
    ]
    assert np.isnan(X[3, 1])
    assert X[4, -1] == 0
    assert X[5, 3:8].tolist() == [0, 0, 0, 0, 1]


def test_a_missing_category_is_not_an_unseen_one(files):
    recipe = learned(files / "t.parquet", drop=["number"])
    data = frame(50, seed=1)
    data["count"] = data["count"].astype(float)
    data.loc[3, "count"], data.loc[4, "sex"] = np.nan, None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recipe.encoded(pa.Table.from_pandas(data).to_batches())
    usual = recipe.columns[-1].categories[0]
    assert [str(each.message) for each in told] == [
        "column 'count' has missing values, but had none in training; they are completed from the other columns",
        f"column 'sex' has missing values, but had none in training; they count as {usual}",
    ]


def test_rare_categories_of_training_and_few_new_ones_are_no_news(files):
    recipe = learned(files / "t.parquet")
    data = frame(50, seed=1).assign(color="ochre")
    data.loc[:1, "color"] = "never"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = Recipe.from_state(recipe.state()).encoded(pa.Table.from_pandas(data).to_batches())
    assert (X[:, 7] == 1).all()


def test_plain_recipes_take_numbers_as_they_are():
    recipe = Recipe.plain(["b", "a"])
    X = recipe.encoded(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_batches())
    assert X.tolist() == [[3, 1], [4, 2]]
    gap = recipe.encoded(pa.table({"a": [1.0, None], "b": [3.0, 4.0]}).to_batches())
    assert np.isnan(gap[1, 1])  # and a table of it is refused


def test_a_missing_value_of_a_plain_recipe_stays_missing(tmp_path):
    pq.write_table(pa.table({"a": [1.0, None], "b": [3.0, 4.0]}), tmp_path / "t.parquet")
    with prepared(tmp_path / "t.parquet", Recipe.plain(["a", "b"])) as table:
        np.testing.assert_array_equal(next(table.batches(2)).X, [[1, 3], [np.nan, 4]])


@pytest.mark.parametrize(
    ("n_categories", "seldom", "kept", "rare"),
    [(40, 0, 40, False), (50, 0, 50, False), (50, 2, 50, True), (51, 0, 50, True), (60, 2, 50, True)],
)
def test_at_most_fifty_categories(tmp_path, n_categories, seldom, kept, rare):
    """Besides the rare ones, which are one more feature."""
    texts = [f"l{k % n_categories:02d}" for k in range(2_000 - seldom)] + [f"seldom {k}" for k in range(seldom)]
    pq.write_table(pa.table({"z": texts, "y": ["a", "b"] * 1_000}), tmp_path / "t.parquet")
    (column,) = learned(tmp_path / "t.parquet").columns
    assert len(column.categories) == kept
    assert len(column.names) == kept + rare
    assert column.rare == rare


@pytest.mark.parametrize(
    ("n_rows", "count", "is_rare"), [(100, 4, True), (100, 5, False), (10_000, 19, True), (10_000, 20, False)]
)
def test_which_categories_are_rare(tmp_path, n_rows, count, is_rare):
    texts = ["seldom"] * count + ["a", "b"] * ((n_rows - count + 1) // 2)
    pq.write_table(pa.table({"z": texts[:n_rows], "y": ["a", "b"] * (n_rows // 2)}), tmp_path / "t.parquet")
    (column,) = learned(tmp_path / "t.parquet").columns
    assert ("seldom" not in column.categories) == is_rare == column.rare


def test_few_texts_are_no_identifiers(tmp_path):
    texts = [f"t{k}" for k in range(40)]
    pq.write_table(pa.table({"z": texts, "y": ["a", "b"] * 20}), tmp_path / "t.parquet")
    assert learned(tmp_path / "t.parquet").left_out == {}


@pytest.mark.parametrize(("n_rows", "n_categories", "left_out"), [(60, 50, False), (60, 51, True)])
def test_many_texts_in_few_rows_are_identifiers(tmp_path, n_rows, n_categories, left_out):
    assert identifier(tmp_path, n_rows, n_categories) == left_out


@pytest.mark.parametrize(
    ("n_rows", "n_categories", "left_out"), [(200, 100, False), (200, 101, True), (201, 101, True)]
)
def test_identifiers_have_a_text_for_more_than_every_second_row(tmp_path, n_rows, n_categories, left_out):
    assert identifier(tmp_path, n_rows, n_categories) == left_out


def identifier(folder, n_rows, n_categories):
    """Whether a column is taken for one."""
    texts = [f"t{k}" for k in range(n_categories - 1)] + ["often"] * (n_rows - n_categories + 1)
    columns = {"x": np.sin(np.arange(n_rows)), "z": texts, "y": ["a"] * n_rows}
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return "an identifier?" in learned(folder / "t.parquet").left_out.get("z", "")


@pytest.mark.parametrize(("sample", "n_used"), [(100, 100), (599, 599), (600, 600), (601, 600)])
def test_of_many_rows_some_are_learned_from(files, monkeypatch, sample, n_used):
    monkeypatch.setattr("bayesvm.preparation.learning.SAMPLE", sample)
    assert f"({n_used} in {n_used} rows)" in learned(files / "t.parquet").left_out["id"]


def test_the_rows_to_learn_from_are_a_random_choice(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.preparation.learning.SAMPLE", 100)
    pq.write_table(pa.table({"x": np.arange(10_000) + 0.5, "y": ["a", "b"] * 5_000}), tmp_path / "t.parquet")
    medians = [learned(tmp_path / "t.parquet", random_state=seed).medians[0] for seed in (0, 0, 1)]
    assert medians[0] == medians[1] != medians[2]
    for median in medians:
        assert abs(median - 5_000) < 2_500  # five standard errors


def test_single_precision_where_nothing_is_lost(tmp_path):
    table = pa.table({"x": pa.array([1.5, 2.5, 3.5], pa.float32()), "z": ["a", "b", "c"], "y": ["a", "b", "a"]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert learned(tmp_path / "t.parquet").dtype == np.float32
    pq.write_table(table.set_column(0, "x", table["x"].cast("float64")), tmp_path / "t.parquet")
    assert learned(tmp_path / "t.parquet").dtype == np.float64


def test_choices_of_columns(files):
    recipe = learned(files / "t.parquet", columns=["count", "sex", "count"], categories=["count"])
    assert [(column.name, column.kind) for column in recipe.columns] == [("count", "category"), ("sex", "category")]
    with pytest.raises(ValueError, match="no column 'nope'"):
        learned(files / "t.parquet", columns=["nope"])
    with pytest.raises(ValueError, match="as requested"):
        learned(files / "t.parquet", columns=["sex"], drop=["sex"])


def test_files_must_agree(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": ["1", "2"], "y": ["a", "b"]}), tmp_path / "1.parquet")
    with pytest.raises(TypeError, match="'x' holds number in .*0.parquet, but category in .*1.parquet"):
        learned(tmp_path)


def test_a_literal_rare_counts_as_rare(tmp_path):
    pq.write_table(pa.table({"z": [RARE, "a", "b"] * 20, "y": ["a", "b"] * 30}), tmp_path / "t.parquet")
    recipe = learned(tmp_path / "t.parquet")
    assert recipe.names == ("z=a", "z=b", f"z={RARE}")
    with pytest.warns(UserWarning, match="column 'z' has categories not seen in training; they count as rare"):
        X = recipe.encoded(pa.table({"z": [RARE, "a", "never"]}).to_batches())
    assert X.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_numbers_with_a_slip_are_reported(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k % 9},{'ab'[k % 2]}\n" for k in range(40)) + "n.a.,a\n")
    with pytest.warns(UserWarning, match="'x' is treated as categorical: nearly all values are numbers, except 'n.a.'"):
        learned(tmp_path / "t.csv")
    assert learned(tmp_path / "t.csv", categories=["x"]).columns[0].kind == "category"  # requested: no warning


def test_files_may_have_different_types_of_the_same_kind(tmp_path):
    whole, texts = [1, 2, None, 4] * 20, ["a", "b", None, "b"] * 20
    labels = pa.array(["a", "b"] * 40)
    halves = {
        "0.parquet": {"x": pa.array(whole, pa.int64()), "z": pa.array(texts)},
        "1.parquet": {"x": pa.array(whole, pa.float64()), "z": pa.array(texts).dictionary_encode()},
        "2.parquet": {"x": pa.nulls(80), "z": pa.nulls(80)},
        "3.parquet": {"x": pa.array([7] * 80, pa.uint8()), "z": pa.array(["c"] * 80, pa.large_string())},
    }
    for name, columns in halves.items():
        pq.write_table(pa.table(columns | {"y": labels}), tmp_path / name)
    recipe = learned(tmp_path)
    number, categories = recipe.columns
    assert number == NumberColumn("x")
    assert recipe.medians[0] == np.median([1, 2, 4] * 40 + [7] * 80)
    assert categories.categories == (MISSING, "b", "c", "a")
    with prepared(tmp_path, recipe, "y") as table:
        X = table.rows(np.arange(320)).X
    decoded = recipe.decoded(X)
    assert decoded["x"] == [*whole, *whole, *[None] * 80, *[7] * 80]
    assert decoded["z"] == [text or MISSING for text in [*texts, *texts, *[None] * 80, *["c"] * 80]]


@pytest.mark.parametrize("values", [[["a"], ["b", "c"]], [{"part": "a"}, {"part": "b"}]])
def test_several_values_in_a_row_are_refused(tmp_path, values):
    kind = pa.array(values).type
    pq.write_table(pa.table({"x": [1.0, 2.0], "z": values, "y": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(TypeError, match=r"column 'z' of .*t\.parquet holds several values in each row.*--drop z"):
        learned(tmp_path / "t.parquet")
    recipe = learned(tmp_path / "t.parquet", drop=["z"])
    pq.write_table(pa.table({"x": pa.array(values, kind), "y": ["a", "b"]}), tmp_path / "u.parquet")
    with pytest.raises(TypeError, match="'x' of .*is not numeric.*convert each of its parts"):
        prepared(tmp_path / "u.parquet", recipe)
    with pytest.raises(TypeError, match="the target 'z' of .* has type .*; labels must be"):
        prepared(tmp_path / "t.parquet", recipe, "z")


@pytest.fixture
def late_text(tmp_path, monkeypatch):
    """A CSV file with numbers in the first block, and in one column text further down."""
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 2**10)
    data = pd.DataFrame({"id": range(1_000), "x": np.arange(1_000) % 7, "w": 1 + np.arange(1_000) % 2})
    data["y"] = np.where(data["x"] > 3, "a", "b")
    data["id"] = data["id"].astype(str).where(data.index < 900, "id-" + data["id"].astype(str))
    data.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_text_below_the_first_block_is_reported_with_its_remedies(late_text):
    with pytest.raises(
        ValueError, match="line 902, column 'id': 'id-900' cannot be read as double.*leave.*--categories"
    ):
        open_files(late_text)
    recipe = learn(open_files(late_text, texts=["id"]), ["y", "w"], categories=["id"])
    assert recipe.needed == ["x"]
    assert "1,000 in 1,000 rows" in recipe.left_out["id"]


@pytest.mark.parametrize("choice", [{"drop": ["id"]}, {"columns": ["x"]}, {"columns": ["x", "id"], "drop": ["id"]}])
def test_columns_that_are_not_used_are_not_read(late_text, choice):
    opened = open_files(late_text, exact=["y"], weight="w", **choice)
    assert [part.schema.names for part in opened.rows.parts] == [["x", "w", "y"]]
    recipe = learn(opened, ["y", "w"], **choice)
    assert recipe.needed == ["x"]
    with opened.table(recipe, "y", "w") as table:
        rows = table.rows(np.arange(1_000))
    assert rows.X[:, 0].tolist() == [k % 7 for k in range(1_000)]
    assert rows.weight.tolist() == [1, 2] * 500
    for names in ("columns", "drop"):
        chosen = {names: ["x", "nope"]}
        with pytest.raises(ValueError, match="has no column 'nope'; it has 'id', 'x', 'w', 'y'"):
            learn(open_files(late_text, exact=["y"], texts=["id"], **chosen), ["y"], **chosen)


def test_prepared_tables_read_what_the_model_and_others_need(late_text):
    recipe = Recipe.plain(["x"])
    ids = [str(k) if k < 900 else f"id-{k}" for k in range(1_000)]
    for keep, expected in ((None, ["id", "x", "w", "y"]), ((), ["x"]), (["id", "x"], ["id", "x"])):
        with prepared(late_text, recipe, keep=keep) as table:
            assert table._rows.parts[0].schema.names == expected
            assert table.rows(np.arange(1_000)).X[:, 0].tolist() == [k % 7 for k in range(1_000)]
            if "id" in expected:
                batches = list(table.columns(["id", "x"]))
                assert [value for batch in batches for value in batch.column("id").to_pylist()] == ids
                assert str(batches[0].column("x").type) == "double"
    with prepared(late_text, recipe, "y", "w", keep=["w", "y"]) as table:
        assert table.rows(np.arange(3)).weight.tolist() == [1, 2, 1]
        assert table._rows.parts[0].schema.names == ["x", "w", "y"]
    with pytest.raises(ValueError, match="has no column 'nope'; it has 'id', 'x', 'w', 'y'"):
        prepared(late_text, recipe, keep=["nope"])
    with (
        prepared(late_text, recipe, keep=()) as table,
        pytest.raises(ValueError, match="has no column 'id'; what was read of it is 'x'"),
    ):
        table.columns(["id"])
    with pytest.raises(ValueError, match="columns of the model: 'z'; unknown to the model: 'id', 'x', 'w', 'y'"):
        prepared(late_text, Recipe.plain(["z"]), keep=())


@pytest.mark.parametrize(("first", "zero_based"), [(0, True), (1, False)])
def test_indices_count_as_in_training(tmp_path, first, zero_based):
    """Also for rows that lack the first feature, which do not tell."""
    (tmp_path / "train.libsvm").write_text(f"1 {first}:5 {first + 2}:7\n-1 {first + 1}:6\n")
    (tmp_path / "new.libsvm").write_text(f"1 {first + 1}:6\n-1 {first + 2}:7\n")
    with open_table(tmp_path / "train.libsvm") as table:
        assert table.zero_based is zero_based
        recipe = Recipe((), numbered=table.n_features, zero_based=table.zero_based)
    with prepared(tmp_path / "new.libsvm", recipe) as table:
        assert table.zero_based is zero_based
        assert table.rows(np.arange(2)).X.toarray().tolist() == [[0, 6, 0], [0, 0, 7]]
    (tmp_path / "zero.libsvm").write_text("1 0:5\n")
    if not zero_based:
        with pytest.raises(ValueError, match=r"zero\.libsvm has the index 0, but .* start at 1"):
            prepared(tmp_path / "zero.libsvm", recipe)


def test_other_formats_have_no_indices(files):
    with prepared(files / "t.csv", Recipe.plain(["count"])) as table:
        assert table.zero_based is None


@pytest.mark.parametrize("missing", [False, True])
def test_whole_numbers_that_a_float_rounds_are_reported(tmp_path, missing):
    numbers = [2**53 + 7 * i * i for i in range(40)]
    numbers = [None if missing and i == 3 else number for i, number in enumerate(numbers)]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"code": pa.array(numbers, pa.int64()), "kind": ["a", "b"] * 20}), path)
    with pytest.warns(UserWarning, match="column 'code' has integers above 2..53, which are rounded"):
        learn(open_files(path), (), keep=["code"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(open_files(path), (), categories=["code"], keep=["code"])  # names are not rounded
