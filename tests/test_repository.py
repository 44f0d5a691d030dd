"""Files around the package: they agree with each other and with the package."""

import re
import tomllib

import pytest

import bayesvm
from tests.pages import ROOT

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def steps_of(job):
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def test_the_citation_is_that_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == bayesvm.__version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert PROJECT["urls"]["Paper"].endswith(citation["references"][0]["doi"])


def test_ci_runs_every_python_of_the_classifiers():
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_ci_runs_what_the_local_script_runs():
    script = re.findall(r"^make (\w+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert script == ["lint", "test"]
    assert "make lint" in steps_of("lint")
    recipe = re.search(r"^test: .*\n\t\$\(BIN\)/(.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe[1] in steps_of("test")


@pytest.mark.parametrize("job", WORKFLOW["jobs"])
def test_ci_calls_targets_that_exist(job):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([\w-]+)", "\n".join(steps_of(job))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_lowest_versions_are_those_of_the_project():
    lowest = dict(line.split("==") for line in (ROOT / "tests/lowest.txt").read_text().splitlines() if "==" in line)
    extras = [each for group in ("tables", "dask", "plots", "onnx") for each in PROJECT["optional-dependencies"][group]]
    for requirement in [*PROJECT["dependencies"], *extras]:
        name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement).groups()
        assert (lowest[name] + ".0").startswith(version), requirement


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_issue_templates_are_forms(path):
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        return
    assert {"name", "description", "body"} <= set(form)
    assert [item["id"] for item in form["body"] if item["type"] != "markdown"]


def test_a_report_of_a_bug_asks_for_the_versions():
    assert "bayesvm.show_versions()" in (ROOT / ".github/ISSUE_TEMPLATE/bug_report.yml").read_text()


def test_the_changelog_has_the_form_of_keep_a_changelog():
    versions = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    for version in versions[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d|not released)", version)
    assert bayesvm.__version__ in versions[1]
    kinds = set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
