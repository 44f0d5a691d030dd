"""Unplanned ends: Ctrl-C, a closed pipe, a killed process, a missing library."""

import re
import signal
import subprocess
import sys

import pytest

from bayesvm.inference.kernel_model import KernelModel
from bayesvm.workflow import TableModel
from tests.cli.conftest import some_people, write_csv
from tests.cli.driver import bayesvm, environment, process


@pytest.mark.slow
def test_ctrl_c_writes_the_model(tmp_path):
    write_csv(tmp_path / "people.csv", some_people(4_000, 0))
    # A shell that starts tests in the background has them ignore the signal; the child should not.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom bayesvm.cli import main; main()"
    )
    words = [sys.executable, "-c", script, "fit", "people.csv", "-t", "income"]
    with subprocess.Popen(  # noqa: S603
        words,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as fit:
        for line in fit.stderr:
            if "first" in line:
                fit.send_signal(signal.SIGINT)
                break
        out, err = fit.communicate(timeout=60)
    assert fit.returncode == 130
    assert "the fit was stopped by Ctrl-C" in err
    assert "Traceback" not in err
    assert "written: people.bayesvm" in out
    assert TableModel.load(tmp_path / "people.bayesvm").estimator.interrupted_
    assert "interrupted" in bayesvm("inspect", "people.bayesvm", folder=tmp_path).out


@pytest.mark.slow
@pytest.mark.parametrize("module", ["numpy", "sklearn", "typer", "pyarrow"])
def test_ctrl_c_during_imports_says_stopped(module, tmp_path):
    script = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
from bayesvm.cli import main
main()
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, "inspect", "none.bayesvm"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        env=environment(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA", None])
def test_under_a_memory_limit_arrow_reserves_nothing(limit):
    """Its own allocator takes a gigabyte of addresses for any table."""
    pytest.importorskip("resource")
    script = f"""
import os, resource
os.environ.pop("ARROW_DEFAULT_MEMORY_POOL", None)
from bayesvm import cli
if {limit!r}:
    kind = getattr(resource, {limit!r} or "")
    resource.setrlimit(kind, (2**32, resource.getrlimit(kind)[1]))
cli._use_little_address_space()
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, env=environment()
    )
    assert (done.stdout == "system\n") == (limit is not None)


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error(home, tmp_path):
    write_csv(tmp_path / "many.csv", some_people(3_000, 1))
    script = f'"{sys.executable}" -m bayesvm predict "{home}/linear.bayesvm" many.csv | head -1'
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        env=environment(),
    )
    assert done.stdout.startswith('"prediction"')
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_checkpoint_is_taken_up_and_gives_the_same_model(home, tmp_path, monkeypatch):
    """The first run dies in the middle, as after kill -9: nothing is caught, nothing is cleaned up."""
    words = ["fit", home / "people.csv", "-t", "income", "-q", "--checkpoint", "kept", "-o", "a.bayesvm"]

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(KernelModel, "leave_out", die)  # after the first member was trained
        with pytest.raises(Killed):
            bayesvm(*words, folder=tmp_path)
    assert (tmp_path / "kept").exists()
    assert not (tmp_path / "a.bayesvm").exists()
    assert bayesvm(*words, folder=tmp_path).code == 0
    said = bayesvm("predict", "a.bayesvm", home / "new.csv", "-q", folder=tmp_path).out
    assert said == bayesvm("predict", home / "people.bayesvm", home / "new.csv", "-q", folder=tmp_path).out


def test_without_typer_there_is_a_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'typer':\n"
        "            raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    done = process("fit", folder=tmp_path, PYTHONPATH=path)
    assert done.code == 1
    command = 'pip install ".[cli]" in a clone of the repository, or pip install "bayesvm[cli]" from a package index'
    assert done.err == f"bayesvm: the command line needs typer; install the extra [cli]: {command}\n"


def test_time_limit_and_quiet(home, tmp_path):
    words = ["fit", home / "people.csv", "-t", "income", "--time-limit", "0.05", "-o", "m.bayesvm"]
    done = bayesvm(*words, "-q", folder=tmp_path)
    assert done.code == 0
    assert re.fullmatch(r"(Warning: BayesianSVC used its budget .*\n)?", done.err)  # few rows may have converged


def test_a_table_that_is_cut_short_is_reported(home, tmp_path):
    table = tmp_path / "t.parquet"
    assert bayesvm("datasets", "fetch", "people", "--rows", 100, "-o", table, "-q", folder=tmp_path).code == 0
    table.write_bytes(table.read_bytes()[:-30])
    done = bayesvm("predict", home / "people.bayesvm", "t.parquet", folder=tmp_path)
    assert done.code == 1
    assert "t.parquet cannot be read" in done.err
