"""The commands and their options, as the command line declares them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from cyclopts import App

from optsched.cli import build


class Argument(NamedTuple):
    """An argument of a command; the type is that of an element if it takes several."""

    name: str  # as the user sees it, without dashes
    options: tuple[str, ...]  # how it is typed; empty for one that has its place
    kind: type
    choices: tuple[str, ...]  # the values of a literal
    required: bool
    several: bool


class Command(NamedTuple):
    """A command: the words that name it, and its arguments."""

    words: tuple[str, ...]
    arguments: tuple[Argument, ...]


@cache
def commands() -> tuple[Command, ...]:
    """Return all commands."""
    return tuple(_within(build(), ()))


def _within(app: App, words: tuple[str, ...]) -> Iterator[Command]:
    if app.default_command is not None:
        arguments = tuple(map(_argument, app.assemble_argument_collection()))
        # to compile everything takes minutes, as `doctor` says
        yield Command(words, tuple(each for each in arguments if each.name != "compile"))
    for name in app:
        if not name.startswith("-"):
            yield from _within(app[name], (*words, name))


def _argument(declared: Any) -> Argument:
    hints = [hint for hint in get_args(declared.hint) or (declared.hint,) if hint is not NoneType]
    hint = declared.hint if get_origin(declared.hint) is Literal else hints[0]
    several = get_origin(hint) in (list, tuple) or declared.field_info.kind.name.startswith("VAR")
    if get_origin(hint) in (list, tuple):
        hint = get_args(hint)[0]
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    options = tuple(name for name in declared.names if name.startswith("-"))
    name, kind = declared.name.lstrip("-").lower(), str if choices else hint
    return Argument(name, options, kind, choices, declared.required, several)
