"""The pages agree with the source: messages, commands, public names and links that they mention exist."""

import ast
import importlib
import re

import pytest

from tests.pages import PAGES, ROOT

DOCS = ROOT / "docs"


def strings_of_the_source():
    """Every text in src/, with … for what is filled in; an f-string counts as a whole."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


QUOTED = re.findall(r"^> (`+) ?(.+?) ?\1$", (DOCS / "faq.md").read_text(), flags=re.MULTILINE)


def test_there_are_errors_and_warnings_to_explain():
    assert len(QUOTED) > 50


@pytest.fixture(scope="module")
def source_text():
    return "\n".join(strings_of_the_source())


@pytest.mark.parametrize("message", [message for _, message in QUOTED], ids=lambda message: message[:60])
def test_a_quoted_message_is_still_that_of_the_source(message, source_text):
    kind, _, text = message.partition(": ")
    if not re.fullmatch(r"\w+(Error|Warning|Note)", kind):
        text = message
    pieces = [piece.strip(" .,:;()") for piece in text.split("…")]
    assert max(map(len, pieces)) > 4
    for piece in pieces:
        assert piece in source_text, piece


def warnings_of_the_source():
    """The first text of every warning that is written out where it is given, and its longest piece."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"warnings.warn", "warn_user"}:
                parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else [node.args[0]]
                texts = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
                yield from [max(texts, key=len)] if texts else []


@pytest.mark.parametrize("text", list(warnings_of_the_source()), ids=lambda text: text[:40])
def test_every_warning_is_explained(text):
    assert text.strip(" .,:;()")[:40] in (DOCS / "faq.md").read_text()


PARTS = ("kernels", "datasets", "evaluation", "inspection", "report")
MODULES = ["bayesvm", *(f"bayesvm.{part}" for part in PARTS)]


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(module):
    reference = (DOCS / "api.md").read_text()
    names = set(importlib.import_module(module).__all__) - {"__version__", "kernels"}
    listed = set(re.findall(r"^   ([\w.]+)$", reference, flags=re.MULTILINE))
    full = {f"{module}.{name}".removeprefix("bayesvm.") for name in names}
    assert full <= listed


def test_the_reference_names_every_module_that_pages_import():
    used = {name for page in PAGES for name in re.findall(r"from (bayesvm\.[a-z_.]+) import", page.read_text())}
    assert used <= set(re.findall(r"`(bayesvm\.[a-z_.]+)`", (DOCS / "api.md").read_text()))


def test_every_page_is_in_the_navigation():
    index = (DOCS / "index.md").read_text()
    shown = {
        line.strip().rpartition("<")[2].removesuffix(">")
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", index, flags=re.DOTALL)
        for line in tree.splitlines()
    }
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= shown


def test_links_to_headings_lead_to_headings():
    def slug(heading):
        return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")

    headings = {
        page.name: {slug(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)}
        for page in PAGES
    }
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([\w.]*)#([^)]+)\)", page.read_text()):
            assert anchor in headings[target or page.name], f"{page.name}: {target}#{anchor}"
