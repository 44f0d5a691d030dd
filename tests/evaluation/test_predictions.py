import numpy as np
import pytest

from bayesvm.evaluation import Predictions

P = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])


def test_labels_of_any_type_become_numbers():
    for classes, labels in (
        (["no", "yes"], ["yes", "no", "yes"]),
        ([-1, 1], [1.0, -1.0, 1.0]),
        ([False, True], [1, 0, 1]),
        (np.array(["no", "yes"], object), np.array(["yes", "no", "yes"], object)),
        (np.array(["2020", "2021"], "datetime64[Y]"), np.array(["2021", "2020", "2021"], "datetime64[Y]")),
    ):
        assert Predictions.of(classes, labels, P).y.tolist() == [1, 0, 1]


def test_what_follows_from_probabilities():
    said = Predictions.of([-1, 1], [-1, -1, -1], P)
    assert said.n_rows == 3
    assert said.positive.tolist() == [0.1, 0.7, 0.5]
    assert said.predicted.tolist() == [0, 1, 0]
    assert said.correct.tolist() == [True, False, True]
    assert said.doubt == pytest.approx([0.1, 0.3, 0.5])
    three = Predictions.of(list("abc"), ["c"], [[0.2, 0.3, 0.5]])
    assert three.doubt == pytest.approx([0.5])
    with pytest.raises(ValueError, match="needs two classes"):
        _ = three.positive


def test_some_rows_keep_what_belongs_to_them():
    said = Predictions.of([0, 1], [0, 1, 1], P, weight=[1, 0, 2], epistemic=[0.1, 0.2, 0.3])
    some = said.take([2, 0])
    assert some.y.tolist() == [1, 0]
    assert some.proba.tolist() == P[[2, 0]].tolist()
    assert some.weight.tolist() == [2, 1]
    assert some.epistemic.tolist() == [0.3, 0.1]
    assert some.aleatoric is None
    assert said.counted().y.tolist() == [0, 1]
    assert said.counted().weight.tolist() == [1, 2]


def test_float32_and_few_digits_are_probabilities_all_the_same():
    third = Predictions.of([0, 1, 2], [0], [[0.333, 0.333, 0.333]])
    assert third.proba.tolist() == [[0.333] * 3]
    over = Predictions.of([0, 1], [0], np.array([[1 + 1e-7, -1e-7]], np.float32))
    assert over.proba.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 7, 9]}, r"2 rows \(first: row 1\) have .* among the classes \[0, 1\]: 7, 9"),
        ({"labels": ["0", "1", "1"]}, "3 rows .*: '0', '1'"),
        ({"labels": [0, np.nan, 1]}, "row 1.*: nan"),
        ({"labels": np.array([0, None, 1], object)}, "row 1.*: None"),
        ({"labels": [3, 4, 5], "classes": [0, 1]}, "3, 4, 5"),
        ({"labels": [0, 1]}, r"labels of shape \(2,\) need probabilities of shape \(rows, 2\); got \(3, 2\)"),
        ({"proba": P[:, 1]}, r"got \(3,\)"),
        ({"classes": [0, 1, 2]}, r"shape \(rows, 3\)"),
        ({"classes": [1, 0]}, r"sorted .* got \[1, 0\]"),
        ({"classes": [0], "proba": P[:, :1]}, "at least two classes"),
        ({"labels": [], "proba": np.zeros((0, 2))}, "no rows"),
        ({"proba": [[0.5, 0.5], [np.nan, 0.5], [0.5, 0.5]]}, r"1 rows of proba .* row 1, \[nan, 0.5\]"),
        ({"proba": [[0.5, 0.5], [1.5, -0.5], [3, 4]]}, "2 rows of proba .* row 1"),
        ({"weight": [1, 2]}, r"weight must have one number for each of the 3 rows; got shape \(2,\)"),
        ({"weight": [1, -1, np.nan]}, "weight must be finite and not negative; 2 rows are not \\(first: row 1, -1\\)"),
        ({"weight": [0, 0, 0]}, "all rows have weight zero"),
        ({"epistemic": [0, 0, np.inf]}, "epistemic must be finite; 1 rows are not \\(first: row 2, inf\\)"),
    ],
)
def test_errors_say_what_and_where(change, message):
    right = {"classes": [0, 1], "labels": [0, 1, 1], "proba": P}
    with pytest.raises(ValueError, match=message):
        Predictions.of(**right | change)


def test_many_strange_labels_are_not_all_named():
    with pytest.raises(ValueError, match="10, 11, 12, 13, 14 and 3 more"):
        Predictions.of([0, 1], np.arange(10, 18), np.full((8, 2), 0.5))
