"""Missing values that say something about the target get a feature that marks them; others do not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binomtest
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from bayesvm import BayesianLinearSVC, BayesianSVC, BayesianSVR, load, open_table
from bayesvm.preparation.missingness import SIGNIFICANT, informative
from bayesvm.workflow import TableModel, fit_table

N = 400


def table(n_rows=N, seed=0, *, depends=True):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n_rows))
    y = x + rng.normal(size=n_rows) > 0
    z[rng.random(n_rows) < (np.where(y, 0.7, 0.1) if depends else 0.3)] = np.nan
    w = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    return pd.DataFrame({"x": x, "z": z, "w": w, "text": rng.choice(["a", "b"], n_rows), "y": np.where(y, "yes", "no")})


def values_of(masks):
    """Uninformative values, missing where the masks are true."""
    values = np.random.default_rng(1).normal(size=(len(next(iter(masks.values()))), len(masks)))
    return np.where(np.column_stack(list(masks.values())), np.nan, values).__getitem__


def test_random_missingness_is_hardly_ever_informative():
    rng = np.random.default_rng(0)
    targets = [rng.integers(0, 2, 60), rng.integers(0, 5, 60), rng.normal(size=60), rng.choice(["a", "b", "c"], 60)]
    n_tables, n_found = 0, 0
    for _ in range(100):
        masks = {name: rng.random(60) < rng.uniform(0.2, 0.8) for name in "abcde"}
        for y in targets:
            n_tables += 1
            n_found += bool(informative(masks, y, values_of(masks)))
    assert binomtest(n_found, n_tables, SIGNIFICANT, "greater").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["two classes", "text", "many classes", "numbers", "flags"])
def test_informative_missingness_is_found(kind):
    rng = np.random.default_rng(0)
    score = rng.normal(size=300)
    y = {
        "two classes": (score > 0).astype(int),
        "text": np.where(score > 0, "yes", "no").astype(object),
        "many classes": np.digitize(score, [-2.5, -1, 0, 1, 2.5]),
        "numbers": score,
        "flags": score > 0,
    }[kind]
    missing = rng.random(300) < 1 / (1 + np.exp(-2 * score))
    masks = {"random": rng.random(300) < 0.3, "m": missing, "same": missing}
    assert informative(masks, y, values_of(masks)) == ["m"]
    rare = np.zeros(300, bool)
    rare[np.argsort(score)[-9:]] = True  # fewer than ten
    assert informative({"rare": rare}, y, values_of({"rare": rare})) == []


def test_rows_without_target_do_not_count():
    y = np.array([0.0, 1.0] * 50 + [np.nan] * 100)
    masks = {"m": np.isnan(y)}
    assert informative(masks, y, values_of(masks)) == []


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_missingness_that_says_what_other_columns_say_is_not_marked(kind):
    """A large value is missing more often, but a second column determines it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000)
    y = x + 0.5 * rng.normal(size=1_000)
    y = y if kind == "numbers" else y > 0
    masks = {"x": (x > 0) & (rng.random(1_000) < 0.4)}
    gone = np.where(masks["x"], np.nan, x)
    known = np.column_stack([gone, x + 0.05 * rng.normal(size=1_000)])
    unknown = np.column_stack([gone, rng.normal(size=1_000)])
    assert informative(masks, y, known.__getitem__) == []
    assert informative(masks, y, unknown.__getitem__) == ["x"]


@pytest.mark.parametrize("depends", [True, False])
def test_files_and_frames_agree(tmp_path, depends):
    data = table(depends=depends)
    data.to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        of_frame = BayesianLinearSVC().fit(data.drop(columns="y"), data["y"])
    marked = ["z"] if depends else []
    expected = ["the target depends on which values are missing in column 'z', so a feature marks them"]
    assert [str(note.message) for note in notes] == expected[: len(marked)]
    model = fit_table(tmp_path / "t.csv", "y", estimator=BayesianLinearSVC(), holdout=0)
    assert of_frame.recipe_.marked == model.recipe.marked == marked
    assert ("z (missing)" in of_frame.recipe_.names) == depends
    assert of_frame.recipe_ == model.recipe
    model.save(tmp_path / "m.bayesvm")
    np.testing.assert_array_equal(
        TableModel.load(tmp_path / "m.bayesvm").predict_proba(data), model.predict_proba(data)
    )
    assert load(tmp_path / "m.bayesvm").recipe_ == model.recipe


