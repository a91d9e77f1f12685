"""What is fuzzed: a target makes cases, each a command and the folder that it is run in."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.seeds import Seeds


class Case(NamedTuple):
    """A command, to be run in a folder that holds what it reads."""

    arguments: tuple[str, ...]  # what is typed behind optsched; no word leads out of the folder
    outputs: tuple[str, ...] = ()  # files and folders that it may write, within the folder
    content: str | None = None  # the folder that stands in for the bundled content, if damaged


Maker = Callable[[Random, Path, Seeds], Case]

TARGETS: dict[str, Maker] = {}
"""All targets by name."""


def target(maker: Maker) -> Maker:
    """File a function that fills a folder and says what is run in it, under its own name."""
    TARGETS[maker.__name__.replace("_", "-")] = maker
    return maker


def make(name: str, seed: int, number: int, folder: Path, seeds: Seeds) -> Case:
    """Make a case: the same for the same target, seed and number.

    Whoever fuzzes as root must not name a device of the machine as an output: a word of a command
    that could lead out of the folder is a ValueError.
    """
    case = TARGETS[name](Random(f"{seed}/{name}/{number}"), folder, seeds)
    for word in case.arguments:
        if word.startswith("/") or any(part in word for part in ("/dev", "=/", "..", "\0")):
            raise ValueError(f"{name} {number}: {word!r} leads out of the folder of the case")
    return case
