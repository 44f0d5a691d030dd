"""Reproduction: run what is missing in the store, then write the page.

python -m experiments.reproduction                 everything, hours; resumes where it was stopped
python -m experiments.reproduction --quick         a first look, minutes
python -m experiments.reproduction --only susy     the paper's big data experiment; downloads 0.9 GB
python -m experiments.reproduction --only table --match waveform
python -m experiments.reproduction --page-only
"""

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments.reproduction import auto_tuning, big_data, inducing_points, page, posterior, run_time, susy, table
from experiments.runs.store import Store
from experiments.runs.sweep import sweep

USUAL = (table, run_time, auto_tuning, inducing_points, big_data, posterior)
EXPERIMENTS = {experiment.NAME: experiment for experiment in (*USUAL, susy)}
STORE = Path("out/experiments/reproduction.jsonl")
PAGE, QUICK_PAGE = Path("docs/reproduction.md"), Path("out/reproduction-quick/reproduction.md")


def main():
    options = arguments()
    store = Store(STORE)
    if not options.page_only:
        runs = [run for name in options.only for run in EXPERIMENTS[name].runs(options.quick)]
        with threadpool_limits(limits=1):  # the paper used one core, and methods differ in what they do with more
            sweep([run for run in runs if is_meant(run, options)], store, retry=options.retry_failed)
    if not options.no_page:
        where = QUICK_PAGE if options.quick else PAGE
        page.write(EXPERIMENTS.values(), store, where, options.quick)
        print(f"written: {where}, and figures and CSV files in {where.with_suffix('')}/")


def is_meant(run, options):
    return options.needs in ("", run.how.needs) and options.match in f"{run.method} on {run.set}"


def arguments():
    parser = argparse.ArgumentParser(prog="python -m experiments.reproduction", description="The paper, reproduced.")
    parser.add_argument("--quick", action="store_true", help="few folds, small sets: minutes, not hours")
    parser.add_argument("--only", type=names, default=[e.NAME for e in USUAL], help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--needs", default="", help="only methods that need this module, e.g. gpytorch")
    parser.add_argument("--match", default="", help="only runs whose method or set has this text in its name")
    parser.add_argument("--retry-failed", action="store_true", help="run again what failed before")
    parser.add_argument("--page-only", action="store_true", help="run nothing; write the page from the store")
    parser.add_argument("--no-page", action="store_true", help="run only")
    return parser.parse_args()


def names(text):
    unknown = [name for name in text.split(",") if name not in EXPERIMENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} not among {', '.join(EXPERIMENTS)}")
    return text.split(",")


if __name__ == "__main__":
    main()
