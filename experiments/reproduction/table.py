"""Reproduction: Table 1, error, Brier score and time in ten folds; log loss and calibration error beside them.

Once by the paper's protocol (contiguous folds, θ = 5 for all) and once by ours (shuffled stratified folds, tuned).
"""

import numpy as np

from experiments.registry.methods import METHODS
from experiments.registry.paper_sets import N_FOLDS, NAMES, PAPER_SETS
from experiments.reproduction import paper
from experiments.reproduction.figures import heat_map
from experiments.reproduction.records import deviation, grouped, mean
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "table"
TITLE = "Table 1: prediction, uncertainty and time"
KEY = ("protocol", "set", "method")  # of a line
METRICS = {
    "error": "Error",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "calibration_error": "Expected calibration error",
    "fit_seconds": "Seconds to train",
}

LABELS = {
    "contiguous": {
        "sbsvm": "S-BSVM as in the paper",
        "bbsvm": "B-BSVM",
        "linear_batch": "linear, batch (Luts and Ormerod)",
        "linear_stochastic": "linear, stochastic",
        "ecm": "ECM",
        "ecm_exponential": "ECM, exponential prior",
        "gibbs": "Gibbs sampler",
        "gpc": "GPC",
        "sgpc_natural": "S-GPC, natural gradients",
        "sgpc_adam": "S-GPC, Adam",
        "svm_platt": "SVM + Platt",
        "nystroem_logistic": "Nystroem + logistic",
        "hgb": "gradient boosting",
        "default": "**S-BSVM, our default**",
    },
    "shuffled": {
        "sbsvm_evidence": "S-BSVM tuned as in the paper",
        "bbsvm_tuned": "B-BSVM, exact bound",
        "linear_batch_tuned": "linear, batch",
        "linear_stochastic_tuned": "linear, stochastic",
        "ecm_tuned": "ECM, corrected link",
        "ecm_exponential_tuned": "ECM, exponential prior, corrected link",
        "gpc_tuned": "GPC",
        "sgpc_natural_tuned": "S-GPC, natural gradients",
        "sgpc_adam_tuned": "S-GPC, Adam",
        "svm_platt_tuned": "SVM + Platt",
        "nystroem_logistic_tuned": "Nystroem + logistic",
        "boosting_tuned": "gradient boosting",
        "default": "**S-BSVM, our default**",
    },
}

# N³ and more for each of many steps: on Splice and Waveform folds after the first come last.
COSTLY = ("bbsvm", "bbsvm_tuned", "gibbs", "gpc", "gpc_tuned", "ecm", "ecm_exponential")
COSTLY += ("ecm_tuned", "ecm_exponential_tuned")
LARGE = ("splice", "waveform")
MOST_COSTLY = {"bbsvm": 1, "bbsvm_tuned": 1, "gibbs": 1, "gpc_tuned": 1}  # folds of the large sets


def runs(quick=False):
    """First folds first, so that an early page has all cells."""
    sets, folds = (("flare", "heart"), 2) if quick else (NAMES, N_FOLDS)

    def turn(run):
        name = run.set.partition("/")[0]
        return run.method in COSTLY and name in LARGE, run.seed, list(NAMES).index(name)

    def n_folds(method, name):
        return min(folds, MOST_COSTLY.get(method, N_FOLDS)) if name in LARGE else folds

    everything = [
        Run(method, METHODS[method], f"{name}/{protocol}", PAPER_SETS[f"{name}/{protocol}"], fold)
        for protocol, labels in LABELS.items()
        for name in sets
        for method in labels
        for fold in range(n_folds(method, name))
    ]
    return sorted(everything, key=turn)


def rows(records):
    """One line for every protocol, set and method."""
    lines = []
    for (where, method), group in grouped(records, "set", "method").items():
        name, protocol = where.split("/")
        figures = {metric: mean(group, metric) for metric in METRICS}
        figures["calibration_error"] = pooled_calibration_error(group)
        spread = {f"{metric}_deviation": deviation(group, metric) for metric in METRICS}
        ess = {"effective_sample_size": mean(group, "effective_sample_size")} if method == "gibbs" else {}
        lines.append(
            {"protocol": protocol, "set": name, "method": method, "folds": len(group)} | figures | spread | ess
        )
    order = {method: i for labels in LABELS.values() for i, method in enumerate(labels)}
    return sorted(lines, key=lambda line: (line["protocol"], list(NAMES).index(line["set"]), order[line["method"]]))


def pooled_calibration_error(group):
    """Of all folds as one: within folds of 14 rows, ten bins would show little but their own noise."""
    if len(group) == 1:
        return group[0]["calibration_error"]
    sums = np.sum([record["calibration_sums"] for record in group], axis=0)
    return float(np.abs(sums).sum() / sum(record["n_test"] for record in group))


