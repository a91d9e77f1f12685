"""Instances of the literature as text, and knapsacks as CSV.

A file of OR-Library holds the number of its instances, and then the numbers of each; line breaks
have no meaning. The first lines tell the format. File formats: ``docs/formats/instances.md``.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError, UnknownNameError
from optsched.fields import LARGEST_FIELD, SHOWN
from optsched.models.integer_program.problem import (
    BinPacking,
    IntegerProgram,
    Number,
    factor_of,
    origin_of,
    whole_row,
)
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp import WindowMKP
from optsched.numbers import counted, parse_integer

COUNT = re.compile(r"\d{1,9}")
NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{0,9})?")
MAXIMIZED = re.compile(r"gap\d")
"""Names of the assignment files whose published optima are those of the maximization."""

CASES = 6
"""Instances that share the rows of a multi-demand knapsack."""

KNAPSACK = "multidimensional knapsack"
DEMANDS = "multi-demand multidimensional knapsack"
ASSIGNMENT = "generalized assignment"
BINS = "bin packing"


Row = tuple[Mapping[int, Number], Number | None, Number | None]
"""Coefficients by number of the variable, and the bounds of the row."""


class Instance(NamedTuple):
    """An instance in a file: its kind, and a function that builds its snapshot."""

    kind: str
    build: Callable[[], Snapshot]


class _Words:
    """The words of a file, taken in order, with the place of each for messages."""

    def __init__(self, lines: Sequence[Sequence[str]], path: Path) -> None:
        self.path = path
        self._words = [word for line in lines for word in line]
        self._ends = list(accumulate(map(len, lines)))
        self._at = 0

    @property
    def left(self) -> int:
        """Number of words that are not taken."""
        return len(self._words) - self._at

    def take(self, count: int, what: str) -> range:
        """Take the next words, and return their places; `what` says what they are."""
        if count > self.left:
            raise InputError(f"ends after {self.left} of {count} {what}")
        self._at += count
        return range(self._at - count, self._at)

    def count(self, what: str) -> int:
        """Take the next word, a count."""
        place = self.take(1, what).start
        if not COUNT.fullmatch(self._words[place]):
            raise self.wrong(place, what, "a count")
        return int(self._words[place])

    def word(self, what: str) -> str:
        """Take the next word as it is."""
        return self._words[self.take(1, what).start]

    def numbers(self, part: range, what: str) -> list[int | Decimal]:
        """Return the numbers of a part that was taken."""
        values: list[int | Decimal] = []
        for place in part:
            word = self._words[place]
            if not NUMBER.fullmatch(word):
                raise self.wrong(place, what, "a number")
            values.append(Decimal(word) if "." in word else int(word))
        return values

    def wrong(self, place: int, what: str, expected: str) -> InputError:
        """Return the mistake in a word."""
        line = bisect_right(self._ends, place) + 1
        problem = f"{self._words[place][:24]!r}; expected {expected}"
        return InputError(problem, line=line, field=what)


def instances(text: str, path: Path) -> list[Instance]:
    """Return the instances of a text file."""
    lines = [line.split() for line in text.splitlines()]
    first = [line for line in lines if line][:3]
    lengths = [len(line) for line in first]
    if first and all(COUNT.fullmatch(word) for word in first[0]):
        if lengths == [1, 1, 3] and not NUMBER.fullmatch(first[1][0]):
            return _all_of(lines, path, _bins, BINS)
        if lengths[:2] == [1, 3]:
            return _all_of(lines, path, _knapsack, KNAPSACK)
        if lengths[:2] == [1, 2]:
            return _either(lines, path)
        if lengths[0] == 2:
            agents, jobs = map(int, first[0])
            if sum(map(len, lines)) == 2 + 2 * agents * jobs + agents:
                return _assignment(_Words(lines, path))
    return [Instance("multiple knapsack", partial(_multiple_knapsack, lines, path))]


def instance(text: str, path: Path, number: int | None) -> Snapshot:
    """Return an instance of a text file; without a number, the only one."""
    found = instances(text, path)
    if not found:
        raise InputError("holds no instance")
    held = "holds one instance" if len(found) == 1 else f"holds {len(found):,} instances"
    if number is None and len(found) > 1:
        named = f"{path.name}#1 to {path.name}#{len(found)}"
        problem = f"{held} ({found[0].kind} of OR-Library); expected one of them, {named}"
        raise InputError(problem)
    chosen = number or 1
    if chosen > len(found):
        raise InputError(f"{held}; there is no number {chosen}")
    snapshot = found[chosen - 1].build()
    about = {"instance": f"{chosen} of {len(found)}"} if len(found) > 1 else {}
    return replace(snapshot, origin={**snapshot.origin, **about})


def _all_of(
    lines: Sequence[Sequence[str]], path: Path, read: Callable[[_Words], list[Instance]], kind: str
) -> list[Instance]:
    """Return the instances of a file that begins with their number."""
    words = _Words(lines, path)
    total = words.count("instances")
    found = []
    for number in range(1, total + 1):
        try:
            found += read(words)
        except InputError as error:
            place = f"instance {number} of {total}"
            whole = f"{place}, {error.field}" if error.field else place
            mistakes = [f"{mistake} ({kind} of OR-Library)" for mistake in error.mistakes]
            raise InputError(*mistakes, line=error.line, field=whole) from None
    if words.left:
        after = f"{counted(words.left, 'word')} after {counted(total, 'instance')}"
        raise InputError(f"{after} ({kind} of OR-Library)")
    return found


def _either(lines: Sequence[Sequence[str]], path: Path) -> list[Instance]:
    """Return the instances of a file whose instances begin with two counts."""
    try:
        return _all_of(lines, path, _assignment, ASSIGNMENT)
    except InputError as error:
        assignment = error
    try:
        return _all_of(lines, path, _demands, DEMANDS)
    except InputError as error:
        raise InputError(*assignment.mistakes, *error.mistakes) from None


def _knapsack(words: _Words) -> list[Instance]:
    items, resources = words.count("number of items"), words.count("number of resources")
    best = words.take(1, "best known value")
    profits = words.take(items, "profits")
    uses = [words.take(items, "amounts") for _ in range(resources)]
    capacities = words.take(resources, "capacities")

    def build() -> Snapshot:
        costs, factor = _whole(words, profits, "profits")
        rows = _capacities(words, uses, capacities)
        value = words.numbers(best, "best known value")[0] * factor
        optimum = {"objective": int(value), "bound": int(value), "source": words.path.name}
        return _snapshot(words, "max", costs, factor, _items(items), rows, optimum if value else {})

    return [Instance(KNAPSACK, build)]


def _demands(words: _Words) -> list[Instance]:
    items, resources = words.count("number of items"), words.count("number of resources")
    uses = [words.take(items, "amounts") for _ in range(resources)]
    capacities = words.take(resources, "capacities")
    needs = [words.take(items, "amounts of demands") for _ in range(resources)]
    demands = words.take(resources, "demands")
    profits = [words.take(items, "profits") for _ in range(CASES)]

    def build(which: int) -> Snapshot:
        count = (1, resources // 2, resources)[which % 3]
        costs, factor = _whole(words, profits[which], "profits")
        rows = _capacities(words, uses, capacities)
        least = words.numbers(demands, "demands")[:count]
        for number, (part, limit) in enumerate(zip(needs, least), 1):
            amounts = dict(enumerate(words.numbers(part, "amounts of demands")))
            rows[f"demand{number}"] = amounts, limit, None
        return _snapshot(words, "max", costs, factor, _items(items), rows)

    return [Instance(DEMANDS, partial(build, which)) for which in range(CASES)]


def _items(count: int) -> list[str]:
    return [f"x_item{item + 1}" for item in range(count)]


def _capacities(words: _Words, uses: Sequence[range], capacities: range) -> dict[str, Row]:
    """Return the rows of resources of which items use amounts."""
    amounts = [dict(enumerate(words.numbers(part, "amounts"))) for part in uses]
    rows = enumerate(zip(amounts, words.numbers(capacities, "capacities")), 1)
    return {f"capacity_resource{i}": (row, None, limit) for i, (row, limit) in rows}


def _assignment(words: _Words) -> list[Instance]:
    agents, jobs = words.count("number of agents"), words.count("number of jobs")
    costs = words.take(agents * jobs, "costs")
    uses = [words.take(jobs, "amounts") for _ in range(agents)]
    capacities = words.take(agents, "capacities")

    def build() -> Snapshot:
        amounts, factor = _whole(words, costs, "costs")
        limits = words.numbers(capacities, "capacities")
        rows: dict[str, Row] = {}
        for agent, (part, limit) in enumerate(zip(uses, limits)):
            of_agent = enumerate(words.numbers(part, "amounts"), agent * jobs)
            rows[f"capacity_agent{agent + 1}"] = dict(of_agent), None, limit
        for job in range(jobs):
            rows[f"once_job{job + 1}"] = {agent * jobs + job: 1 for agent in range(agents)}, 1, 1
        names = [f"x_agent{i + 1}_job{j + 1}" for i in range(agents) for j in range(jobs)]
        sense = "max" if MAXIMIZED.match(words.path.name) else "min"
        return _snapshot(words, sense, amounts, factor, names, rows)

    return [Instance(ASSIGNMENT, build)]


def _bins(words: _Words) -> list[Instance]:
    name = words.word("names")
    capacity = words.take(1, "capacity")
    items = words.count("number of items")
    best = words.count("best known number of bins")
    sizes = words.take(items, "sizes")

    def build() -> Snapshot:
        numbers = [*words.numbers(capacity, "capacity"), *words.numbers(sizes, "sizes")]
        factor = factor_of(numbers)
        size, *weights = [int(number * factor) for number in numbers]
        packing = BinPacking(weights, size, _first_fit_decreasing(weights, size))
        problem = IntegerProgram(**packing.fields(), **packing.names())
        known = {"objective": best, "source": words.path.name} if best else {}
        return Snapshot(problem, {"name": name} | origin_of(words.path, 1), known)

    return [Instance(BINS, build)]


def _first_fit_decreasing(sizes: Sequence[int], capacity: int) -> int:
    """Return the number of bins that first fit uses, largest items first: enough for any optimum.

    An item that is larger than a bin has one for itself.
    """
    room: list[int] = []
    for size in sorted(sizes, reverse=True):
        at = next((i for i, left in enumerate(room) if size <= left), None)
        if at is None:
            room.append(capacity - size)
        else:
            room[at] -= size
    return len(room)


def _whole(words: _Words, part: range, what: str) -> tuple[list[int], int]:
    """Return the numbers of a part as integers, and what they were multiplied by."""
    numbers = words.numbers(part, what)
    try:
        factor = factor_of(numbers)
    except InputError as error:
        raise InputError(*error.mistakes, field=what) from None
    return [int(number * factor) for number in numbers], factor


def _snapshot(
    words: _Words,
    sense: str,
    coefficients: list[int],
    factor: int,  # what the coefficients were multiplied by
    names: list[str],
    rows: Mapping[str, Row],
    known: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Return a 0-1 program; each row is multiplied by what makes its numbers integers."""
    whole = [whole_row(*row) for row in rows.values()]
    problem = IntegerProgram(
        sense,
        coefficients,
        variable_names=names,
        rows=[row for row, _, _ in whole],
        at_least=[least for _, least, _ in whole],
        at_most=[most for _, _, most in whole],
        row_names=list(rows),
    )
    return Snapshot(problem, origin_of(words.path, factor), known or {})