def test_the_indicator_pays():
    data, test = table(), table(2_000, seed=1)
    losses = []
    for columns in (["x", "z", "w", "text"], ["x", "w", "text"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesianLinearSVC().fit(data[columns], data["y"])
        losses.append(log_loss(test["y"], model.predict_proba(test[columns])))
    assert losses[0] < losses[1] - 0.08


KNOWN = "the target depends on which values are missing in column"


def numbers(*, depends):
    data = table(depends=depends)
    return data[["x", "z", "w"]], data["y"]


def quietly(fit, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*data)


@pytest.mark.parametrize("depends", [True, False])
def test_arrays_and_files_of_numbers_are_bit_identical_to_frames(tmp_path, depends):
    frame, y = numbers(depends=depends)
    X = frame.to_numpy()
    make = lambda: BayesianSVC(n_inducing=20, tune=None, random_state=0)
    of_frame = quietly(make().fit, frame, y)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        of_array = make().fit(X, y)
    assert [str(note.message) for note in notes] == [f"{KNOWN} 'x1', so a feature marks them"] * depends
    np.testing.assert_array_equal(of_array.loo_proba_, of_frame.loo_proba_)
    expected = of_frame.predict_proba(frame)
    assert of_array.n_features_in_ == 3
    assert not hasattr(of_array, "feature_names_in_")
    for rows in (X, X.tolist(), frame, csr_array(X)) if depends else (X, X.tolist()):
        np.testing.assert_array_equal(quietly(of_array.predict_proba, rows), expected)
    with pytest.raises(ValueError, match="X has 2 features, but BayesianSVC is expecting 3 features"):
        of_array.predict(X[:, :2])
    of_array.save(tmp_path / "m.bayesvm")
    np.testing.assert_array_equal(load(tmp_path / "m.bayesvm").predict_proba(X), expected)

    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    of_file = quietly(make().fit, open_table(tmp_path / "t.csv", "y"))
    np.testing.assert_array_equal(of_file.loo_proba_, of_frame.loo_proba_)
    for rows in (open_table(tmp_path / "t.csv", "y"), frame, X):
        np.testing.assert_array_equal(quietly(of_file.predict_proba, rows), expected)


def test_rows_on_dask_give_those_of_an_array():
    array = pytest.importorskip("dask.array")
    frames = pytest.importorskip("dask.dataframe")
    frame, y = numbers(depends=True)
    X = frame.to_numpy()
    make = lambda: BayesianSVC(n_inducing=20, tune=None, random_state=0)
    expected = quietly(make().fit, X, y)
    labels = array.from_array(y.to_numpy(str), 150)
    with pytest.warns(UserWarning, match=f"{KNOWN} 'x1'"):
        of_array = make().fit(array.from_array(X, (150, 3)), labels)
    with pytest.warns(UserWarning, match=f"{KNOWN} 'z'"):
        of_frame = make().fit(frames.from_pandas(frame, npartitions=2), frames.from_pandas(y, npartitions=2))
    for model in (of_array, of_frame):
        np.testing.assert_allclose(model.loo_proba_, expected.loo_proba_, atol=1e-9)
    lazy = of_array.predict_proba(array.from_array(X, (100, 3)))
    np.testing.assert_allclose(lazy.compute(), expected.predict_proba(X), atol=1e-9)
    lazy = of_frame.predict_proba(frames.from_pandas(frame, npartitions=3))
    np.testing.assert_allclose(lazy.compute(), expected.predict_proba(X), atol=1e-9)


def test_later_parts_of_a_stream_keep_the_marks():
    frame, y = numbers(depends=True)
    X = frame.to_numpy()
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    quietly(lambda: model.partial_fit(X[:300], y[:300], classes=["no", "yes"]).partial_fit(X[300:], y[300:]))
    assert model.recipe_.names == ("x0", "x1", "x1 (missing)", "x2")
    again = BayesianSVC(n_inducing=20, tune=None, random_state=0, warm_start=True)
    quietly(lambda: again.fit(X, y).fit(X[:350], y[:350]))
    assert again.recipe_.names == model.recipe_.names


@pytest.mark.parametrize("depends", [True, False])
def test_the_marks_of_an_array_pay_where_missingness_depends_on_the_target(depends):
    (frame, y), test = numbers(depends=depends), table(2_000, seed=1, depends=depends)
    X, X_test = frame.to_numpy(), test[["x", "z", "w"]].to_numpy()
    imputed = make_pipeline(SimpleImputer(strategy="median"), BayesianLinearSVC())
    ours, without = (quietly(each.fit, X, y).predict_proba(X_test) for each in (BayesianLinearSVC(), imputed))
    gain = log_loss(test["y"], without) - log_loss(test["y"], ours)
    assert gain > 0.08 if depends else abs(gain) < 0.02


def test_regression():
    data = table()
    y = np.where(np.isnan(data["z"]), 5.0, 0.0) + np.random.default_rng(1).normal(size=N)
    with pytest.warns(UserWarning, match="which values are missing in column 'z'"):
        model = BayesianSVR(n_inducing=20, tune=None).fit(data.drop(columns="y"), y)
    assert np.corrcoef(model.predict(data.drop(columns="y")), y)[0, 1] > 0.8


def test_the_completed_number_is_exported_with_its_indicator():
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from bayesvm.export import to_onnx  # noqa: PLC0415

    data = table()
    with pytest.warns(UserWarning, match="column 'z'"):
        model = BayesianLinearSVC().fit(data.drop(columns="y"), data["y"])
    with pytest.warns(UserWarning, match="returns NaN"):
        graph = to_onnx(model)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    rows = data[data["z"].notna() & data["w"].notna()]
    fed = {
        each.name: rows[each.name].to_numpy(object if "string" in each.type else np.float64)[:, None]
        for each in session.get_inputs()
    }
    found = next(each for each in session.run(None, fed) if np.ndim(each) == 2)
    np.testing.assert_allclose(found, model.predict_proba(rows.drop(columns="y")), atol=1e-4)
