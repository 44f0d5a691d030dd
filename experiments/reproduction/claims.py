"""Reproduction: the paper's claims, one line each: what it says, what we measured, whether it holds.

A verdict follows from the measured lines by the rule that is written here, never by hand; the page states the rule with
the figures. Claims of speed hold from half the claimed ratio on.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.registry.paper_sets import NAMES
from experiments.reproduction import auto_tuning, big_data, inducing_points, paper, run_time
from experiments.text import markdown

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "cannot be tested here"
FEW = 14  # inducing points
RIVALS = tuple(paper.METHODS)  # the columns of the paper's table


class NotRunError(Exception):
    """What a claim is judged by is not in the store, or not all of it."""


class Cells(dict):
    """Lines by some key; one that was not run says so."""

    def __missing__(self, key):
        raise NotRunError(key)


@dataclass(frozen=True)
class Claim:
    """Judged from the lines of one experiment; the judge gives a verdict and the figures it rests on."""

    text: str
    experiment: str
    judge: Callable[[list[dict]], tuple[str, str]]


def verdict(holds):
    return HOLDS if holds else FAILS


def _table(lines):
    """By (method, set), of the paper's protocol."""
    return Cells({(line["method"], line["set"]): line for line in lines if line["protocol"] == "contiguous"})


def times_slower(method, claimed):
    """Seconds to train over those of S-BSVM, by set."""

    def judge(lines):
        cells = _table(lines)
        ratios = {name: cells[method, name]["fit_seconds"] / cells["sbsvm", name]["fit_seconds"] for name in NAMES}
        most = max(ratios, key=ratios.get)
        told = f"at most {ratios[most]:.1f} times ({NAMES[most]}), median {np.median(list(ratios.values())):.1f}"
        return verdict(ratios[most] >= claimed / 2), told

    return judge


def best_of_table(lines):
    """S-BSVM's error and Brier score no worse than those of any rival, in how many of the cells."""
    cells = _table(lines)
    wins = [
        cells["sbsvm", name][metric] <= min(cells[rival, name][metric] for rival in RIVALS) + 0.005
        for name in NAMES
        for metric in ("error", "brier")
    ]
    return verdict(2 * sum(wins) > len(wins)), f"best, or within 0.005 of the best, in {sum(wins)} of {len(wins)} cells"


def svm_is_fastest(lines):
    cells = _table(lines)

    def fastest(name):
        return min(RIVALS, key=lambda rival: cells[rival, name]["fit_seconds"])

    wins = [fastest(name) == "svm_platt" for name in NAMES]
    return verdict(2 * sum(wins) > len(wins)), f"fastest of the four on {sum(wins)} of {len(wins)} sets"


def _arrivals(lines):
    return Cells(run_time.arrivals(lines))


def _best(lines, method, metric):
    return min(point[metric] for point in Cells(run_time.curves(lines))[method])


def arrival_ratio(method, lowest, highest, rule=""):
    """Time to within 1 % of its best over S-BSVM's, between two limits."""

    def judge(lines):
        seconds = _arrivals(lines)
        ratio = seconds[method] / seconds[run_time.REFERENCE]
        return verdict(lowest <= ratio <= highest), f"{ratio:.1f} times the time of S-BSVM{rule}"

    return judge


def better_than_ecm(lines):
    errors = {method: _best(lines, method, "error") for method in (run_time.REFERENCE, "ECM")}
    told = ", ".join(f"{method} {error:.3f}" for method, error in errors.items())
    return verdict(errors[run_time.REFERENCE] < errors["ECM"]), f"best held-out error: {told}"


def batch_is_slowest(lines):
    seconds = _arrivals(lines)
    compared = (run_time.REFERENCE, "B-BSVM", "ECM")
    told = ", ".join(f"{method} {seconds[method]:.1f} s" for method in compared)
    return verdict(max(compared, key=lambda method: seconds[method]) == "B-BSVM"), told


def stochastic_gp_is_unstable(lines):
    """With a failure, or an end 10 % worse than S-BSVM's, in every setting."""
    curves = Cells(run_time.curves(lines))
    ends = {method: points[-1] for method, points in curves.items() if method.startswith("S-GPC")}
    if not ends:
        raise NotRunError("S-GPC")
    end = curves[run_time.REFERENCE][-1]["log_loss"]
    failed = {line["method"] for line in lines if line.get("failure")}
    unstable = [method for method, point in ends.items() if method in failed or point["log_loss"] > 1.1 * end]
    told = ", ".join(f"{method} {point['log_loss']:.4f}" for method, point in ends.items())
    told = f"log loss at the end: {told}; S-BSVM {end:.4f}; none failed" + f" but {', '.join(failed)}" * bool(failed)
    return verdict(len(unstable) == len(ends)), f"{told}; bad in {len(unstable)} of {len(ends)} settings"


