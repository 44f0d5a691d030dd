"""Errors are reported in one sentence, before the work begins."""

import errno
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesvm.cli.app import run
from bayesvm.workflow import TableModel
from tests.cli.conftest import write_csv
from tests.cli.driver import bayesvm, environment, process

FIT = ("fit", "table.csv", "-t", "y", "--linear", "-q")


def told(done, *words, code=1):
    """The command failed with one sentence that has these words."""
    assert done.code == code, (done.out, done.err)
    assert done.out == ""
    sentence = done.err.splitlines()[-1]
    assert sentence.startswith("Error: ")
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.count("\n") == 1
    for word in words:
        assert word in sentence, sentence


@pytest.mark.slow
def test_exit_codes_and_tracebacks_of_a_process(small):
    folder = small()
    told(process("fit", "nope.csv", "-t", "y", folder=folder), "nope.csv does not exist")
    told(process("fit", "table.csv", "--nope", folder=folder), "No such option: --nope", code=2)
    with pytest.raises(FileNotFoundError):  # for Python to show
        bayesvm("fit", "nope.csv", "-t", "y", "--traceback", folder=folder)


def test_a_mistake_of_ours_has_its_traceback(small, monkeypatch):
    def slip(*_, **__):
        raise IndexError("list index out of range")

    monkeypatch.setattr("bayesvm.cli.fit.fit_table", slip)
    with pytest.raises(IndexError):
        bayesvm(*FIT, folder=small())


@pytest.mark.parametrize("error", [FloatingPointError, OverflowError, ZeroDivisionError])
def test_a_failure_of_arithmetic_is_reported_in_a_sentence(small, monkeypatch, error):
    def overflow(*_, **__):
        raise error("a number is too large")

    monkeypatch.setattr("bayesvm.cli.fit.fit_table", overflow)
    told(bayesvm(*FIT, folder=small()), "a number is too large")


def test_a_column_in_too_small_a_unit_is_named(small):
    folder = small()
    rows = np.random.default_rng(0).standard_normal((60, 2))
    lines = [f"{a},{b * 1e-200},{'no' if a > 0 else 'yes'}" for a, b in rows]
    (folder / "table.csv").write_text("\n".join(["a,b,y", *lines]))
    told(bayesvm(*FIT, folder=folder), "column 'b' varies by")


