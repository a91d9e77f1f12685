"""What is fuzzed: a target makes cases, each a command and the folder that it is run in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.seeds import Seeds


class Case(NamedTuple):
    """A command, to be run in a folder that holds what it reads.

    Parameters
    ----------
    arguments : tuple of str
        What is typed behind ``optsched``. No word of it leads out of the folder.
    outputs : tuple of str
        The files and folders that the command may write, as paths within the folder.
    content : str or None
        The folder that stands in for the bundled content, where that is what is damaged.
    """

    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    content: str | None = None


Maker = Callable[[Random, Path, Seeds], Case]

TARGETS: dict[str, Maker] = {}
"""All targets by name."""


def target(maker: Maker) -> Maker:
    """File a function that fills a folder and says what is run in it, under its own name."""
    TARGETS[maker.__name__.replace("_", "-")] = maker
    return maker


def make(name: str, seed: int, number: int, folder: Path, seeds: Seeds) -> Case:
    """Make a case: the same for the same target, seed and number.

    Raises
    ------
    ValueError
        If a word of the command could lead out of the folder. Whoever fuzzes as root must not
        name a device of the machine as an output.
    """
    case = TARGETS[name](Random(f"{seed}/{name}/{number}"), folder, seeds)
    for word in case.arguments:
        if word.startswith("/") or any(part in word for part in ("/dev", "=/", "..", "\0")):
            raise ValueError(f"{name} {number}: {word!r} leads out of the folder of the case")
    return case
