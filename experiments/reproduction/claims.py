"""Reproduction: the paper's claims, one line each: what it says, what we measured, whether it holds.

A verdict follows from the measured lines by the rule that is written beside it here, never by hand.
"""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.registry.paper_sets import NAMES
from experiments.reproduction import auto_tuning, big_data, inducing_points, paper, run_time
from experiments.reproduction.records import markdown

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "cannot be tested here"
FEW = 40  # inducing points
RIVALS = tuple(paper.METHODS)  # the columns of the paper's table


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
    return {(line["method"], line["set"]): line for line in lines if line["protocol"] == "contiguous"}


def times_slower(method):
    """Seconds to train over those of S-BSVM, by set."""

    def judge(lines, claimed):
        cells = _table(lines)
        ratios = {
            name: line["fit_seconds"] / cells["sbsvm", name]["fit_seconds"]
            for (which, name), line in cells.items()
            if which == method
        }
        most = max(ratios, key=ratios.get)
        median = sorted(ratios.values())[len(ratios) // 2]
        told = f"at most {ratios[most]:.1f} times ({NAMES[most]}), median {median:.1f}"
        return verdict(ratios[most] >= claimed / 2), told + "; counted as holding from half the claim on"

    return judge


def best_of_table(lines):
    """S-BSVM's error and Brier score no worse than those of any rival, in how many of the cells."""
    cells = _table(lines)
    wins = [
        cells["sbsvm", name][metric] <= min(cells[rival, name][metric] for rival in RIVALS) + 0.005
        for name in NAMES
        if ("sbsvm", name) in cells
        for metric in ("error", "brier")
    ]
    return verdict(2 * sum(wins) > len(wins)), f"best or level (.005) in {sum(wins)} of {len(wins)} cells"


def svm_is_fastest(lines):
    cells = _table(lines)
    sets = [name for name in NAMES if ("svm_platt", name) in cells]
    wins = [min(RIVALS, key=lambda rival: cells[rival, name]["fit_seconds"]) == "svm_platt" for name in sets]
    return verdict(2 * sum(wins) > len(wins)), f"fastest of the four on {sum(wins)} of {len(wins)} sets"


def arrival_ratio(method, lowest, highest, why=""):
    """Time to within 1 % of its best over S-BSVM's, between two limits."""

    def judge(lines):
        seconds = run_time.arrivals(lines)
        if method not in seconds:
            return UNTESTED, "not run"
        ratio = seconds[method] / seconds[run_time.REFERENCE]
        return verdict(lowest <= ratio <= highest), f"{ratio:.1f} times the time of S-BSVM{why}"

    return judge


def batch_is_slowest(lines):
    seconds = run_time.arrivals(lines)
    ours = ("S-BSVM as in the paper", "B-BSVM", "ECM")
    slowest = max(ours, key=lambda method: seconds[method])
    told = ", ".join(f"{method} {seconds[method]:.1f} s" for method in ours)
    return verdict(slowest == "B-BSVM"), told


def stochastic_gp_is_unstable(lines):
    ends = {m: points[-1]["log_loss"] for m, points in run_time.curves(lines).items() if m.startswith("S-GPC")}
    if not ends:
        return UNTESTED, "not run: GPyTorch is not installed"
    reference = min(point["log_loss"] for point in run_time.curves(lines)[run_time.REFERENCE])
    told = ", ".join(f"{method} ends at {loss:.4f}" for method, loss in ends.items())
    told += f"; S-BSVM's best {reference:.4f}. Bad with full steps on minibatches of 10, not with steps that fit N"
    return verdict(min(ends.values()) > 1.1 * reference), f"log loss: {told}"


def _evidence(lines):
    for name, (grid, found) in auto_tuning.by_set(lines).items():
        best = min(grid, key=lambda line: line["log_loss"])
        yield name, best, next(line for line in found if line["method"] == auto_tuning.AS_IN_THE_PAPER), grid


def finds_the_optimum(lines):
    gaps = {name: found["log_loss"] - best["log_loss"] for name, best, found, _ in _evidence(lines)}
    told = ", ".join(f"{NAMES[name]} {gap:+.4f}" for name, gap in gaps.items())
    return verdict(max(gaps.values()) < 0.005), f"log loss above the grid's best: {told}"


def in_five_steps(lines):
    """From the start that is nearer."""

    def steps(method):
        return {line["set"]: line["steps"] for line in lines if line["method"] == method}

    def told(found):
        return ", ".join(f"{NAMES[name]} {count:.0f}" for name, count in found.items())

    far, near = steps(auto_tuning.AS_IN_THE_PAPER), steps(auto_tuning.FROM_NEAR)
    measured = f"steps to within 10 % of the end: {told(far)} from θ = {auto_tuning.START:g}; "
    measured += f"{told(near)} from θ = {auto_tuning.NEAR_START:g}; a step changes θ by 10 % at most"
    return verdict(max(near.values()) <= 5), measured


def beats_the_grid(lines):
    ratios = {name: auto_tuning.grid_seconds(grid) / found["fit_seconds"] for name, _, found, grid in _evidence(lines)}
    told = ", ".join(f"{NAMES[name]} {ratio:.0f}" for name, ratio in ratios.items())
    claimed = paper.GRID_SECONDS / paper.TUNING_SECONDS
    return verdict(min(ratios.values()) >= claimed / 2), f"times faster: {told} (claimed {claimed:.0f})"


def _points(lines, metric="error"):
    return {(line["how"], line["points"]): line[metric] for line in lines}


def k_means_beats_random(lines):
    cells = _points(lines)
    few = sorted({size for _, size in cells if size <= FEW})
    told = ", ".join(f"{size}: {cells['kmeans', size]:.3f} v {cells['random', size]:.3f}" for size in few)
    return verdict(all(cells["kmeans", size] < cells["random", size] for size in few)), f"errors at few points {told}"


def one_percent_suffices(lines):
    cells = _points(lines)
    at, best = cells["kmeans", inducing_points.ONE_PERCENT], min(cells.values())
    return verdict(at <= best + 0.01), f"error {at:.3f} with 1 % by k-means, {best:.3f} at best; near means .01"


def mixture_fails(lines):
    cells = _points(lines)
    tried = [size for how, size in cells if how == "gmm"]
    wanted = {size for _, size in cells}
    close = [abs(cells["gmm", size] - cells["kmeans", size]) for size in tried]
    told = f"fitted {len(tried)} of {len(wanted)} sizes, error within {max(close):.3f} of k-means"
    return verdict(len(tried) < len(wanted)), told + "; ours has diagonal covariances and starts from k-means"


def _susy(lines, method):
    return next(line for line in lines if line["set"] == big_data.SUSY and line["method"] == method)


def susy_figures(lines):
    printed, default = _susy(lines, "S-BSVM as in the paper"), _susy(lines, "S-BSVM, our default with 64 points")
    told = f"AUC {printed['auc']:.3f}, Brier {printed['brier']:.3f} from {printed['n_train']:,} rows; our default "
    told += f"with as many points {default['auc']:.3f}, {default['brier']:.3f}"
    return verdict(printed["auc"] >= paper.SUSY["auc"] - 0.005 and printed["brier"] <= paper.SUSY["brier"]), told


def ten_minutes(lines):
    largest = max(line["n_train"] for line in lines)
    mine = [line for line in lines if line["n_train"] == largest and line["method"] == "S-BSVM as in the paper"]
    if largest < 5_000_000:
        return UNTESTED, "in the quick mode"
    seconds = mine[0]["fit_seconds"]
    told = f"{seconds / 60:.1f} minutes for {largest:,} generated rows, two passes, one thread"
    return verdict(seconds <= 600), told


def deep_net(lines):
    nets = [line for line in lines if line["method"].startswith("deep net")]
    told = "needs the 5,000,000 rows"
    if nets:
        default = _susy(lines, "S-BSVM, our default")
        told += f"; from {nets[0]['n_train']:,} a net of that shape has AUC {nets[0]['auc']:.3f}"
        told += f", our default {default['auc']:.3f}"
    return UNTESTED, told


CLAIMS = (
    Claim("S-BSVM up to 22 times faster than ECM (Table 1)", "table", lambda lines: times_slower("ecm")(lines, 22)),
    Claim("up to 700 times faster than GPC (Table 1)", "table", lambda lines: times_slower("gpc")(lines, 700)),
    Claim("S-BSVM best in error and Brier score in most cases", "table", best_of_table),
    Claim("the SVM with Platt scaling is the fastest (Table 1)", "table", svm_is_fastest),
    Claim("S-BSVM around 10 times faster than ECM (run time)", "run_time", arrival_ratio("ECM", 5, 1e9)),
    Claim("B-BSVM is the slowest of the Bayesian SVMs", "run_time", batch_is_slowest),
    Claim("GPC around 5000 times slower than S-BSVM", "run_time", arrival_ratio("GPC", 2500, 1e9)),
    Claim(
        "S-GPC has a run time comparable to S-BSVM's",
        "run_time",
        arrival_ratio("S-GPC, natural gradients", 0, 5, "; comparable means at most five times"),
    ),
    Claim("S-GPC is very unstable and predicts badly", "run_time", stochastic_gp_is_unstable),
    Claim(
        "the SVM (libsvm) has a run time similar to S-BSVM's",
        "run_time",
        arrival_ratio("SVM + Platt", 0.2, 5, "; similar means between a fifth and five times"),
    ),
    Claim("tuning by ELBO gradients finds the optimal length-scale", "auto_tuning", finds_the_optimum),
    Claim("in only 5 hyperparameter steps", "auto_tuning", in_five_steps),
    Claim("0.3 s against 188 s of a grid search with 1000 points", "auto_tuning", beats_the_grid),
    Claim("k-means is much better than random rows at few points", "inducing_points", k_means_beats_random),
    Claim("1 % of the rows as inducing points are nearly optimal", "inducing_points", one_percent_suffices),
    Claim("the Gaussian mixture fails", "inducing_points", mixture_fails),
    Claim("SUSY: AUC .84, Brier score .22", "big_data", susy_figures),
    Claim("5,000,000 rows in 10 minutes on one core", "big_data", ten_minutes),
    Claim("a deep net reaches AUC .88 on SUSY", "big_data", deep_net),
)


def judged(lines_of):
    """Claim, verdict and figures, from the lines of every experiment by its name; what lacks runs is untested."""
    for claim in CLAIMS:
        try:
            yield claim, *claim.judge(lines_of[claim.experiment])
        except (LookupError, StopIteration, ValueError):  # the page of a run that was stopped
            yield claim, UNTESTED, "not all of its runs are in the store"


def section(lines_of):
    table = [[claim.text, f"**{how}**", told] for claim, how, told in judged(lines_of)]
    return markdown(["the paper says", "", "measured"], table)
