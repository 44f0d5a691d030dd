"""Spellings of one category, and texts for missing values."""

import numpy as np
import pytest

from bayesvm.data.texts import MISSING_TEXTS, merged_spellings, missing_among


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
