"""``bayesvm inspect``: the content of a model file."""

from __future__ import annotations

from typing import Any

from bayesvm.cli import console, options
from bayesvm.evaluation.formatting import METRIC_NAMES, column_label, counted, decimal, in_units, metric_rows
from bayesvm.workflow import TableModel
from bayesvm.workflow.describing import described, left_out_lines
from bayesvm.workflow.importance import Importance, importance

MOST_IMPORTANT = 15
CATEGORIES_SHOWN = 6  # per column
MOST_COLUMNS = 100


def inspect(model: options.ModelFile, json: options.Json = False) -> None:
    """Show the contents of a model file: columns, kernel, tuning, metrics, effects, importance.

    Examples:

        bayesvm inspect income.bayesvm

        bayesvm inspect income.bayesvm --json
    """
    loaded = TableModel.load(model)
    facts = described(loaded, model)
    facts["importance"] = importance(loaded, loaded.default_evaluation)
    if json:
        found = facts["importance"]
        facts["importance"] = None if found is None else dict(zip(found.names, found.change, strict=True))
        console.as_json(facts)
        return
    _print_origin(facts)
    _print_columns(facts)
    _print_model(facts)
    title = f"{facts['evaluated_on']}" + (
        "" if "rows)" in facts["evaluated_on"] else f" ({facts['n_evaluated']:,} rows)"
    )
    console.table(title, ["", "value", "95% interval"], metric_rows(facts["metrics"]))
    _print_effects(facts)
    _print_importance(facts["importance"], numbers=facts["classes"] is None)
    _print_tuning(facts)


def _print_origin(facts: dict[str, Any]) -> None:
    file, card = facts["file"], facts["card"]
    written = f", written by bayesvm {card['version']} on {card['created'][:10]}" if card else ""
    size = f"{file['bytes'] / 1e6:.1f} MB" if file["bytes"] >= 1e5 else f"{file['bytes'] / 1e3:.1f} kB"
    console.say(f"{file['path']}: {facts['estimator']}, {size}, format {file['format_version']}{written}")
    if card:
        names = ", ".join(card["files"][:3]) + (", …" if len(card["files"]) > 3 else "")
        console.say(
            f"fitted to {card['n_train']:,} of {card['n_rows']:,} rows of {names} in {card['seconds']:.1f} s, "
            f"seed {card['seed']}"
        )
        special = [f"{what} {column_label(card[what])}" for what in ("target", "weight") if card[what] is not None]
        console.say("; ".join([*special, _outcomes(facts)]))
    else:
        console.say(f"an estimator alone, without a table; {_outcomes(facts)}")


def _outcomes(facts: dict[str, Any]) -> str:
    return "regression" if facts["classes"] is None else f"classes: {', '.join(map(str, facts['classes']))}"


def _print_columns(facts: dict[str, Any]) -> None:
    console.say()
    rows = []
    for column in facts["columns"][:MOST_COLUMNS]:
        categories = column.get("categories", ()) or column.get("parts", ())
        shown = ", ".join(categories[:CATEGORIES_SHOWN]) + (
            f", … ({len(categories)} in all)" if len(categories) > CATEGORIES_SHOWN else ""
        )
        shown += ", and rare ones together" if column.get("rare_categories") else ""
        rows.append([column_label(column["name"]), column["kind"], f"{column['features']}", column["missing"], shown])
    if rows:
        header = ["column", "kind", "features", "if missing", "categories or parts"]
        console.table("", header, rows, words={*header} - {"features"})
    if (more := len(facts["columns"]) - MOST_COLUMNS) > 0:
        console.say(f"… and {more:,} more columns (--json lists all)")
    for line in left_out_lines(facts["left_out"]):
        console.say(line)


def _print_model(facts: dict[str, Any]) -> None:
    console.say()
    _print_members(facts)
    points = "" if facts["inducing_points"] is None else f"{facts['inducing_points']:,}"
    stop = "interrupted" if facts["interrupted"] else "converged" if facts["converged"] else "not converged"
    loo = facts["leave_one_out"]
    updates = counted(facts["updates"], "update")
    facts = {
        "kernel": facts["kernel"],
        "inducing points": points,
        "scaling": facts["scaling"],
        "probabilities" if facts["classes"] is not None else "noise": facts["link"],
        "ELBO": f"{facts['elbo']:,.2f} after {updates}, {facts['passes']:.2f} passes; {stop}",
        "leave-one-out": ", ".join(f"{METRIC_NAMES[name]} {value:.4g}" for name, value in loo.items())
        if facts["classes"] is None
        else f"log loss {loo['log_loss']:.4f}, error {loo['error']:.4f}",
    }
    for name, value in facts.items():
        if value:
            console.say(f"{name + ':':<17}{value}")
    console.say()


def _print_members(facts: dict[str, Any]) -> None:
    members = facts["members"]
    if not members:
        return
    with_leaves = any(member["leaves"] for member in members)
    rows = [
        [
            f"{member['weight']:.1%}",
            member["scaling"] or "none",
            member["kernel"],
            f"{member['inducing_points']:,}",
            *([f"{member['leaves'] or 0:,}"] if with_leaves else []),
            decimal(member["leave_one_out_log_loss"]),
        ]
        for member in members
    ]
    leaves = ["leaves"] if with_leaves else []
    header = ["weight", "scaling", "kernel", "inducing points", *leaves, "leave-one-out log loss"]
    title = (
        f"A committee of {len(members)} members, whose predictions are averaged; details of the heaviest member follow"
    )
    console.table(title, header, rows, words={"scaling", "kernel"})
    console.say()


def _print_effects(facts: dict[str, Any]) -> None:
    if facts["effects"]:
        rows = [
            [" × ".join(map(column_label, effect["columns"])), f"{effect['share']:.1%}"] for effect in facts["effects"]
        ]
        console.say()
        title = "Effects of one column or of a pair, in addition to the kernel of all columns"
        console.table(title, ["effect", "share of the variation of f"], rows, words={"effect"})


def _print_importance(found: Importance | None, *, numbers: bool) -> None:
    if found is None:
        return
    console.say()
    more = f", the first {MOST_IMPORTANT} of {len(found.names)}" if len(found.names) > MOST_IMPORTANT else ""
    what, unit = ("prediction", "in the units of the target") if numbers else ("probabilities", "in percentage points")
    title = f"Importance of the columns (mean change of the {what} with the value of another row, {unit})"
    rows = [
        [column_label(name), in_units(change) if numbers else f"{100 * change:.1f}"]
        for name, change in zip(found.names, found.change.tolist(), strict=True)
    ]
    console.table(title + more, ["column", "change"], rows[:MOST_IMPORTANT])


def _print_tuning(facts: dict[str, Any]) -> None:
    tuning = facts["tuning"]
    if tuning is None or not tuning["trials"]:
        return
    seconds = sum(trial["seconds"] for trial in tuning["trials"])
    console.say()
    console.say(f"Tuning: {len(tuning['trials'])} trials in {seconds:.1f} s (--json lists them)")
    for line in tuning["chosen"]:
        console.say(line)
