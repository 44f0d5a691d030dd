"""Reproduction: the paper's own big data experiment, on the whole of SUSY: a download of 0.9 GB, once.

The first 4,500,000 rows are for learning, the last 500,000 for testing, as in Baldi et al. 2014.
"""

from bayesvm.datasets import fetch_susy, load_rows
from experiments.registry.sets import DataSet, Split
from experiments.reproduction import paper
from experiments.reproduction.big_data import ON_GENERATED
from experiments.reproduction.records import grouped
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "susy"
TITLE = "SUSY: all rows"
KEY = ("method",)  # of a line
N_TRAIN, N_ROWS = 4_500_000, 5_000_000


def _split(_seed):
    path = fetch_susy()
    return Split(*load_rows(path, 0, N_TRAIN), *load_rows(path, N_TRAIN, N_ROWS))


def runs(quick=False):  # noqa: ARG001  (there is no quick way)
    data = DataSet(_split, alone=True)
    return [Run(method, how, "susy/whole", data, 0) for method, how in ON_GENERATED.items() if how.is_ours]


def rows(records):
    """One line for every method."""
    fields = ("n_train", "auc", "brier", "log_loss", "error", "fit_seconds", "peak_megabytes")
    by_method = grouped(records, "method")
    return [{"method": method} | {f: record[f] for f in fields} for (method,), (record,) in by_method.items()]


def section(lines):
    table = [
        [
            line["method"],
            *(f"{line[metric]:.4f}" for metric in ("auc", "brier", "log_loss")),
            f"{line['fit_seconds']:.0f}",
            f"{line['peak_megabytes']:.0f}",
        ]
        for line in lines
    ]
    table.append(["*paper: S-BSVM*", f"*{paper.SUSY['auc']}*", f"*{paper.SUSY['brier']}*", "", "*600*", ""])
    header = ["method", "AUC", "Brier score", "log loss", "seconds", "peak MB"]
    return f"{lines[0]['n_train']:,} rows to learn from, 500,000 to test.\n\n" + markdown(header, table)