def _number(text: str, place: str, mistakes: list[str]) -> int:
    """Return the integer of a text, and note a mistake for a wrong one."""
    try:
        value = parse_integer(text)
    except ValueError:
        value = -1
    if not 0 <= value <= LARGEST_FIELD:
        expected = f"expected an integer from 0 to {LARGEST_FIELD}"
        mistakes.append(f"{place}: {text[:24]!r}; {expected}")
    return value


def _check(mistakes: Sequence[str], noun: str) -> None:
    """Raise the mistakes in a file, the first few of many."""
    if mistakes:
        more = len(mistakes) - SHOWN
        rest = [f"{more} more {noun}"] if more > 0 else []
        raise InputError(*mistakes[:SHOWN], *rest)


def _multiple_knapsack(words: Sequence[Sequence[str]], path: Path) -> Snapshot:
    """Return a multiple knapsack instance of the literature: items are jobs, knapsacks are slots.

    The instances of Kataoka and Yamada and of Fukunaga that Dell'Amico, Delorme, Iori and Martello
    ("Mathematical models and decomposition methods for the multiple knapsack problem", EJOR 274,
    2019) use are text files. A file has the number of knapsacks, the number of items, each
    capacity, and the weight and profit of each item, on a line each. Blank lines are ignored.

    `words`: the words of each line, blank lines included.
    """
    lines = [(number, line) for number, line in enumerate(words, start=1) if line]
    mistakes: list[str] = []

    def read(number: int, fields: Sequence[str], *names: str) -> list[int]:
        """Return the values of the fields of a line, and note mistakes."""
        if len(fields) != len(names):
            mistakes.append(
                f"line {number}: {counted(len(fields), 'value')}; expected {' and '.join(names)}"
            )
            return [0] * len(names)
        named = zip(fields, names)
        return [_number(text, f"line {number}, {name}", mistakes) for text, name in named]

    if len(lines) < 2:
        raise InputError("ends before the numbers of knapsacks and items")
    (knapsacks,) = read(*lines[0], "knapsacks")
    (items,) = read(*lines[1], "items")
    if any(len(fields) != 1 for _, fields in lines[:2]):
        mistakes.append(
            "begins like no text format that is read; a multiple knapsack has one number on each of"
            " its first lines, a file of OR-Library on its first line"
        )
    _check(mistakes, "such lines")
    if len(lines) != 2 + knapsacks + items:
        raise InputError(
            f"{len(lines)} lines that are not blank; expected {2 + knapsacks + items}: "
            f"2 counts, {knapsacks} capacities and {items} items",
        )
    capacities = [read(*line, "capacity")[0] for line in lines[2 : 2 + knapsacks]]
    pairs = [read(*line, "weight", "profit") for line in lines[2 + knapsacks :]]
    _check(mistakes, "such lines")
    problem = WindowMKP(
        weights=[weight for weight, _ in pairs],
        capacities=capacities,
        profits=[profit for _, profit in pairs],
    )
    return Snapshot(problem, origin={"file": path.name})


