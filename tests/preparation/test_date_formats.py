"""Dates in text: their formats are detected, kept in the recipe, and required in predictions."""

import warnings
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from bayesvm import BayesianLinearSVC, load
from bayesvm.preparation import Frame, learn_frame, open_files
from bayesvm.preparation.date_formats import EXAMPLES, TWINS, DateFormat, are_compact
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.learning import learn
from bayesvm.workflow import TableModel, fit_table

DAYS = [datetime.fromisoformat("2012-01-20") + timedelta(days=k) for k in range(90)]
WRITTEN = {
    "iso": "%Y-%m-%d",
    "y/m/d": "%Y/%m/%d",
    "y.m.d": "%Y.%m.%d",
    "m/d/y": "%m/%d/%Y",
    "d/m/y": "%d/%m/%Y",
    "d.m.y": "%d.%m.%Y",
    "d-m-y": "%d-%m-%Y",
    "m-d-y": "%m-%d-%Y",
    "d-b-y": "%d-%b-%Y",
    "d b y": "%d %B %Y",
    "b d, y": "%b %d, %Y",
    "y-b-d": "%Y-%b-%d",
    "yMD": "%Y%m%d",
}
OF_MONTHS = {"y-M": "%Y-%m", "y/M": "%Y/%m", "M/y": "%m/%Y", "b y": "%B %Y"}


@pytest.mark.parametrize(("name", "written"), [*WRITTEN.items(), *OF_MONTHS.items()])
def test_the_format_is_detected_and_parsed_as_by_the_standard_library(name, written):
    texts = [day.strftime(written) for day in DAYS]
    form = DateFormat.of(texts)
    assert form.name == name
    assert [form.time(text) for text in texts] == [
        np.datetime64(datetime.strptime(text, written), "us")  # noqa: DTZ007  (local times)
        for text in texts
    ]


@pytest.mark.parametrize("written", ["%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%Y/%m/%dT%H:%M:%S", "%d-%b-%Y %H:%M"])
def test_times_of_day(written):
    texts = [(day + timedelta(minutes=613 * k)).strftime(written) for k, day in enumerate(DAYS)]
    form = DateFormat.of(texts)
    assert [form.time(text) for text in texts] == [
        np.datetime64(datetime.strptime(text, written), "us")  # noqa: DTZ007  (local times)
        for text in texts
    ]


def test_every_format_has_an_example_that_it_holds_and_a_test():
    assert {*WRITTEN, *OF_MONTHS} == set(EXAMPLES)
    assert all(DateFormat(name).holds(example) for name, example in EXAMPLES.items())


@pytest.mark.parametrize(
    "text", ["", "soon", "31/31/2012", "2012-02-30", "1.2.3", "12:30", "13:00 PM", "2012-01-31 13:00 PM", "10.4.2.1"]
)
def test_other_text_is_no_date(text):
    assert DateFormat.of([text]) is None


def test_one_day_after_the_twelfth_decides():
    assert DateFormat.of(["03/04/2012", "25/04/2012"]).name == "d/m/y"
    assert DateFormat.of(["03/04/2012", "04/25/2012"]).name == "m/d/y"
    assert DateFormat("m/d/y").is_ambiguous(["03/04/2012"])
    assert not DateFormat("m/d/y").is_ambiguous(["03/03/2012"])
    assert set(TWINS) | set(TWINS.values()) <= set(EXAMPLES)


def test_whole_numbers_as_dates():
    assert are_compact([float(day.strftime("%Y%m%d")) for day in DAYS])
    assert not are_compact([20120131.0] * 3)
    assert not are_compact(np.random.default_rng(0).integers(19_000_000, 21_000_000, 20).tolist())


def table(dates):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"when": dates, "x": rng.normal(size=len(dates)), "y": rng.choice(["a", "b"], len(dates))})


@pytest.mark.parametrize("written", ["%m/%d/%Y", "%d.%m.%Y", "%Y%m%d"])
def test_files_and_frames_give_the_features_of_iso_dates(written, tmp_path):
    usual, other = (table([day.strftime(form) for day in DAYS]) for form in ("%Y-%m-%d", written))
    if written == "%Y%m%d":
        other["when"] = other["when"].astype(int)
    other.to_csv(tmp_path / "t.csv", index=False)
    expected = learn_frame(Frame.of(usual)).encoded_frame(Frame.of(usual))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame, opened = Frame.of(other), open_files(tmp_path / "t.csv")
        found = learn_frame(frame)
        of_file = learn(opened, ())
    np.testing.assert_array_equal(found.encoded_frame(frame), expected)
    assert of_file.columns == found.columns
    np.testing.assert_array_equal(of_file.encoded([chunk for _, chunk in opened.rows.chunks(other.columns)]), expected)


def test_the_format_belongs_to_the_model(tmp_path):
    table([day.strftime("%d.%m.%Y") for day in DAYS]).to_csv(tmp_path / "t.csv", index=False)
    model = fit_table(tmp_path / "t.csv", "y", estimator=BayesianLinearSVC(), holdout=0)
    model.save(tmp_path / "m.bayesvm")
    assert load(tmp_path / "m.bayesvm").recipe_.columns[0].form == "d.m.y"
    few = table([f"0{k}.02.2012" for k in range(1, 6)])  # alone, they could be in any format
    few.to_csv(tmp_path / "few.csv", index=False)
    iso = table([f"2012-02-0{k}" for k in range(1, 6)])
    loaded = TableModel.load(tmp_path / "m.bayesvm")
    np.testing.assert_array_equal(loaded.predict_proba(tmp_path / "few.csv"), loaded.predict_proba(few))
    iso.to_csv(tmp_path / "iso.csv", index=False)
    for other in (iso, tmp_path / "iso.csv"):
        np.testing.assert_array_equal(loaded.predict_proba(other), loaded.predict_proba(few))
    few.loc[2, "when"] = "02/13/2012"
    few.to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(ValueError, match=r"'02/13/2012' \(.*few.csv, line 4\), which is not a date like 23.04.2024"):
        loaded.predict_proba(tmp_path / "few.csv")


def test_an_ambiguous_column_is_reported():
    frame = Frame.of(table([f"0{k % 9 + 1}/05/2012" for k in range(40)]))
    with pytest.warns(
        UserWarning, match="'01/05/2012', of which day and month may be interchanged: it is read as 2012-"
    ):
        recipe = learn_frame(frame)
    assert recipe.columns[0].form == "m/d/y"


def test_a_mixture_names_the_place(tmp_path):
    mixed = table([day.strftime("%Y-%m-%d" if k % 5 < 2 else "%d.%m.%Y") for k, day in enumerate(DAYS)])
    mixed.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"dates, such as '22.01.2012', but also '2012-01-20' \(row 0\)"):
        learn_frame(Frame.of(mixed))
    with pytest.raises(ValueError, match=r"but also '2012-01-20' \(.*t.csv, line 2\); write all of them like"):
        learn(open_files(tmp_path / "t.csv"), ())


def test_an_earlier_recipe_has_iso_dates():
    assert DateColumn("when", "2012-01-01", ("days",)).form == "iso"
