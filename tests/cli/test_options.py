"""Numbers on the command line: digits and nothing else, in every option."""

from __future__ import annotations

from typing import get_args

import pytest
from cyclopts import App

from optsched import cli


def commands(app: App, name: tuple[str, ...] = ()):
    """Yield each command that does something, with its words."""
    for word in app:
        if not word.startswith("-"):
            yield from commands(app[word], (*name, word))
    if app.default_command is not None:
        yield " ".join(name), app


def types_in(hint):
    """Return the types that an annotation is made of."""
    parts = get_args(hint)
    return set().union(*map(types_in, parts)) if parts else {hint} - {None}


def number_options():
    """Return the words that each command needs, and an option of it that takes a number."""
    for name, app in commands(cli.build()):
        arguments = app.assemble_argument_collection()
        for option in arguments:
            needed = [one.name for one in arguments if one.required and one is not option]
            words = [name, *(f"{one}=5" if one.startswith("-") else "x" for one in needed)]
            for kind in types_in(option.hint) & {int, float}:
                yield " ".join(words), option.name, kind


@pytest.mark.parametrize(("words", "option", "kind"), number_options())
def test_a_number_is_decimal_digits_in_every_option(words, option, kind, optsched):
    for word in ["1_0", "٣", "nan", "9" * 20, *["2.5"] * (kind is int)]:
        done = optsched(words, f"{option}={word}", code=cli.USAGE)
        [line] = done.err.splitlines()
        assert option in line
        assert "expected a " in line
        assert done.out == ""


def test_there_are_such_options():
    found = {(words.split()[0], option) for words, option, _ in number_options()}
    assert {("solve", "--seed"), ("trace", "--from"), ("simulate", "--time-limit")} <= found
    assert len(found) > 25
