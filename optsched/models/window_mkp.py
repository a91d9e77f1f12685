"""The window knapsack: contiguous free slots for the jobs of a scheduling window.

Model page: ``models/window-mkp/README.md``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.errors import InputError, UnknownNameError
from optsched.fields import LARGEST_FIELD, SHOWN
from optsched.models.fields import Integers, from_one
from optsched.models.problem import Choice, Problem, Violation, listed, named, wrong_length
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field, labels
from optsched.models.snapshot import Snapshot, text_of
from optsched.numbers import counted, parse_integer
from optsched.registry import models

__all__ = ["NOT_PLACED", "Assignment", "WindowMKP"]

Assignment = tuple[int, ...]
"""The slot of each job in order, from 0; -1 for a job that is not placed."""

NOT_PLACED = -1

MOST_STEPS = 1_000_000
"""Steps after which the list of equally good solutions counts as too long."""


@models.register("window-mkp")
@declared
class WindowMKP(Problem[Assignment]):
    """0-1 multiple knapsack of a window of jobs into free slots (Yang et al. 2014, eq. 1-5).

    Raises
    ------
    InputError
        If a size, capacity or profit is below 0, or lengths do not match; the message
        lists all mistakes.

    Notes
    -----
    A solution is a tuple with the slot of each job, from 0, and -1 for a job that is not placed.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    Examples
    --------
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> problem.objective((1, 2, 0, -1, 2))
    15
    >>> problem.violations((1, 2, 0, 2, 2))
    [Violation(constraint='capacity', detail='slot 3 of size 6 holds jobs of size 7')]
    """

    weights: Ints = field(Integers(0), "size of each job, in nodes", symbol="n, w_j")
    capacities: Ints = field(Integers(0), "size of each slot, in nodes", symbol="m, C_i")
    profits: Ints = field(
        Integers(0, like="weights"),
        "profit of starting each job; its size if left out, as in the paper",
        symbol="p_j",
        default=None,
        filled=lambda fields: fields["weights"],
    )
    jobs: Sequence[str | int] | None = labels(
        "weights", "a label for each job, its number in the trace for instance"
    )
    slots: Sequence[str | int] | None = labels(
        "capacities", "a label for each slot, its first node for instance"
    )

    sense = "max"
    default_solver = "branch-and-bound"

    @property
    def size(self) -> str:
        """Jobs x slots."""
        return f"{len(self.weights)}x{len(self.capacities)}"

    def objective(self, solution: Assignment) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        profits = self.profits.tolist()
        return sum(profits[job] for job, slot in enumerate(solution) if slot != NOT_PLACED)

    def choice(self, objective: int) -> Choice:
        """Return whether there is one job, all of several are placed, or some have to wait."""
        return choice_among(len(self.weights), objective, self.profits.sum())

    def equally_good(self, objective: int) -> list[Assignment]:
        """Return all assignments with an objective, the first job in the first slot first.

        Raises
        ------
        InputError
            If a million steps of the search do not suffice.
        """
        weights, profits = self.weights.tolist(), self.profits.tolist()
        room = self.capacities.tolist()
        rest = [sum(profits[job:]) for job in range(len(profits) + 1)]
        choice: list[int] = []
        found: list[Assignment] = []
        steps = 0

        def extend(job: int, missing: int) -> None:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                problem = f"a window of {self.size} has too many equally good solutions to list"
                raise InputError(f"{problem}; expected a smaller window")
            if not 0 <= missing <= rest[job]:
                return
            if job == len(weights):
                found.append(tuple(choice))
                return
            for slot, left in enumerate(room):
                if weights[job] <= left:
                    room[slot] -= weights[job]
                    choice.append(slot)
                    extend(job + 1, missing - profits[job])
                    choice.pop()
                    room[slot] += weights[job]
            choice.append(NOT_PLACED)
            extend(job + 1, missing)
            choice.pop()

        extend(0, objective)
        return found

    def violations(self, solution: Assignment) -> list[Violation]:
        """Check that every job has one entry, slots exist, and no slot is overfull, equation (2).

        Equation (3), at most one slot for a job, holds by the form of a solution.
        """
        if not isinstance(solution, tuple | list | Sequence | np.ndarray):
            kind = type(solution).__name__
            return [Violation("form", f"a {kind}; expected a sequence of slots")]
        if found := wrong_length(solution, len(self.weights)):
            return found
        room = self.capacities.tolist()
        for job, (slot, weight) in enumerate(zip(solution, self.weights.tolist(), strict=True)):
            if slot == NOT_PLACED:
                continue
            if not 0 <= slot < len(room):
                found.append(Violation("slot", f"job {job + 1} is put into slot {slot + 1}"))
                continue
            room[slot] -= weight
        for slot, left in enumerate(room):
            if left < 0:
                size = int(self.capacities[slot])
                detail = f"slot {slot + 1} of size {size} holds jobs of size {size - left}"
                found.append(Violation("capacity", detail))
        return found

    def solution_to_json(self, solution: Assignment) -> dict[str, Any]:
        """Return the number of each job's slot, from 1; null for a job that is not placed."""
        return {"slot_of_job": [None if slot == NOT_PLACED else slot + 1 for slot in solution]}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Assignment:
        """Return the assignment written by `solution_to_json`."""
        slots = from_one(fields.get("slot_of_job") if isinstance(fields, Mapping) else None)
        if slots is None:
            raise InputError("expected slot numbers from 1, or null", field="slot_of_job")
        return tuple(NOT_PLACED if slot is None else slot for slot in slots)

    def describe(self, solution: Assignment | None = None) -> list[tuple[str, str]]:
        """Return the slots with their jobs, and the waiting jobs.

        Profits other than sizes follow the size of a job: ``A (6, +9)``.
        """
        sizes: Sequence[Any] = self.weights.tolist()
        if not np.array_equal(self.profits, self.weights):
            sizes = [f"{w}, +{p}" for w, p in zip(self.weights, self.profits)]
        jobs, slots = named(self.jobs, sizes), named(self.slots, self.capacities)
        if solution is None:
            return [("jobs", " ".join(jobs)), ("slots", " ".join(slots))]
        places = [(f"slot {slot}", number) for number, slot in enumerate(slots)]
        return [
            (place, listed(job for job, at in zip(jobs, solution) if at == number))
            for place, number in [*places, ("not placed", NOT_PLACED)]
        ]


