"""Calibration: measure, keep, and write docs/calibration.md.

python -m experiments.calibration                      all that is not kept yet; resumes where it was stopped
python -m experiments.calibration --only ours --again  some methods, although they are kept
python -m experiments.calibration --page-only
python -m experiments.calibration --quick              tries it on a twentieth of the rows; not in docs/

The tables are looked for in the folder that BAYESVM_DATA names.
"""

import argparse
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments.calibration import sets, store
from experiments.calibration.methods import ANSWERS
from experiments.calibration.sets import QUICK, problem

PAGE, QUICK_PAGE = Path("docs/calibration.md"), store.QUICK_FOLDER / "calibration.md"


def measure(folder, set_names, answer_names, *, fewer=1, again=False):
    """Measure whatever is not stored yet; sets that are not available are skipped with a message."""
    for set_name in set_names:
        wanted = [
            name for name in answer_names if sets.SETS[set_name].answers is None or name in sets.SETS[set_name].answers
        ]
        names = [*wanted, "rows"]
        missing = [name for name in names if again or not store.path(folder, set_name, name).exists()]
        if not missing:
            continue
        try:
            rows = problem(set_name, fewer)
        except FileNotFoundError as error:
            print(f"{set_name} is left out: {error}", flush=True)
            continue
        store.keep_rows(folder, set_name, rows)
        for name in wanted:
            if name in missing:
                start = time.perf_counter()
                with threadpool_limits(1):  # times can be compared, and do not depend on what else runs
                    answer = ANSWERS[name](rows)
                store.keep(folder, set_name, name, answer)
                whole = time.perf_counter() - start
                print(
                    f"{set_name}, {name}: {answer.n_rows:,} rows, {answer.seconds:.1f} s of {whole:.1f} s", flush=True
                )


def main():
    parser = argparse.ArgumentParser(prog="python -m experiments.calibration", description="Probabilities, judged.")
    parser.add_argument("--only", nargs="+", choices=ANSWERS, default=list(ANSWERS), help="these methods")
    parser.add_argument("--sets", nargs="+", choices=sets.SETS, default=list(sets.SETS))
    parser.add_argument("--again", action="store_true", help="although they are kept")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, to try the scripts")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument("--no-page", action="store_true", help="measure only")
    given = parser.parse_args()
    folder, fewer = (store.QUICK_FOLDER, QUICK) if given.quick else (store.FOLDER, 1)
    if not given.page_only:
        measure(folder, given.sets, given.only, fewer=fewer, again=given.again)
    if not given.no_page:
        from experiments.calibration import page  # noqa: PLC0415  (matplotlib, which measuring does not need)

        where = QUICK_PAGE if given.quick else PAGE
        page.write(folder, where)
        print(f"written: {where}")


if __name__ == "__main__":
    main()
