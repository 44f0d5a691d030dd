"""The search of the site finds the page that answers what people search for.

Sphinx finds pages that contain every word of a query, and ranks words of headings above words of the text. So the page
that answers must have the words in its headings, as they are typed.
"""

import re

import pytest

from tests.pages import ROOT, without_fences

ANSWERS = {
    "GridSearchCV": "scikit_learn",
    "cross_val_score": "scikit_learn",
    "pipelines": "scikit_learn",
    "categorical": "tables",
    "dates": "tables",
    "missing values": "missing_values",
    "regression": "regression",
    "GPU": "is_it_for_you",
    "how many rows": "is_it_for_you",
    "Gaussian process": "is_it_for_you",
    "Platt scaling": "is_it_for_you",
    "serve": "onnx",
    "reproducible": "faq",
    "imbalanced": "imbalanced",
    "feature importance": "scikit_learn",
    "groups": "groups",
    "patients": "groups",
    "random effects": "groups",
    "NaN": "missing_values",
    "deploy": "onnx",
    "early stopping": "faq",
    "random_state": "faq",
    "license": "faq",
    "calibration error": "evaluation",
}
PAGES = {page.stem: page for page in (ROOT / "docs").glob("*.md")}


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def headings(page):
    return re.findall(r"^#+ (.+)$", without_fences(page.read_text()), flags=re.MULTILINE)


@pytest.mark.parametrize(("query", "page"), ANSWERS.items())
def test_one_heading_of_the_page_has_the_words(query, page):
    assert any(words(query) <= words(heading) for heading in headings(PAGES[page]))


@pytest.mark.parametrize(("query", "page"), ANSWERS.items())
def test_few_other_pages_compete(query, page):
    found = [name for name, each in PAGES.items() if any(words(query) <= words(heading) for heading in headings(each))]
    assert page in found
    assert len(found) <= 5, found


def test_the_landing_page_leads_to_every_answer():
    index = (ROOT / "docs/index.md").read_text()
    for page in set(ANSWERS.values()):
        assert f"({page}.md" in index, page
