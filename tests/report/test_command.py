"""``bayesvm report``."""

import pytest

pytest.importorskip("typer")

from bayesvm.cli.app import run

from .conftest import people


def test_the_report_gets_the_name_of_the_model(binary, folder, capsys):
    binary.save(folder / "buyers.bayesvm")
    assert run(["report", str(folder / "buyers.bayesvm")]) == 0
    out = folder / "buyers.html"
    assert out.read_text().startswith("<!DOCTYPE html>")
    printed = capsys.readouterr().out.replace("\n", "")
    assert f"written: {out} ({out.stat().st_size / 1000:,.0f} kB)" in printed
    assert "it shows 20 rows of the table; --no-rows leaves them out" in printed
    assert run(["report", str(folder / "buyers.bayesvm"), "--no-rows"]) == 0
    assert "it shows" not in capsys.readouterr().out
    assert "Single rows were left out of this report" in out.read_text()


@pytest.mark.slow
def test_it_is_evaluated_on_a_table(plain, folder, capsys):
    arguments = [str(folder / "plain.bayesvm"), str(folder / "test.csv"), "--target", "kind", "--quiet"]
    assert run(["report", *arguments, "--out", str(folder / "evaluated.html")]) == 0
    assert "test.csv (100 rows)" in (folder / "evaluated.html").read_text()
    assert capsys.readouterr().out == ""


def test_invalid_paths_are_reported_before_the_work(binary, folder, capsys):
    people(50).to_csv(folder / "some.csv", index=False)
    binary.save(folder / "buyers.bayesvm")
    assert run(["report", str(folder / "buyers.bayesvm"), "--out", str(folder)]) == 1
    assert "is a folder" in capsys.readouterr().err
    assert run(["report", str(folder / "buyers.bayesvm"), "--out", str(folder / "no" / "report.html")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_help_has_examples(capsys):
    assert run(["report", "--help"]) == 0
    told = capsys.readouterr().out
    assert "bayesvm report income.bayesvm" in told
    assert "--out" in told
