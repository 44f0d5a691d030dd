"""Rows that belong together: leave-one-group-out from one fit against real refits, wherever the rows lie (D24)."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVC, BayesianSVR, load, open_table
from bayesvm.estimators.groups import numbered

rng = np.random.default_rng(0)
PATIENT = np.repeat(np.arange(80), 6)
SEVERITY = rng.standard_normal(80)
X = np.column_stack([SEVERITY[PATIENT] + 0.3 * rng.standard_normal(480), rng.standard_normal((80, 3))[PATIENT]])
Y = (SEVERITY + 0.7 * rng.standard_normal(80) > 0)[PATIENT].astype(int)
NAMES = np.array([f"patient {number}" for number in range(80)])[PATIENT]
HOW = {"n_inducing": 40, "tune": None, "random_state": 0}


@pytest.mark.parametrize(
    "make",
    [
        lambda: BayesianSVC(inducing=X[::10], scale=None, tol=1e-8, tune=None, random_state=0),
        lambda: BayesianLinearSVC(scale=None, tune=None),
    ],
    ids=["kernel", "linear"],
)
def test_rows_left_out_are_seen_as_by_refits_without_their_group(make):
    """The link is fitted to them all, so that f is compared."""
    model = make().fit(X, Y, groups=NAMES)
    left = model.fitted_.left_out[0]
    assert model.loo_indices_.tolist() == list(range(480))
    gaps, moved = [], []
    for number in range(0, 80, 8):
        rest = number != PATIENT
        m, _ = make().set_params(link="probit").fit(X[rest], Y[rest]).latent_mean_and_variance(X[~rest])
        gaps += (left.mean[~rest, 0] - m).tolist()
        moved += (make().fit(X, Y).fitted_.left_out[0].mean[~rest, 0] - m).tolist()
    assert np.abs(gaps).mean() < 0.35 * np.abs(moved).mean()


def test_new_patients_are_no_surprise():
    old = PATIENT < 50
    together = BayesianSVC(random_state=0).fit(X[old], Y[old], groups=PATIENT[old])
    alone = BayesianSVC(random_state=0).fit(X[old], Y[old])
    on_new = log_loss(Y[~old], together.predict_proba(X[~old]))
    assert abs(together.loo_log_loss_ - on_new) < 0.5 * abs(alone.loo_log_loss_ - on_new)
    assert on_new < log_loss(Y[~old], alone.predict_proba(X[~old]))


def test_a_group_for_each_row_is_no_group():
    one, other = (BayesianSVC(**HOW).fit(X, Y, groups=groups) for groups in (np.arange(480), None))
    np.testing.assert_allclose(one.loo_proba_, other.loo_proba_, atol=1e-9)


def test_of_a_table_a_column_may_name_the_groups(tmp_path):
    columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"who": NAMES, "y": Y}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", "y", columns=["x0", "x1", "x2", "x3"])
    found = BayesianSVC(**HOW).fit(table, groups="who")
    expected = BayesianSVC(**HOW).fit(X, Y, groups=NAMES)
    np.testing.assert_array_equal(found.loo_proba_, expected.loo_proba_)


def test_groups_on_dask_may_span_partitions():
    array = pytest.importorskip("dask.array")
    given = array.from_array(X, (100, 4)), array.from_array(Y, 100)
    found = BayesianSVC(**HOW).fit(*given, groups=array.from_array(PATIENT, 100))
    np.testing.assert_allclose(found.loo_proba_, BayesianSVC(**HOW).fit(X, Y, groups=PATIENT).loo_proba_, atol=1e-6)


def test_rows_without_weight_have_no_say():
    weight = np.where(np.arange(480) % 7 == 0, 0.0, 1.0)
    found = BayesianSVC(**HOW).fit(X, Y, weight, groups=NAMES)
    expected = BayesianSVC(**HOW).fit(X[weight > 0], Y[weight > 0], groups=NAMES[weight > 0])
    np.testing.assert_allclose(found.loo_proba_, expected.loo_proba_, atol=1e-9)


def test_numbers_have_groups_too():
    y = SEVERITY[PATIENT] + 0.1 * rng.standard_normal(480)
    together, alone = (BayesianSVR(**HOW).fit(X, y, groups=groups) for groups in (PATIENT, None))
    assert together.loo_rmse_ > 1.1 * alone.loo_rmse_


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.zeros(480), "all rows are in one group, 0.0"),
        (PATIENT[:100], "groups has 100 labels, but X has 480 rows"),
        (np.arange(500), "groups has 500 labels, but X has 480 rows"),
        ("who", "names a column, which only a table of open_table has"),
        ([None, *PATIENT[1:].tolist()], "no label for row 0"),
        (np.array([*PATIENT[:-1], [1]], object), r"groups has \[1\] for row 479, which cannot be a label"),
        (np.where(PATIENT == 3, np.nan, PATIENT), "no label for row 18 .6 rows in total"),
        (np.column_stack([PATIENT, PATIENT]), "one label per row"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, words):
    with pytest.raises(ValueError, match=words):
        BayesianSVC(**HOW).fit(X, Y, groups=groups)


def test_labels_may_be_of_any_type():
    """The same groups, whatever their names are made of; text and numbers that look alike differ."""
    expected = BayesianSVC(**HOW).fit(X, Y, groups=PATIENT).loo_proba_
    dates = np.datetime64("2020-01-01") + PATIENT
    mixed = [int(number) if number % 2 else f"patient {number}" for number in PATIENT]
    for groups in (NAMES, NAMES.tolist(), NAMES.astype(object), dates, mixed, np.array(mixed, object)):
        np.testing.assert_allclose(BayesianSVC(**HOW).fit(X, Y, groups=groups).loo_proba_, expected, atol=1e-9)
    names, numbers = numbered(np.array([1, "1", 2, 1, "b"], object))
    assert names == [1, 2, "1", "b"]
    assert numbers.tolist() == [0, 2, 1, 0, 3]


@pytest.mark.parametrize("kind", ["string", "object", "Int64", "category", "datetime64[ns]"])
def test_labels_of_pandas_may_be_missing(kind):
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(NAMES if kind in {"string", "object", "category"} else PATIENT).astype(kind)
    expected = BayesianSVC(**HOW).fit(X, Y, groups=PATIENT).loo_proba_
    np.testing.assert_allclose(BayesianSVC(**HOW).fit(X, Y, groups=labels).loo_proba_, expected, atol=1e-9)
    labels[7] = pandas.NaT if kind.startswith("date") else pandas.NA
    with pytest.raises(ValueError, match=r"no label for row 7 \(1 rows in total\)"):
        BayesianSVC(**HOW).fit(X, Y, groups=labels)


def test_a_label_for_each_row_even_of_weight_zero():
    weight = np.ones(480)
    weight[-5:] = 0
    with pytest.raises(ValueError, match="groups has 475 labels, but X has 480 rows"):
        BayesianSVC(**HOW).fit(X, Y, weight, groups=PATIENT[:475])
    array = pytest.importorskip("dask.array")
    given = array.from_array(X, (100, 4)), array.from_array(Y, 100)
    with pytest.raises(ValueError, match="groups has 490 labels, but X has 480 rows"):
        BayesianSVC(**HOW).fit(*given, groups=np.arange(490))


@pytest.mark.parametrize("place", ["memory", "file", "dask"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_of_one_group_is_a_warning(place, weighted, tmp_path):
    y = np.where(PATIENT == 5, 2, Y)
    weight = None
    if weighted:  # the class has rows in another group, of weight zero
        y[400], weight = 2, np.where(np.arange(480) == 400, 0.0, 1.0)
    if place == "file":
        columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"who": NAMES, "y": y}
        parquet.write_table(pa.table(columns | ({} if weight is None else {"w": weight})), tmp_path / "t.parquet")
        given, groups = (open_table(tmp_path / "t.parquet", "y", weight="w" if weighted else None),), "who"
    elif place == "dask":
        array = pytest.importorskip("dask.array")
        given = array.from_array(X, (100, 4)), *(None if v is None else array.from_array(v, 100) for v in (y, weight))
        groups = array.from_array(PATIENT, 100)
    else:
        given, groups = (X, y, weight), PATIENT
    with pytest.warns(UserWarning, match="class 2 occurs in one group only"):
        BayesianSVC(**HOW).fit(*given, groups=groups)


def test_a_checkpoint_belongs_to_its_groups(tmp_path):
    file = tmp_path / "fit.checkpoint"
    BayesianSVC(**HOW).fit(X, Y, checkpoint=file)
    with pytest.raises(ValueError, match="another fit: the checksum of the groups was None"):
        BayesianSVC(**HOW).fit(X, Y, groups=PATIENT, checkpoint=file)
    file.unlink()
    first = BayesianSVC(**HOW).fit(X, Y, groups=PATIENT, checkpoint=file)
    again = BayesianSVC(**HOW).fit(X, Y, groups=NAMES[np.arange(480)], checkpoint=tmp_path / "other")
    np.testing.assert_allclose(first.loo_proba_, again.loo_proba_, atol=1e-9)
    for groups in (None, PATIENT // 2):
        with pytest.raises(ValueError, match="another fit: the checksum of the groups"):
            BayesianSVC(**HOW).fit(X, Y, groups=groups, checkpoint=file)


@pytest.mark.parametrize("place", ["file", "dask"])
def test_a_checkpoint_of_rows_elsewhere_belongs_to_its_groups(place, tmp_path):
    file = tmp_path / "fit.checkpoint"
    if place == "file":
        columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"y": Y}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        given = (open_table(tmp_path / "t.parquet", "y"),)
    else:
        array = pytest.importorskip("dask.array")
        given = array.from_array(X, (100, 4)), array.from_array(Y, 100)
    BayesianSVC(**HOW).fit(*given, groups=PATIENT, checkpoint=file)
    with pytest.raises(ValueError, match="another fit: the checksum of the groups"):
        BayesianSVC(**HOW).fit(*given, groups=PATIENT // 2, checkpoint=file)


def test_local_models_and_groups_exclude_each_other():
    with pytest.warns(UserWarning, match="local=True has no effect with groups"):
        BayesianSVC(local=True, tune="loo", n_inducing=20, random_state=0).fit(X, Y, groups=PATIENT)


def test_few_groups_are_what_counts(tmp_path):
    """A set of 90 % of 8 groups has every class; a file holds what is needed to know that."""
    few = PATIENT < 8
    with pytest.warns(UserWarning, match="there are only 8 groups"):
        model = BayesianSVC(**HOW).fit(X[few], Y[few], groups=PATIENT[few])
    assert model.predict_set(X, 0.9).all()
    assert not model.predict_set(X, 0.6).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_set(X, 0.9), model.predict_set(X, 0.9))


def test_intervals_contain_the_numbers_of_new_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(240), 8)
    trait, own = rng.normal(size=(240, 2)), rng.normal(size=240)
    x = trait[group] + 0.3 * rng.normal(size=(len(group), 2))
    y = trait[group, 0] + own[group] + 0.3 * rng.normal(size=len(group))
    old = group < 40
    model = BayesianSVR(**HOW).fit(x[old], y[old], groups=group[old])
    low, high = model.predict_interval(x[~old])
    assert np.mean((low <= y[~old]) & (y[~old] <= high)) > 0.88
    assert model.fitted_.left_out_groups.max() == 39
