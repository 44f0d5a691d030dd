"""Tables of every format and kind of column, through fit and predict."""

import bz2
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from bayesvm.workflow import TableModel
from tests.cli.conftest import require_equal_values, some_people, write_csv
from tests.cli.driver import bayesvm


@pytest.fixture(scope="module")
def formats(tmp_path_factory, home):
    """The same new rows in every format."""
    folder = tmp_path_factory.mktemp("formats")
    table = pa.table({name: pa.array(column, from_pandas=True) for name, column in some_people(300, 1).items()})
    csv = (home / "new.csv").read_bytes()
    (folder / "a.csv.gz").write_bytes(gzip.compress(csv))
    (folder / "a.csv.bz2").write_bytes(bz2.compress(csv))
    (folder / "a.tsv").write_bytes(csv.replace(b",", b"\t"))
    pq.write_table(table, folder / "a.parquet")
    pyarrow.feather.write_feather(table, folder / "a.arrow", compression="uncompressed")
    coded = table.set_column(2, "education", table["education"].dictionary_encode())
    pq.write_table(coded, folder / "coded.parquet")
    (folder / "parts").mkdir()
    for number in range(3):
        pq.write_table(table.slice(100 * number, 100), folder / "parts" / f"{number}.parquet")
    return folder


@pytest.mark.parametrize(
    "source",
    ["a.csv.gz", "a.csv.bz2", "a.tsv", "a.parquet", "a.arrow", "coded.parquet", "parts", "parts/*.parquet"],
)
def test_predictions_do_not_depend_on_the_format(home, formats, source):
    expected = bayesvm("predict", "people.bayesvm", "new.csv", "-q", folder=home)
    done = bayesvm("predict", home / "people.bayesvm", source, "-q", folder=formats)
    assert (done.code, done.err) == (0, "")
    require_equal_values(done.out, expected.out)


@pytest.mark.parametrize(("kind", "name"), [("parquet", "a.parquet"), ("arrow", "a.arrow"), ("tsv", "a.tsv")])
def test_stdin_of_every_format(home, formats, kind, name):
    stdin = (formats / name).read_bytes()
    done = bayesvm("predict", home / "people.bayesvm", "-", "--format", kind, "-q", folder=formats, stdin=stdin)
    require_equal_values(done.out, bayesvm("predict", "people.bayesvm", "new.csv", "-q", folder=home).out)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow"])
def test_predictions_in_every_format(home, tmp_path, name):
    done = bayesvm("predict", "people.bayesvm", "new.csv", "--abstain", 0.1, "-o", tmp_path / name, "-q", folder=home)
    assert (done.code, done.out, done.err) == (0, "", "")
    readers = {"p.csv": pyarrow.csv.read_csv, "p.parquet": pq.read_table, "p.arrow": pyarrow.feather.read_table}
    table = readers[name](tmp_path / name)
    assert table.num_rows == 300
    assert table["prediction"].null_count or "" in table["prediction"].to_pylist()
    expected = TableModel.load(home / "people.bayesvm").predict_proba(home / "new.csv")[:, 1]
    np.testing.assert_allclose(table["probability_high"].to_numpy(), expected, rtol=1e-12)


def test_a_model_is_the_same_from_csv_and_parquet(tmp_path):
    columns = some_people(200, 2)
    write_csv(tmp_path / "a.csv", columns)
    pq.write_table(
        pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()}),
        tmp_path / "b.parquet",
        row_group_size=70,
    )
    for name in ("a.csv", "b.parquet"):
        assert bayesvm("fit", name, "-t", "income", "--linear", "-q", folder=tmp_path).code == 0
    a, b = TableModel.load(tmp_path / "a.bayesvm"), TableModel.load(tmp_path / "b.bayesvm")
    assert a.recipe == b.recipe
    np.testing.assert_array_equal(a.predict_proba(tmp_path / "a.csv"), b.predict_proba(tmp_path / "a.csv"))


