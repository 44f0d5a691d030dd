"""Names that come from elsewhere cannot command a terminal: what it would obey or hide is shown as escapes."""

import json
import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from bayesvm.cli.console import visible
from tests.cli.driver import bayesvm, environment, process

# A title, a colour, the C1 form of "clear the screen", an override of the direction, markup of rich and its emojis.
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[bold]:smile:"
SHOWN = r"\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[bold]:smile:"
MODEL = f"m{EVIL}.bayesvm"
TABLE = f"t{EVIL}.csv"


def obeyed(text):
    """Independent of the code: which characters a terminal would obey or hide."""
    return {hex(ord(each)) for each in text if each != "\n" and unicodedata.category(each) in {"Cc", "Cf", "Cs", "Zl"}}


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A folder with a table and a model where every name is hostile."""
    folder, rng = tmp_path_factory.mktemp("evil"), np.random.default_rng(0)
    x = rng.normal(size=80)
    label = np.where(x + rng.normal(size=80) > 0, f"yes{EVIL}", "no")
    lines = [f"{a},{b},1,{c}" for a, b, c in zip(x, rng.choice([f"a{EVIL}", "b"], 80), label, strict=True)]
    (folder / TABLE).write_text("\n".join([f"x{EVIL},z{EVIL},one{EVIL},y{EVIL}", *lines]) + "\n")
    fitted = bayesvm("fit", TABLE, "-t", f"y{EVIL}", "--linear", "-o", MODEL, folder=folder)
    assert fitted.code == 0, fitted.err
    (folder / "fit.out").write_text(fitted.out + fitted.err)
    return folder


def test_fit_shows_names_escaped(evil):
    told = (evil / "fit.out").read_text()
    assert obeyed(told) == set()
    for name in (f"yes{SHOWN} (", f"left out: one{SHOWN} (", f"of t{SHOWN}.csv", f"written: m{SHOWN}.bayesvm"):
        assert name in told


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["inspect", MODEL], [f"m{SHOWN}.bayesvm: ", f"t{SHOWN}.csv", f"x{SHOWN}  ", f"yes{SHOWN}", f"a{SHOWN}"]),
        (["evaluate", MODEL, TABLE], [f"t{SHOWN}.csv: 80 rows"]),
        (["compare", TABLE, "-t", f"y{EVIL}"], [f"t{SHOWN}.csv"]),
        (["predict", MODEL, TABLE, "-o", f"p{EVIL}.csv"], [f"p{SHOWN}.csv"]),
        (["report", MODEL], [f"m{SHOWN}.html"]),
        (["export", MODEL], [f"x{SHOWN}", f"m{SHOWN}.onnx"]),
        (["fit", f"no{EVIL}", "-t", "y"], [f"Error: no file matches 'no{SHOWN}'"]),
        (["fit", TABLE, "-t", "y", "-o", f"no{EVIL}/m"], [f"the folder no{SHOWN} does not exist"]),
        (["fit", TABLE, "-t", "nope"], [f"x{SHOWN}'"]),
        (["fit", TABLE, "-t", "y", f"--{EVIL}"], [r"--\x1b]0;owned"]),
        ([EVIL], [r"'\x1b]0;owned"]),
        (["inspect", "\udcff.bayesvm"], [r"Error: no such file: \udcff.bayesvm"]),
    ],
    ids=lambda each: ascii(each[0])[:12],
)
def test_commands_and_errors_show_names_escaped(evil, words, shown):
    if words[0] == "export":
        pytest.importorskip("onnx")
    done = bayesvm(*words, folder=evil)
    assert obeyed(done.out + done.err) == set()
    for name in shown:
        assert name in done.out + done.err


def test_warnings_show_names_escaped(evil, tmp_path):
    rows = (evil / TABLE).read_text().replace(f",a{EVIL},", f",new{EVIL},")
    (tmp_path / "new.csv").write_text(rows)
    done = bayesvm("predict", evil / MODEL, "new.csv", "-q", "-o", "p.csv", folder=tmp_path)
    assert done.err.startswith("Warning: column 'z")
    assert obeyed(done.err) == set()


def test_json_has_its_own_escapes_and_the_same_names(evil):
    done = bayesvm("inspect", MODEL, "--json", folder=evil)
    assert obeyed(done.out) == set()
    known = json.loads(done.out)
    assert known["classes"] == ["no", f"yes{EVIL}"]
    assert known["file"]["path"] == MODEL


@pytest.mark.slow
def test_tracebacks_show_names_escaped(evil):
    done = process("fit", f"no{EVIL}.csv", "-t", "y", "--traceback", folder=evil)
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert f"FileNotFoundError: no file matches 'no{SHOWN}.csv'" in done.err
    assert obeyed(done.err) == set()


def test_no_name_passes_for_a_line_of_its_own(small):
    y = np.where(np.arange(60) % 2, '"a\nwritten: nothing"', "b")
    told = bayesvm("fit", "table.csv", "-t", "y", "--linear", folder=small(y=y)).out
    assert r"classes: a\nwritten: nothing (" in told
    assert [line for line in told.splitlines() if line.startswith("written: ")] == ["written: table.bayesvm. Next:"]


def predicted(evil, stdout):
    words = [sys.executable, "-m", "bayesvm", "predict", MODEL, TABLE, "-q", "--no-uncertainty"]
    return subprocess.run(words, cwd=evil, check=True, stdout=stdout, env=environment())  # noqa: S603


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals to try it with")
def test_predictions_are_escaped_on_a_terminal_and_exact_in_a_pipe(evil):
    ours, theirs = os.openpty()
    try:
        predicted(evil, theirs)
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    finally:
        os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert obeyed(text) == set()
    piped = predicted(evil, subprocess.PIPE).stdout.decode()
    assert f'"yes{EVIL}"' in piped
    assert text == piped.replace(EVIL, SHOWN)


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_letters_of_all_languages_stay():
    names = "żółć Ελλάδα עברית العربية हिन्दी 日本語 👩‍👩‍👧 می‌خواهم 1 000 a\u00a0b"
    assert visible(names) == names
    assert visible("\x00\t\r\x7f\x85\u200b\u2028\u2066\ud800") == r"\x00\t\r\x7f\x85\u200b\u2028\u2066\ud800"
