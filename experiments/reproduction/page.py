"""Reproduction: CSV files, figures and the page, written from stored runs."""

import csv
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from experiments.reproduction import claims
from experiments.reproduction.kept import merged, read_csv
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
    """Everything that the store or, in the full page, the CSV files of an earlier page have figures for."""
    folder = page.with_suffix("")
    parts, lines_of = [], {}
    for experiment in experiments:
        of_experiment = found(store, experiment.runs(quick))
        earlier = [] if quick else read_csv(folder / f"{experiment.NAME}.csv")
        if not (of_experiment or earlier):
            continue
        told = [f"## {experiment.TITLE}"]
        if lines := merged(earlier, measured(experiment, of_experiment), experiment.KEY):
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
        about([line for lines in lines_of.values() for line in lines]),
        "## The paper's claims",
        claims.section(lines_of, quick),
        *parts,
        footer(folder),
    ]
    replace_text(page, "\n\n".join(part.strip() for part in text) + "\n")


def measured(experiment, records):
    """The lines of an experiment, with the day and the machine of its last run."""
    if not records:
        return []
    last = max(records, key=lambda record: record["when"])
    threads = f"{last['n_threads']} thread{'s' * (last['n_threads'] != 1)}"
    return [
        line | {"measured": last["when"][:10], "machine": f"{last['machine']}, {threads}"}
        for line in experiment.rows(records)
    ]


def about(lines):
    """When and where the lines were measured."""
    if not lines:
        return "There are no runs in the store yet."
    counts = Counter((line["measured"], line["machine"]) for line in lines)
    each = [f"{day} on {machine} ({n} lines)" for (day, machine), n in sorted(counts.items())]
    return (
        f"Measured {'; '.join(each)}. The paper's machine used one core, too. The column `measured` of the CSV files "
        "dates every line. Other processes may have used the machine: ratios within a run are more reliable than "
        "seconds."
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
