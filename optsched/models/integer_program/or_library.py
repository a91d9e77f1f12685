"""Instances of OR-Library as integer programs: knapsacks of several dimensions, assignment, bins.

A file of OR-Library holds the number of its instances, and then the numbers of each; line breaks
have no meaning. The first lines tell the format. File formats: ``docs/formats/instances.md``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError
from optsched.models.integer_program.problem import (
    BinPacking,
    IntegerProgram,
    Number,
    factor_of,
    origin_of,
    whole_row,
)
from optsched.models.snapshot import Snapshot
from optsched.numbers import counted

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


class Part(NamedTuple):
    """Words of a file from `start` to before `stop`."""

    start: int
    stop: int


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

    def take(self, count: int, what: str) -> Part:
        """Take the next words; `what` says what they are."""
        if count > self.left:
            raise InputError(f"ends after {self.left} of {count} {what}", file=self.path)
        self._at += count
        return Part(self._at - count, self._at)

    def count(self, what: str) -> int:
        """Take the next word, a count."""
        place = self.take(1, what).start
        if not COUNT.fullmatch(self._words[place]):
            raise self.wrong(place, what, "a count")
        return int(self._words[place])

    def word(self, what: str) -> str:
        """Take the next word as it is."""
        return self._words[self.take(1, what).start]

    def numbers(self, part: Part, what: str) -> list[int | Decimal]:
        """Return the numbers of a part that was taken."""
        values: list[int | Decimal] = []
        for place in range(*part):
            word = self._words[place]
            if not NUMBER.fullmatch(word):
                raise self.wrong(place, what, "a number")
            values.append(Decimal(word) if "." in word else int(word))
        return values

    def wrong(self, place: int, what: str, expected: str) -> InputError:
        """Return the mistake in a word."""
        line = bisect_right(self._ends, place) + 1
        problem = f"{self._words[place][:24]!r}; expected {expected}"
        return InputError(problem, file=self.path, line=line, field=what)


def instances(lines: Sequence[Sequence[str]], path: Path) -> list[Instance] | None:
    """Return the instances in the words of a file's lines; None if it begins like no such file."""
    first = [line for line in lines if line][:3]
    lengths = [len(line) for line in first]
    if not first or not all(COUNT.fullmatch(word) for word in first[0]):
        return None
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
    return None


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
            raise InputError(*mistakes, file=path, line=error.line, field=whole) from None
    if words.left:
        after = f"{counted(words.left, 'word')} after {counted(total, 'instance')}"
        raise InputError(f"{after} ({kind} of OR-Library)", file=path)
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
        raise InputError(*assignment.mistakes, *error.mistakes, file=path) from None


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


def _capacities(words: _Words, uses: Sequence[Part], capacities: Part) -> dict[str, Row]:
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
        try:
            factor = factor_of(numbers)
            size, *weights = [int(number * factor) for number in numbers]
            packing = BinPacking(weights, size, _first_fit_decreasing(weights, size))
            problem = IntegerProgram(**packing.fields(), **packing.names())
        except InputError as error:
            raise error.within(words.path) from None
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


def _whole(words: _Words, part: Part, what: str) -> tuple[list[int], int]:
    """Return the numbers of a part as integers, and what they were multiplied by."""
    numbers = words.numbers(part, what)
    try:
        factor = factor_of(numbers)
    except InputError as error:
        raise InputError(*error.mistakes, file=words.path, field=what) from None
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
    try:
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
    except InputError as error:
        raise error.within(words.path) from None
    return Snapshot(problem, origin_of(words.path, factor), known or {})
