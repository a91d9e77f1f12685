"""A program as an LP or MPS file states it, with every number as it is written there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from optsched.errors import InputError
from optsched.fields import first_few
from optsched.models.fields import LARGEST_FIELD
from optsched.models.integer_program.problem import IntegerProgram
from optsched.models.snapshot import SCALE, Snapshot

INFINITE = 1e20
"""Bound that files write for no bound."""

INFINITY = re.compile(r"inf(inity)?", re.IGNORECASE)

Number = int | Decimal


MOST_DECIMALS = 6
"""Most decimals of a number in a file."""


def factor_of(numbers: Iterable[int | Decimal]) -> int:
    """Return the least power of ten that makes all numbers integers.

    >>> factor_of([Decimal("600.1"), Decimal("40"), Decimal("18.60")])
    10
    """
    decimals = 0
    for number in numbers:
        if isinstance(number, int) and abs(number) * 10**decimals <= LARGEST_FIELD:
            continue  # almost all numbers
        number = Decimal(number)
        exponent = number.normalize().as_tuple().exponent
        if not isinstance(exponent, int) or -exponent > MOST_DECIMALS:
            raise InputError(f"{number:f}; expected at most {MOST_DECIMALS} decimals")
        decimals = max(decimals, -exponent)
        if abs(number) * 10**decimals > LARGEST_FIELD:
            raise InputError(f"{number:f}; expected a number of at most {LARGEST_FIELD}")
    factor: int = 10**decimals
    return factor


@dataclass(slots=True)
class Variable:
    """A variable: its bounds, None where the file states none, and whether it is an integer."""

    lower: float | None = None
    upper: float | None = None
    integer: bool = False


@dataclass(slots=True)
class Row:
    """A row: its coefficients by number of the variable, and its bounds."""

    entries: dict[int, float]
    at_least: float = -math.inf
    at_most: float = math.inf


@dataclass(slots=True)
class StatedProgram:
    """What a file states; rows and variables in the order in which it names them first."""

    sense: Literal["max", "min"] = "min"
    offset: float = 0.0
    objective: dict[int, float] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)

    def snapshot(self, path: Path) -> Snapshot:
        """Return the program as a snapshot.

        Rows whose numbers are not integers are multiplied by a power of ten, and so is the
        objective; the origin of the snapshot tells the latter.
        """
        mistakes = [
            *first_few("variables", list(self._continuous()), "variables"),
            *first_few("bounds", list(self._unbounded()), "bounds"),
        ]
        if mistakes:
            raise InputError(*mistakes, file=path)
        rows, at_least, at_most = [], [], []
        place = "the objective"
        try:
            costs = {number: _exact(cost) for number, cost in self.objective.items()}
            offset = _exact(self.offset)
            factor = factor_of([*costs.values(), offset])
            for name, row in self.rows.items():
                place = f"row {name}"
                entries = {number: _exact(a) for number, a in row.entries.items() if a}
                bounds = [
                    None if abs(b) >= INFINITE else _exact(b) for b in (row.at_least, row.at_most)
                ]
                of_row = factor_of([*entries.values(), *(b for b in bounds if b is not None)])
                rows.append({number: int(of_row * a) for number, a in entries.items()})
                least, most = (None if b is None else int(of_row * b) for b in bounds)
                at_least.append(least)
                at_most.append(most)
        except InputError as error:
            raise InputError(*error.mistakes, file=path, field=place) from None
        try:
            problem = IntegerProgram(
                self.sense,
                [int(factor * costs.get(number, 0)) for number in range(len(self.variables))],
                [math.ceil(one.lower or 0) for one in self.variables.values()],
                [math.floor(one.upper or 0) for one in self.variables.values()],
                int(factor * offset),
                list(self.variables),
                rows=rows,
                at_least=at_least,
                at_most=at_most,
                row_names=list(self.rows),
            )
        except InputError as error:
            raise error.within(path) from None
        origin = {"file": path.name}
        return Snapshot(problem, origin if factor == 1 else origin | {SCALE: factor})

    def _continuous(self) -> Iterator[str]:
        for name, variable in self.variables.items():
            if not variable.integer:
                yield f"variable {name} is continuous; expected integer variables only"

    def _unbounded(self) -> Iterator[str]:
        expected = "expected both, at most 10^12 in size"
        for name, variable in self.variables.items():
            lower, upper = variable.lower, variable.upper
            if upper is None or abs(upper) >= INFINITE:
                yield f"variable {name} has no upper bound; {expected}"
            elif lower is None and upper < 0:
                stated = f"has the upper bound {upper:g} and no lower one"
                yield f"variable {name} {stated}, which readers take for 0 or none; {expected}"
            if lower is not None and abs(lower) >= INFINITE:
                yield f"variable {name} has no lower bound; {expected}"


def _exact(number: float) -> Number:
    """Return a number as an integer, or as the shortest decimal: the one in the file."""
    return int(number) if number.is_integer() else Decimal(repr(number))