def test_libsvm_from_end_to_end(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{1 if x > 0 else -1} 1:{x:.4f} 4:{rng.normal():.4f}" for x in rng.normal(size=80)]
    (tmp_path / "a.libsvm.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    done = bayesvm("fit", "a.libsvm.gz", "--linear", "--json", "-q", folder=tmp_path)
    assert json.loads(done.out)["features"] == 4
    done = bayesvm("evaluate", "a.bayesvm", "a.libsvm.gz", "--json", folder=tmp_path)
    assert json.loads(done.out)["metrics"]["error"]["value"] < 0.1
    assert "BayesianLinearSVC" in bayesvm("inspect", "a.bayesvm", folder=tmp_path).out
    (tmp_path / "new.svm").write_text("1 1:2\n-1 1:-2\n")  # lacks the last features
    done = bayesvm("predict", "a.bayesvm", "new.svm", "-q", "--no-uncertainty", folder=tmp_path)
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == ["1", "-1"]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1] * 30, [0, 1]),
        (["true", "false"] * 30, [False, True]),
        (["b c", "ä,d"] * 30, ["b c", "ä,d"]),
        ([3, 1, 2] * 20, [1, 2, 3]),
    ],
)
def test_labels_of_every_kind(small, labels, classes):
    quoted = [f'"{label}"' if "," in str(label) else label for label in labels]
    folder = small(y=quoted)
    done = bayesvm("fit", "table.csv", "-t", "y", "--linear", "--json", "-q", folder=folder)
    assert json.loads(done.out)["classes"] == classes
    assert bayesvm("predict", "table.bayesvm", "table.csv", "-o", "p.parquet", "-q", folder=folder).code == 0
    said = pq.read_table(folder / "p.parquet")
    assert said.column_names[1 : 1 + len(classes)] == [f"probability_{label}" for label in classes]
    assert set(said["prediction"].to_pylist()) <= set(classes)


def test_unseen_categories_and_new_missing_values_are_reported_and_predicted(small):
    folder = small()
    assert bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", folder=folder).code == 0
    write_csv(folder / "new.csv", {"x": [1.0, None, 1.0], "z": ["never", "a", None]})
    done = bayesvm("predict", "table.bayesvm", "new.csv", folder=folder)
    assert done.code == 0
    assert (
        "Warning: column 'z' has categories not seen in training; they count as none of the known categories"
        in done.err
    )
    header, unseen, _, missing = done.out.splitlines()
    require_equal_values(f"{header}\n{unseen}\n", f"{header}\n{missing}\n")  # new category, new missing value


def test_names_with_commas_spaces_and_umlauts(small):
    rng = np.random.default_rng(1)
    folder = small(**{'"a, b"': rng.normal(size=60), "größe in m": rng.normal(size=60), "x": rng.normal(size=60)})
    words = ["-t", "y", "--linear", "-q", "--json", "--drop", '"a, b", z']
    done = bayesvm("fit", "table.csv", *words, folder=folder)
    told = json.loads(done.out)
    assert told["left_out"] == {"a, b": "as requested", "z": "as requested"}
    assert told["columns"] == 2
    done = bayesvm("predict", "table.bayesvm", "table.csv", "-q", "--keep", 'größe in m,"a, b"', folder=folder)
    assert done.out.startswith('"größe in m","a, b","prediction"')


def test_categories_and_weights_and_columns(small):
    rng = np.random.default_rng(1)
    folder = small(code=rng.choice([10115, 20095, 80331], 60), w=rng.integers(0, 3, 60), extra=rng.normal(size=60))
    words = ["fit", "table.csv", "-t", "y", "--linear", "-q", "--json", "--categories", "code", "--weight", "w"]
    assert bayesvm(*words, "--columns", "x,code", folder=folder).code == 0
    told = json.loads(bayesvm("inspect", "table.bayesvm", "--json", folder=folder).out)
    assert {column["name"]: column["kind"] for column in told["columns"]} == {"x": "number", "code": "category"}
    assert sorted(told["columns"][1]["categories"]) == ["10115", "20095", "80331"]
    assert told["card"]["weight"] == "w"
    done = bayesvm("evaluate", "table.bayesvm", "table.csv", folder=folder)
    assert done.code == 0
    assert done.err.startswith("Warning: the model was trained on the table, so these metrics are too good")
    small("test.csv", code=rng.choice([10115, 20095], 60))
    done = bayesvm("evaluate", "table.bayesvm", "test.csv", folder=folder)
    assert done.code == 0
    assert "Warning: test.csv has no column 'w' of weights: all of its rows have equal weight" in done.err


def test_a_table_from_stdin_is_learned_from(home, tmp_path):
    stdin = (home / "people.csv").read_bytes()
    done = bayesvm("fit", "-", "-t", "income", "--linear", "-q", folder=tmp_path, stdin=stdin)
    assert "5-fold cross-validation of stdin.csv (400 rows)" in done.out
    expected = bayesvm("predict", home / "linear.bayesvm", home / "new.csv", "-q", folder=tmp_path).out
    assert bayesvm("predict", "model.bayesvm", home / "new.csv", "-q", folder=tmp_path).out == expected


def test_names_that_look_like_commands_to_the_terminal(small):
    rng = np.random.default_rng(1)
    folder = small(**{":smile:": rng.normal(size=60), "[red]": rng.choice(["[/b]", ":bug:", "x"], 60)})
    assert bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", "--drop", "x", folder=folder).code == 0
    told = bayesvm("inspect", "table.bayesvm", folder=folder).out
    assert all(name in told for name in (":smile:", "[red]", "[/b]", ":bug:"))


