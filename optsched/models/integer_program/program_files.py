r"""LP files as CPLEX describes them, and MPS files, free or in fixed columns: two strict readers.

They read the part that states integer programs. What readers of LP take differently is refused: a
variable twice in a row, a constant left of a sense, two numbers or two variables without a sign
between them.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

from optsched.errors import InputError
from optsched.models.integer_program.problem import (
    INFINITE,
    INFINITY,
    StatedProgram,
    StatedRow,
    StatedVariable,
)
from optsched.models.snapshot import Snapshot

NAME = r"[A-Za-z!\"#$%&(),;?@_'`{}|~][A-Za-z0-9!\"#$%&(),.;?@_'`{}|~]*"

WORD = re.compile(
    rf"\s*(?:(?P<section>subject\s+to\b|such\s+that\b|semi-continuous\b)"
    rf"|(?P<label>{NAME})[ \t]*:(?!:)"
    rf"|(?P<name>{NAME})"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sense><=|=<|>=|=>|<|>|=)"
    r"|(?P<sign>[+-])"
    r"|(?P<other>\S))",
    re.IGNORECASE,
)

MAXIMIZED, MINIMIZED = "a maximization", "a minimization"
ROWS, BOUNDS, GENERAL, BINARY, END = "subject to", "bounds", "general", "binary", "end"
SEMI, SOS = "semi-continuous", "sos"

SECTIONS = {
    **dict.fromkeys(("max", "maximize", "maximise", "maximum"), MAXIMIZED),
    **dict.fromkeys(("min", "minimize", "minimise", "minimum"), MINIMIZED),
    **dict.fromkeys(("subject to", "such that", "st", "s.t.", "st."), ROWS),
    **dict.fromkeys(("bounds", "bound"), BOUNDS),
    **dict.fromkeys(("general", "generals", "gen", "integer", "integers", "int"), GENERAL),
    **dict.fromkeys(("binary", "binaries", "bin"), BINARY),
    **dict.fromkeys((SEMI, "semi", "semis"), SEMI),
    **dict.fromkeys((SOS, "sos1", "sos2"), SOS),
    "end": END,
}

RESERVED = {"free", "inf", "infinity"}
"""Words of bounds, which name nothing."""

IN_COMMENT = re.compile(r"^\*\s*SENSE:\s*Max", re.IGNORECASE | re.MULTILINE)
"""The sense as PuLP writes it."""

TURNED = {"<": ">", ">": "<", "=": "="}


def parse_program_file(text: str, path: Path, suffix: str) -> Snapshot:
    """Return the integer program of the text of an LP or MPS file."""
    if suffix == ".mps" and IN_COMMENT.search(text) and "OBJSENSE" not in text:
        problem = "is maximized by a comment (*SENSE) alone, which no reader of MPS heeds"
        raise InputError(f"{problem}; expected a section OBJSENSE")
    stated = _LPReader(text).program() if suffix == ".lp" else parse_mps(text)
    return stated.snapshot(path)


class _LPReader:
    """The words of a file, and the program that those before the present word state."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._stated = StatedProgram()
        self._general: set[str] = set()
        self._binary: set[str] = set()
        self.kind = self.text = ""
        self.line = self._last_line = 0
        self._advance()

    def program(self) -> StatedProgram:
        """Read the whole file."""
        stated = self._stated
        if self.kind != "section" or self.text not in (MAXIMIZED, MINIMIZED):
            self._wrong("'maximize' or 'minimize'")
        stated.sense = "max" if self.text == MAXIMIZED else "min"
        self._advance()
        self._name_of_row()
        stated.objective, constant = self._sum("objective")
        stated.offset = constant or 0.0
        if not math.isfinite(stated.offset):
            self._wrong("a finite constant")
        if self.kind != "section" or self.text != ROWS:
            self._wrong("'+', '-' or 'subject to'")
        self._advance()
        while self.kind != "section":
            self._row()
        readers: dict[str, Callable[[], None]] = {
            BOUNDS: self._bound,
            GENERAL: partial(self._typed, self._general),
            BINARY: partial(self._typed, self._binary),
        }
        while self.text != END:
            section = self.text
            self._advance()
            while self.kind != "section":
                if section not in readers:
                    self._fail(f"has a section {section!r}; expected linear rows, bounds and types")
                readers[section]()
        for _, word, line in self._words:
            self._fail(f"{word[:24]!r} after 'end'; expected no more text", line)
        self._settle()
        return stated

    def _advance(self) -> None:
        self._last_line = self.line
        self.kind, self.text, self.line = next(self._words, ("", "", self.line))
        if not self.kind:
            self._fail("has no line 'end', with which LP ends")

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise InputError(problem, line=(line or self.line) or None)

    def _wrong(self, expected: str) -> NoReturn:
        if self.text in ("[", "^", "*"):
            self._fail(f"{self.text!r}; expected linear terms, such as 3 x, and no brackets")
        found = f"the section {self.text!r}" if self.kind == "section" else repr(self.text[:40])
        self._fail(f"{found}; expected {expected}")

    def _variable(self) -> StatedVariable:
        """Take a name, and return its variable."""
        if self.kind != "name" or self.text.lower() in RESERVED:
            self._wrong("the name of a variable")
        variables = self._stated.variables
        variable = variables.setdefault(self.text, StatedVariable(len(variables)))
        self._advance()
        return variable

    def _name_of_row(self) -> str | None:
        if self.kind != "label":
            return None
        name = self.text
        self._advance()
        return name

    def _sign(self) -> float | None:
        """Take signs, and return their product, or None where there is none."""
        product = None
        while self.kind == "sign":
            product = (product or 1.0) * (-1.0 if self.text == "-" else 1.0)
            self._advance()
        return product

    def _sum(self, of: str) -> tuple[dict[int, float], float | None]:
        entries: dict[int, float] = {}
        constant: float | None = None
        first = True
        while True:
            line = self.line
            sign = self._sign()
            infinite = self.kind == "name" and INFINITY.fullmatch(self.text)
            if self.kind not in ("number", "name"):
                if sign is not None:
                    self._wrong("a number or a variable after the sign")
                return entries, constant
            if sign is None and not first:
                self._wrong(f"'+' or '-' before another term of the {of}")
            first = False
            value = 1.0
            if self.kind == "number" or infinite:
                value = math.inf if infinite else float(self.text)
                self._advance()
                if infinite or self.kind != "name":
                    constant = (constant or 0.0) + (sign or 1.0) * value
                    continue
            if not math.isfinite(value):
                self._wrong("a finite coefficient")
            name = self.text
            number = self._variable().number
            if number in entries:
                self._fail(f"variable {name} twice in the {of}; expected one term of it", line)
            entries[number] = (sign or 1.0) * value

    def _bound_value(self) -> float:
        sign = self._sign() or 1.0
        if self.kind == "number":
            value = float(self.text)
        elif self.kind == "name" and INFINITY.fullmatch(self.text):
            value = math.inf
        else:
            self._wrong("a number on the right, and all variables on the left")
        self._advance()
        return sign * value

    def _sense(self) -> str:
        """Take a sense: ``<``, ``>`` or ``=``."""
        if self.kind != "sense":
            self._wrong("<=, >= or =")
        sense = self.text.strip("=") or "="
        self._advance()
        return sense

    def _row(self) -> None:
        rows = self._stated.rows
        begins = self.line
        name = self._name_of_row() or f"c{len(rows) + 1}"
        if name in rows:
            self._fail(f"row {name} twice; expected different names of rows", begins)
        row = StatedRow({})
        row.entries, constant = self._sum("row")
        if row.entries and constant is not None:
            self._fail(f"row {name} has a constant on the left; expected it on the right", begins)
        if constant is not None:  # 2 <= x + y, perhaps <= 5
            line = self.line
            sense = self._sense()
            row.entries, more = self._sum("row")
            if not row.entries and more is not None and constant == 0:  # 0 <= 5, of no variable
                self._limit(row, "a row", sense, more)
            elif not row.entries or more is not None:
                self._fail(f"row {name} has no variable; expected one", line)
            else:
                self._limit(row, "a row", TURNED[sense], constant)
                if self.kind == "sense" and sense != "=":
                    if self._sense() != sense:
                        self._fail(f"row {name} has two senses; expected one direction", line)
                    self._limit(row, "a row", sense, self._bound_value())
        else:
            self._limit(row, "a row", self._sense(), self._bound_value())
        rows[name] = row
        self._end_of_statement("row")

    def _limit(
        self,
        of: StatedRow | StatedVariable,
        name: str,  # what messages call it
        sense: str,
        value: float,
        line: int | None = None,
    ) -> None:
        """Bound a row or a variable; the last statement holds, as CPLEX has it."""
        if abs(value) >= INFINITE and (sense == "=" or (value > 0) == (sense == ">")):
            self._fail(f"{name} is bounded by infinity; expected a number", line)
        if sense != ">":
            of.upper = value
        if sense != "<":
            of.lower = value

    def _end_of_statement(self, noun: str) -> None:
        """Accept a statement that ends where its line ends, or before a section or a label."""
        if self.kind not in ("section", "label") and self.line == self._last_line:
            self._wrong(f"the end of the {noun}: one number on the right, and all else on the left")

    def _bound(self) -> None:
        left = right = None
        line = self.line
        if self.kind != "name" or INFINITY.fullmatch(self.text):
            left = self._bound_value()
            left_sense = TURNED[self._sense()]
        name = self.text
        variable = self._variable()
        if left is None and self.kind == "name" and self.text.lower() == "free":
            variable.lower, variable.upper = -math.inf, math.inf
            self._advance()
        else:
            if left is not None:
                self._limit(variable, f"variable {name}", left_sense, left, line)
            if left is None or self.kind == "sense":
                sense = self._sense()
                right = self._bound_value()
                if left is not None and {sense, left_sense} != {"<", ">"}:
                    self._fail(f"bounds of {name} in one direction twice; expected l <= x <= u")
                self._limit(variable, f"variable {name}", sense, right, line)
        self._end_of_statement("bound")

    def _typed(self, names: set[str]) -> None:
        names.add(self.text)
        self._variable()

    def _settle(self) -> None:
        """Give integers their type, and binary variables their bounds."""
        for name in self._general | self._binary:
            self._stated.variables[name].integer = True
        for name in sorted(self._binary):
            variable = self._stated.variables[name]
            lower = 0.0 if variable.lower is None else variable.lower
            upper = 1.0 if variable.upper is None else variable.upper
            if name in self._general and (variable.upper != 1 or lower != 0):
                problem = f"variable {name} is both general and binary; expected one of them"
                raise InputError(problem)
            if not 0 <= lower <= upper <= 1:
                problem = f"variable {name} is binary, with the bounds {lower:g} to {upper:g}"
                raise InputError(f"{problem}; expected bounds within 0 to 1, or a general variable")
            variable.lower, variable.upper = lower, upper


