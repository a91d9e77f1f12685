"""The help of ``optsched`` describes each command as the command describes itself."""

from __future__ import annotations

from importlib import import_module

import pytest
from cyclopts import App

from optsched.cli import COMMANDS
from optsched.docstrings import first_line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_that_of_its_module(name):
    command = import_module(f"optsched.cli.{name}_command").command
    own = command.help if isinstance(command, App) else first_line(command)
    assert own == COMMANDS[name]