@pytest.mark.parametrize("code", [3, "no licence"])
def test_an_exit_that_no_broken_pipe_made_keeps_its_code(small, monkeypatch, code):
    def leave(*_, **__):
        raise SystemExit(code)

    monkeypatch.setattr("bayesvm.cli.fit.fit_table", leave)
    with pytest.raises(SystemExit) as left:
        bayesvm(*FIT, folder=small())
    assert left.value.code == code


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nonsense"], "No such command"),
        (["fit"], "Missing argument"),
        (["fit", "table.csv", "--seed", "x"], "--seed"),
        (["fit", "table.csv", "--seed", "-1"], "--seed"),
        (["fit", "table.csv", "--jobs", "0"], "--jobs"),
        (["fit", "table.csv", "-t", "y", "--linear", "--inducing", "9"], "no inducing points"),
        (["fit", "-", "-t", "y", "--format", "xml"], "--format must be one of csv"),
        (["fit", "-", "table.csv", "-t", "y"], "must be the only table"),
        (["fit", "-", "-t", "y", "--checkpoint", "kept"], "stdin cannot be read again"),
        (["predict", "m.bayesvm", "table.csv", "--json"], "give the predictions a file"),
        (["datasets", "nonsense"], "No such command"),
    ],
)
def test_wrong_usage(small, words, expected):
    told(bayesvm(*words, folder=small()), expected, code=2)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            {"day": ["2024-05-01"] * 50 + ["3/5/2024"] * 10},
            ["'day'", "holds dates", "'3/5/2024'", "leave the column out"],
        ),
        ({"y": [None] * 60}, ["no row has a value in column 'y'"]),
        ({"y": ["a"] * 60}, ["one class: 'a'"]),
        ({"y": np.linspace(0, 1, 60)}, ["line 3: the target 'y' is 0.0169", "Labels must be classes"]),
        ({"x": ["inf", *["1.5", "2.5", "3.5"] * 19, "1", "2"]}, ["line 2, column 'x'", "infinity"]),
        ({"x": ["1"] * 60, "z": ["a"] * 60}, ["no column", "the same value in all rows"]),
    ],
)
def test_tables_that_cannot_be_learned_from(small, columns, expected):
    told(bayesvm(*FIT, folder=small(**columns)), *expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ["table.csv is empty"]),
        (b"x,y\n", ["table.csv has no rows"]),
        (b"x,x,y\n1,2,a\n2,3,b\n", ["several columns named 'x'", "column 1 and column 2"]),
        (b"5,a,5\n1,b,2\n", ["column 1 and column 3; if the first line has values", "--no-header"]),
        (b"PK\x03\x04", ["table.csv", "Excel"]),
        (b"1,2,a\n2,3,b\n", ["no column 'y'"]),
        (b"1,2,3\n2,3,4\n", ["instead of column names", "--no-header"]),
        (b"x,y\n1,a\n2\n", ["line 3: expected 2 field(s) like the first line, got 1: '2'", "--sep"]),
        (b"x,y\n1,a\n2,b,c\n", ["line 3: expected 2 field(s) like the first line, got 3: '2,b,c'"]),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, expected):
    (tmp_path / "table.csv").write_bytes(content)
    told(bayesvm(*FIT, folder=tmp_path), *expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--sep", ";"], ["no column 'y'; it has 'x,name,y'. If the separator is wrong, specify it with sep= (--sep)"]),
        (["--sep", "no"], ["sep must be one character"]),
        (["--decimal", ","], ["table.csv, line 2, column 'x': '1.5'", "--decimal"]),
        (["--encoding", "ascii"], ["table.csv, line 2: text is not valid ascii", "--encoding"]),
        (["--encoding", "utf-99"], ["unknown encoding 'utf-99'"]),
        (["--no-header"], ["no column 'y'; it has 'c1', 'c2', 'c3'"]),
    ],
)
def test_wrong_options_of_csv(tmp_path, words, expected):
    (tmp_path / "table.csv").write_text("x,name,y\n" + "1.5,Jörg,a\n2.5,Ute,b\n" * 20, encoding="utf-8")
    told(bayesvm(*FIT, *words, folder=tmp_path), *expected)


def test_options_of_csv_for_other_files(tmp_path):
    pq.write_table(pa.table({"x": [1, 2] * 20, "y": ["a", "b"] * 20}), tmp_path / "table.parquet")
    done = bayesvm("fit", "table.parquet", "-t", "y", "--missing", "?", folder=tmp_path)
    told(done, "missing=['?'] applies to CSV files only; table.parquet is Parquet")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-t", "nope"], ["no column 'nope'", "it has 'x', 'z', 'y'"]),
        ([], ["no target column given"]),
        (["-t", "y", "--drop", "nope"], ["no column 'nope'"]),
        (["-t", "y", "--categories", "nope"], ["no column 'nope'"]),
        (["-t", "y", "--columns", "x,nope"], ["no column 'nope'"]),
        (["-t", "y", "--drop", "x,z"], ["no column", "as requested"]),
        (["-t", "y", "--weight", "z"], ["weights 'z'", "text"]),
        (["-t", "y", "--holdout", "1"], ["0 or more and below 1"]),
        (["-t", "y", "--time-limit", "-1"], ["time_limit"]),
        (["-t", "y", "--out", "nope/m.bayesvm"], ["the folder nope does not exist"]),
        (["-t", "y", "--out", "."], ["is a folder"]),
        (["-t", "y", "--out", "table.csv"], ["a file of the table itself"]),
        (["-t", "y", "--copy-to", "nope"], ["'nope' is not a folder"]),
        (["-t", "y", "--checkpoint", "table.csv"], ["not a bayesvm file"]),
        (["-t", "y", "--checkpoint", "./table.bayesvm"], ["both the model and the checkpoint"]),
    ],
)
def test_invalid_options_are_reported_before_the_fit(small, words, expected, monkeypatch):
    folder = small()
    before = (folder / "table.csv").read_bytes()
    told(bayesvm("fit", "table.csv", "--linear", *words, "-q", folder=folder), *expected)
    assert (folder / "table.csv").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["table.csv"]


