"""People: the stated probability is the true one, and the table is as tables are."""

import numpy as np
import pyarrow as pa
import pytest

from bayesvm.datasets import people
from bayesvm.datasets.catalogue import CATALOGUE, missing_as_null


def test_probability_is_calibrated_whatever_is_missing():
    made = people(200_000, random_state=0)
    high = made.income == "high"
    edges = np.quantile(made.probability, np.linspace(0, 1, 11))
    groups = [np.clip(np.searchsorted(edges, made.probability) - 1, 0, 9) == k for k in range(10)]
    groups += [np.isnan(made.columns["commute"]), made.columns["occupation"] == None, made.columns["married"]]  # noqa: E711
    groups += [made.columns["occupation"] == "medicine", made.columns["age"] > 70]
    for inside in groups:
        expected = made.probability[inside].mean()
        noise = np.sqrt(expected * (1 - expected) / inside.sum()) + 1e-4
        assert abs(high[inside].mean() - expected) < 5 * noise


def test_probability_is_a_function_of_what_the_row_shows():
    """Two rows that show the same have the same probability: computed again, by hand, from the columns alone."""
    made = people(500, random_state=1)
    c = made.columns
    education = ["none", "school", "college", "bachelor", "master"]
    worth = {None: 0.0, "sales": 0.1, "office": -0.2, "care": -0.5, "craft": 0.2, "teaching": 0.0, "driving": -0.4}
    worth |= {"software": 1.4, "cooking": -0.9, "medicine": 1.8, "law": 1.6}
    for row in range(500):
        steep = 0.09 if c["sector"][row] == "own business" else 0.05
        commute = c["commute"][row]
        score = -2.6 + 0.9 * education.index(c["education"][row]) - ((c["age"][row] - 52) / 17) ** 2
        score += worth.get(c["occupation"][row], -0.6) + steep * (c["hours"][row] - 38) + 0.7 * c["married"][row]
        score += 0.6 if np.isnan(commute) else 0.15 * np.sin(commute / 10)
        assert made.probability[row] == pytest.approx(1 / (1 + np.exp(-1.4 * score)))


def test_the_seed_decides_and_ids_are_distinct():
    first, again, other = people(300, 0), people(300, 0), people(300, 1)
    for name, column in first.columns.items():
        assert column.tolist() == again.columns[name].tolist() or name == "commute"
    np.testing.assert_array_equal(first.probability, again.probability)
    assert first.income.tolist() != other.income.tolist()
    assert len(set(first.columns["id"])) == 300


def test_missing_numbers_are_null_in_files():
    (part,) = CATALOGUE["people"].parts(200, 0)
    written = missing_as_null(part)
    assert written["commute"].null_count == np.isnan(part["commute"]).sum() > 0
    assert written["occupation"].type == pa.string()
    assert written["occupation"].null_count > 0
    assert written["married"].type == pa.bool_()
