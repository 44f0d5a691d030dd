"""Small tables of the kinds that people have: each is read rightly, or refused with the place and the remedy."""

import json
import warnings

import numpy as np
import pytest

from bayesvm.workflow import TableModel
from tests.cli.driver import bayesvm

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
Y = np.where(X + RNG.normal(size=N) > 0, "yes", "no")
Z = RNG.choice(["a", "b", "c"], N)
DAYS = np.datetime64("2012-01-20") + np.arange(N)
PARTS = [str(day).split("-") for day in DAYS]  # year, month, day
AGES = 17 + np.arange(N) % 40


def csv(sep=",", end="\n", **columns):
    """A table with the columns x, z and y, changed or extended by others."""
    usual = {"x": [f"{x:.4f}" for x in X], "z": Z, "y": Y} | columns
    shown = {name: values for name, values in usual.items() if values is not None}
    lines = [sep.join(name.replace("__", " ") for name in shown)]
    lines += [sep.join(map(str, row)) for row in zip(*shown.values(), strict=True)]
    return end.join(lines) + end


def with_cell(values, row, text):
    found = list(map(str, values))
    found[row] = text
    return found


def dates(order, sep):
    return [sep.join(parts["ymd".index(part)] for part in order) for parts in PARTS]


MISSING = np.where(Y == "yes", RNG.random(N) < 0.9, RNG.random(N) < 0.1)
SPELLINGS = with_cell(with_cell(Y, 3, "YES"), 4, "No ")
PRICES = [f'"${1000 + 37 * k % 61 * 13:,}.00"' for k in range(N)]
LINEAR = ("--linear",)
USUAL = {"x": "number", "z": "category"}
# File, words, what is printed on stdout or stderr; then "column: kind" of what was learned, or the exit code 1.
TABLES = {
    "plain": (csv(), LINEAR, [], USUAL),
    "spellings of the target": (csv(y=SPELLINGS), LINEAR, ["'No' is read as 'no', 'YES' as 'yes'"], USUAL),
    "spellings of a column": (
        csv(z=np.where(Z == "a", "Rome", np.where(Z == "b", "ROME ", "Oslo"))),
        LINEAR,
        ["column 'z': ", "differ only by case or spaces"],
        USUAL,
    ),
    "genotypes": (csv(z=np.choose(np.arange(N) % 3, ["AA", "Aa", "aa"])), LINEAR, [], USUAL),
    "ISO dates": (csv(d=DAYS), LINEAR, [], USUAL | {"d": "date"}),
    "US dates": (csv(d=dates("mdy", "/")), LINEAR, [], USUAL | {"d": "date"}),
    "German dates": (csv(";", d=dates("dmy", ".")), LINEAR, ["separator ';'"], USUAL | {"d": "date"}),
    "compact dates": (
        csv(d=dates("ymd", "")),
        LINEAR,
        ["whole numbers such as 20120120 are read as dates"],
        USUAL | {"d": "date"},
    ),
    "ambiguous dates": (
        csv(d=[f"0{1 + k % 9}/0{1 + k % 7}/2012" for k in range(N)]),
        LINEAR,
        ["day and month may be interchanged"],
        USUAL | {"d": "date"},
    ),
    "mixed dates": (
        csv(d=[iso if k % 5 < 2 else us for k, (iso, us) in enumerate(zip(DAYS, dates("mdy", "/"), strict=True))]),
        LINEAR,
        ["also '2012-01-20' (t.csv, line 2); write all of them like 2024-04-03"],
        1,
    ),
    "one bad date": (csv(d=with_cell(DAYS, 40, "soon")), LINEAR, ["'soon' (t.csv, line 42)", "--missing"], 1),
    "ages as target": (
        csv(y=None, age=AGES),
        ("-t", "age", "--inducing", 10),
        ["the target 'age' looks like a regression target: BayesianSVR is fitted", "17 to 56, median 31.5; regression"],
        USUAL,
    ),
    "ages as classes": (
        csv(y=None, age=17 + np.arange(N) % 22),
        ("-t", "age", "--task", "classification", *LINEAR),
        ["22 distinct numeric values in 60 rows", "BayesianSVR (--task regression)"],
        1,
    ),
    "minus 999": (
        csv(w=with_cell([f"{x:.1f}" for x in X], 5, "-999.0")),
        ("--missing", "-999", *LINEAR),
        [],
        USUAL | {"w": "number"},
    ),
    "a missing text that never occurs": (
        csv(),
        ("--missing", "unknown", *LINEAR),
        ["no value of t.csv is 'unknown', given as a missing value"],
        USUAL,
    ),
    "informative missing values": (
        csv(w=np.where(MISSING, "", [f"{x:.3f}" for x in RNG.normal(size=N)])),
        LINEAR,
        ["the target depends on which values are missing in column 'w', so a feature marks them"],
        USUAL | {"w": "number"},
    ),
    "a leak": (
        csv(x=[f"{x:.3f}" for x in np.tile(X, 2)], z=np.tile(Z, 2), y=np.tile(Y, 2), w=np.tile((Y == "yes") * 1, 2)),
        LINEAR,
        ["column 'w' alone determines the classes of all 120 rows"],
        USUAL | {"w": "number"},
    ),
    "an index": (csv(id=range(N)), LINEAR, ["left out: id (distinct whole numbers in order: an index?)"], USUAL),
    "a blank name": (csv(**{"": range(N)}), LINEAR, ["left out: (unnamed column) (distinct"], USUAL),
    "an identifier": (csv(name=[f"n{k}" for k in range(N)]), LINEAR, ["left out: name (nearly all"], USUAL),
    "many constant columns": (
        csv(**{f"c{k}": [k] * N for k in range(50)}),
        LINEAR,
        ["left out: 50 columns (the same value in all rows): c0, c1, c2, c3 and 46 more"],
        USUAL,
    ),
    "a class with one row": (
        csv(y=with_cell(Y, 9, "maybe")),
        LINEAR,
        ["1 class has a single row: 'maybe' (t.csv, line 11)"],
        USUAL,
    ),
    "a row of totals": (
        csv() + "0,Total,no\n",
        LINEAR,
        ["t.csv, line 62, column 'z': the last row has 'Total' and looks like a total"],
        USUAL,
    ),
    "currency": (csv(p=PRICES), LINEAR, ["texts read as numbers: 'p' ('$1,000.00' is 1000)"], USUAL | {"p": "number"}),
    "decimal comma": (
        csv(";", x=[f"{x:.4f}".replace(".", ",") for x in X]),
        LINEAR,
        ["separator ';', decimal comma"],
        USUAL,
    ),
    "question marks": (
        csv(w=with_cell([f"{x:.1f}" for x in X], 5, "?")),
        LINEAR,
        ["texts read as missing values: 'w' ('?')"],
        USUAL | {"w": "number"},
    ),
    "one unknown age": (
        csv(age=with_cell(np.arange(N) % 30, 7, "unknown")),
        LINEAR,
        ["column 'age' is treated as categorical", "except 'unknown' (t.csv, line 9)", "--missing"],
        USUAL | {"age": "category"},
    ),
    "leading zeros": (
        csv(code=[f"00{k % 7}" for k in range(N)]),
        LINEAR,
        ["leading zeros dropped", "'code' ('000')"],
        USUAL | {"code": "number"},
    ),
    "rows without a target": (
        csv(y=with_cell(Y, 5, "")),
        LINEAR,
        ["1 row is left out of 60, because there is no value in column 'y' (first: t.csv, line 7)"],
        USUAL,
    ),
    "UTF-16 without a mark": (csv().encode("utf-16-le"), LINEAR, ["encoding utf-16-le"], USUAL),
    "a BOM and CR LF": (csv(end="\r\n").encode("utf-8-sig"), LINEAR, [], USUAL),
    "Latin-1": (csv(z=np.where(Z == "a", "é", Z)).encode("latin-1"), LINEAR, ["encoding cp1252"], USUAL),
    "JSON": (json.dumps([{"x": 1, "y": "a"}] * 30), LINEAR, ["it is JSON: convert it to CSV"], 1),
    "HTML": ("<table border='1'><tr><td>1</td></tr></table>", LINEAR, ["it is an HTML page"], 1),
    "a title above the names": (
        "Export of 2024\n" + csv(),
        LINEAR,
        ["line 2: 3 fields, but line 1 has one", "delete"],
        1,
    ),
    "no header": ("$1.00,$1.00,a\n$2.00,$3.00,b\n" * 20, LINEAR, ["--no-header"], 1),
    "a wrong target": (csv(), ("-t", "Y", *LINEAR), ["no column 'Y' (did you mean 'y'?)"], 1),
    "duplicate names": (csv(**{"x ": X}), LINEAR, ["'x' is column 1 and column 4"], 1),
    "one row": ("x,y\n1,a\n", LINEAR, ["the only row has one class: 'a'"], 1),
    "one class": (csv(y=["a"] * N), LINEAR, ["all 60 rows have one class: 'a'"], 1),
    "no rows": ("x,y\n", LINEAR, ["t.csv has no rows"], 1),
}


