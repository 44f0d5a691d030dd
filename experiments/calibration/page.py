"""Calibration: docs/calibration.md with its plots, written from stored predictions. Conclusions are computed."""

import csv

import numpy as np

from bayesvm.core.heads.binary import TWO_PROBITS_FROM
from experiments.calibration import judged, plots, words
from experiments.calibration.methods import FEW, LINKS, METHODS, OTHERS, OURS
from experiments.calibration.sets import BEYOND, DISTANCES, MOVED, SAME, SETS
from experiments.text import markdown

METRICS = {"error": "error", "brier": "Brier score", "log_loss": "log loss", "calibration_error": "calibration error"}
TESTED = ("balanced", "imbalanced")
FROM_FEW = f"{OURS}, few rows"
FAR = (OURS, "SVC + sigmoid", "Gaussian process", "CatBoost", "boosting", "boosting + isotonic")


def write(folder, where):
    """The page, and beside it a folder of its name with plots and a table of all metrics."""
    sets = judged.judge(folder)
    if not sets:
        raise SystemExit(f"nothing is kept in {folder}; measure first")
    aside = where.with_suffix("")
    tested = {name: each for name, each in sets.items() if SETS[name].kind in TESTED}
    titles = {OURS: "calibrated"} | {link: link.removeprefix(f"{OURS}, ") for link in LINKS[1:]}
    plots.reliability(tested, aside / "reliability.svg")
    plots.reliability(tested, aside / "links.svg", LINKS, titles)
    plots.far({name: each for name, each in sets.items() if each.moved}, aside / "far.svg")
    plots.coverage(tested, aside / "coverage.svg")
    write_csv(sets, aside / "metrics.csv")
    where.write_text(text(sets), encoding="utf-8")


def write_csv(sets, path):
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["set", "part", "method", "training_rows", "test_rows", "metric", "value", "low", "high"])
        for name, each in sets.items():
            for part, methods in each.parts.items():
                for method, found in methods.items():
                    rows = {**found.metrics, "log_loss_minus_ours": found.behind, "risk_coverage_area": found.area}
                    for metric, values in rows.items():
                        told = [f"{value:.6g}" for value in values]
                        out.writerow([name, part, method, each.n_rows[method], each.n_test[part], metric, *told])


