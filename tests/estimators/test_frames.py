"""Data frames and files with columns of any kind, from fit to file: what an estimator makes of them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, open_table
from bayesvm.inspection import PartialDependenceDisplay, RelevanceDisplay
from bayesvm.kernels import RBF

N = 240
RNG = np.random.default_rng(0)
CITY = RNG.choice(["Rome", "Paris", "Oslo"], N).astype(object)
CITY[::17] = None
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(40, 9, N)),
        "city": CITY,
        "flag": RNG.random(N) < 0.5,
        "when": pd.date_range("2024-01-01", periods=N, freq="31h"),
        "id": [f"r{k}" for k in range(N)],
    }
)
Y = np.where(
    np.nan_to_num(FRAME["age"], nan=40) - 40 + 9 * (CITY == "Rome") + RNG.logistic(size=N) * 3 > 2, "yes", "no"
)
USED = FRAME.drop(columns="id")
MODELS = {
    "kernel": lambda: BayesianSVC(n_inducing=25, tune=None, random_state=0),
    "linear": lambda: BayesianLinearSVC(tune=None, random_state=0),
}
both = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def by_hand(frame, reference):
    """The features by pandas alone."""
    cities = ["Oslo", "Paris", "Rome", "(missing)"]
    order = reference["city"].fillna("(missing)").value_counts().loc[cities].sort_values(ascending=False, kind="stable")
    first = reference["when"].min().normalize()
    when = frame["when"].dt
    return pd.DataFrame(
        {"age": frame["age"]}
        | {f"city={city}": frame["city"].fillna("(missing)") == city for city in order.index}
        | {"flag": frame["flag"], "when (month)": when.month, "when (day of week)": when.day_of_week + 1}
        | {"when (hour)": when.hour, "when (days)": (frame["when"] - first) / pd.Timedelta(days=1)}
    ).astype(float)


@both
def test_a_frame_is_learned_from_as_its_features_are(make):
    model = make().fit(USED, Y)
    features = by_hand(USED, USED)
    assert set(model.recipe_.names) == set(features)
    features = features[list(model.recipe_.names)]
    alone = make().fit(features.to_numpy(), Y)
    np.testing.assert_array_equal(model.predict_proba(USED), alone.predict_proba(features.to_numpy()))
    np.testing.assert_allclose(model.features_of(USED), features, rtol=1e-12)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["age", "city", "flag", "when"]


@both
@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "Arrow"])
def test_frames_of_all_libraries_give_bit_identical_results(make, convert):
    expected = make().fit(USED, Y).predict_proba(USED)
    frame = convert(USED)
    np.testing.assert_array_equal(make().fit(frame, Y).predict_proba(frame), expected)


@both
def test_files_and_frames_give_the_same_model(make, tmp_path):
    pq.write_table(pa.Table.from_pandas(FRAME.assign(income=Y)), tmp_path / "t.parquet")
    FRAME.assign(income=Y).to_csv(tmp_path / "t.csv", index=False)
    model = make().fit(USED, Y)
    for name in ("t.parquet", "t.csv"):
        with open_table(tmp_path / name, "income", drop=["id"]) as table:
            of_file = make().fit(table)
            np.testing.assert_allclose(of_file.predict_proba(table), model.predict_proba(USED), rtol=1e-9)
            np.testing.assert_allclose(of_file.predict_proba(USED), model.predict_proba(USED), rtol=1e-9)
            np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(USED), rtol=1e-9)
            assert of_file.score(table) == model.score(USED, Y)
            assert of_file.feature_names_in_.tolist() == model.feature_names_in_.tolist()


@both
def test_saved_and_loaded_it_takes_frames(make, tmp_path):
    model = make().fit(USED, Y)
    model.save(tmp_path / "m.bayesvm")
    again = bayesvm.load(tmp_path / "m.bayesvm")
    assert again.recipe_ == model.recipe_
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert again.n_features_in_ == 4
    np.testing.assert_array_equal(again.predict_proba(USED), model.predict_proba(USED))
    plain = make().fit(USED[["flag"]].assign(x=np.sin(np.arange(N))), Y)
    plain.save(tmp_path / "m.bayesvm")
    assert bayesvm.load(tmp_path / "m.bayesvm").recipe_ is None


def test_an_identifier_is_left_out_with_one_message():
    with pytest.warns(UserWarning, match="1 column of X left out: 'id' .nearly all texts are distinct") as told:
        model = MODELS["linear"]().fit(FRAME, Y)
    assert len(told) == 1
    assert model.recipe_.left_out.keys() == {"id"}
    assert model.feature_names_in_.tolist() == list(FRAME)
    np.testing.assert_array_equal(model.predict_proba(FRAME), model.predict_proba(USED))  # it may be missing


def test_scikit_learn_splits_and_clones_frames():
    assert np.isfinite(cross_val_score(MODELS["linear"](), USED, Y, cv=3, scoring="neg_log_loss")).all()
    search = GridSearchCV(MODELS["linear"](), {"prior_variance": [0.1, 1.0]}, cv=2).fit(USED, Y)
    again = clone(search.best_estimator_)
    assert not hasattr(again, "recipe_")
    pipeline = make_pipeline(FunctionTransformer(lambda X: X.drop(columns="flag")), MODELS["linear"]()).fit(USED, Y)
    assert pipeline[-1].recipe_.needed == ["age", "city", "when"]
    assert pipeline.predict(USED).shape == (N,)


def test_columns_follow_the_rules_of_scikit_learn():
    model = MODELS["linear"]().fit(USED, Y)
    cases = [
        (USED.drop(columns="city"), "X has no column 'city'"),
        (USED.rename(columns={"city": "City"}), r"X has no column 'city' \(did you mean 'City'\?\)"),
        (USED.assign(citys=1), r"X has the column 'citys', not seen in fit \(did you mean 'city'\?\); drop it"),
        (USED[["city", "age", "flag", "when"]], "must be in the same order as they were in fit"),
    ]
    for frame, message in cases:
        with pytest.raises(ValueError, match="The feature names should match.*" + message):
            model.predict(frame)
    with pytest.raises(TypeError, match="fitted to a table with the columns 'age', 'city'.*give a data frame"):
        model.predict(np.zeros((3, 4)))


def test_frames_of_numbers_need_no_recipe():
    numbers = pd.DataFrame({"x": RNG.normal(size=N), "k": np.arange(N), "flag": USED["flag"]})
    model = MODELS["linear"]().fit(numbers, Y)
    assert model.recipe_ is None
    alone = MODELS["linear"]().fit(numbers.to_numpy(float), Y)
    np.testing.assert_array_equal(model.predict_proba(numbers), alone.predict_proba(numbers.to_numpy(float)))
    model.fit(USED, Y)
    assert model.fit(numbers, Y).recipe_ is None
    assert model.feature_names_in_.tolist() == ["x", "k", "flag"]


def test_missing_values_and_new_categories_at_prediction():
    model = MODELS["kernel"]().fit(USED, Y)
    new = USED.iloc[:4].copy()
    new.loc[:, "city"] = ["Rome", "Atlantis", None, "Oslo"]
    new.loc[0, "age"], new.loc[3, "when"] = np.nan, pd.NaT
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        p = model.predict_proba(new)
    messages = " ".join(str(each.message) for each in found)
    assert "column 'when' has missing values, but had none in training; they count as what the other" in messages
    assert "column 'city' has categories not seen in training" in messages
    assert np.isfinite(p).all()
    with pytest.raises(ValueError, match="infinity at row 2, column 0 .'age'"):
        model.predict(USED.assign(age=[0, 0, np.inf, *[1] * (N - 3)]))


def test_rows_without_a_target_are_left_out_and_counted():
    labels = pd.Series(Y, dtype=object)
    labels[[2, 5]] = None
    weight = np.arange(1.0, N + 1)
    kept = np.delete(np.arange(N), [2, 5])
    expected = MODELS["linear"]().fit(USED.iloc[kept], Y[kept], sample_weight=weight[kept])
    for y in (labels, pl.Series(labels.to_list()), labels.to_numpy()):
        with pytest.warns(UserWarning, match=r"2 rows are left out of 240.*no value in y \(first: row 2\)"):
            model = MODELS["linear"]().fit(USED, y, sample_weight=weight)
        np.testing.assert_array_equal(model.predict_proba(USED), expected.predict_proba(USED))
        np.testing.assert_array_equal(model.loo_indices_, kept)


def test_relevance_and_effects_are_of_the_columns():
    rng = np.random.default_rng(1)
    month, kind = rng.integers(1, 13, 1500), rng.choice(["a", "b", "c"], 1500)
    frame = pd.DataFrame({"u": rng.normal(size=1500), "kind": kind, "v": rng.normal(size=1500), "month": month})
    y = frame["u"] + 4 * (month % 2) - 2 + rng.logistic(size=1500) > 0
    model = BayesianSVC(RBF(), scale="standard", n_inducing=50, random_state=0).fit(frame, y)
    assert len(model.relevance_) == 4
    assert model.relevance_.sum() == pytest.approx(1)
    assert [str(effect) for effect in model.effects_] == ["month"]
    pytest.importorskip("matplotlib").use("Agg")
    bars = RelevanceDisplay.from_estimator(model)
    assert bars.ax_.get_yticklabels()[0].get_text() == "month"
    display = PartialDependenceDisplay.from_estimator(model, frame, "kind", max_rows=20)
    assert display.labels == ["a", "b", "c"]


def test_partial_dependence_of_dates_and_missing_values():
    pytest.importorskip("matplotlib").use("Agg")
    model = MODELS["kernel"]().fit(USED, Y)
    dates = PartialDependenceDisplay.from_estimator(model, USED, "when", max_rows=10)
    assert dates.labels[0].startswith("2024-01")
    ages = PartialDependenceDisplay.from_estimator(model, USED, "age", max_rows=10)
    assert np.isfinite(ages.mean).all()


@both
def test_streams_and_warm_starts_keep_the_recipe(make):
    first, second = slice(0, 120), slice(120, N)
    model = make().partial_fit(USED.iloc[first], Y[first], classes=["no", "yes"])
    recipe = model.recipe_
    with pytest.warns(UserWarning, match="not seen in training"):
        model.partial_fit(USED.iloc[second].assign(city="Atlantis"), Y[second])
    assert model.recipe_ is recipe
    warm = make().set_params(warm_start=True).fit(USED, Y)
    recipe = warm.recipe_
    assert warm.fit(USED.iloc[first], Y[first]).recipe_ is recipe


def test_a_leak_is_named():
    frame = USED.assign(paid=np.where(Y == "yes", 100.0, -1.0) + RNG.random(N), verdict=np.where(Y == "yes", "a", "b"))
    with pytest.warns(
        UserWarning, match="each of the columns 'paid', 'verdict' alone determines the classes of all 240 rows"
    ):
        MODELS["linear"]().fit(frame, Y)
    MODELS["linear"]().fit(USED, Y)  # no warning: it would be an error


def test_a_table_of_numbers_is_read_as_before(tmp_path):
    pq.write_table(pa.table({"x": RNG.normal(size=N), "k": np.arange(N), "y": Y}), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet", "y") as table:
        model = MODELS["linear"]().fit(table)
        assert model.recipe_ is None
        assert model.feature_names_in_.tolist() == ["x", "k"]
    mixed = pa.table({"note": ["n"] * N, "k": np.arange(N), "x": RNG.normal(size=N)})
    pq.write_table(mixed, tmp_path / "new.parquet")
    with open_table(tmp_path / "new.parquet") as new:  # of which the model takes its columns
        assert model.predict_proba(new).shape == (N, 2)
