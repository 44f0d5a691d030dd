"""Bad input: a clear error that names the place, or it simply works. Never a bare LinAlgError, never NaN out."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bayesvm import BayesianLinearSVC, BayesianOneClassSVM, BayesianSVC, BayesianSVR
from bayesvm.kernels import RBF, Linear

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 3))
y = (X[:, 0] + 0.3 * rng.standard_normal(80) > 0).astype(int)

both = pytest.mark.parametrize(
    "make",
    [
        lambda **p: BayesianSVC(**{"tune": None, "random_state": 0} | p),
        lambda **p: BayesianLinearSVC(**{"tune": None} | p),
    ],
    ids=["kernel", "linear"],
)


def spoiled(row, column, value):
    bad = X.copy()
    bad[row, column] = value
    return bad


@both
@pytest.mark.parametrize(("value", "word"), [(np.inf, "infinity"), (-np.inf, "infinity"), (1e200, "too large")])
def test_unusable_values_are_named_with_row_and_column(make, value, word):
    with pytest.raises(ValueError, match=f"{word}.*row 7, column 2"):
        make().fit(spoiled(7, 2, value), y)
    with pytest.raises(ValueError, match=f"{word}.*row 0, column 1"):
        make().fit(X, y).predict(spoiled(0, 1, value))


def test_columns_of_frames_are_named():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="row 7, column 2 .'height'"):
        BayesianSVC().fit(pd.DataFrame(spoiled(7, 2, np.inf), columns=["age", "size", "height"]), y)


@both
@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (X, np.zeros(80), "one class: "),
        (X, np.linspace(0, 1, 80), "Unknown label type"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[:1], y[:1], "minimum of 2 is required"),
        (X[:0], y[:0], "0 sample"),
        (X[:, :0], y, "0 feature"),
        (X[:, 0], y, "1D array"),
        (np.array([["a", "b"]] * 80), y, "row 0, column 0.*Pass a data frame"),
    ],
)
def test_unusable_tables_are_refused(make, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        make().fit(rows, labels)


@both
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 80), "row 1: y is 0.0126582 .*Labels must be classes.* use BayesianSVR"),
        (np.linspace(0, 1, 80).astype(object), "row 1: y is 0.0126582 .*Labels must be classes.* use BayesianSVR"),
        (np.where(np.arange(80) == 7, np.nan, y), "y, row 7: the label is missing. Fill the labels, or drop the rows"),
        (["a", None, None] + ["b"] * 77, r"y, row 1: the label is missing \(and in 1 other row\)"),
    ],
)
def test_targets_that_are_no_labels_are_named_with_their_row(make, labels, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, labels)
    with pytest.raises(ValueError, match=message):
        make().partial_fit(X, labels, classes=[0, 1])


def test_labels_of_several_types_are_named():
    with pytest.raises(ValueError, match=r"Unknown label type: .* of type int, str; .* y.astype\(str\)"):
        BayesianSVC().fit(X, np.array([1] * 40 + ["a"] * 40, object))


DAYS = np.arange("2024-01-01", "2024-03-21", dtype="datetime64[D]")[:, None]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (DAYS, r"X is an array of type datetime64\[D\]. Pass a data frame"),
        (DAYS - DAYS[0], r"X is an array of type timedelta64\[D\]. Pass a data frame"),
        (DAYS.astype(object), "the date or time 2024-01-01 at row 0, column 0. Pass a data frame"),
    ],
    ids=["dates", "durations", "objects"],
)
@pytest.mark.parametrize("make", [BayesianSVC, BayesianSVR, BayesianOneClassSVM])
def test_arrays_of_dates_are_refused_with_the_remedy(make, rows, message):
    with pytest.raises(TypeError, match=message):
        make().fit(rows, y)


def test_a_timestamp_among_numbers_is_named():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"x": X[:, 0], "day": pd.date_range("2024-01-01", periods=80)}).to_numpy()
    with pytest.raises(TypeError, match="the date or time 2024-01-01 00:00:00 at row 0, column 1. Pass a data frame"):
        BayesianSVC().fit(rows, y)


def test_a_misspelled_column_of_numbers_gives_the_nearest_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    model = BayesianLinearSVC().fit(frame, y)
    with pytest.raises(ValueError, match=r"X has the column 'heigth' \(did you mean 'height'\?\)") as told:
        model.predict(frame.rename(columns={"height": "heigth"}))
    assert "unseen at fit time:\n- heigth\n" in str(told.value)  # as scikit-learn says it
    assert "'age'" not in str(told.value)
    for given in (frame[["weight", "age", "height"]], frame.assign(heigth=1)):
        with pytest.raises(ValueError, match=r"Select the columns of the fit: X\[model.feature_names_in_\]"):
            model.predict(given)


@both
def test_prediction_requires_the_same_width_and_a_fitted_model(make):
    with pytest.raises(ValueError, match="3 features"):
        make().fit(X, y).predict_proba(X[:, :2])
    with pytest.raises(NotFittedError):
        make().predict_proba(X)


@both
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(80), "[Nn]egative"),
        (np.ones(79), "shape"),
        (np.full(80, np.nan), "NaN"),
        (np.zeros(80), "zero"),
        (y.astype(float), "zero weight"),
    ],
)
def test_senseless_weights_are_refused(make, weight, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, y, sample_weight=weight)


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bound", "tight"), ("inference", "mcmc"), ("scale", "minmax"), ("link", "logit"), ("batch_size", 0),
        ("learning_rate", 2.0), ("learning_rate", "fast"), ("max_iter", 0), ("tol", -1.0),
        ("precision", "half"), ("tune", "grid"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused_by_name(make, name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        make(**{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be one of 'auto', 'rbf'"),
        ({"kernel": RBF(-1.0)}, "length_scale must be positive"),
        ({"kernel": RBF([1.0, 2.0])}, "one number, or one per column"),
        ({"n_inducing": 0}, "n_inducing must be"),
        ({"n_inducing": 2.5}, "n_inducing must be"),
        ({"inducing": "grid"}, "inducing must be"),
        ({"inducing": X[:5, :2]}, "inducing has 2 columns, but X has 3"),
        ({"inducing": np.full((2, 3), np.nan)}, "NaN"),
    ],
)
def test_senseless_kernels_and_points_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        BayesianSVC(**changes, tune=None).fit(X, y)


def test_every_row_of_a_long_table_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="Set n_inducing"):
        BayesianSVC(n_inducing=None, tune=None).fit(np.zeros((20_001, 1)), np.arange(20_001) % 2)


def test_more_points_than_rows_works_and_says_so():
    with pytest.warns(UserWarning, match="using 80 inducing points"):
        model = BayesianSVC(n_inducing=500, tune=None, random_state=0).fit(X, y)
    assert len(model.inducing_points_) == 80


HARD_TABLES = {
    "constant column": np.column_stack([X, np.full(80, 3.0)]),
    "all columns constant": np.ones((80, 2)),
    "every row four times": np.tile(X[:20], (4, 1)),
    "values of 1e12": X * 1e12,
    "values of 1e-12": X * 1e-12,
    "1e12 plus noise": 1e12 + X,
    "one outlier of 1e15": spoiled(3, 1, 1e15),
    "more columns than rows": rng.standard_normal((80, 200)),
    "two equal columns": X[:, [0, 0, 1]],
    "integers": (10 * X).astype(int),
    "booleans": X > 0,
    "single precision": X.astype(np.float32),
    "Fortran order": np.asfortranarray(X),
    "read-only": np.broadcast_to(X[:, :1], (80, 3)),
}


@pytest.mark.slow
@both
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("table", HARD_TABLES.values(), ids=HARD_TABLES)
def test_hard_tables_give_probabilities(make, precision, scale, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning and JitterWarning are honest here
        probability = make(precision=precision, scale=scale, max_iter=30).fit(table, y).predict_proba(table)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1)


@pytest.mark.parametrize("kernel", [RBF(1e-9), RBF(1e9), RBF(1.0, 1e-9), RBF(1.0, 1e9), Linear(1e9)], ids=repr)
@pytest.mark.parametrize("bound", ["exact", "augmented"])
def test_extreme_kernels_give_probabilities(kernel, bound):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = BayesianSVC(kernel, n_inducing=30, bound=bound, tune=None, max_iter=30, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_duplicate_inducing_points_are_merged():
    model = BayesianSVC(inducing=np.repeat(X[:10], 3, axis=0), tune=None).fit(X, y)
    np.testing.assert_allclose(model.inducing_points_, X[:10])


def test_two_rows_are_enough():
    probability = BayesianSVC().fit([[0.0], [1.0]], ["a", "b"]).predict_proba([[0.0], [1.0]])
    assert probability[0, 0] > 0.5 > probability[1, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: BayesianSVC("linear", n_inducing=10, tune=None, random_state=0),
        lambda: BayesianSVC("linear", n_inducing=10, tune=None, random_state=0, scale="quantile"),
        lambda: BayesianSVC(tune=None, random_state=0),
        lambda: BayesianLinearSVC(tune=None),
    ],
    ids=["linear kernel", "quantiles", "rbf", "linear"],
)
def test_a_row_that_is_farther_than_squares_can_tell_is_a_very_far_row(make):
    unit = 1e-80
    model = make().fit(X[:, :1] * unit, y)
    far, farther = np.array([[-1e-10], [1e-10]]), np.array([[-1e100], [1e100]])  # 1e70 and 1e180 deviations
    np.testing.assert_allclose(model.predict_proba(farther), model.predict_proba(far), atol=1e-9)
    assert np.isfinite(model.predict_uncertainty(farther)["epistemic"]).all()


@pytest.mark.parametrize(
    ("model", "table", "message"),
    [
        (
            BayesianLinearSVC(tune=None, scale=None, precision="single"),
            X * [1, 1e60, 1],
            "not finite.*about 1e.60.*'b'",
        ),
        (BayesianSVC("linear", tune=None, scale=None, precision="single"), X * [1, 1e60, 1], "not finite.*'b'"),
        (BayesianSVC(Linear(1e200), tune=None, scale=None), X * 1e90, "infinity.*about 1e.90.*column"),
        (BayesianLinearSVC(tune=None), X * [1, 1, 1e-150], "column 'c' varies by only 1e-150.*smaller unit"),
        (BayesianSVC("linear", tune=None, scale=None), X * [1e90, 1e95, 1e80], "lost to rounding.*about 1e.95.*'b'"),
    ],
    ids=["single", "single, kernel", "kernel variance", "small unit", "many orders"],
)
def test_numbers_out_of_range_are_refused_and_the_column_is_named(model, table, message):
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        model.fit(pd.DataFrame(table, columns=["a", "b", "c"]), y)


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_huge_values_without_scaling_give_no_warning_of_numpy(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = BayesianSVC(kernel, scale=None, tune=None, random_state=0).fit(X * 1e95, y)
    assert np.isfinite(model.predict_proba(X * 1e95)).all()


def test_small_units_are_not_taken_for_constants():
    plain = BayesianSVC(tune=None, random_state=0).fit(X, y).predict_proba(X)
    small = BayesianSVC(tune=None, random_state=0).fit(X * 1e-250, y).predict_proba(X * 1e-250)
    np.testing.assert_allclose(small, plain, atol=1e-5)
