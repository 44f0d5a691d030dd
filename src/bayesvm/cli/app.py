"""The command line: the commands put together, and what becomes of errors.

Exit codes: 0 done; 1 something is wrong with the data or the files; 2 wrong usage; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer

from bayesvm.cli.compare import compare
from bayesvm.cli.console import complain, errors
from bayesvm.cli.datasets import datasets
from bayesvm.cli.demo import demo
from bayesvm.cli.evaluate import evaluate
from bayesvm.cli.export import export
from bayesvm.cli.fit import fit
from bayesvm.cli.inspect import inspect
from bayesvm.cli.predict import predict
from bayesvm.cli.report import report
from bayesvm.warn import ReadingNote

app = typer.Typer(
    name="bayesvm",
    help="The support vector machine that knows how sure it is: from a table to calibrated probabilities.",
    epilog="Begin with: bayesvm fit table.csv --target y",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, evaluate, compare, report, inspect, export, demo):
    app.command()(command)
app.add_typer(datasets, name="datasets")

# Typer has click inside or beside it, by its version; either way this is the parent of all wrong usage.
USAGE: Any = typer.BadParameter.__base__
STOPPED = 130  # by Ctrl-C
# What is wrong with data or files is reported in one sentence; all else is a mistake of ours, with its traceback.
REPORTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError)


def show_version(asked: bool) -> None:
    """And end."""
    if asked:
        typer.echo(f"bayesvm {version_of('bayesvm')}")
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[bool, typer.Option("--traceback", metavar="", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", help="Show the version and end.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
    """What comes before the name of a command; both are dealt with before it is called."""


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    traced = "--traceback" in arguments  # wherever it stands: one adds it to the command that failed
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app([word for word in arguments if word != "--traceback"], standalone_mode=False)
        sys.stdout.flush()  # here, where it is known what to do if nobody reads it
        if code == STOPPED:  # some versions of typer turn Ctrl-C into this code
            errors.print("stopped", style="yellow")
        return int(code or 0)
    except USAGE as error:
        shown = io.StringIO()
        error.show(shown)
        errors.print(shown.getvalue(), end="")
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        errors.print("stopped", style="yellow")
        return STOPPED
    except (BrokenPipeError, SystemExit) as error:
        if not _from_broken_pipe(error):
            raise
        # Whoever reads our output has enough; typer then exits by itself, with the code of an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains about what it holds back
        return 0
    except REPORTED as error:
        if traced:
            raise
        complain("Error", _sentence(error), "red")
        return 1


def _from_broken_pipe(error: BaseException | None) -> bool:
    """Whether it is one, or comes from one."""
    while error is not None and not isinstance(error, BrokenPipeError):
        error = error.__cause__ or error.__context__
    return error is not None


def _sentence(error: BaseException) -> str:
    """Without the number of an error of the system, which says nothing to people."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, ReadingNote):
        complain("Note", str(message), "cyan")
    elif not issubclass(category, DeprecationWarning | FutureWarning):
        complain("Warning", str(message), "yellow")
