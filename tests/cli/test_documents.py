"""Every command and option is documented. That what the page shows is printed is tested with all pages."""

import re
import shlex
from pathlib import Path

import pytest

from bayesvm.cli.app import COMMANDS as SUMMARIES
from bayesvm.cli.app import command as command_named
from tests.cli.driver import bayesvm

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def all_commands(commands, before=()):
    """Names of commands as tuples of words, with the commands."""
    for name, command in commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command.commands, (*before, name))
        else:
            yield (*before, name), command


OUTER = {name: command_named(name) for name in SUMMARIES}
COMMANDS = dict(all_commands(OUTER))
each_command = pytest.mark.parametrize("name", COMMANDS, ids=" ".join)


def options_of(command):
    return {
        option for each in command.params for option in [*each.opts, *each.secondary_opts] if option.startswith("-")
    }


def section(name):
    found = re.search(rf"\n### `bayesvm {' '.join(name)}\b[^\n]*\n(.*?)(?=\n##|\Z)", PAGE, re.DOTALL)
    assert found, f"docs/cli.md has no section on bayesvm {' '.join(name)}"
    return found[1]


@each_command
def test_every_command_and_option_is_in_the_page(name):
    text = section(name)
    named = set(re.findall(r"`(--?[a-z-]+)", text)) | set(re.findall(r"`(-[a-z])`", PAGE))
    long = {option for option in options_of(COMMANDS[name]) if option.startswith("--")} - {"--help"}
    short = options_of(COMMANDS[name]) - long - {"--help", "-h"}
    assert long - named == set()
    assert short - named == set()
    assert {option for option in named if option.startswith("--")} - long <= {"--out"}, "an option that there is not"


def test_the_page_has_no_command_that_there_is_not():
    named = {tuple(found.split()) for found in re.findall(r"\n### `bayesvm ([a-z ]+?)(?= [A-Z\[]|`)", PAGE)}
    assert named - {("report",)} <= set(COMMANDS)


@each_command
def test_help_has_a_description_and_examples_that_exist(name, tmp_path):
    command = COMMANDS[name]
    assert len(command.help.split("\n")[0]) > 20
    examples = re.findall(r"^\s+((?:cat \S+ \| )?bayesvm .*)$", command.help, re.MULTILINE)
    assert examples
    for line in examples:
        words = shlex.split(line.split("|")[-1])
        assert tuple(words[1 : 1 + len(name)]) == name
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= options_of(command)
    done = bayesvm(*name, "--help", folder=tmp_path)
    assert done.code == 0
    assert "Examples" in done.out


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_command_is_listed_with_the_first_paragraph_of_its_help(name):
    assert SUMMARIES[name] == OUTER[name].help.split("\n\n")[0].replace("\n", " ")


def test_options_explain_themselves():
    silent = [(name, each.name) for name, command in COMMANDS.items() for each in command.params if not each.help]
    assert silent == []


def test_help_of_all(tmp_path):
    for words in ([], ["-h"], ["datasets", "-h"]):
        done = bayesvm(*words, folder=tmp_path)
        assert done.code == 0 or (done.code == 2 and not words)  # by the version of click
    shown = bayesvm("--help", folder=tmp_path).out
    assert all(f" {name[0]} " in shown for name in COMMANDS)
