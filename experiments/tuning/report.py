"""Tuning: the report, in Markdown. A summary, a table for every metric, and what went wrong."""

from collections import Counter

import numpy as np

from experiments.registry.metrics import METRICS
from experiments.text import markdown
from experiments.tuning.results import KERNEL_RIVALS, MANY_ROWS, RIVALS, TOLERANCE, standard_error

TITLES = {"log_loss": "Log loss", "error": "Error", "brier": "Brier score", "fit_seconds": "Seconds to fit"}


def report(results, reference):
    """Everything; `reference` is the column that others are compared with."""
    parts = ["# Recipes compared", versions(results), "## Summary", *summary(results, reference)]
    for metric, title in TITLES.items():
        parts += [f"## {title}", by_set(results, metric)]
    return "\n\n".join([*parts, "## Failures and warnings", troubles(results)]) + "\n"


def versions(results):
    lines = []
    for c in results.columns:
        runs = results.all_runs(c.label)
        threads = " and ".join(map(str, sorted({run["n_threads"] for run in runs})))
        lines.append(f"- {c.label}: version {c.version}, {len(runs)} runs, threads: {threads}")
    return "\n".join(lines) or "Nothing in the store."


def summary(results, reference):
    """Over the sets that every column has run, on the seeds that all of them have."""
    notes = [
        f"Over {len(results.losses)} sets, each counted once.",
        "- mean regret: of the mean log loss, against the best column of each set",
        f"- level with rivals: sets where it is at most {TOLERANCE:.0%} above the best of {', '.join(RIVALS)}",
        f"- at or below {RIVALS[0]}: sets where it is no worse than that one",
        f"- worst ratio: to the better of {' and '.join(KERNEL_RIVALS)}, from {MANY_ROWS} training rows on",
        f"- against {reference}: paired by split; better and worse are more than two standard errors",
    ]
    groups = {
        "Left out, because a column failed or has no run there": results.left_out(),
        "Without any run": results.never_run,
        "With fewer seeds than asked for": results.unfinished(),
    }
    notes += [f"- {title}: {', '.join(names)}" for title, names in groups.items() if names]
    header = ["method", "mean regret", "worst regret", "level with rivals", f"at or below {RIVALS[0]}", "worst ratio"]
    header.append(f"against {reference}")
    rows = [[c.label, *summary_row(results, c, reference)] for c in results.columns if results.losses]
    return ["\n".join(notes), markdown([*header, "better / level / worse", "total seconds to fit"], rows)]


def summary_row(results, column, reference):
    label = column.label
    regrets = results.regrets(label)
    against = ["", ""] if label == reference or not results.has([reference]) else versus(results, label, reference)
    return [
        f"{np.mean(list(regrets.values())):.4f}",
        worst(regrets, "{:.4f}"),
        *won(results, column),
        worst(results.ratios(label), "{:.3f}") if results.has(KERNEL_RIVALS) else "",
        *against,
        f"{sum(results.values(name, label, 'fit_seconds').sum() for name in regrets):.0f}",
    ]


def won(results, column):
    if not (column.is_ours and results.has(RIVALS)):
        return ["", ""]
    counts = results.wins(column.label, RIVALS, TOLERANCE), results.wins(column.label, RIVALS[:1])
    return [f"{len(sets)} of {len(results.losses)}" for sets in counts]


def versus(results, label, reference):
    means, errors = results.differences(label, reference)
    better, worse = np.sum(means < -2 * errors), np.sum(means > 2 * errors)
    overall = f"{means.mean():+.4f} ± {np.sqrt(np.sum(errors**2)) / len(errors):.4f}"
    return [overall, f"{better} / {len(means) - better - worse} / {worse}"]


def worst(figures, form):
    if not figures:
        return ""
    name = max(figures, key=figures.get)
    return f"{form.format(figures[name])} ({name})"


def by_set(results, metric):
    """Mean ± standard error over seeds; the best in bold. Of generated sets, what the true probabilities reach."""
    rows = []
    for name in results.runs:
        run = results.any_run(name)
        cells = [cell(results, name, label, metric) for label in results.labels]
        best = min(mean for mean, _ in cells)
        about = [
            name,
            *(str(run[size]) for size in ("n_train", "n_features", "n_classes")),
            bayes(results, name, metric),
        ]
        rows.append(about + [f"**{text}**" if mean == best < np.inf else text for mean, text in cells])
    return markdown(["set", "N", "D", "K", "Bayes", *results.labels], rows)


def cell(results, name, label, metric):
    """The mean, by which columns are ranked, and what is shown."""
    values = results.values(name, label, metric)
    n_runs = len(results.runs[name][label])
    failed = n_runs - len(values)
    remarks = [f"{failed} failed"] * (failed > 0)
    remarks += [f"{n_runs} of {results.wanted[name]} runs"] * (n_runs < results.wanted[name])
    remark = f" ({', '.join(remarks)})" * bool(remarks)
    if not len(values):
        return np.inf, remark
    digits = 2 if metric == "fit_seconds" else 4
    spread = f" ± {standard_error(values):.{digits}f}" * (len(values) > 1)
    return values.mean(), f"{values.mean():.{digits}f}{spread}{remark}"


def bayes(results, name, metric):
    """Mean over the seeds of the column that has most."""
    runs = max(results.runs[name].values(), key=len)
    known = [run["bayes"][metric] for run in runs if "bayes" in run and metric in METRICS]
    return f"{np.mean(known):.4f}" if known else ""


def troubles(results):
    lines = [
        f"- FAILED: {label} on {name}, seed {run['seed']}: {run['failure']}"
        for name, of_set in results.runs.items()
        for label, runs in of_set.items()
        for run in runs
        if run["failure"]
    ]
    for label in results.labels:
        warned = [run["warnings"] for run in results.all_runs(label) if run["warnings"]]
        kinds = sum(map(Counter, warned), Counter())
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        lines += [f"- {label} warned in {len(warned)} of {len(results.all_runs(label))} runs: {told}"] * bool(warned)
    changed = results.unequal_rows()
    lines += [f"- NOT COMPARABLE, rows differ between columns: {', '.join(changed)}"] * bool(changed)
    return "\n".join(lines) or "None."
