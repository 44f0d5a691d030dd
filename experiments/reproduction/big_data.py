"""Reproduction: big data: SUSY as far as it is at hand, and generated rows up to the paper's five million.

Every run on generated rows has its own process, whose peak memory is reported.
"""

from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm.kernels import RBF
from experiments.registry.method import ours, peer
from experiments.registry.methods import METHODS
from experiments.registry.paper_methods import AS_PRINTED, LENGTH
from experiments.registry.paper_sets import PAPER_SETS, generated
from experiments.reproduction import paper
from experiments.reproduction.auto_tuning import found_theta
from experiments.reproduction.figures import growth_curves
from experiments.reproduction.records import grouped
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "big_data"
TITLE = "Big data: SUSY and five million generated rows"
KEY = ("set", "method", "n_train")  # of a line
SUSY = "susy/at_hand"
AS_IN_THE_PAPER = "S-BSVM as in the paper"
TUNED_AS_IN_THE_PAPER = "S-BSVM, θ by ELBO gradients"
TWO_PASSES = f"{AS_IN_THE_PAPER}, two passes"
DEFAULT_64 = "S-BSVM, our default with 64 points"
N_INDUCING = 64
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 5_000_000)
LARGEST_PEER = 1_000_000
PASSES = 2  # of the paper's settings: one in minibatches, one over all rows

_AS_PRINTED = {"inference": "stochastic", "batch_size": 100, **AS_PRINTED}


def _net(_n_rows, seed):
    """The shape of the deep net that the paper quotes: five layers of 300 units."""
    layers = MLPClassifier((300,) * 5, early_stopping=True, max_iter=60, random_state=seed)
    return make_pipeline(StandardScaler(), layers)


def _nystroem(_n_rows, seed):
    return make_pipeline(StandardScaler(), Nystroem(n_components=N_INDUCING, random_state=seed), LogisticRegression())


ON_SUSY = {
    AS_IN_THE_PAPER: ours(kernel=RBF(LENGTH, 1.0), n_inducing=N_INDUCING, **_AS_PRINTED),
    TUNED_AS_IN_THE_PAPER: ours(
        kernel=RBF(1.0, 1.0, variance_bounds="fixed"),
        n_inducing=N_INDUCING,
        tell=found_theta,
        **(_AS_PRINTED | {"tune": "elbo", "inference": "auto", "batch_size": "auto"}),
    ),
    DEFAULT_64: ours(n_inducing=N_INDUCING),
    "S-BSVM, our default": METHODS["default"],
    "gradient boosting": METHODS["hgb"],
    "deep net, 5 × 300": peer(_net),
}
ON_GENERATED = {
    TWO_PASSES: ours(kernel=RBF(LENGTH, 1.0), n_inducing=N_INDUCING, max_iter=PASSES, **_AS_PRINTED),
    DEFAULT_64: ours(n_inducing=N_INDUCING),
    "Nystroem + logistic, 64 points, γ = 1/18": peer(_nystroem),
}


def runs(quick=False):
    sizes = SIZES[:3:2] if quick else SIZES
    skipped = {"deep net, 5 × 300", "S-BSVM, our default"} if quick else set()
    return [Run(method, how, SUSY, PAPER_SETS[SUSY], 0) for method, how in ON_SUSY.items() if method not in skipped] + [
        Run(method, how, f"generated, {size} rows", generated(size), 0)
        for size in sizes
        for method, how in ON_GENERATED.items()
        if size <= LARGEST_PEER or how.is_ours
    ]


def rows(records):
    """One line for every run."""
    lines = []
    for (name, method), group in grouped(records, "set", "method").items():
        record = group[0]
        line = {"set": name, "method": method, "n_train": record["n_train"], "fit_seconds": record["fit_seconds"]}
        line |= {metric: record[metric] for metric in ("auc", "error", "brier", "log_loss")}
        line |= {"theta": record["theta"]} if "theta" in record else {}
        if "bayes" in record:
            line |= {
                "bayes_error": record["bayes"]["error"],
                "above_bayes": record["log_loss"] - record["bayes"]["log_loss"],
            }
            line |= {field: record[field] for field in ("peak_megabytes", "peak_megabytes_before")}
        lines.append(line)
    order = [*ON_SUSY, *ON_GENERATED]
    return sorted(lines, key=lambda line: (line["set"] != SUSY, line["n_train"], order.index(line["method"])))


def section(lines):
    susy = [line for line in lines if line["set"] == SUSY]
    of_generated = [line for line in lines if line["set"] != SUSY]
    whole_file = (
        "With a network connection, `make reproduce-susy` runs the paper's experiment on the whole file: it downloads "
        "the file once, trains on the first 4,500,000 rows and tests on the last 500,000."
    )
    parts = on_susy(susy) if susy else ["The real rows of SUSY were not available."]
    return "\n\n".join([*parts, whole_file, *(on_generated(of_generated) if of_generated else [])])


def on_susy(lines):
    table = [
        [
            line["method"] + (f" (θ = {line['theta']:.2f})" if "theta" in line else ""),
            *(f"{line[metric]:.4f}" for metric in ("auc", "brier", "log_loss")),
            f"{line['fit_seconds']:.1f}",
        ]
        for line in lines
    ]
    printed = paper.SUSY
    table.append(["*paper: S-BSVM, all 5,000,000 rows*", f"*{printed['auc']}*", f"*{printed['brier']}*", "", "*600*"])
    table.append(["*paper: deep net, all rows*", f"*{printed['net_auc']}*", "", "", ""])
    text = (
        f"**The real rows.** Of SUSY's 5,000,000 rows {lines[0]['n_train']:,} are available for training, and "
        "10,000 of "
        "the usual test part. As in the paper: 64 points, minibatches of 100, θ = 5."
    )
    return [text, markdown(["method", "AUC", "Brier score", "log loss", "seconds"], table)]


def on_generated(lines):
    table = [
        [
            f"{line['n_train']:,}",
            line["method"],
            f"{line['fit_seconds']:.1f}",
            f"{line['peak_megabytes']:.0f}",
            f"{line['peak_megabytes_before']:.0f}",
            f"{line['log_loss']:.4f}",
            f"{line['above_bayes']:.4f}",
        ]
        for line in lines
    ]
    text = (
        "**Generated rows with a known answer.** Two normal distributions in 18 dimensions, one shifted in six "
        "of them and wider in six others; the lowest possible error is {lines[0]['bayes_error']:.3f}. One "
        "thread. 'Before training' is the memory of the process when training began: the table and the "
        "libraries. As in the paper: 64 points, minibatches "
        "of 100, θ = 5, one pass in minibatches and one over all rows."
    )
    header = ["rows", "method", "seconds", "peak MB", "before training", "log loss", "above Bayes"]
    return [text, markdown(header, table)]


def draw(lines, path):
    growth_curves([line for line in lines if line["set"] != SUSY], list(ON_GENERATED), path)
