"""Spellings of one category, and texts for missing values."""

import numpy as np
import pytest

from bayesvm.data.texts import MISSING_TEXTS, Spellings, is_case_ignored, merged_spellings, missing_among


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ({}, {}),
        ({"Yes": 5, "no": 3}, {}),
        ({"Yes": 5, "no": 3, "no ": 1, "yes": 2}, {"no ": "no", "yes": "Yes"}),
        ({"yes": 2, "Yes": 1, " Yes": 2}, {"yes": "Yes", " Yes": "Yes"}),  # 3 rows of Yes
        ({"b": 1, "B": 1}, {"b": "B"}),
        ({" lone ": 1}, {" lone ": "lone"}),
        ({"Straße": 2, "STRASSE": 1}, {"STRASSE": "Straße"}),
        ({"ÄRZTE": 1, "Ärzte": 2}, {"ÄRZTE": "Ärzte"}),
        ({"a b": 1, "ab": 1}, {}),
    ],
)
def test_spellings(counts, merged):
    assert merged_spellings(counts) == merged


def test_merging_again_changes_nothing():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("aAbB "), 3)) for _ in range(300)]
    counts = {text: texts.count(text) for text in texts}
    merged = merged_spellings(counts)
    after = [merged.get(text, text) for text in texts]
    assert merged_spellings({text: after.count(text) for text in after}) == {}
    assert len(set(after)) == len({text.strip().lower() for text in texts})


def test_a_dash_beside_a_plus_is_a_value():
    assert "-" in missing_among({"-", "a"})
    assert "-" not in missing_among({"-", "+"})
    assert missing_among({"+"}) == MISSING_TEXTS - {"-"}


@pytest.mark.parametrize(
    ("texts", "ignored"),
    [
        (["Yes", "no", "YES"], True),
        (["Y", "n", "N"], True),
        (["M", "m"], False),  # millions and metres
        (["AA", "Aa", "aa"], False),  # genotypes
        (["AaBb", "aabb", "AABB"], False),
        (["McDonald", "Smith", "smith"], True),
        (["Abc", "abc", "x"], True),
    ],
)
def test_case_of_codes_has_a_meaning(texts, ignored):
    assert is_case_ignored(texts) == ignored


def test_other_spellings_stand_for_known_ones():
    known = Spellings(("Yes", "no"))
    assert [known(text) for text in (" yes", "NO ", "Yes", "maybe")] == ["Yes", "no", "Yes", "maybe"]
    assert Spellings(("AA", "Aa"), ignores_case=False)("AA ") == "AA"
    assert Spellings(("aa", "Aa"))("AA") == "AA"  # of two candidates none


def test_spellings_are_merged_only_by_spaces_where_case_has_a_meaning():
    spellings, merged = Spellings.of({"AA": 3, "Aa": 4, "aa ": 1, "aa": 2})
    assert merged == {"aa ": "aa"}
    assert spellings == Spellings(("AA", "Aa", "aa"), ignores_case=False)