REQUIRED = ("kind", "size")
COLUMNS = (*REQUIRED, "profit", "name")


def parse_knapsack_table(text: str, path: Path) -> Snapshot:
    """Return the knapsack problem of a table: items are jobs, knapsacks are slots.

    Columns are ``kind`` (item or knapsack), ``size``, and optionally ``profit`` of items and
    ``name``. Without profits, an item is worth its size.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", line=reader.line_num) from None
    if not lines:
        raise InputError(f"is empty; expected the columns {', '.join(COLUMNS)}")
    columns = lines[0][1]
    if len(columns) == 1 and (other := re.search(r"[;\t|]", columns[0])):
        message = f"the columns are separated by {other[0]!r}; expected commas"
        raise InputError(message, line=lines[0][0])
    mistakes = [str(UnknownNameError("column", c, COLUMNS)) for c in columns if c not in COLUMNS]
    mistakes += [f"column {name!r} is missing" for name in REQUIRED if name not in columns]
    if len(set(columns)) < len(columns):
        mistakes.append("a column is there twice")
    if mistakes:
        raise InputError(*mistakes, line=lines[0][0])

    items: list[tuple[int, int | None, str]] = []
    knapsacks: list[tuple[int, str]] = []

    for line, cells in lines[1:]:
        if len(cells) != len(columns):
            expected = f"expected {len(columns)}, one for each column"
            mistakes.append(f"line {line}: {counted(len(cells), 'value')}; {expected}")
            continue
        row = dict.fromkeys(COLUMNS, "") | dict(zip(columns, cells))
        kind, stated = row["kind"], row["profit"]
        if kind not in ("item", "knapsack"):
            mistakes.append(f"line {line}, kind: {kind!r}; expected item or knapsack")
            continue
        if kind == "knapsack" and stated:
            mistakes.append(f"line {line}, profit: {stated!r}; a knapsack has none")
        size = _number(row["size"], f"line {line}, size", mistakes)
        if kind == "knapsack":
            knapsacks.append((size, row["name"]))
        else:
            profit = _number(stated, f"line {line}, profit", mistakes) if stated else None
            items.append((size, profit, row["name"]))
    profits = [profit for _, profit, _ in items]
    for what, given in (
        ("profit", profits),
        ("name of items", [name or None for *_, name in items]),
        ("name of knapsacks", [name or None for _, name in knapsacks]),
    ):
        missing = given.count(None)
        if 0 < missing < len(given):
            mistakes.append(f"{what}: missing in {missing} of {len(given)}; expected all or none")
    _check(mistakes, "mistakes")
    problem = WindowMKP(
        weights=[size for size, *_ in items],
        capacities=[size for size, _ in knapsacks],
        profits=None if None in profits else profits,
        jobs=[name for *_, name in items] if any(name for *_, name in items) else None,
        slots=[name for _, name in knapsacks] if any(name for _, name in knapsacks) else None,
    )
    return Snapshot(problem, origin={"file": path.name})