@pytest.mark.parametrize("kind", TABLES)
def test_it_is_read_rightly_or_refused_with_a_remedy(kind, tmp_path):
    content, words, printed, expected = TABLES[kind]
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    target = () if "-t" in words else ("-t", "y")
    done = bayesvm("fit", "t.csv", *target, *words, "--holdout", 0, "-q", "-o", "m.bayesvm", folder=tmp_path)
    text = " ".join((done.out + done.err).split())
    assert done.code == (1 if expected == 1 else 0), done.err
    for piece in printed:
        assert piece in text
    if not printed:
        assert done.err == ""
    if expected != 1:
        model = TableModel.load(tmp_path / "m.bayesvm")
        assert {column.name: column.kind for column in model.recipe.columns} == expected
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = bayesvm("predict", "m.bayesvm", "t.csv", folder=tmp_path)
        assert (predicted.code, predicted.out.count("\n") > N) == (0, True), predicted.err


def test_there_are_enough_kinds():
    assert len(TABLES) >= 27


def test_missing_values_of_new_rows_are_not_unseen_categories(tmp_path):
    (tmp_path / "t.csv").write_text(csv())
    assert bayesvm("fit", "t.csv", "-t", "y", "--linear", "-q", folder=tmp_path).code == 0
    (tmp_path / "new.csv").write_text("x,z\n,a\n1,\n2,d\n")
    done = bayesvm("predict", "t.bayesvm", "new.csv", folder=tmp_path)
    assert done.code == 0
    found = [line for line in done.err.splitlines() if line.startswith("Warning")]
    assert [line.partition("has ")[2].partition(";")[0] for line in found] == [
        "missing values, but had none in training",
        "missing values, but had none in training",
        "categories not seen in training",
    ]


