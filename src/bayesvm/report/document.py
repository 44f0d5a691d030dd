"""Report: combine sections and plots, and write the document."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import Any

from bayesvm.atomic import write_whole
from bayesvm.evaluation import Predictions, RegressionPredictions, formatting
from bayesvm.evaluation.formatting import column_label
from bayesvm.extras import optional
from bayesvm.report import numbers, plots, sections
from bayesvm.report.conclusion import accuracy, caveat, conclusion, evaluated_on
from bayesvm.report.influence import TOP, bars, dependence, effect_plots
from bayesvm.report.interactions import interaction_plots, interactions
from bayesvm.workflow import EvaluatedRows, TableModel
from bayesvm.workflow.describing import effects, members
from bayesvm.workflow.importance import importance
from bayesvm.workflow.probing import some_rows, usual_rows

MOST_DEPENDENCES = 6
BACKGROUND = 50  # rows over which dependence is averaged


def write_report(
    model: TableModel, out: str | PathLike[str], test: EvaluatedRows | None = None, *, show_rows: bool = True
) -> Path:
    """Write a report about a model, its metrics and what it has learned, as one self-contained HTML file.

    The metrics are those on ``test`` if given, otherwise those on the rows held out of training, otherwise
    leave-one-out estimates. The same input gives the same bytes.

    Parameters
    ----------
    model : TableModel
        The model to report on.
    out : path
        The HTML file to write.
    test : EvaluatedRows, optional
        Predictions for a test table, from ``model.evaluate``.
    show_rows : bool, default=True
        Whether to show single rows of the table; set it to False if you share the report.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    bayesvm.workflow.TableModel : The model, its recipe and its card.

    Examples
    --------
    >>> from bayesvm.workflow import TableModel
    >>> from bayesvm.report import write_report
    >>> model = TableModel.load("income.bayesvm")  # doctest: +SKIP
    >>> write_report(model, "income.html", model.evaluate("test.csv"))  # doctest: +SKIP
    """
    target = Path(os.path.realpath(out))  # follow symbolic links, like open()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first, or choose another file")
    evaluated = test or model.default_evaluation
    page = _rendered(_content(model, evaluated, given=test is not None, show_rows=show_rows))
    write_whole(out, page.encode())
    return Path(out)


def _content(model: TableModel, evaluated: EvaluatedRows, *, given: bool, show_rows: bool) -> dict[str, Any]:
    """The content for the templates."""
    estimator, target = model.estimator, model.card.get("target")
    content = {
        "title": f"Predicting {column_label(target)}" if target else "A Bayesian support vector machine",
        "target": target,
        "data_card": sections.data_card(model),
        "model_card": sections.model_card(model),
        "profile": sections.profile(model, evaluated),
        "members": members(estimator),
        "evaluated": evaluated_on(evaluated, given=given),
        "trained_on": sections.trained_on(model),
        "left_out": not given and model.holdout is None,
        "estimator": estimator,
        "tuning": getattr(estimator, "tuning_report_", None),
        "plots": plots.of_training(estimator, model.card.get("n_train")),
        "matter": _columns(model, evaluated),
        "show_rows": show_rows,
        "numbers": model.is_regression,
        "caveat": caveat(model),
    }
    said = evaluated.predictions
    if isinstance(said, RegressionPredictions):
        return content | _of_numbers(model, said, content, given=given)
    rows = sections.rows(model, evaluated, content["matter"]["ranked"]) if show_rows else None
    return content | _of_classes(model, said, content, given=given) | {"rows": rows}


def _of_numbers(
    model: TableModel, said: RegressionPredictions, content: dict[str, Any], *, given: bool
) -> dict[str, Any]:
    quality = numbers.quality(model, said, given=given)
    return {
        "conclusion": numbers.conclusion(model, content["evaluated"], quality, content["matter"]["importance"]),
        "quality": quality,
        "binary": False,
        "plots": numbers.plots(said) | content["plots"],
        "rows": None,
    }


def _of_classes(model: TableModel, said: Predictions, content: dict[str, Any], *, given: bool) -> dict[str, Any]:
    quality = sections.quality(model, said, given=given)
    return {
        "conclusion": conclusion(model, content["evaluated"], quality, content["matter"]["importance"]),
        "classes": sections.classes(said),
        "quality": quality,
        "binary": len(said.classes) == 2,
        "second": formatting.shortened(said.classes[-1], 40),
        "confusion": sections.confusion(said),
        "decisions": sections.decisions(said),
        "coverage": sections.coverage(said),
        "plots": plots.of_predictions(said, model.card.get("target")) | content["plots"],
    }


def _columns(model: TableModel, evaluated: EvaluatedRows) -> dict[str, Any]:
    """The importance, dependence, interactions and effects of columns."""
    found: dict[str, Any] = {
        "ranked": list(model.recipe.groups),
        "importance": None,
        "dependence": [],
        "interactions": [],
    }
    found |= {"effects": effects(model), "effect_plots": effect_plots(model, evaluated)}
    usual, measured = usual_rows(model, evaluated), importance(model, evaluated)
    if usual is None or measured is None:
        return found
    few = some_rows(usual, BACKGROUND)
    title, axis, unit = "Importance of the columns", "change of the probabilities (points)", 100
    if model.is_regression:
        axis, unit = "change of the prediction", 1
    shown = (measured.names[:TOP], unit * measured.change[:TOP])  # the others do not add up: they are left out
    values = evaluated.X if len(evaluated.X) else usual
    return found | {
        "ranked": list(measured.names),
        "importance": measured,
        "n_background": len(few),
        "bars": bars("importance", title, axis, shown),
        "dependence": dependence(model, measured.names[:MOST_DEPENDENCES], few, values),
        "interactions": []  # of log odds
        if model.is_regression
        else interaction_plots(model, interactions(model, measured.names, few, values)),
    }


def _rendered(content: dict[str, Any]) -> str:
    """Render the page. All names and values are escaped, since they are untrusted; plots are not."""
    jinja = optional("jinja2", "cli")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("bayesvm.report"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        lstrip_blocks=True,
    )
    names = (
        "at_most",
        "cell",
        "column_label",
        "decimal",
        "decimals_of",
        "exact_percent",
        "in_units",
        "percent",
        "points",
        "probability",
        "rough_percent",
        "signed_interval",
    )
    environment.filters |= {name: getattr(formatting, name) for name in (*names, "shortened")}
    environment.filters["accuracy"] = accuracy
    environment.filters["thousands"] = "{:,}".format
    environment.globals["metric_names"] = formatting.METRIC_NAMES
    environment.globals["metric_cells"] = lambda name, metric: formatting.metric_rows({name: metric})[0]
    page: str = environment.get_template("report.html").render(content)
    return re.sub(r"\n\s*\n", "\n", page)
