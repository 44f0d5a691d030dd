"""Report: the document: sections and pictures put together, and written."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any

from bayesvm.extras import optional
from bayesvm.report import dependence, pictures, sections
from bayesvm.report.columns import background, importance
from bayesvm.report.words import counted, share
from bayesvm.workflow import Judged, TableModel

MOST_DEPENDENCES = 6


def write_report(model: TableModel, out: str | PathLike[str], test: Judged | None = None) -> Path:
    """Write what a model is, how good it is and what it has learned, as one HTML file that needs no network.

    It is judged by ``test``, as ``model.judged`` gives it, else by the rows that were held out of training, else by
    the leave-one-out predictions of the training rows. The same input gives the same bytes.

    Examples
    --------
    >>> from bayesvm import TableModel
    >>> from bayesvm.report import write_report
    >>> model = TableModel.load("income.bayesvm")  # doctest: +SKIP
    >>> write_report(model, "income.html", model.judged("test.csv"))  # doctest: +SKIP
    """
    judged = test or model.holdout or Judged.left_out(model.estimator)
    page = _rendered(_content(model, judged, given=test is not None))
    target = Path(os.path.realpath(out))
    temporary = target.with_name(f".{target.name}.{token_hex(4)}.tmp")
    try:
        temporary.write_text(page, encoding="utf-8", newline="\n")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return Path(out)


def _content(model: TableModel, judged: Judged, *, given: bool) -> dict[str, Any]:
    """What the templates put into words."""
    estimator, said = model.estimator, judged.predictions
    X = background(model, judged)
    matters = importance(model, X)
    ranked = list(model.recipe.groups) if matters is None else matters.ranked
    target = model.card.get("target")
    return {
        "title": f"Predicting {target}" if target else "A Bayesian support vector machine",
        "target": target,
        "card": sections.card(model),
        "classes": sections.classes(said),
        "columns": sections.columns(model.recipe),
        "judged": {
            "source": judged.source,
            "rows": counted(said.n_rows, "row"),
            "left_out": not given and model.holdout is None,
            "sample": len(judged.sample),
        },
        "quality": sections.quality(said),
        "binary": len(said.classes) == 2,
        "second": str(said.classes[-1]),
        "confusion": sections.confusion(said),
        "coverage": sections.coverage(said),
        "tuning": sections.tuning(estimator),
        "pictures": pictures.of_predictions(said) | pictures.of_training(estimator, model.card.get("n_train")),
        "matters": None if matters is None else {"kind": matters.kind, "picture": matters.picture()},
        "dependence": [] if X is None else dependence.pictures(model, ranked[:MOST_DEPENDENCES], X),
        "background": None if X is None else {"rows": len(X), "points": not len(judged.X)},
        "rows": sections.rows(model, judged, ranked),
        "share": share,
    }


def _rendered(content: dict[str, Any]) -> str:
    """Names and values of a table may be anything: all of them are escaped; pictures are not."""
    jinja = optional("jinja2", "cli")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("bayesvm.report"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html").render(content)
    return page
