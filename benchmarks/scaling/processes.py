"""Scaling: Python in a process of its own, which tells what it found in its last line of output, as JSON."""

import json
import os
import subprocess
import sys

from benchmarks.scaling.machine import CORES

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class FailedError(RuntimeError):
    """The process ended with an error; the message is its last line."""


def told_by(module, given, interpreter=sys.executable, timeout=None):
    """What a module of this package prints when it is given this."""
    environment = os.environ | dict.fromkeys(THREADS, str(CORES))
    done = subprocess.run(  # noqa: S603  (our own module)
        [str(interpreter), "-W", "ignore", "-m", f"benchmarks.scaling.{module}", json.dumps(given)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise FailedError(lines[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])