def test_evaluation_on_training_rows_is_reported(tmp_path):
    (tmp_path / "t.csv").write_text(csv())
    (tmp_path / "new.csv").write_text(csv(x=X[::-1], y=Y[::-1]))
    (tmp_path / "without.csv").write_text(csv(y=None))
    assert bayesvm("fit", "t.csv", "-t", "y", "--linear", "-q", folder=tmp_path).code == 0
    assert "the model was trained on the table" in bayesvm("evaluate", "t.bayesvm", "t.csv", folder=tmp_path).err
    assert bayesvm("evaluate", "t.bayesvm", "new.csv", folder=tmp_path).err == ""
    refused = bayesvm("evaluate", "t.bayesvm", "without.csv", folder=tmp_path)
    assert refused.code == 1
    assert "without.csv has no column 'y' with the true values" in " ".join(refused.err.split())


def test_a_text_file_is_read_as_csv(tmp_path):
    (tmp_path / "t.txt").write_text(csv("|"))
    done = bayesvm("fit", "t.txt", "-t", "y", "--linear", "-q", folder=tmp_path)
    assert (done.code, done.err.strip()) == (0, "Note: t.txt: separator '|'")
    assert (tmp_path / "t.bayesvm").exists()


def test_a_warning_of_several_fits_is_shown_once(tmp_path):
    """Each column has one missing value; where that is held out, every pass over the table would say so."""
    n_rows = 2_000
    letters = np.tile(["a", "b"], n_rows // 2)
    columns = {f"c{k}": with_cell(letters, 7 * k, "") for k in range(12)}
    x = RNG.normal(size=n_rows)
    table = {"x": [f"{value:.3f}" for value in x], "z": None, "y": np.where(x > 0, "yes", "no")} | columns
    (tmp_path / "t.csv").write_text(csv(**table))
    fitted = bayesvm("fit", "t.csv", "-t", "y", "--linear", folder=tmp_path)
    warned = [line for line in fitted.err.splitlines() if "missing values, but had none in training" in line]
    assert fitted.code == 0, fitted.err
    assert warned
    assert len(warned) == len(set(warned))


def test_inspect_names_the_parts_of_dates(tmp_path):
    (tmp_path / "t.csv").write_text(csv(d=DAYS))
    bayesvm("fit", "t.csv", "-t", "y", "--linear", "--holdout", 0, "-o", "m.bayesvm", folder=tmp_path)
    shown = bayesvm("inspect", "m.bayesvm", folder=tmp_path).out
    assert "month, day of week, days" in shown
