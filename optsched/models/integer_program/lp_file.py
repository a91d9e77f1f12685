r"""LP files as CPLEX describes them: a strict reader of the part that states integer programs.

What readers of this format take differently is refused: a variable twice in a row, a constant left
of a sense, two numbers or two variables without a sign between them.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from typing import NoReturn

from optsched.errors import InputError
from optsched.models.integer_program.program import INFINITE, INFINITY, Row, StatedProgram, Variable

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

GLUED = re.compile(r"[eE]")


def parse_lp(text: str) -> StatedProgram:
    """Return the program that an LP file states."""
    return _Reader(text).program()


class _Reader:
    """The words of a file, and the program that those before the present word state."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._stated = StatedProgram()
        self._numbers: dict[str, int] = {}
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
        readers = {BOUNDS: self._bound, GENERAL: self._general_one, BINARY: self._binary_one}
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

    def _variable(self) -> int:
        """Take a name, and return the number of its variable."""
        if self.kind != "name" or self.text.lower() in RESERVED:
            self._wrong("the name of a variable")
        name = self.text
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            self._stated.variables[name] = Variable()
        self._advance()
        return number

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
            number = self._variable()
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
        name = self._name_of_row()
        if name is None:
            name = f"c{len(rows) + 1}"
        if name in rows:
            self._fail(f"row {name} twice; expected different names of rows", begins)
        row = Row({})
        row.entries, constant = self._sum("row")
        if row.entries and constant is not None:
            self._fail(f"row {name} has a constant on the left; expected it on the right", begins)
        if constant is not None:  # 2 <= x + y, perhaps <= 5
            line = self.line
            sense = self._sense()
            row.entries, more = self._sum("row")
            if not row.entries and more is not None and constant == 0:  # 0 <= 5, of no variable
                self._limit(row, sense, more)
            elif not row.entries or more is not None:
                self._fail(f"row {name} has no variable; expected one", line)
            else:
                self._limit(row, _turned(sense), constant)
                if self.kind == "sense" and sense != "=":
                    if self._sense() != sense:
                        self._fail(f"row {name} has two senses; expected one direction", line)
                    self._limit(row, sense, self._bound_value())
        else:
            sense = self._sense()
            self._limit(row, sense, self._bound_value())
        rows[name] = row
        self._end_of_statement("row")

    def _limit(self, row: Row, sense: str, value: float) -> None:
        if abs(value) >= INFINITE and (sense == "=" or (value > 0) == (sense == ">")):
            self._fail("a row is bounded by infinity; expected a number")
        if sense != ">":
            row.at_most = value
        if sense != "<":
            row.at_least = value

    def _end_of_statement(self, noun: str) -> None:
        """Accept a statement that ends where its line ends, or before a section or a label."""
        if self.kind not in ("section", "label") and self.line == self._last_line:
            self._wrong(f"the end of the {noun}: one number on the right, and all else on the left")

    def _bound(self) -> None:
        left = right = None
        line = self.line
        if self.kind != "name" or INFINITY.fullmatch(self.text):
            left = self._bound_value()
            left_sense = _turned(self._sense())
        name = self.text
        self._variable()
        variable = self._stated.variables[name]
        if left is None and self.kind == "name" and self.text.lower() == "free":
            variable.lower, variable.upper = -math.inf, math.inf
            self._advance()
        else:
            if left is not None:
                self._set_bound(name, left_sense, left, line)
            if left is None or self.kind == "sense":
                sense = self._sense()
                right = self._bound_value()
                if left is not None and {sense, left_sense} != {"<", ">"}:
                    self._fail(f"bounds of {name} in one direction twice; expected l <= x <= u")
                self._set_bound(name, sense, right, line)
        self._end_of_statement("bound")

    def _set_bound(self, name: str, sense: str, value: float, line: int) -> None:
        """Bound a variable; the last statement holds, as CPLEX has it."""
        variable = self._stated.variables[name]
        if abs(value) >= INFINITE and (sense == "=" or (value > 0) == (sense == ">")):
            self._fail(f"variable {name} is bounded by infinity; expected a number", line)
        if sense != ">":
            variable.upper = value
        if sense != "<":
            variable.lower = value

    def _general_one(self) -> None:
        self._general.add(self.text)
        self._variable()

    def _binary_one(self) -> None:
        self._binary.add(self.text)
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


def _turned(sense: str) -> str:
    return {"<": ">", ">": "<", "=": "="}[sense]


def _words(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the line of each word outside comments."""
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        content = line.partition("\\")[0].rstrip()  # or the pattern takes long for blanks
        for match in WORD.finditer(content):
            kind = match.lastgroup or ""
            word = match[kind]
            after = content[match.end() : match.end() + 1]
            if kind == "number" and re.match(NAME, after):
                if GLUED.search(word) or after in "eE":
                    problem = (
                        f"{content[match.start(kind) : match.end() + 8].strip()!r} may be a number"
                    )
                    raise InputError(f"{problem} with an exponent; expected a blank", line=number)
            elif kind == "section" or (kind == "name" and word.lower() in SECTIONS):
                yield "section", SECTIONS[" ".join(word.lower().split())], number
                continue
            elif kind == "label" and word.lower() in SECTIONS:
                problem = f"{word!r} begins a section; expected another name of a row"
                raise InputError(problem, line=number)
            yield kind, word, number