def _words(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the line of each word outside comments."""
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        content = line.partition("\\")[0].rstrip()  # or the pattern takes long for blanks
        for match in WORD.finditer(content):
            kind = match.lastgroup or ""
            word = match[kind]
            after = content[match.end() : match.end() + 1]
            if kind == "number" and re.match(NAME, after):
                if "e" in f"{word}{after}".lower():
                    found = content[match.start(kind) : match.end() + 8].strip()
                    problem = f"{found!r} may be a number with an exponent; expected a blank"
                    raise InputError(problem, line=number)
            elif kind == "section" or (kind == "name" and word.lower() in SECTIONS):
                yield "section", SECTIONS[" ".join(word.lower().split())], number
                continue
            elif kind == "label" and word.lower() in SECTIONS:
                problem = f"{word!r} begins a section; expected another name of a row"
                raise InputError(problem, line=number)
            yield kind, word, number


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
        return _MPSReader(text, str.split).program()
    except InputError:
        with suppress(InputError):
            return _MPSReader(text, _in_columns).program()
        raise


class _MPSReader:
    """The program that the sections of a file state so far."""

    def __init__(self, text: str, split: Callable[[str], list[str]]) -> None:
        self._text = text
        self._split = split
        self._line = 0
        self._stated = StatedProgram()
        self._objective: str | None = None
        self._senses: dict[str, str] = {}
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
        lower = 0.0 if sense in "GE" else -math.inf
        self._stated.rows[name] = StatedRow({}, lower, 0.0 if sense in "LE" else math.inf)

    def _entries(self, fields: list[str]) -> None:
        if len(fields) == 3 and fields[1] == MARKER:
            if fields[2] not in (BEGINS, ENDS) or self._integer == (fields[2] == BEGINS):
                expected = ENDS if self._integer else BEGINS
                self._fail(f"marker {fields[2][:24]}; expected {expected}")
            self._integer = fields[2] == BEGINS
            return
        if len(fields) not in (3, 5):
            self._wrong(fields, "a column, and one or two rows with a number each")
        name, variables = fields[0], self._stated.variables
        if name != self._column:
            if name in variables:
                self._fail(f"column {name} begins again; expected its entries together")
            self._column = name
            variables[name] = StatedVariable(len(variables), integer=self._integer)
        number = variables[name].number
        for row, text in zip(fields[1::2], fields[2::2]):
            self._known_row(row)
            value, stated = self._number(text), self._stated
            is_objective = row == self._objective
            entries = stated.objective if is_objective else stated.rows[row].entries
            if number in entries:
                self._fail(f"column {name} has row {row} twice; expected one entry of it")
            entries[number] = value

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
                if math.isfinite(stated.lower):
                    stated.lower = value
                if math.isfinite(stated.upper):
                    stated.upper = value

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
        if name not in self._stated.variables:
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
        known = self._stated.variables
        if valued and len(fields) in (2, 3):
            column = len(fields) - 2
        elif not valued and len(fields) in (1, 2, 3):
            # of two fields, the second is the column, or the number of a set that is absent
            column = int(len(fields) == 3 or (len(fields) == 2 and fields[0] not in known))
            if not column and len(fields) == 2 and fields[1] in known:
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
                row.lower = _plus(row.upper, -abs(span))
            else:
                row.upper = _plus(row.lower, abs(span))
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