def section(lines):
    sets = list(dict.fromkeys(line["set"] for line in lines))
    cells = {(line["protocol"], line["method"], line["set"]): line for line in lines}
    parts = [
        (
            f"Mean and standard deviation over {N_FOLDS} folds; cells with fewer folds say so (methods that cost "
            "N³ or more per step, on the large sets). Bold: the best mean of the methods with all folds. "
            "*Italics*: printed in the paper. The calibration error is that of all folds together."
        ),
        "### By the paper's protocol",
        (
            "Contiguous folds of the sorted files, unscaled features, RBF with θ = 5 and σ² = 1 for all kernels "
            "(the table's θ is not printed; the authors' public scripts have 5 throughout), inducing points: 20% "
            "of the rows, or 100. The Bayesian SVMs and ECM use the printed link Φ(m/(1+v)), the sampler its "
            "correction "
            "Φ(m/√(1+v)); our default tunes itself in every fold, boosting has scikit-learn's defaults."
        ),
        *(_metric_table(cells, sets, "contiguous", metric) for metric in METRICS),
        "### By ours",
        (
            "Shuffled stratified folds; all parameters are tuned inside the training folds: by gradients if the "
            "method has them, otherwise by five-fold cross-validated grids on at most 500 training rows."
        ),
        *(_metric_table(cells, sets, "shuffled", metric) for metric in METRICS),
        _remarks(cells, sets),
    ]
    return "\n\n".join(parts)


def comparable(lines):
    """Those that saw most folds."""
    most = max((line["folds"] for line in lines), default=0)
    return [line for line in lines if line["folds"] == most]


def _metric_table(cells, sets, protocol, metric):
    digits = 2 if metric == "fit_seconds" else 3
    best = {}
    for name in sets:
        whole = [line for key, line in cells.items() if key[0] == protocol and key[2] == name]
        best[name] = min((line[metric] for line in comparable(whole)), default=None)

    def cell(line, name):
        if line is None:
            return "not run"
        text = f"{line[metric]:.{digits}f}"
        text = f"**{text}**" if line[metric] == best[name] else text
        spread = line[f"{metric}_deviation"]
        has_spread = metric not in {"fit_seconds", "calibration_error"} and not np.isnan(spread)
        text += f" ± {spread:.3f}" * has_spread
        return text + f" ({line['folds']} fold{'s' * (line['folds'] > 1)})" * (line["folds"] < N_FOLDS)

    table = [
        [label, *(cell(cells.get((protocol, method, name)), name) for name in sets)]
        for method, label in LABELS[protocol].items()
    ]
    if metric in paper.Printed._fields:
        table += [
            [f"*paper: {label}*", *(_printed(name, method, metric) for name in sets)]
            for method, label in paper.METHODS.items()
        ]
    return f"**{METRICS[metric]}**\n\n" + markdown(["", *(NAMES[name] for name in sets)], table)


def _printed(name, method, metric):
    line = paper.TABLE[name][method]
    if metric == "fit_seconds":
        return f"*{line.fit_seconds:g}*"
    return f"*{getattr(line, metric):.2f} ± {getattr(line, f'{metric}_deviation'):.2f}*"


def _remarks(cells, sets):
    drawn = {name: cells[key] for name in sets if (key := ("contiguous", "gibbs", name)) in cells}
    ess = [f"{line['effective_sample_size']:.0f} ({NAMES[name]})" for name, line in drawn.items()]
    gaps = {
        metric: [
            abs(cells["contiguous", "sbsvm", name][metric] - getattr(paper.TABLE[name]["sbsvm"], metric))
            for name in sets
            if ("contiguous", "sbsvm", name) in cells
        ]
        for metric in ("error", "brier")
    }
    told = " and ".join(f"{max(gap):.3f} ({METRICS[metric]})" for metric, gap in gaps.items() if gap)
    return (
        f"Median effective sample size of the Gibbs sampler's f: {', '.join(ess)}.\n\n"
        f"Differences and their causes: S-BSVM's printed and measured means differ by at most {told}. The "
        "authors' files are sorted, so contiguous folds differ from each other, which causes the large "
        "deviations. The paper's "
        "times are from other machines and languages, so verdicts use ratios within our run. On a few hundred "
        "rows an iteration of ECM or GPC is one small factorisation in LAPACK, while every minibatch of ten rows "
        "has the overhead of Python; only on Splice and Waveform does N³ dominate."
    )


def draw(lines, path):
    """Log loss over that of the best, all methods on all sets, both protocols: one look at the whole table."""
    heat_map(lines, LABELS, NAMES, path)
