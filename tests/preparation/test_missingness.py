"""Missing values that say something about the target get a feature that marks them; others do not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVR, load
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


def test_random_missingness_is_hardly_ever_informative():
    rng = np.random.default_rng(0)
    targets = [rng.integers(0, 2, 60), rng.integers(0, 5, 60), rng.normal(size=60), rng.choice(["a", "b", "c"], 60)]
    n_tables, n_found = 0, 0
    for _ in range(100):
        masks = {name: rng.random(60) < rng.uniform(0.2, 0.8) for name in "abcde"}
        for y in targets:
            n_tables += 1
            n_found += bool(informative(masks, y))
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
    assert informative({"random": rng.random(300) < 0.3, "m": missing, "same": missing}, y) == ["m"]
    rare = np.zeros(300, bool)
    rare[np.argsort(score)[-9:]] = True  # fewer than ten
    assert informative({"rare": rare}, y) == []


def test_rows_without_target_do_not_count():
    y = np.array([0.0, 1.0] * 50 + [np.nan] * 100)
    assert informative({"m": np.isnan(y)}, y) == []


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