def choice_among(jobs: int, objective: int, total: int) -> Choice:
    """Return the data of the choice among jobs of a total profit, by the objective."""
    if jobs == 1:
        return Choice.ONE_JOB
    return Choice.CONTESTED if objective < total else Choice.ALL_PLACED


@formulations.register("window-mkp")
class WindowFormulation(Formulation[WindowMKP, Assignment]):
    """Equations (1) to (4) of the model's page.

    ``x[j, i]`` is 1 if job j is placed in slot i, and fixed to 0 if the job is larger.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables x[j, i] by job."""
        weights, capacities = self.problem.weights, self.problem.capacities
        builder = ProgramBuilder("max")
        x = builder.variables(
            "x_job{}_slot{}",
            len(weights),
            len(capacities),
            upper=weights[:, None] <= capacities,
            objective=self.problem.profits[:, None],
        )
        builder.rows("capacity_slot{}", (weights, x.T), at_most=capacities)
        builder.rows("once_job{}", (1, x), at_most=1)
        return builder.build()

    def decode(self, x: Ints) -> Assignment:
        """Return the slot of each job."""
        jobs, slots = len(self.problem.weights), len(self.problem.capacities)
        if slots == 0:
            return (NOT_PLACED,) * jobs
        placed = np.asarray(x).reshape(jobs, slots)
        slot = np.where(placed.any(axis=1), placed.argmax(axis=1), NOT_PLACED)
        return tuple(slot.tolist())

    def encode(self, solution: Assignment) -> Ints:
        """Return the 0-1 vector of an assignment."""
        x = np.zeros((len(self.problem.weights), len(self.problem.capacities)), dtype=np.int64)
        for job, slot in enumerate(solution):
            if slot != NOT_PLACED:
                x[job, slot] = 1
        return x.ravel()


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


def _check(mistakes: Sequence[str], noun: str, path: Path) -> None:
    """Raise the mistakes in a file, the first few of many."""
    if mistakes:
        more = len(mistakes) - SHOWN
        rest = [f"{more} more {noun}"] if more > 0 else []
        raise InputError(*mistakes[:SHOWN], *rest, file=path)


def parse_window_mkp_text(words: Sequence[Sequence[str]], path: Path) -> Snapshot:
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
        raise InputError("ends before the numbers of knapsacks and items", file=path)
    (knapsacks,) = read(*lines[0], "knapsacks")
    (items,) = read(*lines[1], "items")
    if any(len(fields) != 1 for _, fields in lines[:2]):
        mistakes.append(
            "begins like no text format that is read; a multiple knapsack has one number on each of"
            " its first lines, a file of OR-Library on its first line"
        )
    _check(mistakes, "such lines", path)
    if len(lines) != 2 + knapsacks + items:
        raise InputError(
            f"{len(lines)} lines that are not blank; expected {2 + knapsacks + items}: "
            f"2 counts, {knapsacks} capacities and {items} items",
            file=path,
        )
    capacities = [read(*line, "capacity")[0] for line in lines[2 : 2 + knapsacks]]
    pairs = [read(*line, "weight", "profit") for line in lines[2 + knapsacks :]]
    _check(mistakes, "such lines", path)
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


def parse_window_mkp_table(data: bytes, path: Path) -> Snapshot:
    """Return the knapsack problem of a table: items are jobs, knapsacks are slots.

    Columns are ``kind`` (item or knapsack), ``size``, and optionally ``profit`` of items and
    ``name``. Without profits, an item is worth its size.
    """
    reader = csv.reader(io.StringIO(text_of(data, path, "CSV"), newline=""), strict=True)
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
    _check(mistakes, "mistakes", path)
    problem = WindowMKP(
        weights=[size for size, *_ in items],
        capacities=[size for size, _ in knapsacks],
        profits=None if None in profits else profits,
        jobs=[name for *_, name in items] if any(name for *_, name in items) else None,
        slots=[name for _, name in knapsacks] if any(name for _, name in knapsacks) else None,
    )
    return Snapshot(problem, origin={"file": path.name})
