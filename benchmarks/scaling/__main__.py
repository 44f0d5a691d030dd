"""Scaling: measure, keep, and write docs/scaling.md.

python -m benchmarks.scaling                      everything: hours
python -m benchmarks.scaling --only gemm growth   some measurements, then the page from all that is kept
python -m benchmarks.scaling --page-only
python -m benchmarks.scaling --quick              tries the scripts on few rows; its figures are not on the page
"""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.scaling import page, store
from benchmarks.scaling.machine import machine

MODULES = {
    "gemm": "gemm",
    "five_million": "five_million",
    "growth": "growth",
    "covtype": "covtype",
    "prediction": "prediction",
    "dask": "dask_pass",
}
PAGE, QUICK_PAGE = Path("docs/scaling.md"), store.QUICK_FOLDER / "scaling.md"


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description="Time and memory, measured.")
    parser.add_argument("--only", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--quick", action="store_true", help="about a fiftieth of the rows, to try the scripts")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    given = parser.parse_args()
    folder = store.QUICK_FOLDER if given.quick else store.FOLDER
    for name in [] if given.page_only else given.only:
        about, rows = machine(), []
        for row in import_module(f"benchmarks.scaling.{MODULES[name]}").measured(given.quick):
            print(name, row, flush=True)
            rows.append(row)
        store.keep(name, about, rows, folder)
    where = QUICK_PAGE if given.quick else PAGE
    where.write_text(page.text(store.kept(folder)), encoding="utf-8")
    print(f"written: {where}")


if __name__ == "__main__":
    main()