def _evidence(lines):
    """Of every set: the best of the grid with the same bound, what the ELBO's gradients found, and the grid."""
    for name in auto_tuning.SETS:
        grids, found = Cells(auto_tuning.by_set(lines))[name]
        method = auto_tuning.AS_IN_THE_PAPER
        grid = Cells(grids)[auto_tuning.grid_of(method)]
        yield name, auto_tuning.optimum(grid), Cells(found)[method], grid


def finds_the_optimum(lines):
    gaps = {name: found["log_loss"] - best["log_loss"] for name, best, found, _ in _evidence(lines)}
    told = ", ".join(f"{NAMES[name]} {gap:+.4f}" for name, gap in gaps.items())
    return verdict(max(gaps.values()) < 0.005), f"log loss above the grid's best: {told}; the limit is 0.005"


def in_five_steps(lines):
    """From the start that is nearer."""

    def steps(method):
        found = {name: Cells(found)[method]["steps"] for name, (_, found) in auto_tuning.by_set(lines).items()}
        return Cells(found)

    def told(found):
        return ", ".join(f"{NAMES[name]} {found[name]:.0f}" for name in auto_tuning.SETS)

    far, near = steps(auto_tuning.AS_IN_THE_PAPER), steps(auto_tuning.FROM_NEAR)
    measured = f"steps to within 10% of the end: {told(far)} from θ = {auto_tuning.START:g}; "
    measured += f"{told(near)} from θ = {auto_tuning.NEAR_START:g}; a step changes θ by at most 10%"
    return verdict(max(near.values()) <= 5), measured


def beats_the_grid(lines):
    ratios = {name: auto_tuning.grid_seconds(grid) / found["fit_seconds"] for name, _, found, grid in _evidence(lines)}
    told = ", ".join(f"{NAMES[name]} {ratio:.0f}" for name, ratio in ratios.items())
    claimed = paper.GRID_SECONDS / paper.TUNING_SECONDS
    return verdict(min(ratios.values()) >= claimed / 2), f"times faster: {told} (claimed {claimed:.0f})"


def _points(lines, metric="error"):
    return Cells({key: line[metric] for key, line in inducing_points.curves(lines).items()})


def k_means_beats_random(lines):
    cells = _points(lines)
    few = [size for size in inducing_points.SIZES if size <= FEW]
    told = ", ".join(f"{size}: {cells['kmeans', size]:.3f} v {cells['random', size]:.3f}" for size in few)
    much = all(cells["kmeans", size] <= 0.8 * cells["random", size] for size in few)
    return verdict(much), f"errors at few points {told}; the limit is a fifth"


def one_percent_suffices(lines):
    cells = _points(lines)
    at, best = cells["kmeans", inducing_points.ONE_PERCENT], min(cells.values())
    return verdict(at <= best + 0.01), f"error {at:.3f} with 1% by k-means, {best:.3f} at best; the limit is 0.01"


def few_points_save_time(lines):
    seconds = _points(lines, "fit_seconds")
    most = max(inducing_points.SIZES)
    ratio = seconds["kmeans", most] / seconds["kmeans", inducing_points.ONE_PERCENT]
    return verdict(ratio >= 2), f"{ratio:.0f} times faster with 1% than with {most} points"


def mixture_fails(lines):
    tried = [line for line in lines if "converged" in line]
    if not tried:
        raise NotRunError("mixtures")
    converged = [line for line in tried if line["converged"]]
    told = f"scikit-learn's mixture converged {len(converged)} of {len(tried)} times on USPS (full and diagonal "
    told += f"covariances, {', '.join(map(str, inducing_points.MIXTURE_SIZES))} components)"
    return verdict(2 * len(converged) < len(tried)), told


def _susy(lines, method):
    of_susy = [line for line in lines if line["set"] == big_data.SUSY]
    return Cells({line["method"]: line for line in of_susy})[method]


def susy_figures(lines):
    printed, default = _susy(lines, big_data.AS_IN_THE_PAPER), _susy(lines, big_data.DEFAULT_64)
    told = f"AUC {printed['auc']:.3f}, Brier {printed['brier']:.3f} from {printed['n_train']:,} rows; our default "
    told += f"with as many points {default['auc']:.3f}, {default['brier']:.3f}"
    return verdict(printed["auc"] >= paper.SUSY["auc"] - 0.005 and printed["brier"] <= paper.SUSY["brier"]), told