def text(sets):
    tested = {name: each for name, each in sets.items() if SETS[name].kind in TESTED}
    shifts = {name: each for name, each in sets.items() if SETS[name].kind == "shift"}
    far = {name: each for name, each in sets.items() if each.moved}
    rare = sum(SETS[name].kind == "imbalanced" for name in tested)
    parts = [
        words.INTRODUCTION,
        "## In short",
        in_short(tested, far, shifts),
        words.LIMITS,
        words.HOW.format(n_sets=len(tested), n_imbalanced=rare),
        sets_table(sets),
        markdown(["name", "what it is", "training rows"], words.METHODS_TOLD),
        words.NOBODY.format(few=FEW),
        "## All sets at a glance",
        glance(tested),
        words.RELIABILITY,
        words.EVERY_SET,
        *(f"### {name}\n\n{set_table(each)}" for name, each in tested.items()),
        words.FAR_TOLD.format(moved=MOVED),
        far_section(far),
        words.SHIFT,
        *(f"### {name}: {SETS[name].about}\n\n{shift_table(each)}" for name, each in shifts.items()),
        words.COVERAGE,
        coverage_table(tested),
        *links_section({name: each for name, each in sets.items() if each.links and each.n_train >= TWO_PROBITS_FROM}),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def in_short(tested, far, shifts):
    """The page in a few sentences, each computed."""
    told = []
    for method in OTHERS:
        better, worse, still_open = (len(names) for names in outcomes(tested, method).values())
        if better + worse + still_open:
            told.append(
                f"- **{method}** has a lower log loss than ours on {better} of {len(tested)} sets and a higher one on "
                f"{worse}; on {still_open} the difference is not significant."
            )
    lines = calibration_errors(tested)
    sure = {method: number for method, number, _ in lines}
    if OURS in sure:
        others = ", ".join(f"{method} on {sure[method]}" for method in (FROM_FEW, *OTHERS) if method in sure)
        told.append(
            f"- **Sets with a significant calibration error**, of {len(tested)}: BayesianSVC with its "
            f"default link on {sure[OURS]}, {others}."
        )
    ranked = ", ".join(f"{method} {decimal(mean)}" for method, _, mean in lines)
    told.append(f"- **Calibration error**, mean over the sets: {ranked}.")
    if far:
        fell = [
            f"{method} on {sum(falls(each.moved[method]) for each in far.values() if method in each.moved)}"
            for method in FAR
        ]
        rose = sum(each.moved_epistemic[-1] > each.moved_epistemic[0] for each in far.values())
        told.append(
            f"- **Far from the data** the mean confidence falls, of {len(far)} sets: {', '.join(fell)}. Our epistemic "
            f"part rises on {rose}."
        )
    for name, each in shifts.items():
        told.append(f"- **Shift, {name}**: {shift_verdict(each)}")
    return "\n".join(told)


def decimal(value, digits=4):
    return f"{value:.{digits}f}"


def interval(values, digits=4):
    value, low, high = (decimal(each, digits) for each in values)
    return f"{value} ({low} to {high})"


def sets_table(sets):
    lines = []
    for name, each in sets.items():
        n_test = " + ".join(f"{each.n_test[part]:,}" for part in each.parts)
        lines.append([name, SETS[name].about, str(each.n_columns), f"{each.n_train:,}", n_test, f"{each.share:.1%}"])
    return markdown(["set", "what", "columns", "training rows", "test rows", "second class"], lines)


def glance(tested):
    """Two tables of all sets, and how we compare."""
    by_metric = []
    for metric in ("log_loss", "calibration_error"):
        lines = []
        for method in METHODS:
            cells = [cell(each, method, metric) for each in tested.values()]
            lines.append([method, *cells])
        by_metric.append(markdown([METRICS[metric], *tested], lines))
    return "\n\n".join(
        [
            by_metric[0],
            "**Bold**: significantly below ours (95%), on the same rows.",
            by_metric[1],
            "**Bold**: the interval excludes zero, so chance does not explain the error.",
            "Log loss of the other methods compared with ours, each trained on all rows that it can use:",
            markdown(
                ["", "sets where it is better", "sets where it is worse", "no significant difference"], compared(tested)
            ),
            *verdicts(tested),
        ]
    )


def cell(each, method, metric):
    found = each.parts["test"].get(method)
    if found is None:
        return ""
    value, low, _ = found.metrics[metric]
    notable = found.behind[2] < 0 if metric == "log_loss" else low > 0
    return f"**{decimal(value)}**" if notable else decimal(value)


def compared(tested, part="test"):
    """A line for every method but ours."""
    return [
        [method, *("; ".join(names) or "none" for names in outcomes(tested, method, part).values())]
        for method in METHODS[1:]
    ]


def outcomes(tested, method, part="test"):
    """On which sets its log loss is below ours, above, or not told apart."""
    found = {"better": [], "worse": [], "open": []}
    for name, each in tested.items():
        if method in each.parts[part]:
            _, low, high = each.parts[part][method].behind
            found["better" if high < 0 else "worse" if low > 0 else "open"].append(name)
    return found


def calibration_errors(tested):
    """Methods, the number of sets where theirs is no chance, and its mean; the smallest first."""
    found = []
    for method in METHODS:
        each = [one.parts["test"][method] for one in tested.values() if method in one.parts["test"]]
        errors = [said.metrics["calibration_error"] for said in each]
        if errors:
            found.append((method, sum(low > 0 for _, low, _ in errors), np.mean([value for value, _, _ in errors])))
    return sorted(found, key=lambda line: line[2])


def verdicts(tested):
    """What the two tables say, in sentences."""
    lines = [[method, f"{sure} of {len(tested)}", decimal(mean)] for method, sure, mean in calibration_errors(tested)]
    worst = max(
        ((name, each.parts["test"][OURS].metrics["calibration_error"]) for name, each in tested.items()),
        key=lambda item: item[1][0],
    )
    return [
        "Calibration errors over all sets, smallest mean first:",
        markdown(["", "sets where it is significant", "mean over the sets"], lines),
        f"Our largest calibration error with the calibrated link is {interval(worst[1])}, on {worst[0]}.",
    ]


def set_table(each):
    lines = []
    for method, found in each.parts["test"].items():
        behind = "" if method == OURS else interval(found.behind)
        lines.append(
            [
                method,
                f"{each.n_rows[method]:,}",
                *(interval(found.metrics[metric]) for metric in METRICS),
                behind,
            ]
        )
    return markdown(["", "rows", *METRICS.values(), "log loss minus ours"], lines)


def far_section(far):
    lines = []
    for name, each in far.items():
        for method in FAR:
            if method in each.moved:
                confidences = [decimal(confidence, 2) for confidence, _ in each.moved[method]]
                lines.append([name, method, *confidences, f"{each.moved[method][-1][1]:.0%}"])
        if each.moved_epistemic:
            lines.append([name, "*our epistemic part, nats*", *(decimal(v, 3) for v in each.moved_epistemic), ""])
    header = [
        "set",
        "mean confidence",
        *(f"{distance} sd" for distance in DISTANCES),
        "more confident than 95% at 20 sd",
    ]
    return markdown(header, lines) + "\n\n" + "\n".join(far_verdicts(far))


def falls(path):
    """Whether the mean confidence is lower at the end, by more than a hundredth."""
    return path[-1][0] < path[0][0] - 0.01


def far_verdicts(far):
    """Of every method: where its confidence fell, and what it comes to; of our epistemic part: where it rose."""
    told = []
    for method in FAR:
        ends = {name: each.moved[method] for name, each in far.items() if method in each.moved}
        fell = [name for name, path in ends.items() if falls(path)]
        kept = [name for name in ends if name not in fell]
        changes = "; ".join(
            f"{name} {decimal(path[0][0], 2)} to {decimal(path[-1][0], 2)}" for name, path in ends.items()
        )
        where = f"falls on {listed(fell)}" if fell else "falls on none of the sets"
        rest = f", but not on {listed(kept)}" if kept and fell else ""
        told.append(f"- **{method}**: the mean confidence from 0 to 20 sd {where}{rest} ({changes}).")
    rose = [name for name, each in far.items() if each.moved_epistemic[-1] > each.moved_epistemic[0]]
    times = "; ".join(
        f"{name} {decimal(each.moved_epistemic[0], 3)} to {decimal(each.moved_epistemic[-1], 3)}"
        for name, each in far.items()
    )
    told.append(f"- **Our epistemic part** rises on {listed(rose) if rose else 'none of the sets'} ({times}).")
    return told


def listed(names):
    """As one says it.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shift_table(each):
    same, beyond = each.parts[SAME], each.parts[BEYOND]
    lines = []
    for method in same:
        cells = [f"{each.n_rows[method]:,}"]
        for metric in ("error", "log_loss", "calibration_error"):
            cells += [decimal(part[method].metrics[metric].value) for part in (same, beyond)]
        cells += [decimal(part[method].confidence, 3) for part in (same, beyond)]
        lines.append([method, *cells])
    header = ["", "rows"]
    for what in ("error", "log loss", "calibration error", "mean confidence"):
        header += [f"{what}: same", "beyond"]
    return markdown(header, lines) + "\n\n" + shift_verdict(each)


def shift_verdict(each):
    told = []
    if each.epistemic:
        before, after = (each.epistemic[part] for part in (SAME, BEYOND))
        verb = "rises" if after > before else "does not rise"
        told.append(f"Our epistemic part {verb}: {decimal(before)} nats in the same region, {decimal(after)} beyond.")
    beyond = {method: found for method, found in each.parts[BEYOND].items() if method in (OURS, *OTHERS)}
    for metric in ("log_loss", "error") if OURS in beyond else ():
        ranked = sorted((found.metrics[metric].value, method) for method, found in beyond.items())
        place = [method for _, method in ranked].index(OURS) + 1
        ordered = ", ".join(f"{method} {decimal(value, 3)}" for value, method in ranked)
        told.append(f"By the {METRICS[metric]} beyond we are number {place} of {len(ranked)}: {ordered}.")
    return " ".join(told)


def coverage_table(tested):
    lines = []
    for name, each in tested.items():
        cells = []
        for method in FAR:
            found = each.parts["test"].get(method)
            cells.append("" if found is None else " ".join(thousand(found.area)))
        lines.append([name, *cells])
    return markdown(["set", *FAR], lines)


def links_section(sets):
    if not sets:
        return []
    names = ("one probit", "two probits", "three probits")
    lines = []
    for name, each in sets.items():
        found = each.links
        losses = [decimal(found[link]["log_loss"].value) for link in names]
        errors = [interval(found[link]["calibration_error"]) for link in (*names, "two probits, left-out rows")]
        lines.append([name, *losses, *errors])
    header = ["set", *(f"log loss: {link}" for link in names), *(f"calibration error: {link}" for link in names)]
    gains = {
        name: each.links["two probits"]["log_loss"].value - each.links["three probits"]["log_loss"].value
        for name, each in sets.items()
    }
    better = [name for name, gain in gains.items() if gain > 0]
    most, least = max(gains, key=gains.get), min(gains, key=gains.get)
    told = (
        f"Three probits have a lower log loss than two on {len(better)} of {len(gains)} sets; the differences (two "
        f"minus three) go from {decimal(gains[least], 5)} on {least} to {decimal(gains[most], 5)} on {most}."
        + (" This gain is not reliable, so the link has two." if len(better) < len(gains) else "")
    )
    n_people = sets["people"].n_train if "people" in sets else 0
    return [
        words.LINKS_TOLD.format(people=n_people),
        markdown([*header, "two probits on the leave-one-out rows"], lines),
        told,
    ]


def thousand(area):
    value, low, high = (f"{1000 * each:.1f}" for each in area)
    return value, f"({low} to {high})"
