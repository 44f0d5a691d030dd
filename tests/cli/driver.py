"""The command line for tests: as a process, or inside this one, which saves the seconds of importing libraries."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from bayesvm.cli.app import run

SOURCE = str(Path(__file__).parents[2] / "src")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def bayesvm(*words, folder, stdin=b""):
    """Run a command inside this process, as ``main`` would."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    given, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("default")
            code = run([str(word) for word in words])
    finally:
        sys.stdin = given
    return Result(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def environment(**more):
    path = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | more


def process(*words, folder, stdin=b"", **more):
    """Run a command as people do."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "bayesvm", *map(str, words)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        check=False,
        env=environment(**more),
        timeout=120,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
