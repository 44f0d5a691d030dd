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


def test_every_test_that_the_derivation_names_is_there():
    tests = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    if not (ROOT / "experiments").exists():
        pytest.skip("some of the tests do not come with the source distribution")
    assert set(re.findall(r"`(tests/[\w/]+\.py)`", DERIVATION)) <= set(tests)
    defined = set(re.findall(r"^def (test_\w+)\(", "\n".join(tests.values()), flags=re.MULTILINE))
    assert set(re.findall(r"`(test_\w+)`", DERIVATION)) <= defined


def test_every_name_beside_a_file_is_in_that_file():
    """As in "`core/latent.py` (`View.of`, `pull_marginals`)"."""
    pairs = re.findall(r"`((?:core|data|inference|estimators)/[\w/]+\.py)`\s+\(((?:`[\w.]+`[,;\s]*)+)", DERIVATION)
    assert len(pairs) > 20
    for name, listed in pairs:
        text = (ROOT / "src" / "bayesvm" / name).read_text()
        for part in re.findall(r"[\w]+", listed):
            assert re.search(rf"\b{part}\b", text), f"{part} is not in {name}"


def test_the_notation_names_what_is_in_the_code():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    words = set(re.findall(r"\w+", source))
    for named in re.findall(r"`([A-Za-z_][\w.]*)`", (ROOT / "docs" / "notation.md").read_text()):
        assert set(named.split(".")) <= words, f"{named} is not in src"


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
