"""MPS files, free or in fixed columns: a strict reader of the part that states integer programs."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Literal, NoReturn

from optsched.errors import InputError
from optsched.models.integer_program.program import INFINITE, INFINITY, Row, StatedProgram, Variable

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

SENSES: dict[str, Literal["max", "min"]] = {
    **dict.fromkeys(("max", "maximize", "maximise"), "max"),
    **dict.fromkeys(("min", "minimize", "minimise"), "min"),
}

FIELDS = ((1, 3), (4, 12), (14, 22), (24, 39), (39, 47), (49, None))
"""Columns of the six fields of a line of fixed MPS; numbers may run over the end of theirs."""

MARKER, BEGINS, ENDS = "'MARKER'", "'INTORG'", "'INTEND'"


def parse_mps(text: str) -> StatedProgram:
    """Return the program that an MPS file states.

    Fields are separated by blanks, or stand in the columns of fixed MPS where their names have
    blanks.
    """
    try:
        return _Reader(text, str.split).program()
    except InputError:
        with suppress(InputError):
            return _Reader(text, _in_columns).program()
        raise


class _Reader:
    """The program that the sections of a file state so far."""

    def __init__(self, text: str, split: Callable[[str], list[str]]) -> None:
        self._text = text
        self._split = split
        self._line = 0
        self._stated = StatedProgram()
        self._objective: str | None = None
        self._senses: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._integer = False
        self._column: str | None = None
        self._sets: dict[str, str] = {}
        self._given: set[tuple[str, str]] = set()
        self._ranges: dict[str, float] = {}

    def program(self) -> StatedProgram:
        """Read the whole file."""
        read = {
            "OBJSENSE": self._objective_sense,
            "ROWS": self._row,
            "COLUMNS": self._entries,
            "RHS": self._right_sides,
            "RANGES": self._range,
            "BOUNDS": self._bound,
        }
        section, seen = "", set()
        for number, text in enumerate(io.StringIO(self._text, newline=None), 1):
            self._line, line = number, text.rstrip()
            if not line or line.startswith("*"):
                continue
            if line[0] in " \t":
                if section not in read:
                    self._fail(f"{line.strip()[:24]!r}; expected the name of a section")
                split = str.split if section == "OBJSENSE" else self._split
                read[section](split(line))
                continue
            if section == "ENDATA":
                self._fail(f"{line[:24]!r} after ENDATA; expected no more text")
            section, *more = line.split()
            section = section.upper()
            if section in seen:
                self._fail(f"section {section} twice; expected one")
            seen.add(section)
            if section == "OBJSENSE" and more:
                self._objective_sense(more)
            elif section not in (*read, "NAME", "ENDATA"):
                expected = ", ".join(read)
                self._fail(f"section {section[:24]!r}; expected one of {expected}")
            elif more and section in read:
                self._fail(f"{' '.join(more)[:24]!r} after {section}; expected a line of its own")
        if section != "ENDATA":
            raise InputError("has no line 'ENDATA', with which MPS ends")
        if self._objective is None:
            raise InputError("has no row of type N; expected the objective")
        self._settle()
        return self._stated

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(problem, line=self._line)

    def _wrong(self, fields: list[str], expected: str) -> NoReturn:
        blanks = "names with blanks need the columns of fixed MPS"
        self._fail(f"{' '.join(fields)[:60]!r}; expected {expected} ({blanks})")

    def _number(self, text: str) -> float:
        value = float(text) if NUMBER.fullmatch(text) else math.inf
        if not math.isfinite(value):
            self._fail(f"{text[:40]!r}; expected a number")
        return value

    def _objective_sense(self, fields: list[str]) -> None:
        if len(fields) != 1 or fields[0].lower() not in SENSES or "sense" in self._sets:
            self._fail(f"{' '.join(fields)[:24]!r}; expected MAX or MIN, once")
        self._sets["sense"] = fields[0]
        self._stated.sense = SENSES[fields[0].lower()]

    def _row(self, fields: list[str]) -> None:
        if len(fields) != 2 or fields[0].upper() not in ("N", "L", "G", "E"):
            self._wrong(fields, "N, L, G or E, and the name of a row")
        sense, name = fields[0].upper(), fields[1]
        if name in self._senses:
            self._fail(f"row {name} twice; expected different names of rows")
        self._senses[name] = sense
        if sense == "N" and self._objective is None:
            self._objective = name
            return
        # a further row of type N is a row without bounds
        at_least = 0.0 if sense in "GE" else -math.inf
        self._stated.rows[name] = Row({}, at_least, 0.0 if sense in "LE" else math.inf)

    def _entries(self, fields: list[str]) -> None:
        if len(fields) == 3 and fields[1] == MARKER:
            self._marker(fields[2])
            return
        if len(fields) not in (3, 5):
            self._wrong(fields, "a column, and one or two rows with a number each")
        name = fields[0]
        if name != self._column:
            if name in self._numbers:
                self._fail(f"column {name} begins again; expected its entries together")
            self._column = name
            self._numbers[name] = len(self._numbers)
            self._stated.variables[name] = Variable(integer=self._integer)
        number = self._numbers[name]
        for row, text in zip(fields[1::2], fields[2::2]):
            self._known_row(row)
            value = self._number(text)
            if row == self._objective:
                entries = self._stated.objective
            else:
                entries = self._stated.rows[row].entries
            if number in entries:
                self._fail(f"column {name} has row {row} twice; expected one entry of it")
            entries[number] = value

    def _marker(self, kind: str) -> None:
        if kind not in (BEGINS, ENDS) or self._integer == (kind == BEGINS):
            self._fail(f"marker {kind[:24]}; expected {ENDS if self._integer else BEGINS}")
        self._integer = kind == BEGINS

    def _known_row(self, row: str) -> None:
        if row not in self._senses:
            self._fail(f"row {row[:40]!r}; expected one of the section ROWS")

    def _of_one_set(self, section: str, name: str) -> None:
        """Refuse a second set of right-hand sides, ranges or bounds: readers take one of them."""
        if self._sets.setdefault(section, name) != name:
            self._fail(f"a second set of {section}, {name!r}; expected one")

    def _pairs(self, section: str, fields: list[str]) -> Iterator[tuple[str, float]]:
        """Yield the rows and numbers of a line of RHS or RANGES; its first field may be absent."""
        if len(fields) not in (2, 3, 4, 5):
            self._wrong(fields, "a set, and one or two rows with a number each")
        named = len(fields) % 2
        self._of_one_set(section, fields[0] if named else "")
        for row, text in zip(fields[named::2], fields[named + 1 :: 2]):
            self._known_row(row)
            if (section, row) in self._given:
                self._fail(f"row {row} twice in {section}; expected one number")
            self._given.add((section, row))
            yield row, self._number(text)

    def _right_sides(self, fields: list[str]) -> None:
        for row, value in self._pairs("RHS", fields):
            if row == self._objective:
                self._stated.offset = -value
            elif self._senses[row] != "N":
                stated = self._stated.rows[row]
                if math.isfinite(stated.at_least):
                    stated.at_least = value
                if math.isfinite(stated.at_most):
                    stated.at_most = value

    def _range(self, fields: list[str]) -> None:
        for row, value in self._pairs("RANGES", fields):
            if self._senses[row] == "N":
                self._fail(f"row {row} is of type N; expected the range of another row")
            self._ranges[row] = value

    def _bound(self, fields: list[str]) -> None:
        kind = fields[0].upper()
        valued = kind in ("UP", "LO", "FX", "LI", "UI")
        if not valued and kind not in ("FR", "MI", "PL", "BV"):
            kinds = "UP, LO, FX, LI, UI, BV, FR, MI or PL"
            self._fail(f"bound {fields[0][:24]!r}; expected {kinds}")
        name, value, of_set = self._bounded(fields[1:], valued)
        if name not in self._numbers:
            self._fail(f"column {name[:40]!r}; expected one of the section COLUMNS")
        self._of_one_set("BOUNDS", of_set)
        variable = self._stated.variables[name]
        number = 0.0
        if value is not None and valued:
            sign = -1.0 if value.startswith("-") else 1.0
            endless = INFINITY.fullmatch(value.lstrip("+-"))
            number = sign * math.inf if endless else self._number(value)
        lower, upper = {
            "UP": (None, number),
            "UI": (None, number),
            "LO": (number, None),
            "LI": (number, None),
            "FX": (number, number),
            "BV": (0.0, 1.0),
            "FR": (-math.inf, math.inf),
            "MI": (-math.inf, None),
            "PL": (None, math.inf),
        }[kind]
        for side, bound in (("lower", lower), ("upper", upper)):
            if bound is None:
                continue
            if (name, side) in self._given:
                self._fail(f"column {name} has its {side} bound twice; expected one")
            self._given.add((name, side))
            if abs(bound) >= INFINITE and (bound > 0) == (side == "lower"):
                self._fail(f"column {name} is bounded by infinity; expected a number")
            setattr(variable, side, bound)
        variable.integer |= kind in ("BV", "LI", "UI")

    def _bounded(self, fields: list[str], valued: bool) -> tuple[str, str | None, str]:
        """Return the column, the number and the set of a bound; the set may be absent."""
        if valued and len(fields) in (2, 3):
            column = len(fields) - 2
        elif not valued and len(fields) in (1, 2, 3):
            # of two fields, the second is the column, or the number of a set that is absent
            column = int(len(fields) == 3 or (len(fields) == 2 and fields[0] not in self._numbers))
            if not column and len(fields) == 2 and fields[1] in self._numbers:
                self._wrong(fields, "a set whose name is not that of a column")
        else:
            self._wrong(fields, "a set, a column and its bound after the type")
        value = fields[column + 1] if len(fields) > column + 1 else None
        return fields[column], value, fields[0] if column else ""

    def _settle(self) -> None:
        """Apply ranges, and the bounds 0 and 1 of integers without any."""
        for name, span in self._ranges.items():
            row, sense = self._stated.rows[name], self._senses[name]
            if sense == "L" or (sense == "E" and span < 0):
                row.at_least = _plus(row.at_most, -abs(span))
            else:
                row.at_most = _plus(row.at_least, abs(span))
        for variable in self._stated.variables.values():
            if variable.integer and variable.lower is None and variable.upper is None:
                variable.lower, variable.upper = 0.0, 1.0


def _plus(one: float, other: float) -> float:
    return float(Decimal(repr(one)) + Decimal(repr(other)))


def _in_columns(line: str) -> list[str]:
    """Return the fields of a line of fixed MPS; markers stand in any columns."""
    if MARKER in line:
        return line.split()
    fields = [line[first:last] for first, last in FIELDS]
    if "\t" in line or "".join("".join(fields).split()) != "".join(line.split()):
        raise InputError("not in the columns of fixed MPS")
    fields = [part.strip() for part in fields]
    while not fields[-1]:
        fields.pop()
    return fields if fields[0] else fields[1:]
