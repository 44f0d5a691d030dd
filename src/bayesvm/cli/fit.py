"""``bayesvm fit``: fit a model to a table."""

from __future__ import annotations

import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bayesvm.cli import console, options
from bayesvm.data.tables.files import Paths, find_files
from bayesvm.estimators import BayesianLinearSVC, BayesianSVC, stop_on_interrupt
from bayesvm.estimators.columns import marked_note
from bayesvm.evaluation import RegressionPredictions, metrics
from bayesvm.evaluation.formatting import cell, metric_rows, rough_percent
from bayesvm.workflow import TableModel, fit_table
from bayesvm.workflow.describing import described, left_out_lines

SMALL_MODEL = 2**21  # bytes
BYTES_A_ROW = 20  # of a file, used to estimate its number of rows


def fit(
    tables: options.Tables,
    target: options.Target = None,
    task: options.Task = "auto",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The model file; default: the name of the table.", show_default=False),
    ] = None,
    weight: options.Weight = None,
    columns: options.UsedColumns = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    keep: options.Kept = None,
    group: options.Group = None,
    holdout: options.Holdout = 0.2,
    refit: Annotated[bool, typer.Option("--refit/--no-refit", help="Refit on all rows after evaluation.")] = True,
    inducing: Annotated[
        int | None,
        typer.Option(help="Number of inducing points; more points are slower and usually better.", show_default="auto"),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local/--no-local", help="Whether to add local models to large tables if they help.")
    ] = True,
    linear: Annotated[
        bool, typer.Option("--linear", metavar="", help="Fit the linear model, for many columns.")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option(help="Time limit for each fit, in seconds.", show_default="none")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file from which the same command resumes after an interruption.")
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    copy_to: options.CopyTo = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    kind: options.Format = "csv",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Fit a model to a table and save it.

    The target may hold classes or numbers: a numeric target with fractions or many distinct values is a regression
    target. Text and dates are encoded, missing values completed, and all parameters tuned. Some rows are held out for
    unbiased metrics; then the model is refitted on all rows. Small tables are evaluated by cross-validation.

    Examples:

        bayesvm fit people.csv --target income

        bayesvm fit "flights/*.parquet" --target late --out late.bayesvm --drop id --time-limit 60

        bayesvm fit houses.csv --target price --task regression
    """
    if linear and inducing is not None:
        raise typer.BadParameter("the linear model has no inducing points: leave out --inducing or --linear")
    if checkpoint is not None and tables == ["-"]:
        raise typer.BadParameter("stdin cannot be read again: leave out --checkpoint, or give a file")
    if linear and task == "regression":
        raise typer.BadParameter("the linear model is for classification only: leave out --linear or --task regression")
    shared: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "time_limit": time_limit}
    points = {"n_inducing": "auto" if inducing is None else inducing, "local": "auto" if local else False}
    given = shared if linear else shared | points
    estimator = BayesianLinearSVC(**shared) if linear else None
    with options.source(tables, kind) as files:
        path = out or options.model_file(tables)
        options.require_writable(path, tables, n_bytes=_estimated_bytes(estimator or BayesianSVC(**given), files))
        if checkpoint is not None and checkpoint.resolve() == path.resolve():
            raise ValueError(f"{path} cannot be both the model and the checkpoint; give another --checkpoint")
        with stop_on_interrupt():
            model = fit_table(
                files,
                target,
                weight=weight,
                columns=options.names(columns) or None,
                drop=options.names(drop),
                categories=options.names(categories),
                keep=options.names(keep),
                group=group,
                holdout=holdout,
                refit=refit,
                task=task,
                estimator=estimator,
                parameters=given,
                seed=seed,
                checkpoint=checkpoint,
                copy_to=copy_to,
                verbose=0 if quiet else 1,
                **options.csv_options(sep, decimal, encoding, missing, no_header),
            )
    try:
        model.save(path)
    except OSError as error:
        raise _rescued(model, path, checkpoint, error) from error
    if json:
        facts = described(model)
        same = ("task", "classes", "left_out", "inducing_points", "converged", "interrupted", "evaluated_on", "metrics")
        sizes = {"columns": len(model.recipe.groups), "features": len(model.recipe.names)}
        loss = {f"loo_{name}": value for name, value in facts["leave_one_out"].items() if name != "error"}
        card = {name: value for name, value in facts["card"].items() if name != "profile"}
        console.as_json(card | {name: facts[name] for name in same} | sizes | loss | {"model": str(path)})
    else:
        _print_result(model, path)
    if model.estimator.interrupted_:
        raise typer.Exit(130)


def _estimated_bytes(estimator: Any, files: Paths) -> int:
    """Approximate size of a model file: matrices of the weights, and predictions for some rows."""
    rows = sum(file.size for file in find_files(files)[1]) // BYTES_A_ROW
    asked = getattr(estimator, "n_inducing", 0)
    n_weights = min(rows, estimator.max_inducing if asked == "auto" else asked)
    return SMALL_MODEL + 3 * 8 * n_weights**2


def _rescued(model: TableModel, path: Path, checkpoint: Path | None, error: OSError) -> OSError:
    """Save a model that cannot be written to its path elsewhere; the error names the place."""
    said = error.strerror or str(error)
    for folder in (tempfile.gettempdir, Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):
            kept = _saved_in(Path(folder()), model, path.name)
            command = shlex.join(["mv", str(kept), str(path)])
            return OSError(error.errno, f"{said}. The trained model is in {kept}: make room, then: {command}")
    said = f"{said}, and the temporary, the current and the home directory are full"
    while sys.stdin.isatty():
        console.errors.print(f"{said}. Training is done: make room, or name a file on another disk.")
        other = Path(typer.prompt("The model's file", default=str(path), err=True)).expanduser()
        with suppress(OSError):
            model.save(other)
            return OSError(error.errno, f"{error.strerror or error}. The trained model is in {other}")
    again = "the same command resumes from the checkpoint" if checkpoint else "run the command again"
    return OSError(error.errno, f"{said}. Make room, then {again}")


def _saved_in(folder: Path, model: TableModel, name: str) -> Path:
    holder = Path(tempfile.mkdtemp(prefix="bayesvm-", dir=folder))
    try:
        model.save(holder / name)
    except OSError:
        holder.rmdir()
        raise
    return holder / name


def _print_result(model: TableModel, path: Path) -> None:
    estimator, card = model.estimator, model.card
    n_columns, n_features = len(model.recipe.groups), len(model.recipe.names)
    become = "" if n_columns == n_features else f" (they become {n_features} features)"
    console.say(f"{card['n_rows']:,} rows, {n_columns} columns{become}; {card['seconds']:.1f} s")
    evaluated = model.default_evaluation
    said = evaluated.predictions
    if isinstance(said, RegressionPredictions):
        low, middle, high = (cell(float(f"{each:.4g}")) for each in np.quantile(said.y, (0, 0.5, 1)))
        target = f"{card['target']}: " if card["target"] else "target: "
        console.say(f"{target}{low} to {high}, median {middle}; regression")
    else:
        shares = np.bincount(said.y, minlength=len(estimator.classes_)) / said.n_rows
        parts = [rough_percent(share) if share else "not evaluated" for share in shares]
        classes = [f"{label} ({part})" for label, part in zip(estimator.classes_, parts, strict=True)]
        console.say(f"classes: {', '.join(classes[:12])}{', …' if len(classes) > 12 else ''}")
    if model.recipe.marked:
        console.say(marked_note(model.recipe.marked))
    for line in left_out_lines(model.recipe.left_out):
        console.say(line)
    console.say()
    rows = metric_rows(metrics(said))
    console.table(evaluated.source, ["", "value", "95% interval"], rows)
    if card["refitted"]:
        console.say(f"then refitted on all {card['n_train']:,} rows")
    console.next_commands(
        path,
        ["report", str(path)],
        ["predict", str(path), f"new{Path(card['files'][0]).suffix}", "--out", "predictions.csv"],
    )
