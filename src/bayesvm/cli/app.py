"""The command line: the commands put together, and what becomes of errors.

Exit codes: 0 done; 1 something is wrong with the data or the files; 2 wrong usage; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version as version_of
from typing import Annotated, Any

import click
import typer

from bayesvm.cli.console import errors
from bayesvm.cli.evaluate import evaluate
from bayesvm.cli.export import export
from bayesvm.cli.fit import fit
from bayesvm.cli.predict import predict

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
for command in (fit, predict, evaluate, export):
    app.command()(command)

# What is wrong with data or files is told in one sentence; all else is a mistake of ours, with its traceback.
TOLD = (ValueError, TypeError, OSError, ImportError, IndexError, MemoryError)


@app.callback()
def options(
    context: typer.Context,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.", is_eager=True)] = False,
) -> None:
    """What comes before the name of a command."""
    context.obj = {"traceback": traceback}
    if version:
        typer.echo(f"bayesvm {version_of('bayesvm')}")
        raise typer.Exit


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = _show_warning
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        errors.print("stopped", style="yellow")
        return 130
    except BrokenPipeError:  # whoever reads our output has enough
        sys.stderr.close()
        return 0
    except TOLD as error:
        if "--traceback" in arguments:
            raise
        errors.print(f"Error: {error}", style="red", markup=False, highlight=False)
        return 1


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    if not issubclass(category, DeprecationWarning | FutureWarning):
        errors.print(f"Warning: {message}", style="yellow", markup=False, highlight=False)
