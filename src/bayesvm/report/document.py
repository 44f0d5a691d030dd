"""Report: the document: sections and plots put together, and written."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm.atomic import write_whole
from bayesvm.evaluation import formatting
from bayesvm.evaluation.formatting import counted
from bayesvm.extras import optional
from bayesvm.report import plots, sections
from bayesvm.report.influence import TOP, background, bars, dependence, effect_plots, movement, relevance
from bayesvm.workflow import Judged, TableModel
from bayesvm.workflow.describing import effects, members

MOST_DEPENDENCES = 6


def write_report(model: TableModel, out: str | PathLike[str], test: Judged | None = None) -> Path:
    """Write what a model is, how good it is and what it has learned, as one HTML file that needs no network.

    It is judged by ``test``, as ``model.judged`` gives it, else by the rows that were held out of training, else by
    the leave-one-out predictions of the training rows. The same input gives the same bytes.

    Examples
    --------
    >>> from bayesvm.workflow import TableModel
    >>> from bayesvm.report import write_report
    >>> model = TableModel.load("income.bayesvm")  # doctest: +SKIP
    >>> write_report(model, "income.html", model.judged("test.csv"))  # doctest: +SKIP
    """
    target = Path(os.path.realpath(out))  # through a symbolic link, as open() would write
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first, or write somewhere else")
    judged = test or model.judged_by_default
    page = _rendered(_content(model, judged, given=test is not None))
    write_whole(out, page.encode())
    return Path(out)


def _content(model: TableModel, judged: Judged, *, given: bool) -> dict[str, Any]:
    """What the templates put into words."""
    estimator, said = model.estimator, judged.predictions
    said_of_columns = _columns(model, judged)
    target = model.card.get("target")
    return {
        "title": f"Predicting {target}" if target else "A Bayesian support vector machine",
        "target": target,
        "card": sections.card(model),
        "classes": sections.classes(said),
        "columns": sections.columns(model.recipe),
        "members": members(estimator),
        "judged": _judged(judged, given=given, held_out=model.holdout is not None),
        "left_out": not given and model.holdout is None,
        "quality": sections.quality(said),
        "binary": len(said.classes) == 2,
        "second": formatting.shortened(said.classes[-1], 40),
        "confusion": sections.confusion(said),
        "coverage": sections.coverage(said),
        "estimator": estimator,
        "tuning": getattr(estimator, "tuning_report_", None),
        "plots": plots.of_predictions(said) | plots.of_training(estimator, model.card.get("n_train")),
        "matter": said_of_columns,
        "rows": sections.rows(model, judged, said_of_columns["ranked"]),
    }


def _judged(judged: Judged, *, given: bool, held_out: bool) -> str:
    """By what rows the model is judged, after "judged on"."""
    source = re.sub(r"(\d)%", r"\1 %", judged.source.removeprefix("held out: "))
    if given:
        return f"{source} ({counted(judged.predictions.n_rows, 'row')})"
    rows = counted(judged.predictions.n_rows, "training row")
    return f"{source}, held out of training" if held_out else f"its {rows}, each as if it had been left out"


def _columns(model: TableModel, judged: Judged) -> dict[str, Any]:
    """Which columns matter, and how."""
    learned = relevance(model)
    found: dict[str, Any] = {"ranked": list(model.recipe.groups), "background": None, "dependence": []}
    found |= {"effects": effects(model), "effect_plots": effect_plots(model, judged)}
    if learned is not None:
        found["relevance"] = bars("relevance", "Relevance of the columns", "share in the variation of f", learned)
    X = background(model, judged)
    if X is None:
        return found
    values = judged.X if len(judged.X) else X
    names, moves = movement(model, X, values)
    order = np.argsort(-moves, kind="stable")
    ranked, largest = [names[i] for i in order], order[:TOP]  # the others do not add up: they are left out
    title, axis = "Movement of the probability with each column", "mean movement of the probability"
    return found | {
        "ranked": ranked,
        "background": {"rows": len(X), "points": not len(judged.X)},
        "movement": bars("movement", title, axis, (ranked[:TOP], moves[largest])),
        "dependence": dependence(model, ranked[:MOST_DEPENDENCES], X, values),
    }


def _rendered(content: dict[str, Any]) -> str:
    """Names and values of a table may be anything: all of them are escaped; plots are not."""
    jinja = optional("jinja2", "cli")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("bayesvm.report"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        lstrip_blocks=True,
    )
    names = ("cell", "decimal", "percent", "probability", "rough_percent", "shortened")
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters["thousands"] = "{:,}".format
    environment.globals["metric_names"] = formatting.METRIC_NAMES
    page: str = environment.get_template("report.html").render(content)
    return re.sub(r"\n\s*\n", "\n", page)
