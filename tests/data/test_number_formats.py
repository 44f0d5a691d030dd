"""Numbers as people write them; what looks like one but is not."""

import numpy as np
import pytest

from bayesvm.data.number_formats import NumberFormat, decimal_marks

FORMS = [
    (["1", "+5", "-3.25", "1e-3", ".5", "7."], NumberFormat(), [1, 5, -3.25, 0.001, 0.5, 7]),
    (["$1,169.00", "$5"], NumberFormat(".", ",", "$"), [1169, 5]),
    (["-$1,169.00", "$-5", "($2)", "$(3)", "(4 $)"], NumberFormat(".", ",", "$"), [-1169, -5, -2, -3, -4]),
    (["€ 1.169,00", "€ 0,5"], NumberFormat(",", ".", "€"), [1169, 0.5]),
    (["1.169,00 €", "7,1\u00a0€"], NumberFormat(",", ".", "€"), [1169, 7.1]),
    (["28%", "0.5 %"], NumberFormat(".", "", "%"), [28, 0.5]),
    (["39,1", "-0,25"], NumberFormat(",", ""), [39.1, -0.25]),
    (["1 234", "5"], NumberFormat(".", " "), [1234, 5]),
    (["1\u202f234,5", "12\u00a0345\u00a0678"], NumberFormat(",", " "), [1234.5, 12345678]),
    (["1'234.5", "1’000"], NumberFormat(".", "'"), [1234.5, 1000]),
    (["(1,234)", "56"], NumberFormat(".", ","), [-1234, 56]),
    (["1,234"], NumberFormat(".", ","), [1234]),  # every group has three digits
    (["1,234", "5,67"], NumberFormat(",", ""), [1.234, 5.67]),
    (["0,234"], NumberFormat(",", ""), [0.234]),  # no group begins with 0
    (["1,234,567"], NumberFormat(".", ","), [1234567]),
    (["1.234", "5.678"], NumberFormat(), [1.234, 5.678]),
    (["1.234.567"], NumberFormat(",", "."), [1234567]),
    ([" 12 ", "\u22127"], NumberFormat(), [12, -7]),
]


@pytest.mark.parametrize(("texts", "form", "numbers"), FORMS)
def test_forms(texts, form, numbers):
    assert NumberFormat.of(texts) == form
    np.testing.assert_array_equal(form.numbers([*texts, None]), [*numbers, np.nan])
    assert all(map(form.holds, texts))


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["1", "two"],
        ["5 kg", "6 kg"],
        ["$5", "€6"],
        ["28%", "0.28"],
        ["$5%"],
        ["00123", "10115"],  # codes
        ["2024-05-01"],
        ["01.02.2020", "13.05.2021"],
        ["12:30"],
        ["1.2.3"],
        ["192.168.0.1"],
        ["1,23,456"],
        ["1,234", "1.234,5", "1.5"],
        ["(5", "6"],
        ["5)"],
        ["(-5)"],
        ["--5"],
        ["+-5"],
        ["1 23"],
        ["inf"],
        ["nan"],
        ["0x10"],
        ["1_000"],
        ["²"],
        ["-"],
        ["."],
        ["$"],
        [""],
        ["", "1"],
        ["1\n2"],
        ["1\n2", "3"],
        ["1\n", "2"],
        ["\n1"],
    ],
)
def test_what_is_no_number(texts):
    assert NumberFormat.of(texts) is None


def test_the_first_of_the_decimal_marks_counts_where_both_fit():
    assert NumberFormat.of(["1,234"], [",", "."]) == NumberFormat(",")
    assert NumberFormat.of(["1.234"], [",", "."]) == NumberFormat(",", ".")
    assert NumberFormat.of(["39,1"], ["."]) is None
    assert decimal_marks(["1,234"]) == decimal_marks(["12"]) == {".", ","}
    assert decimal_marks(["39,1"]) == {","}
    assert decimal_marks(["3.5", "$7"]) == set()


def test_another_form_is_an_error():
    form = NumberFormat.of(["$1,169.00"])
    for text in ("1,169.00", "$1.169,00", "?", "$11,69"):
        assert not form.holds(text)
        with pytest.raises(ValueError, match=r"is not a number written like \$1,234\.5"):
            form.numbers([text])


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("thousands", ["", " ", "'", "other"])
@pytest.mark.parametrize("symbol", ["", "$", "%"])
def test_what_python_writes_is_read_back(decimal, thousands, symbol):
    rng = np.random.default_rng(0)
    numbers = np.round(rng.normal(size=200) * 10 ** rng.uniform(-2, 9, 200), 2)
    mark = {"other": "," if decimal == "." else "."}.get(thousands, thousands)
    marks = str.maketrans({",": mark, ".": decimal})
    texts = [f"{number:,.2f}".translate(marks) + symbol for number in numbers]
    assert NumberFormat.of(texts) == NumberFormat(decimal, mark, symbol)
    np.testing.assert_array_equal(NumberFormat.of(texts).numbers(texts), numbers)
