"""Schemas: what fits, what does not, and what is said of it."""

import numpy as np
import pytest

from bayesvm.schema import (
    array,
    each,
    either,
    flag,
    items,
    nothing,
    number,
    one_of,
    positive,
    real,
    record,
    satisfying,
    size,
    text,
    whole,
)

EYE = np.eye(3)
NAN, INFINITY = float("nan"), 1e999


@pytest.mark.parametrize(
    ("schema", "fitting", "others"),
    [
        (nothing, [None], [0, False, ""]),
        (flag, [True, np.False_], [0, 1.0, None]),
        (text, ["", np.str_("a")], [b"a", 1, None]),
        (number, [0, -1.5, np.float32(2), np.int8(3)], [True, NAN, float("inf"), 10**400, "1", np.zeros(1), None]),
        (real, [NAN, float("inf"), 1], [True, "1"]),
        (positive, [1e-300, 5], [0, -1, NAN, True]),
        (whole, [0, 7, np.uint8(3)], [-1, 0.5, 2**63, True, "1"]),
        (one_of("a", None, 1.5), ["a", None, 1.5, np.float64(1.5)], ["b", 0, True, np.zeros(2), []]),
        (
            array("f", "M", "M"),
            [EYE, EYE.astype("f4")],
            [EYE[:2], EYE[0], EYE.astype(int), EYE * NAN, EYE + INFINITY, [1.0]],
        ),
        (array("f", "M+1", "M"), [EYE[:, :2]], [EYE]),
        (array("f", None, least=0.0, infinite=True), [np.array([0.0, np.inf]), np.zeros(0)], [-EYE[0], EYE[0] * NAN]),
        (array("iu", 2), [np.arange(2)], [np.arange(3), np.zeros(2), np.zeros(2, bool)]),
        (each(number, "K"), [[1, 2], (1.0,), []], [[None], {}, "12", np.zeros(2)]),
        (items(text, number), [["a", 1], ("a", 2.0)], [["a"], [1, "a"], ["a", 1, 1]]),
        (
            record({"a": number}, {"b": text}),
            [{"a": 1}, {"a": 1, "b": ""}],
            [{}, {"a": 1, "c": 1}, {"a": 1, "b": 2}, []],
        ),
        (record({}, others=text), [{}, {"x": "y"}], [{"x": 1}]),
        (either(nothing, items(array("f", "M"), size("M"))), [None, [np.zeros(2), 2]], [[np.zeros(2), 3], 0]),
        (satisfying(number, "even", lambda n, _: n % 2 == 0), [2], [1, "2"]),
    ],
)
def test_what_fits_and_what_does_not(schema, fitting, others):
    for found in fitting:
        schema(found, "state", {})
    for found in others:
        with pytest.raises(ValueError, match="state.* must be .*, got "):
            schema(found, "state", {})


def test_a_letter_is_one_number_throughout_a_state():
    schema = record({"Z": array("f", "M", "D"), "parts": each(either(array("f", "D"), array("f", "M")))})
    schema({"Z": np.zeros((3, 2)), "parts": [np.zeros(2), np.zeros(3)]}, "state", {})
    with pytest.raises(ValueError, match=r"state.parts\[1\] must be an array .*got an array float64\(4,\)"):
        schema({"Z": np.zeros((3, 2)), "parts": [np.zeros(2), np.zeros(4)]}, "state", {})
    with pytest.raises(ValueError, match="M = 5"):
        schema({"Z": np.zeros((3, 2)), "parts": []}, "state", {"M": 5})


def test_the_error_is_that_of_the_alternative_that_came_furthest():
    schema = either(nothing, record({"name": one_of("a"), "x": number}), record({"name": one_of("b"), "y": number}))
    with pytest.raises(ValueError, match=r"state\.y must be a finite number, got 'text'"):
        schema({"name": "b", "y": "text"}, "state", {})
