"""Programs as LP and MPS text, in the part of both formats that all readers take alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.models.program import UNBOUNDED, Program

LARGEST_NUMBER = 10**15
"""Upper limit of the numbers that LP and MPS files hold exactly."""

PORTABLE_NAME = re.compile(
    r"(?![eE](\d|$))"
    r"(?!(?i:maxim(um|i[sz]e)|max|minim(um|i[sz]e)|min|st|bounds?|bin|binary|binaries|gen|generals?|"
    r"int|integers?|semis?|sos[12]?|free|inf|infinity|end)$)"
    r"[A-Za-z_][A-Za-z0-9_.]{0,99}"
)
"""Names that every LP reader accepts; ``e`` before a digit may be read as part of a number,
and a keyword as a section."""

ON_A_LINE = 4
"""Terms on a line of an LP file; some readers cut lines after 510 characters."""


class _Row(NamedTuple):
    name: str
    entries: dict[str, int]
    at_least: int | None
    at_most: int | None


def lp_text(program: Program) -> str:
    """Return the program in the LP format of CPLEX.

    A row with two different bounds becomes two rows, since not all readers know ranges. Rows
    without bounds are left out.
    """
    names, rows = _parts(program)
    costs = dict(zip(names, program.objective.tolist()))
    used = {name for row in rows for name in row.entries}
    terms = {name: cost for name, cost in costs.items() if cost or name not in used}
    constant = [f"{program.offset:+}"] if program.offset else []
    return "\n".join(
        (
            "maximize" if program.sense == "max" else "minimize",
            *_statement("obj", [*_terms(terms), *constant]),
            "subject to",
            *_lp_rows(rows, names),
            *_lp_bounds(program, names),
            "end\n",
        )
    )


def mps_text(program: Program) -> str:
    """Return the program in free MPS, in the columns of fixed MPS as far as names are short."""
    names, rows = _parts(program)
    objective = _different("obj", {row.name for row in rows})
    entries: dict[str, dict[str, int]] = {
        name: {objective: cost} if cost else {}
        for name, cost in zip(names, program.objective.tolist())
    }
    for row in rows:
        for name, value in row.entries.items():
            entries[name][row.name] = value
    lines = ["NAME          optsched"]
    if program.sense == "max":
        lines += ["OBJSENSE", "    MAX"]
    lines += ["ROWS", f" N  {objective}", *(f" {_kind(row)}  {row.name}" for row in rows)]
    lines += ["COLUMNS", "    MARKER    'MARKER'                 'INTORG'"]
    for name, column in entries.items():
        lines += (_fields("", name, row, a) for row, a in (column or {objective: 0}).items())
    lines += ["    MARKER    'MARKER'                 'INTEND'", "RHS"]
    if program.offset:
        lines.append(_fields("", "RHS", objective, -program.offset))
    ranges = []
    for row in rows:
        right = row.at_least if row.at_most is None else row.at_most
        if right:
            lines.append(_fields("", "RHS", row.name, right))
        if row.at_least is not None and row.at_most is not None and row.at_least < row.at_most:
            ranges.append(_fields("", "RANGES", row.name, row.at_most - row.at_least))
    if ranges:
        lines += ["RANGES", *ranges]
    lines.append("BOUNDS")
    for name, lower, upper in zip(names, program.lower.tolist(), program.upper.tolist()):
        if lower == upper:
            lines.append(_fields("FX", "BOUNDS", name, lower))
        else:
            lines.append(_fields("LO", "BOUNDS", name, lower))
            lines.append(_fields("UP", "BOUNDS", name, upper))
    return "\n".join((*lines, "ENDATA\n"))


def _parts(program: Program) -> tuple[list[str], list[_Row]]:
    """Return the names of the variables, and the rows by names, if a file can hold them."""
    numbers = np.abs(
        np.concatenate(
            (
                program.objective,
                program.values,
                program.lower,
                program.upper,
                program.row_lower,
                program.row_upper,
                np.array([program.offset]),
            )
        )
    )
    if numbers[numbers != UNBOUNDED].max(initial=0) >= LARGEST_NUMBER:
        raise InputError("a number of 16 digits or more does not fit; export as cp-sat instead")
    names = [program.variable_name(number) for number in range(program.num_variables)]
    of_rows = [program.row_name(number) for number in range(program.num_rows)]
    for name in (*names, *of_rows):
        if not PORTABLE_NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be the name of a variable or row")
    if len(set(names)) < len(names) or len(set(of_rows)) < len(of_rows):
        raise InputError("two variables or two rows have the same name")
    columns, values, start, lower, upper = (
        array.tolist()
        for array in (
            program.columns,
            program.values,
            program.row_start,
            program.row_lower,
            program.row_upper,
        )
    )
    rows = [
        _Row(
            name,
            {names[columns[place]]: values[place] for place in range(first, end)},
            None if least == -UNBOUNDED else least,
            None if most == UNBOUNDED else most,
        )
        for name, first, end, least, most in zip(of_rows, start, start[1:], lower, upper)
    ]
    for row, length in zip(rows, np.diff(program.row_start).tolist()):
        if len(row.entries) < length:
            raise InputError(f"row {row.name} has a variable twice")
    return names, rows


def _terms(entries: dict[str, int]) -> list[str]:
    return [f"{value:+} {name}" for name, value in entries.items()]


def _statement(name: str, words: list[str]) -> Iterator[str]:
    """Yield the lines of a sum with a name."""
    yield f" {name}: {' '.join(words[:ON_A_LINE])}"
    for first in range(ON_A_LINE, len(words), ON_A_LINE):
        yield f"  {' '.join(words[first : first + ON_A_LINE])}"


def _lp_rows(rows: list[_Row], names: list[str]) -> Iterator[str]:
    taken = {row.name for row in rows}
    for row in rows:
        limits = {">=": row.at_least, "<=": row.at_most}
        if row.at_least == row.at_most:
            limits = {"=": row.at_least}
        limits = {sense: limit for sense, limit in limits.items() if limit is not None}
        for sense, limit in limits.items():
            name = row.name
            if len(limits) == 2:
                name = _different(f"{name}_{'low' if sense == '>=' else 'high'}", taken)
                taken.add(name)
            words = _terms(row.entries) or [f"0 {name}" for name in names[:1]]
            *lines, last = _statement(name, words)
            yield from lines
            yield f"{last} {sense} {limit}"


def _lp_bounds(program: Program, names: list[str]) -> Iterator[str]:
    general, binary = [], []
    yield "bounds"
    for name, lower, upper in zip(names, program.lower.tolist(), program.upper.tolist()):
        if (lower, upper) == (0, 1):
            binary.append(name)
            continue
        general.append(name)
        yield f" {name} = {lower}" if lower == upper else f" {lower} <= {name} <= {upper}"
    for section, members in (("general", general), ("binary", binary)):
        if members:
            yield section
            yield from (f" {name}" for name in members)


def _kind(row: _Row) -> str:
    """Return the type of a row in MPS."""
    if row.at_least is None:
        return "N" if row.at_most is None else "L"
    return "G" if row.at_most is None else "E" if row.at_least == row.at_most else "L"


def _fields(*words: str | int) -> str:
    """Return a line of MPS."""
    kind, first, second, number = words
    return f" {kind:<2} {first:<8}  {second:<8}  {number:>12}"


def _different(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken."""
    while name in taken:
        name += "_"
    return name
