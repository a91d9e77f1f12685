"""Multiple knapsacks in files: the text format of the literature, and CSV.

The instances of Kataoka and Yamada and of Fukunaga that Dell'Amico, Delorme, Iori and Martello
("Mathematical models and decomposition methods for the multiple knapsack problem", EJOR 274, 2019)
use are text files. A file has the number of knapsacks, the number of items, each capacity, and the
weight and profit of each item, on a line each. Blank lines are ignored.

A CSV file has a row for each item and each knapsack.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from optsched.errors import InputError, UnknownNameError
from optsched.fields import LARGEST_FIELD, SHOWN
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp.problem import WindowMKP
from optsched.numbers import counted, parse_integer

DIGITS = 18
"""Number of digits beyond which a number is too large for a problem."""


def parse_window_mkp_text(words: Sequence[Sequence[str]], path: Path) -> Snapshot:
    """Return a multiple knapsack instance: items are jobs, knapsacks are slots.

    The origin of the snapshot is the file.

    `words`: the words of each line, blank lines included.
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


REQUIRED = ("kind", "size")
COLUMNS = (*REQUIRED, "profit", "name")

ITEM, KNAPSACK = "item", "knapsack"


def parse_window_mkp_table(data: bytes, path: Path) -> Snapshot:
    """Return the knapsack problem of a table: items are jobs, knapsacks are slots.

    Columns are ``kind`` (item or knapsack), ``size``, and optionally ``profit`` of items and
    ``name``. Without profits, an item is worth its size.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not text; expected CSV", file=path) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=path, line=reader.line_num) from None
    if not lines:
        raise InputError(f"is empty; expected the columns {', '.join(COLUMNS)}", file=path)
    columns = lines[0][1]
    if len(columns) == 1 and (other := re.search(r"[;\t|]", columns[0])):
        message = f"the columns are separated by {other[0]!r}; expected commas"
        raise InputError(message, file=path, line=lines[0][0])
    mistakes = [str(UnknownNameError("column", c, COLUMNS)) for c in columns if c not in COLUMNS]
    mistakes += [f"column {name!r} is missing" for name in REQUIRED if name not in columns]
    if len(set(columns)) < len(columns):
        mistakes.append("a column is there twice")
    if mistakes:
        raise InputError(*mistakes, file=path, line=lines[0][0])

    items: list[tuple[int, int | None, str]] = []
    knapsacks: list[tuple[int, str]] = []

    def number(line: int, name: str, text: str, least: int) -> int:
        try:
            value = parse_integer(text)
        except ValueError:
            value = -1
        if not least <= value <= LARGEST_FIELD:
            expected = f"expected an integer from {least} to {LARGEST_FIELD}"
            mistakes.append(f"line {line}, {name}: {text[:24]!r}; {expected}")
        return value

    for line, cells in lines[1:]:
        if len(cells) != len(columns):
            expected = f"expected {len(columns)}, one for each column"
            mistakes.append(f"line {line}: {counted(len(cells), 'value')}; {expected}")
            continue
        row = dict.fromkeys(COLUMNS, "") | dict(zip(columns, cells))
        if row["kind"] == ITEM:
            size = number(line, "size", row["size"], 0)
            profit = number(line, "profit", row["profit"], 0) if row["profit"] else None
            items.append((size, profit, row["name"]))
        elif row["kind"] == KNAPSACK:
            if row["profit"]:
                mistakes.append(f"line {line}, profit: {row['profit']!r}; a knapsack has none")
            knapsacks.append((number(line, "size", row["size"], 0), row["name"]))
        else:
            expected = f"expected {ITEM} or {KNAPSACK}"
            mistakes.append(f"line {line}, kind: {row['kind']!r}; {expected}")
    profits = [profit for _, profit, _ in items]
    for what, given in (
        ("profit", profits),
        ("name of items", [name or None for *_, name in items]),
        ("name of knapsacks", [name or None for _, name in knapsacks]),
    ):
        missing = given.count(None)
        if 0 < missing < len(given):
            mistakes.append(f"{what}: missing in {missing} of {len(given)}; expected all or none")
    if mistakes:
        more = len(mistakes) - SHOWN
        rest = [f"{more} more mistakes"] if more > 0 else []
        raise InputError(*mistakes[:SHOWN], *rest, file=path)
    problem = WindowMKP(
        weights=[size for size, *_ in items],
        capacities=[size for size, _ in knapsacks],
        profits=None if None in profits else profits,
        jobs=[name for *_, name in items] if any(name for *_, name in items) else None,
        slots=[name for _, name in knapsacks] if any(name for _, name in knapsacks) else None,
    )
    return Snapshot(problem, origin={"file": path.name})
