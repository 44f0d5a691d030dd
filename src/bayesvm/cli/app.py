"""The command line: the commands, and the handling of errors.

Exit codes: 0 success; 1 invalid data or files; 2 wrong usage; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from bayesvm.cli.console import complain, errors
from bayesvm.cli.interrupts import leaving_on_interrupt
from bayesvm.warn import ReadingNote

# Each is a module of this package with a function or a Typer of the same name, imported when it is called, so that
# --help and --version do not import NumPy and scikit-learn. The text is the first sentence of the help of the command.
COMMANDS = {
    "fit": "Fit a model to a table and save it.",
    "predict": "Predict classes and probabilities, or values and intervals, with uncertainty.",
    "evaluate": "Evaluate a model on a table with the true classes or values.",
    "compare": "Train other models on the same rows and columns, and evaluate all on the same held-out rows.",
    "report": "Write an HTML report on a model: metrics, plots and the columns that matter.",
    "inspect": "Show the contents of a model file: columns, kernel, tuning, metrics, effects, importance.",
    "export": "Write a model as an ONNX file, which onnxruntime and others run without bayesvm.",
    "demo": "Run the full workflow on a synthetic table: fit, evaluate, predict, report, compare.",
    "datasets": "Example tables: synthetic, from scikit-learn, from the paper, and two with millions of rows.",
}


def command(name: str) -> Any:
    """The command with a given name, with its options."""
    with leaving_on_interrupt():
        found = getattr(import_module(f"bayesvm.cli.{name}"), name)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class LazyCommands(typer.core.TyperGroup):
    """Lists the summaries of all commands, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            self.commands[args[0]] = command(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="bayesvm",
    cls=LazyCommands,
    help="Support vector machines with calibrated probabilities, for tables.",
    epilog="Get started: bayesvm fit table.csv --target y",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)

# Depending on its version, Typer contains or imports click; this is the base class of usage errors in both cases.
USAGE: Any = typer.BadParameter.__base__
STOPPED = 130  # by Ctrl-C
# Errors in data or files are reported in one sentence; all others are bugs, and keep their traceback.
REPORTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError)


def show_version(asked: bool) -> None:
    """Print the version and exit."""
    if asked:
        typer.echo(f"bayesvm {version_of('bayesvm')}")
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[bool, typer.Option("--traceback", metavar="", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", help="Show the version and exit.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
    """Handle the options before the name of a command."""


def run(arguments: list[str] | None = None) -> int:
    """Run the command line, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    traced = "--traceback" in arguments  # anywhere, because users append it to the failed command
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Warnings().show
            code = app([word for word in arguments if word != "--traceback"], standalone_mode=False)
        sys.stdout.flush()  # here, where a broken pipe is handled
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
        # The reader of the output has closed it; typer would exit with an error code.
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # otherwise Python complains about buffered output
        return 0
    except REPORTED as error:
        if traced:
            raise
        complain("Error", _sentence(error), "red")
        return 1


def _from_broken_pipe(error: BaseException | None) -> bool:
    """Whether an error is, or was caused by, a broken pipe."""
    while error is not None and not isinstance(error, BrokenPipeError):
        error = error.__cause__ or error.__context__
    return error is not None


def _sentence(error: BaseException) -> str:
    """The message of an error, without the number of system errors."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


class _Warnings:
    """The warnings of one command, each shown once: the fits to parts of a table repeat what the first has said."""

    def __init__(self) -> None:
        self.shown = set[str]()

    def show(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if str(message) in self.shown or issubclass(category, DeprecationWarning | FutureWarning):
            return
        self.shown.add(str(message))
        what, colour = ("Note", "cyan") if issubclass(category, ReadingNote) else ("Warning", "yellow")
        complain(what, str(message), colour)
