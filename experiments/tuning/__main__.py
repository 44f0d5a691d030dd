"""Tuning: run what is missing in the store, then report.

From the project's root, with BAYESVM_DATA set:

    python -m experiments.tuning --methods default,fixed --sets quick --seeds 3
    python -m experiments.tuning --methods default,default@1a2b3c4d-5e6f7a8b --sets all --report-only

The peers stand in every report with what the store has of them; name them to run them.
"""

import argparse
from pathlib import Path

from experiments.registry import METHODS, QUICK, SETS, TOUCHED, UNTOUCHED
from experiments.registry.methods import PEERS
from experiments.runs.store import Store
from experiments.runs.sweep import crossed, sweep
from experiments.tuning.report import report
from experiments.tuning.results import Column, Results

REPORT = Path("out/experiments/tuning.md")


def main():
    options = arguments()
    store = Store()
    if not options.report_only:
        sweep(crossed([name for name in options.methods if "@" not in name], options.sets, options.seeds), store)
    columns = [column(label, store, options.report_only) for label in dict.fromkeys([*PEERS, *options.methods])]
    results = Results(store, columns, options.sets, options.seeds)
    text = report(results, reference=options.methods[0])
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text, encoding="utf-8")
    print(f"\n{text}\nwritten to {REPORT}")


def arguments():
    parser = argparse.ArgumentParser(
        prog="python -m experiments.tuning", description="Compare recipes by held-out log loss."
    )
    parser.add_argument(
        "--methods",
        type=names_among(METHODS, {"peers": PEERS}),
        default=["default"],
        help=f"names with commas between them, of {', '.join(METHODS)}; 'peers' stands for {', '.join(PEERS)}; "
        "name@version shows stored figures of earlier code; the first is the one others are compared with",
    )
    parser.add_argument(
        "--sets",
        type=names_among(SETS, {"quick": QUICK, "touched": TOUCHED, "untouched": UNTOUCHED, "all": SETS}),
        default=QUICK,
        help="'quick', 'touched', 'untouched' (only at the end of an experiment), 'all' or names",
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many; small sets take five times as many")
    parser.add_argument("--report-only", action="store_true", help="run nothing; show the newest stored versions")
    return parser.parse_args()


def names_among(table, groups):
    """Names with commas between them; a group stands for its members."""

    def parse(text):
        names = [name for word in text.split(",") for name in groups.get(word, [word])]
        unknown = [name for name in names if name.partition("@")[0] not in table]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} not among {', '.join([*groups, *table])}")
        return names

    return parse


def column(label, store, report_only):
    """What was asked for or has just been run; of peers and in a report only, the newest that is stored."""
    name, _, version = label.partition("@")
    newest = store.newest_version(name) if report_only or name in PEERS else None
    return Column(label, name, version or newest or METHODS[name].version, METHODS[name].is_ours)


if __name__ == "__main__":
    main()
