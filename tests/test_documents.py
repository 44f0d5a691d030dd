"""Code and commands in the documentation run, and print the output that it shows."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from tests.pages import PAGES, ROOT, alike, fences, without_fences

SHELL = {"sh", "console", ""}
OF_THE_SITE = {"{toctree}", "{eval-rst}", "{include} ../CHANGELOG.md", "{include} ../SECURITY.md"}
NOT_RUN = {
    "python3 -m venv ": "makes an environment; `make wheel` installs into a new one",
    "pip install ": "needs the net",
    "make ": "targets that take minutes to hours; that they exist is tested below",
    "curl ": "asks a server, which tests/export/test_serving.py does",
    "python examples/serve_onnx.py ": "a server, which tests/export/test_serving.py starts",
}


def python_blocks():
    for page in PAGES:
        blocks = [*fences(page.read_text()), None]
        for block, after in pairwise(blocks):
            if block.language == "python":
                shown = after.text if after is not None and after.language == "text" else None
                yield pytest.param(block.text, shown, id=f"{page.name}:{block.line}")


def commands(page):
    """The shell commands of a page with the output shown below them; None without output."""
    for fence in fences(page.read_text()):
        if fence.language == "console":
            parts = re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |\Z)", fence.text, flags=re.MULTILINE | re.DOTALL)
            yield from ((command, shown or None) for command, shown in parts)
        elif fence.language in SHELL:
            yield from ((line, None) for line in fence.text.replace("\\\n", " ").splitlines() if line.strip())


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory):
    """Tables with the names and shapes of those that pages fetch, so that nothing is downloaded."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    for name, n_rows, n_features in (("heart_raetsch", 270, 13), ("susy", 100_000, 18)):
        X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
        y = np.where(X[:, 0] + rng.normal(size=n_rows) > 0, 1, -1).astype(np.int8)
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        parquet.write_table(pa.table(columns | {"y": y}), folder / f"{name}.parquet")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("code", "shown"), list(python_blocks()))
def test_an_example_runs_and_prints_what_is_shown(code, shown, tmp_path, monkeypatch, capsys, stand_ins):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESVM_DATA", str(stand_ins))
    monkeypatch.setattr("bayesvm.datasets.fetch_susy", lambda: stand_ins / "susy.parquet")  # a file of another size
    exec(compile(code, "<example>", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    assert shown is None or alike(shown, printed), f"the page has\n{shown}\nbut this is printed:\n{printed}"


@pytest.fixture(scope="session")
def folder_of_a_reader(tmp_path_factory):
    """Files that pages assume from earlier commands: a table, new rows, models."""
    bayesvm = pytest.importorskip("tests.cli.driver").bayesvm
    folder = tmp_path_factory.mktemp("reader")
    for name, seed in (("people", 0), ("new", 1), ("test", 2)):
        made = bayesvm(*f"datasets fetch people --rows 300 --seed {seed} --out {name}.csv".split(), folder=folder)
        assert made.code == 0, made.err
    fitted = bayesvm("fit", "people.csv", "-t", "income", "--inducing", "30", "-q", folder=folder)
    assert fitted.code == 0, fitted.err
    shutil.copy(folder / "people.bayesvm", folder / "income.bayesvm")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=lambda page: page.name)
def test_commands_run_and_print_what_is_shown(page, folder_of_a_reader, tmp_path):
    bayesvm = pytest.importorskip("tests.cli.driver").bayesvm
    folder = shutil.copytree(folder_of_a_reader, tmp_path / "reader")
    for line, shown in commands(page):
        if line.startswith(tuple(NOT_RUN)):
            continue
        if "|" in line:
            done = in_a_shell(line, folder)
        else:
            words = shlex.split(line, comments=True)
            assert words[0] == "bayesvm", f"{line}: run it here, or say in NOT_RUN why not"
            done = bayesvm(*words[1:], folder=folder)
        assert done.code == 0, f"{line}\n{done.err}"
        told = [message for message in done.err.splitlines() if not message.startswith("bayesvm: ")]
        printed = done.out + "\n".join(told)
        assert shown is None or alike(shown, printed), f"{line}: the page has\n{shown}\nbut printed is\n{printed}"


def in_a_shell(line, folder):
    """Commands with a pipe between them, as people type them."""
    driver = pytest.importorskip("tests.cli.driver")
    program = folder / "bayesvm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bayesvm "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    ran = subprocess.run(  # noqa: S602
        line, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=driver.environment(PATH=path)
    )
    return driver.Result(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_code_escapes(page):
    """Every block is of a kind that the tests above know, and what is printed stands below what prints it."""
    text = page.read_text()
    before = None
    for fence in fences(text):
        assert fence.language in {"python", "text"} | SHELL | OF_THE_SITE, f"line {fence.line}: {fence.language}"
        assert fence.language != "text" or before == "python", f"line {fence.line}: printed by what?"
        before = fence.language
    prose = without_fences(text)
    assert not re.search(r"^\s*(>>>|\$ )", prose, flags=re.MULTILINE)
    assert not re.search(r"\n\n {4,}(?![-*|\d ])\S", prose), "code by indentation is not seen by tests"
    assert "<code" not in prose
    assert "<pre" not in prose


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_target_of_make_is_there(page):
    makefile = ROOT / "Makefile"
    if not makefile.exists():
        pytest.skip("a source distribution has no Makefile")
    targets = re.search(r"^\.PHONY: (.*)$", makefile.read_text(), flags=re.MULTILINE)[1].split()
    text = page.read_text()
    shell = "\n".join(fence.text for fence in fences(text) if fence.language in SHELL)
    named = re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^make ([a-z-]+)", shell, flags=re.MULTILINE)
    assert set(named) <= set(targets)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_of_the_gallery_compiles(path):
    """`make docs` runs them."""
    code = path.read_text()
    compile(code, path.name, "exec")
    assert not path.name.startswith("plot_") or re.match(r'"""[A-Z].+\n=+\n\n[A-Z]', code), "a title, and what it shows"


def test_there_is_a_gallery():
    assert len(list((ROOT / "examples").glob("plot_*.py"))) > 5


def test_what_differs_is_seen():
    assert alike("error   0.1810  0.1540 to 0.2060", "error  0.1812  0.1540 to 0.2060")
    assert alike("[[1.   0.  ]\n [0.97 0.03]]", "[[1.   0.01]\n [0.96 0.04]]")
    assert alike("26 features; 6.2 s", "26 features; 16.0 s")
    assert alike("1,000 rows, 546 (54.6%) without a prediction", "1,000 rows, 541 (54.1%) without a prediction")
    assert not alike("error  0.1810", "error  0.2110")
    assert not alike("error  0.1810", "Brier  0.1810")
    assert not alike("error  0.1810", "error  0.1810 0.2000")
    assert not alike("['high' 'average']", "['average' 'high']")
    assert not alike("10 classes", "12 classes")


def test_readme_begins_with_what_a_newcomer_needs():
    text = (ROOT / "README.md").read_text()
    wanted = ["```python", "CatBoost", "use something else when", "pip install", "bayesvm fit", "bayesvm predict"]
    places = [text.index(each) for each in [*wanted, "make demo"]]
    assert places == sorted(places)
    assert "make test" in text
    assert "make docs" in text
    assert len(text.splitlines()) <= 120


def require_small_picture(svg):
    text = svg.read_text()
    assert len(text.encode()) < 150_000
    assert "dc:date" not in text  # the same input gives the same file
    assert "<image" in text  # pixels instead of a path for each cell


def test_the_first_screen_has_a_picture():
    require_small_picture(ROOT / "docs" / "readme.svg")
    for page, picture in (("README.md", "(docs/readme.svg)"), ("docs/index.md", "(readme.svg)")):
        text = (ROOT / page).read_text()
        assert 0 < text.index(picture) < text.index("```python")


@pytest.mark.slow
def test_the_script_draws_the_picture(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    runpy.run_path(str(ROOT / "docs" / "make_readme_plot.py"))["draw"](tmp_path / "readme.svg")
    require_small_picture(tmp_path / "readme.svg")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