def tuned_to_five(lines):
    theta = _susy(lines, big_data.TUNED_AS_IN_THE_PAPER)["theta"]
    return verdict(4 <= theta <= 6.25), f"θ = {theta:.2f} on the available rows, from θ = 1.4; the limit is a quarter"


def ten_minutes(lines):
    by_size = Cells({(line["method"], line["n_train"]): line for line in lines})
    line = by_size[big_data.TWO_PASSES, 5_000_000]
    told = f"{line['fit_seconds'] / 60:.1f} minutes for 5,000,000 generated rows, two passes, one thread; "
    told += f"log loss {line['above_bayes']:.3f} above the Bayes limit"
    return verdict(line["fit_seconds"] <= 600), told


def deep_net(lines):
    net, default = (_susy(lines, method) for method in ("deep net, 5 × 300", "S-BSVM, our default"))
    told = f"needs all 5,000,000 rows; with {net['n_train']:,} a net of that shape has AUC {net['auc']:.3f}"
    return UNTESTED, f"{told}, our default {default['auc']:.3f}"


def unnamed(_lines):
    return UNTESTED, "the paper does not name them"


CLAIMS = (
    Claim("S-BSVM up to 22 times faster than ECM (Table 1)", "table", times_slower("ecm", 22)),
    Claim("up to 700 times faster than GPC (Table 1)", "table", times_slower("gpc", 700)),
    Claim("S-BSVM best in error and Brier score in most cases", "table", best_of_table),
    Claim("the SVM with Platt scaling is the fastest (Table 1)", "table", svm_is_fastest),
    Claim("S-BSVM around 10 times faster than ECM (run time)", "run_time", arrival_ratio("ECM", 5, np.inf)),
    Claim("with slightly better predictions than ECM", "run_time", better_than_ecm),
    Claim("B-BSVM is the slowest of the Bayesian SVMs", "run_time", batch_is_slowest),
    Claim("GPC around 5000 times slower than S-BSVM", "run_time", arrival_ratio("GPC", 2500, np.inf)),
    Claim(
        "S-GPC has a run time comparable to S-BSVM's",
        "run_time",
        arrival_ratio("S-GPC, natural gradients", 0.2, 5, "; the limit is five times"),
    ),
    Claim("S-GPC is very unstable and predicts badly", "run_time", stochastic_gp_is_unstable),
    Claim(
        "the SVM (libsvm) has a run time similar to S-BSVM's",
        "run_time",
        arrival_ratio("SVM + Platt", 0.2, 5, "; the limits are a fifth and five times"),
    ),
    Claim("tuning by ELBO gradients finds the optimal length-scale", "auto_tuning", finds_the_optimum),
    Claim("in only 5 hyperparameter steps", "auto_tuning", in_five_steps),
    Claim("0.3 s against 188 s of a grid search with 1000 points", "auto_tuning", beats_the_grid),
    Claim("k-means is much better than random rows at few points", "inducing_points", k_means_beats_random),
    Claim("1% of the rows as inducing points are nearly optimal", "inducing_points", one_percent_suffices),
    Claim("and decrease the run time significantly", "inducing_points", few_points_save_time),
    Claim("the Gaussian mixture fails to converge", "inducing_points", mixture_fails),
    Claim("similar results of inducing points on all sets considered", "inducing_points", unnamed),
    Claim("SUSY: AUC 0.84, Brier score 0.22", "big_data", susy_figures),
    Claim("SUSY: tuning finds θ = 5", "big_data", tuned_to_five),
    Claim("5,000,000 rows in 10 minutes on one core", "big_data", ten_minutes),
    Claim("a deep net reaches AUC 0.88 on SUSY", "big_data", deep_net),
)


def judged(lines_of):
    """Claim, verdict and figures, from the lines of every experiment by its name; what lacks runs is untested."""
    for claim in CLAIMS:
        try:
            how, told = claim.judge(Cells(lines_of)[claim.experiment])
        except NotRunError:
            how, told = UNTESTED, "not all of its runs are in the store"
        yield claim, how, told


def section(lines_of, quick=False):
    """The table; a quick run shows figures and judges nothing."""
    table = [
        [claim.text, "needs the full run" if quick else f"**{how}**", told] for claim, how, told in judged(lines_of)
    ]
    return markdown(["the paper says", "", "measured"], table)