def test_a_folder_that_may_not_be_written_is_reported_before_the_fit(small, monkeypatch):
    monkeypatch.setattr("bayesvm.cli.options.os.access", lambda *_: False)
    told(bayesvm(*FIT, folder=small()), "permission denied: table.bayesvm; set another --out")


def test_a_type_that_has_no_scale(tmp_path):
    pq.write_table(pa.table({"x": [[1], [2]] * 20, "y": ["a", "b"] * 20}), tmp_path / "table.parquet")
    told(bayesvm("fit", "table.parquet", "-t", "y", folder=tmp_path), "'x'", "several values in each row")


def test_a_slip_in_a_column_of_numbers_is_reported(small):
    done = bayesvm(*FIT, folder=small(x=["oops", "oops", *(np.arange(58) // 3)]))
    assert done.code == 0
    assert "Warning: column 'x' is treated as categorical: nearly all values are numbers, except 'oops'" in done.err


def test_wrong_columns_list_missing_and_extra_ones(home, tmp_path):
    write_csv(tmp_path / "wrong.csv", {"age": [40, 50], "sector": ["public", "private"], "Hours": [1, 2], "w": [3, 4]})
    done = bayesvm("predict", home / "people.bayesvm", "wrong.csv", folder=tmp_path)
    told(
        done,
        "columns of the model: 'education', 'occupation', 'married', 'hours'",
        "unknown to the model: 'Hours', 'w'",
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["predict", "nope.bayesvm", "new.csv"], ["nope.bayesvm", "no such file: nope.bayesvm; the folder has"]),
        (["predict", "new.csv", "new.csv"], ["not a bayesvm file"]),
        (["predict", "people.bayesvm", "nope/*.csv"], ["no file matches"]),
        (["predict", "people.bayesvm", "new.csv", "--abstain", "1.5"], ["between 0 and 1"]),
        (["predict", "people.bayesvm", "new.csv", "--keep", "nope"], ["no column 'nope'"]),
        (["predict", "people.bayesvm", "new.csv", "--out", "p.doc"], ["must end in one of .parquet"]),
        (["predict", "people.bayesvm", "new.csv", "--out", "nope/p.csv"], ["does not exist"]),
        (["predict", "people.bayesvm", "new.csv", "--out", "new.csv"], ["a file of the table itself"]),
        (["evaluate", "people.bayesvm", "new.csv", "--target", "sector"], ["not among the classes"]),
        (["evaluate", "people.bayesvm", "new.csv", "--target", "nope"], ["has no column 'nope' with the true values"]),
        (["compare", "people.csv", "-t", "income", "--holdout", "0"], ["needs evaluation rows"]),
        (["inspect", "nope.bayesvm"], ["nope.bayesvm", "no such file: nope.bayesvm; the folder has"]),
    ],
)
def test_wrong_use_of_a_model(home, words, expected):
    told(bayesvm(*words, "-q" if words[0] != "inspect" else "--json", folder=home), *expected)


@pytest.mark.parametrize("name", ["table.csv", "./table.csv", "table.bayesvm"])
def test_a_report_does_not_replace_what_it_is_made_from(small, name):
    folder = small()
    assert bayesvm(*FIT, folder=folder).code == 0
    before = (folder / name).read_bytes()
    expected = "the model itself" if name.endswith("bayesvm") else "a file of the table itself"
    told(bayesvm("report", "table.bayesvm", "table.csv", "--out", name, folder=folder), expected)
    assert (folder / name).read_bytes() == before


def test_a_report_does_not_replace_a_model_that_is_named_like_it(small):
    folder = small()
    assert bayesvm(*FIT, "--out", "m.html", folder=folder).code == 0
    told(bayesvm("report", "m.html", folder=folder), "the model itself")


def test_a_folder_for_a_dataset_is_reported_before_the_work(tmp_path):
    told(bayesvm("datasets", "fetch", "people", "-o", "no/people.csv", folder=tmp_path), "the folder no does not exist")
    told(bayesvm("datasets", "fetch", "people", "-o", ".", folder=tmp_path), "is a folder")


def test_a_column_that_predictions_have_cannot_be_kept(small):
    folder = small(lower=range(60))
    assert bayesvm(*FIT, "--drop", "lower", folder=folder).code == 0
    done = bayesvm("predict", "table.bayesvm", "table.csv", "--keep", "lower", "-o", "p.csv", folder=folder)
    told(done, "'lower' cannot be kept")
    assert not (folder / "p.csv").exists()


def test_text_where_the_model_has_numbers(small):
    folder = small()
    assert bayesvm(*FIT, folder=folder).code == 0
    write_csv(folder / "new.csv", {"x": ["much", 1], "z": ["a", "b"]})
    told(bayesvm("predict", "table.bayesvm", "new.csv", folder=folder), "'x' must hold numbers", "'much' (line 2)")


def test_libsvm_and_named_columns_do_not_mix(small):
    folder = small()
    assert bayesvm(*FIT, folder=folder).code == 0
    (folder / "a.libsvm").write_text("1 1:0.5 2:1\n-1 1:-0.5 2:1\n" * 20)
    assert bayesvm("fit", "a.libsvm", "--linear", "-q", folder=folder).code == 0
    told(bayesvm("predict", "table.bayesvm", "a.libsvm", folder=folder), "fitted to named columns")
    told(bayesvm("predict", "a.bayesvm", "table.csv", folder=folder), "fitted to numbered features")
    told(bayesvm("predict", "a.bayesvm", "a.libsvm", "--keep", "x1", folder=folder), "which has no named columns")
    told(bayesvm("fit", "a.libsvm", "--drop", "x1", folder=folder), "features have no names")


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_reported_before_the_fit(small, monkeypatch):
    folder = small()
    monkeypatch.setattr(os, "posix_fallocate", full_disk, raising=False)
    monkeypatch.setattr("bayesvm.cli.fit.fit_table", lambda *_, **__: pytest.fail("trained"))
    told(
        bayesvm(*FIT, folder=folder),
        "table.bayesvm could not be written (No space left",
        "free some space",
        "another --out",
    )
    assert [path.name for path in folder.iterdir()] == ["table.csv"]


LIMITED = """
import resource, sys
from bayesvm.cli import fit
from bayesvm.cli.app import run
train = fit.fit_table
def trained(*args, **options):
    model = train(*args, **options)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # no room from now on
    return model
fit.fit_table = trained
save, tries = fit.TableModel.save, []
def saved(model, path):
    tries.append(path)
    if len(tries) > 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    save(model, path)
fit.TableModel.save = saved
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no limits of POSIX")
def test_a_model_is_kept_elsewhere_if_the_disk_is_full_after_training(small, tmp_path):
    folder, elsewhere = small(), tmp_path / "temporary files"
    elsewhere.mkdir()
    command = [sys.executable, "-c", LIMITED, *FIT]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment(TMPDIR=str(elsewhere))
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert ".tmp" not in done.stderr
    found = re.fullmatch(
        r"Error: table.bayesvm could not be written \(File too large\).* The trained model is in (.*): make room, "
        r"then: (mv .* table.bayesvm)\n",
        done.stderr,
    )
    assert found, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["table.csv", elsewhere.name]
    subprocess.run(found[2], shell=True, cwd=folder, check=True)  # noqa: S602
    assert bayesvm("inspect", "table.bayesvm", folder=folder).code == 0


def test_a_model_without_any_room_is_reported_with_the_remedy(small, monkeypatch):
    folder = small()
    monkeypatch.setattr(TableModel, "save", full_disk)
    for more, remedy in ([], "run the command again"), (["--checkpoint", "c"], "resumes from the checkpoint"):
        done = bayesvm(*FIT, *more, folder=folder)
        told(done, "No space left on device", "the temporary, the current and the home directory are full", remedy)


def test_a_model_without_any_room_is_saved_where_the_user_says(small, monkeypatch):
    folder, save = small(), TableModel.save

    def save_there(model, path):
        if "other" not in str(path):
            full_disk()
        save(model, path)

    monkeypatch.setattr(TableModel, "save", save_there)
    monkeypatch.setattr("bayesvm.cli.fit.sys.stdin", SimpleNamespace(isatty=lambda: True))
    answers = iter(["again.bayesvm", str(folder / "other.bayesvm")])
    monkeypatch.setattr("bayesvm.cli.fit.typer.prompt", lambda *_, **__: next(answers))
    monkeypatch.chdir(folder)
    code = run([*FIT])
    assert code == 1
    assert sorted(path.name for path in folder.iterdir()) == ["other.bayesvm", "table.csv"]
