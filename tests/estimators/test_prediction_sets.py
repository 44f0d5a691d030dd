"""Sets of classes: against a loop over rows, and how often they contain the class of new rows (D35)."""

from math import ceil

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform

NEW = waveform(4_000, random_state=1)
TRAIN = waveform(400, random_state=0)


@pytest.fixture(scope="module")
def model():
    return BayesianLinearSVC(random_state=0).fit(TRAIN.X, TRAIN.y)


@pytest.fixture(scope="module")
def three():
    """Three classes, with names; one of them is rare."""
    rng = np.random.default_rng(0)
    y = np.array(["one", "three", "two"])[rng.choice(3, size=3_300, p=[0.6, 0.1, 0.3])]
    X = rng.normal(size=(3_300, 2)) + np.select([y == "one", y == "two"], [-0.9, 0.9], 0.0)[:, None] * [1, -1]
    kernel = BayesianSVC(n_inducing=30, tune=None, random_state=0).fit(X[:300], y[:300])
    return kernel, X[300:], y[300:]


def by_a_loop(model, y, X, coverage, *, per_class):
    code = np.searchsorted(model.classes_, y)
    scores = 1 - model.loo_proba_[np.arange(len(y)), code]
    sets = np.zeros((len(X), len(model.classes_)), bool)
    for row, p in enumerate(model.predict_proba(X)):
        for k in range(len(p)):
            own = sorted(scores[code == k] if per_class else scores)
            rank = ceil((len(own) + 1) * coverage)
            sets[row, k] = rank > len(own) or 1 - p[k] <= own[rank - 1]
    return sets


@pytest.mark.parametrize("per_class", [False, True])
def test_sets_are_those_of_a_loop(model, per_class):
    for coverage in (0.3, 0.9, 0.999):
        found = model.predict_set(NEW.X[:50], coverage, per_class=per_class)
        assert found.dtype == bool
        assert np.array_equal(found, by_a_loop(model, TRAIN.y, NEW.X[:50], coverage, per_class=per_class))
    assert found.all()  # 400 rows are too few for .999
    assert not model.predict_set(NEW.X, 0.3).any(axis=1).all()  # a set may be empty


def test_new_rows_are_in_their_sets_as_often_as_requested(model, three):
    for fitted, X, y in ((model, NEW.X, NEW.y), three):
        code = np.searchsorted(fitted.classes_, y)
        for coverage in (0.8, 0.95):
            inside = fitted.predict_set(X, coverage)[np.arange(len(y)), code]
            assert inside.mean() == pytest.approx(coverage, abs=3 * np.sqrt(coverage * (1 - coverage) / 300) + 0.005)


def test_per_class_the_rare_class_is_covered_too(three):
    fitted, X, y = three
    rare = y == "three"
    plain, each = (fitted.predict_set(X, 0.8, per_class=flag)[rare, 1].mean() for flag in (False, True))
    assert plain < 0.6
    assert each == pytest.approx(0.8, abs=0.2)  # of about 30 rows left out


def test_weights_that_are_all_equal_change_nothing(model):
    """Coverage does not depend on a common factor of all weights."""
    kwargs = {"tune": None, "link": "probit", "random_state": 0}
    few = waveform(30, random_state=2)
    one, tenth = (
        BayesianLinearSVC(**kwargs).fit(few.X, few.y, sample_weight=np.full(30, weight)) for weight in (1.0, 0.1)
    )
    assert one.predict_set(NEW.X, 0.97).all()
    assert tenth.predict_set(NEW.X, 0.97).all()
    assert not tenth.predict_set(NEW.X, 0.96).all()


def test_dask_collections_stay_lazy_and_have_the_same_sets(three):
    da = pytest.importorskip("dask.array")
    fitted, X, _ = three
    lazy = fitted.predict_set(da.from_array(X, chunks=(1_000, 2)), coverage=0.6, per_class=True)
    assert lazy.shape == (3_000, 3)
    assert lazy.dtype == bool
    assert np.array_equal(lazy.compute(), fitted.predict_set(X, 0.6, per_class=True))


def test_files_have_the_classes_of_each_set(three, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    fitted, X, _ = three
    fitted.predict_to(X, tmp_path / "said.parquet", uncertainty=False, coverage=0.7)
    said = parquet.read_table(tmp_path / "said.parquet")
    assert said.column_names == ["prediction", "probability_one", "probability_three", "probability_two", "set"]
    sets = fitted.predict_set(X, 0.7)
    assert said["set"].to_pylist() == ["|".join(fitted.classes_[row]) for row in sets]


def test_errors_say_what_is_wrong(model, tmp_path):
    with pytest.raises(ValueError, match=r"coverage must be strictly between 0 and 1, such as 0\.9; got 90"):
        model.predict_set(NEW.X, 90)
    odd = BayesianLinearSVC(tune=None).fit(TRAIN.X, np.where(TRAIN.y > 0, "a|b", "c"))
    assert odd.predict_set(NEW.X[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match=r"the class 'a\|b' has a '\|' in its name"):
        next(odd.predictions(NEW.X, coverage=0.9))
    with pytest.raises(Exception, match="not fitted"):
        BayesianLinearSVC().predict_set(NEW.X)
