"""Rows that belong together: leave-one-group-out from one fit against real refits, wherever the rows lie (D24)."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVC, BayesianSVR, open_table

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
        (PATIENT[:100], "groups has 100 labels for 480 rows"),
        (np.where(PATIENT == 3, np.nan, PATIENT), "no label for row 18 .6 rows in total"),
        (np.column_stack([PATIENT, PATIENT]), "one label per row"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, words):
    with pytest.raises(ValueError, match=words):
        BayesianSVC(**HOW).fit(X, Y, groups=groups)


def test_a_class_of_one_group_is_a_warning():
    y = np.where(PATIENT == 5, 2, Y)
    with pytest.warns(UserWarning, match="class 2 occurs in one group only"):
        BayesianSVC(**HOW).fit(X, y, groups=PATIENT)
