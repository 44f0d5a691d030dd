"""Reproduction: CSV files, figures and the page, written from stored runs."""

import csv
from datetime import UTC, datetime
from pathlib import Path

from experiments.reproduction import claims
from experiments.reproduction.records import found, unequal_rows

INTRODUCTION = """# The paper, reproduced

Every table, figure and claim of Wenzel, Galy-Fajou, Deutsch and Kloft, *Bayesian Nonlinear Support Vector Machines
for Big Data* (2017), compared with our measurements. Written by `make reproduce`; do not edit by hand. The derivation
lists the paper's incorrect formulas as errata; where it matters, "as in the paper" uses the *printed* form.
"""
A_FIRST_LOOK = """**A first look**, by `make reproduce-quick`: two folds, small sets, short ladders. It shows that
everything runs and says nothing about the paper's claims; texts below describe the full run.
"""


def write(experiments, store, page, quick):
    """Everything that the store has figures for."""
    folder = page.with_suffix("")
    parts, lines_of, records = [], {}, []
    for experiment in experiments:
        of_experiment = found(store, experiment.runs(quick))
        if not of_experiment:
            continue
        records += of_experiment
        told = [f"## {experiment.TITLE}"]
        if lines := experiment.rows(of_experiment):
            lines_of[experiment.NAME] = lines
            write_csv(lines, folder / f"{experiment.NAME}.csv")
            if hasattr(experiment, "draw"):
                experiment.draw(lines, folder / f"{experiment.NAME}.svg")
                told.append(f"![{experiment.TITLE}]({folder.name}/{experiment.NAME}.svg)")
            told.append(experiment.section(lines))
        parts.append("\n\n".join([*told, troubles(of_experiment)]))
    text = [
        INTRODUCTION,
        *[A_FIRST_LOOK] * quick,
        about(records),
        "## The paper's claims",
        claims.section(lines_of, quick),
        *parts,
        footer(folder),
    ]
    replace_text(page, "\n\n".join(part.strip() for part in text) + "\n")


def about(records):
    if not records:
        return "There are no runs in the store yet."
    days = sorted({record["when"][:10] for record in records})
    machines = sorted({record["machine"] for record in records})
    threads = sorted({record["n_threads"] for record in records})
    return (
        f"Measured {' to '.join(dict.fromkeys([days[0], days[-1]]))} on: {'; '.join(machines)}; "
        f"threads: {' and '.join(map(str, threads))} (the paper's machine used one core, too). Other processes "
        "may have used the machine: ratios within a run are more reliable than seconds. "
        f"{len(records)} runs; {sum(bool(record['failure']) for record in records)} failed."
    )


def troubles(records):
    """What failed, by method and set, and what should not be compared."""
    failed = {}
    for record in records:
        if record["failure"]:
            failed.setdefault((record["method"], record["set"], record["failure"]), []).append(record["seed"])
    lines = [f"- FAILED: {method} on {name}, {len(seeds)} runs: {why}" for (method, name, why), seeds in failed.items()]
    lines += [f"- NOT COMPARABLE, rows differ between methods: {name}" for name in unequal_rows(records)]
    return "\n".join(lines)


def footer(folder):
    return (
        f"The figures' numbers are in `{folder.name}/*.csv`. `make reproduce-quick` is a first look and takes "
        "less than "
        f"ten minutes. Page written {datetime.now(UTC).date()}."
    )


def write_csv(lines, path):
    fields = list(dict.fromkeys(field for line in lines for field in line))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows({field: rounded(value) for field, value in line.items()} for line in lines)
    part.replace(path)


def rounded(value):
    return f"{value:.6g}" if isinstance(value, float) else value


def replace_text(path: Path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
