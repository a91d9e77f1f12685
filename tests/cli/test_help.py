"""The help of ``optsched`` describes each command as the command describes itself."""

from __future__ import annotations

from importlib import import_module

import pytest
from cyclopts import App

from optsched.cli import COMMANDS, run
from optsched.documentation import first_line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_that_of_its_module(name):
    command = import_module(f"optsched.cli.{name}_command").command
    own = command.help if isinstance(command, App) else first_line(command)
    assert own == COMMANDS[name]


@pytest.mark.parametrize(
    "words", [["simulate"], ["trace", "info"], []], ids=["simulate", "trace info", "all"]
)
def test_help_is_a_command_too(words, capsys):
    assert run([*words, "--help"]) == 0
    wanted = capsys.readouterr().out
    assert run(["help", *words]) == 0
    assert capsys.readouterr().out == wanted
    assert f"Usage: {' '.join(['optsched', *words])}" in wanted


def test_help_for_no_command(capsys):
    assert run(["help", "simlate"]) == 2
    assert 'Did you mean "simulate"?' in capsys.readouterr().err
