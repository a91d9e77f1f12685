"""Multiple knapsack instances in the text format of the literature.

The instances of Kataoka and Yamada and of Fukunaga that Dell'Amico, Delorme, Iori and Martello
("Mathematical models and decomposition methods for the multiple knapsack problem", EJOR 274, 2019)
use are text files. A file has the number of knapsacks, the number of items, each capacity, and the
weight and profit of each item, on a line each. Blank lines are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optsched.errors import InputError
from optsched.models.fields import LARGEST_FIELD
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp.problem import WindowMKP
from optsched.numbers import counted

SHOWN = 5
"""Number of mistakes in a message."""

DIGITS = 18
"""Number of digits beyond which a number is too large for a problem."""


def parse_window_mkp_text(words: Sequence[Sequence[str]], path: Path) -> Snapshot:
    """Return a multiple knapsack instance: items are jobs, knapsacks are slots.

    The origin of the snapshot is the file.

    Parameters
    ----------
    words : sequence of sequence of str
        The words of each line, blank lines included.
    path : Path
        The file.

    Raises
    ------
    InputError
        If the content is not of that format; the message has the line of each mistake.
    """
    lines = [(number, line) for number, line in enumerate(words, start=1) if line]
    mistakes: list[str] = []

    def read(number: int, fields: Sequence[str], **least: int) -> list[int]:
        """Return the values of the fields of a line, and note a mistake and 0 for a wrong one."""
        if len(fields) != len(least):
            mistakes.append(
                f"line {number}: {counted(len(fields), 'value')}; expected {' and '.join(least)}"
            )
            return [0] * len(least)
        values = []
        for text, (name, at_least) in zip(fields, least.items()):
            digits = text.isascii() and text.isdigit()
            value = int(text) if digits and len(text) <= DIGITS else -1
            if not at_least <= value <= LARGEST_FIELD:
                mistakes.append(
                    f"line {number}, {name}: {text[:24]!r}; "
                    f"expected an integer from {at_least} to {LARGEST_FIELD}"
                )
            values.append(max(0, value))
        return values

    def checked() -> None:
        if mistakes:
            more = len(mistakes) - SHOWN
            rest = [f"{more} more such lines"] if more > 0 else []
            raise InputError(*mistakes[:SHOWN], *rest, file=path)

    if len(lines) < 2:
        raise InputError("ends before the numbers of knapsacks and items", file=path)
    (knapsacks,) = read(*lines[0], knapsacks=0)
    (items,) = read(*lines[1], items=0)
    if any(len(fields) != 1 for _, fields in lines[:2]):
        mistakes.append(
            "begins like no text format that is read; a multiple knapsack has one number on each of"
            " its first lines, a file of OR-Library on its first line"
        )
    checked()
    if len(lines) != 2 + knapsacks + items:
        raise InputError(
            f"{len(lines)} lines that are not blank; expected {2 + knapsacks + items}: "
            f"2 counts, {knapsacks} capacities and {items} items",
            file=path,
        )
    capacities = [read(*line, capacity=0)[0] for line in lines[2 : 2 + knapsacks]]
    pairs = [read(*line, weight=0, profit=0) for line in lines[2 + knapsacks :]]
    checked()
    problem = WindowMKP(
        weights=[weight for weight, _ in pairs],
        capacities=capacities,
        profits=[profit for _, profit in pairs],
    )
    return Snapshot(problem, origin={"file": path.name})


def window_mkp_text(problem: WindowMKP) -> str:
    """Return a problem in the text format, which has no labels."""
    capacities = problem.capacities.tolist()
    items = zip(problem.weights.tolist(), problem.profits.tolist())
    lines = [len(capacities), len(problem.weights), *capacities]
    return "".join(f"{line}\n" for line in [*lines, *(f"{w} {p}" for w, p in items)])
