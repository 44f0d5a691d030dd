"""Attack the guarantees of docs/reliability.md, and write the results there.

python -m tests.attack                        everything, in less than ten minutes on two cores
python -m tests.attack --only kills workers   some kinds; the page stays as it is
python -m tests.attack --quick                a handful of each; the page stays as it is
"""

# ruff: noqa: T201  (it prints how far it is, and what it found)

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from tests.attack.outcome import Outcome

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- written by make attack: begin -->", "<!-- written by make attack: end -->"
PARTS = 2  # of each kind, with seeds of their own: one for each of two cores
BETWEEN_SEEDS = 1_000_000
MOST_SECONDS = 900


@dataclass(frozen=True)
class Kind:
    """An attack: the guarantee, the method, the number of attempts, and the outcomes that satisfy the guarantee."""

    promise: str
    tried: str
    count: int
    quick: int
    harmless: frozenset[str]
    tests: tuple[str, ...]  # those that always run and hold single cases


KINDS = {
    "model_files": Kind(
        "A model file loads with the values it was saved with, or is rejected with an error naming the file. Loading "
        "runs no code, and memory is bounded by the size of the file.",
        "Bytes are changed, deleted and inserted; headers, states and tensors are forged with valid checksums.",
        2000,
        10,
        frozenset({"rejected", "loaded, same values"}),
        ("tests/estimators/test_files.py", "tests/storage/test_models.py", "tests/test_persistence_format.py"),
    ),
    "checkpoints": Kind(
        "A damaged checkpoint is rejected with an error naming the file, or the fit is bit-identical to one without "
        "it.",
        "Checkpoints of killed fits are damaged and forged like model files; the fit is started with them.",
        200,
        4,
        frozenset({"rejected", "resumed, bit-identical"}),
        ("tests/estimators/test_checkpoints.py",),
    ),
    "tables": Kind(
        "A damaged table is read, or rejected with an error naming the file. It never ends the process.",
        "Bytes of Arrow, Feather and Parquet files are changed and deleted; another process reads them in every way.",
        500,
        6,
        frozenset({"read", "rejected"}),
        ("tests/data/test_tables.py", "tests/data/test_table_errors.py"),
    ),
    "problems": Kind(
        "A fit gives finite, consistent probabilities and intervals, or an error that says why.",
        "Small problems with random sizes, units from 1e-320 to 1e100, outliers, rare classes and random parameters.",
        500,
        6,
        frozenset({"fitted", "rejected"}),
        ("tests/estimators/test_bad_input.py", "tests/estimators/test_sklearn_contract.py"),
    ),
    "kills": Kind(
        "A fit that is killed resumes from its checkpoint and is bit-identical to an uninterrupted one.",
        "SIGKILL at random moments, four times per fit, in five kinds of fits, with one or two threads.",
        40,
        2,
        frozenset({"bit-identical"}),
        ("tests/estimators/test_checkpoints.py",),
    ),
    "workers": Kind(
        "A fit on a cluster that loses a worker is bit-identical to an uninterrupted one.",
        "SIGKILL to a Dask worker at a random moment of each fit.",
        10,
        1,
        frozenset({"bit-identical"}),
        ("tests/estimators/test_dask.py",),
    ),
}


def attacked(name: str, count: int, seed: int) -> Outcome:
    """Run one kind in this process."""
    try:
        return Outcome.of(import_module(f"tests.attack.{name}").attack(count, seed), KINDS[name].harmless)
    except AssertionError as error:  # of modules that stop at the first failure
        return Outcome(Counter({"failed": 1}), [str(error)])


def attacked_apart(name: str, count: int, seed: int) -> tuple[Outcome, float]:
    """Run one kind in a process of its own, which it may ruin; and the seconds."""
    began = time.monotonic()
    words = [sys.executable, "-m", "tests.attack", "--part", name, str(count), str(seed)]
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(  # noqa: S603
            words,
            cwd=ROOT,
            env=os.environ | threads | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        found = Outcome(Counter({"hung": 1}), [f"seed {seed}: no end after {MOST_SECONDS} seconds"])
    else:
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            why = f"seed {seed}: the process ended with {done.returncode}: {done.stderr[-2000:]}"
            found = Outcome(Counter({"died": 1}), [why])
        else:
            found = Outcome.from_json(json.loads(lines[-1]))
    return found, time.monotonic() - began


def all_attacked(names: Sequence[str], seed: int, *, quick: bool) -> dict[str, Outcome]:
    """Run kinds side by side, each in parts, and print how far it is."""
    parts = []
    for name in names:
        count = KINDS[name].quick if quick else KINDS[name].count
        sizes = [count // PARTS + (part < count % PARTS) for part in range(PARTS)]
        parts += [(name, size, seed + part * BETWEEN_SEEDS) for part, size in enumerate(sizes) if size]
    found = {name: Outcome() for name in names}
    with ThreadPoolExecutor(PARTS) as pool:
        for (name, count, part_seed), (outcome, seconds) in zip(
            parts, pool.map(lambda part: attacked_apart(*part), parts), strict=True
        ):
            found[name] += outcome
            print(f"{name}: {count:,} with seed {part_seed} in {seconds:.0f} s: {figures(outcome)}", flush=True)
    return found


def figures(outcome: Outcome | None) -> str:
    """In words."""
    if outcome is None:
        return "not measured yet"
    counts = ", ".join(f"{number:,} {name[:60]}" for name, number in outcome.counts.most_common())
    broken = f"; **{len(outcome.failures)} broken promises**" if outcome.failures else ""
    return counts.replace("|", "/") + broken


def table(found: Mapping[str, Outcome]) -> str:
    """Guarantee, attack, counts, outcomes and tests, in Markdown."""
    lines = ["| guarantee | attack | times | outcome | specific cases |", "|---|---|--:|---|---|"]
    for name, kind in KINDS.items():
        times = f"{found[name].counts.total():,}" if name in found else "–"
        tests = ", ".join(f"`{test}`" for test in kind.tests)
        lines.append(f"| {kind.promise} | {kind.tried} | {times} | {figures(found.get(name))} | {tests} |")
    return "\n".join(lines)


def written(page: str, block: str) -> str:
    """The page with other words between the two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def main() -> int:
    """Run, print, and write the page; 1 if a guarantee was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description="Attack the guarantees of the library.")
    parser.add_argument("--seed", type=int, default=0, help="another seed tries other damage")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--quick", action="store_true", help="a handful of each")
    parser.add_argument("--part", nargs=3, metavar=("KIND", "COUNT", "SEED"), help="one kind, here; prints JSON")
    given = parser.parse_args()
    if given.part:
        name, count, seed = given.part
        print(json.dumps(attacked(name, int(count), int(seed)).as_json()))
        return 0
    began = time.monotonic()
    found = all_attacked(given.only, given.seed, quick=given.quick)
    minutes = (time.monotonic() - began) / 60
    about = f"{datetime.now(UTC):%Y-%m-%d}, seed {given.seed}, {os.cpu_count()} cores, {minutes:.1f} minutes."
    block = f"{about}\n\n{table(found)}"
    print(f"\n{block}")
    for name, outcome in found.items():
        for line in outcome.failures:
            print(f"\n{name}: {line}")
    if not given.quick and set(given.only) == set(KINDS):
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), block), encoding="utf-8")
        print(f"\nwritten: {PAGE.relative_to(ROOT)}")
    return int(any(outcome.failures for outcome in found.values()))


if __name__ == "__main__":
    sys.exit(main())
