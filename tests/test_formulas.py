"""Every D number in the code is derived in docs/derivation.md, and every derived formula is cited in the code."""

import importlib.util
import re

import pytest

from tests.pages import ROOT

DERIVATION = (ROOT / "docs" / "derivation.md").read_text()
DERIVED = re.findall(r"^#+ (D\d+)\b", DERIVATION, flags=re.MULTILINE)
PAGE = (ROOT / "docs" / "formulas.md").read_text()


def numbers(text):
    return set(re.findall(r"\bD\d+\b", text))


def test_code_and_derivation_cite_the_same_formulas():
    derived = set(DERIVED)
    files = [path for room in ("src", "experiments") for path in (ROOT / room).rglob("*.py")]
    cited = set().union(*(numbers(path.read_text()) for path in files))
    # "D4-D6" in a comment stands for the numbers between, too, so only the ends are compared.
    assert cited <= derived
    if not (ROOT / "experiments").exists():
        derived -= {"D20", "D21"}  # those of the competitors, which do not come with the source distribution
    assert derived - cited <= {"D1"}, "D1 is the model itself; the rest must be cited where it is computed"


def test_the_table_of_formulas_is_that_of_the_derivation_and_the_code():
    spec = importlib.util.spec_from_file_location("formulas", ROOT / "docs" / "_ext" / "formulas.py")
    formulas = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(formulas)
    assert formulas.written(PAGE) == PAGE, "run: python docs/_ext/formulas.py"


@pytest.mark.parametrize("number", DERIVED)
def test_a_file_that_computes_a_formula_cites_it(number):
    (row,) = re.findall(rf"^\| \[{number}\]\(.*?\) [^|]*\| (.*?) \|.*\|$", PAGE, flags=re.MULTILINE)
    files = re.findall(r"`([\w/]+\.py)`", row)
    assert files or number == "D1"
    paths = [ROOT / name if name.startswith("experiments/") else ROOT / "src" / "bayesvm" / name for name in files]
    if number in {"D20", "D21"} and not (ROOT / "experiments").exists():
        pytest.skip("competitors do not come with the source distribution")
    assert all(path.is_file() for path in paths)
    assert not files or any(number in numbers(path.read_text()) for path in paths)