def test_nothing_is_held_out_if_so_wished(small):
    folder = small()
    done = bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", "--holdout", 0, folder=folder)
    assert "leave-one-out on the training rows" in done.out
    model = TableModel.load(folder / "table.bayesvm")
    assert model.holdout is None
    assert model.card["n_train"] == 60
    assert "leave-one-out on the training rows" in bayesvm("inspect", "table.bayesvm", folder=folder).out


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a.csv", "a"), ("b.csv.gz", "b"), ("folder", "folder"), ("folder/*.csv", "folder"), ("*.csv", "model")],
)
def test_a_model_has_the_name_of_its_table(tmp_path, monkeypatch, given, expected):
    from bayesvm.cli.options import model_file  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert str(model_file([given])) == f"{expected}.bayesvm"
    assert str(model_file(["-"])) == "model.bayesvm"


def european(text):
    """The same table as a program of Windows in Europe writes it."""
    header, *lines = text.splitlines()
    return "\r\n".join([header.replace(",", ";"), *(line.replace(",", ";").replace(".", ",") for line in lines), ""])


def test_a_european_csv_gives_the_same_model_and_reports_how_it_was_read(small):
    folder = small(town=["Köln", "Ulm", None] * 20)
    text = (folder / "table.csv").read_text(encoding="utf-8")
    (folder / "eu.csv").write_text(european(text), encoding="cp1252", newline="")
    noted = "Note: eu.csv: separator ';', decimal comma, encoding cp1252\n"
    for name in ("table", "eu"):
        done = bayesvm("fit", f"{name}.csv", "-t", "y", "--linear", "-q", folder=folder)
        assert (done.code, done.err) == (0, noted if name == "eu" else "")
    expected = bayesvm("predict", "table.bayesvm", "table.csv", "-q", folder=folder)
    done = bayesvm("predict", "eu.bayesvm", "eu.csv", "-q", folder=folder)
    assert (done.code, done.out, done.err) == (0, expected.out, noted)
    said = ["--sep", ";", "--decimal", ",", "--encoding", "cp1252"]
    for words in (
        ["predict", "eu.bayesvm", "eu.csv", "-q"],
        ["evaluate", "eu.bayesvm", "eu.csv"],
        ["report", "eu.bayesvm", "eu.csv"],
        ["fit", "eu.csv", "-t", "y", "--linear", "-q"],
    ):
        done = bayesvm(*words, *said, folder=folder)
        warned = "Warning: the model was trained on the table" if words[0] == "evaluate" else ""
        assert (done.code, done.err[: len(warned) or None]) == (0, warned)
    stdin = (folder / "eu.csv").read_bytes()
    done = bayesvm("predict", "eu.bayesvm", "-", "-q", *said, folder=folder, stdin=stdin)
    assert done.out == expected.out


def test_prices_and_shares_are_numbers(small):
    rng = np.random.default_rng(2)
    prices = [f'"${price:,.2f}"' for price in rng.uniform(10, 5000, 60)]
    folder = small(price=["?", *prices[1:]], share=[f"{share}%" for share in rng.integers(0, 100, 60)])
    done = bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", folder=folder)
    assert done.code == 0
    numbers, missing = done.err.splitlines()
    assert numbers.startswith("Note: table.csv: texts read as numbers: 'price' ('$")
    assert missing == "Note: table.csv: texts read as missing values: 'price' ('?')"
    facts = json.loads(bayesvm("inspect", "table.bayesvm", "--json", folder=folder).out)
    kinds = {column["name"]: column["kind"] for column in facts["columns"]}
    assert kinds["price"] == kinds["share"] == "number"


def test_a_table_without_names_and_with_codes_for_missing_values(small):
    folder = small(x=[-999, *range(59)])
    text = (folder / "table.csv").read_text()
    (folder / "bare.csv").write_text(text.split("\n", 1)[1])
    said = ["--no-header", "--missing", "-999"]
    done = bayesvm("fit", "bare.csv", "-t", "c3", "--linear", "-q", *said, folder=folder)
    assert (done.code, done.err) == (0, "")
    model = TableModel.load(folder / "bare.bayesvm")
    assert [column.name for column in model.recipe.columns] == ["c1", "c2"]
    assert model.recipe.medians[0] == 29  # of 0 to 58: -999 is missing
    done = bayesvm("predict", "bare.bayesvm", "bare.csv", "-q", *said, folder=folder)
    assert (done.code, len(done.out.splitlines())) == (0, 61)


def test_columns_that_are_kept_stay_as_they_are(small):
    folder = small(id=["-", " 007 ", "NA", None, *(f"id {k}" for k in range(56))])
    assert bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", "--drop", "id", folder=folder).code == 0
    done = bayesvm("predict", "table.bayesvm", "table.csv", "-q", "--keep", "id", "-o", "p.parquet", folder=folder)
    assert (done.code, done.err) == (0, "")
    kept = pq.read_table(folder / "p.parquet")["id"].to_pylist()
    assert kept[:5] == ["-", " 007 ", "NA", None, "id 0"]
