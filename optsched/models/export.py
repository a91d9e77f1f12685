"""Programs as files of other software: OR-Tools CP-SAT, HiGHS, LP, MPS and MiniZinc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched.errors import InputError, StatementError
from optsched.files import write_text
from optsched.models.problem import Problem
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


def _rows(program: Program) -> Iterator[tuple[list[int], list[int], int, int]]:
    """Yield columns, values, lower and upper bound of each row."""
    start, columns, values = program.row_start, program.columns.tolist(), program.values.tolist()
    bounds = zip(program.row_lower.tolist(), program.row_upper.tolist())
    for (first, end), (lower, upper) in zip(pairwise(start.tolist()), bounds):
        yield columns[first:end], values[first:end], lower, upper


def _parts(program: Program) -> tuple[list[str], list[_Row]]:
    """Return the names of the variables, and the rows by names, if a file can hold them."""
    bounds = program.lower, program.upper, program.row_lower, program.row_upper
    parts = program.objective, program.values, *bounds, np.array([program.offset])
    numbers = np.abs(np.concatenate(parts))
    if numbers[numbers != UNBOUNDED].max(initial=0) >= LARGEST_NUMBER:
        raise InputError("a number of 16 digits or more does not fit; export as cp-sat instead")
    names = [program.variable_name(number) for number in range(program.num_variables)]
    of_rows = [program.row_name(number) for number in range(program.num_rows)]
    for name in (*names, *of_rows):
        if not PORTABLE_NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be the name of a variable or row")
    if len(set(names)) < len(names) or len(set(of_rows)) < len(of_rows):
        raise InputError("two variables or two rows have the same name")
    rows = []
    for name, (columns, values, least, most) in zip(of_rows, _rows(program)):
        entries = {names[column]: value for column, value in zip(columns, values)}
        if len(entries) < len(columns):
            raise InputError(f"row {name} has a variable twice")
        at_least = None if least == -UNBOUNDED else least
        rows.append(_Row(name, entries, at_least, None if most == UNBOUNDED else most))
    return names, rows


def _terms(entries: dict[str, int]) -> list[str]:
    return [f"{value:+} {name}" for name, value in entries.items()]


def _statement(name: str, words: list[str]) -> Iterator[str]:
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
    if row.at_least is None:
        return "N" if row.at_most is None else "L"
    return "G" if row.at_most is None else "E" if row.at_least == row.at_most else "L"


def _fields(*words: str | int) -> str:
    kind, first, second, number = words
    return f" {kind:<2} {first:<8}  {second:<8}  {number:>12}"


def _different(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Names that MiniZinc takes as they are, unless they are keywords."""

KEYWORDS = frozenset(
    {
        "ann", "annotation", "any", "anyvar", "array", "bool", "case", "constraint", "default",
        "diff", "div", "else", "elseif", "endif", "enum", "false", "float", "function", "if",
        "in", "include", "int", "intersect", "let", "list", "maximize", "minimize", "mod",
        "not", "of", "op", "opt", "output", "par", "predicate", "record", "satisfy", "set",
        "solve", "string", "subset", "superset", "symdiff", "test", "then", "true", "tuple",
        "type", "union", "var", "where", "xor"
    }
)  # fmt: skip

UNQUOTABLE = re.compile(r"['\"\\\n\r\0]")


def minizinc_model(program: Program) -> str:
    """Return the program in MiniZinc, with the names of variables and rows.

    Names that are not plain words are quoted, ``'x.1'``, and a row has its name as an annotation.

    >>> import numpy as np
    >>> from optsched.models.program import ProgramBuilder
    >>> builder = ProgramBuilder("max")
    >>> x = builder.variables("start_job{}", 2, objective=[3, 4])
    >>> builder.row("power", (np.array([5, 6]), x), at_most=8)
    >>> print(minizinc_model(builder.build()), end="")
    var 0..1: start_job1;
    var 0..1: start_job2;
    constraint :: "power" 5*start_job1 + 6*start_job2 <= 8;
    solve maximize 3*start_job1 + 4*start_job2;
    """
    given = [program.variable_name(number) for number in range(program.num_variables)]
    if len(set(given)) < len(given):
        raise InputError("two variables have the same name")
    plain = {name for name in given if PLAIN_NAME.fullmatch(name)} - KEYWORDS
    names = [name if name in plain else f"'{_text(name)}'" for name in given]
    if (program.lower <= -UNBOUNDED).any() or (program.upper == UNBOUNDED).any():
        raise InputError("a variable has no bounds; MiniZinc needs both")
    bounds = zip(names, program.lower.tolist(), program.upper.tolist())
    lines = [f"var {lower}..{upper}: {name};" for name, lower, upper in bounds]
    for row, (columns, values, lower, upper) in enumerate(_rows(program)):
        total = _sum(zip(values, (names[column] for column in columns)))
        named = f'constraint :: "{_text(program.row_name(row))}"'
        if lower == upper:
            lines.append(f"{named} {total} = {lower};")
            continue
        if lower != -UNBOUNDED:
            lines.append(f"{named} {total} >= {lower};")
        if upper != UNBOUNDED:
            lines.append(f"{named} {total} <= {upper};")
    goal = _sum(zip(program.objective.tolist(), names), program.offset)
    lines.append(f"solve {program.sense}imize {goal};")
    return "".join(f"{line}\n" for line in lines)


def _sum(terms: Iterable[tuple[int, str]], constant: int = 0) -> str:
    parts = [f"{a}*{name}" for a, name in terms if a]
    parts = [re.sub(r"^(-?)1\*", r"\1", part) for part in parts]
    parts += [str(constant)] if constant or not parts else []
    return " + ".join(parts).replace("+ -", "- ")


def _text(name: str) -> str:
    if not name or UNQUOTABLE.search(name):
        raise InputError(f"{name!r} cannot be the name of a variable or row")
    return name


FORMATS = {
    ".lp": "lp",
    ".mps": "mps",
    ".mzn": "minizinc",
    ".pb.txt": "cp-sat",
    ".pbtxt": "cp-sat",
    ".txt": "knapsack",
}
"""Format of an export by the suffix of its file; the first that matches counts."""


def highs_model(program: Program) -> Any:
    """Return the program as a silent ``highspy.Highs``."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    bounds = (program.lower, program.upper, program.row_lower, program.row_upper)
    passed = highs.passModel(
        program.num_variables,
        program.num_rows,
        len(program.values),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize if program.sense == "max" else highspy.ObjSense.kMinimize),
        float(program.offset),
        program.objective.astype(float),
        *(np.where(np.abs(b) == UNBOUNDED, np.copysign(np.inf, b), b) for b in bounds),
        program.row_start.astype(np.int32),
        program.columns.astype(np.int32),
        program.values.astype(float),
        np.ones(program.num_variables, dtype=np.int32),
    )
    if passed == highspy.HighsStatus.kError:
        raise ValueError("HiGHS does not accept the program")
    return highs


def cp_sat_model(program: Program, *, names: bool = False) -> Any:
    """Return the program as a ``cp_model.CpModel``; with `names`, variables and rows are named."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    proto = model.proto
    add_variable, add_row = proto.variables.add, proto.constraints.add
    for bounds in zip(program.lower.tolist(), program.upper.tolist()):
        add_variable().domain.extend(bounds)
    for columns, values, *limits in _rows(program):
        row = add_row().linear
        row.vars.extend(columns)
        row.coeffs.extend(values)
        row.domain.extend(limits)
    # the proto minimizes scaling_factor * (coeffs @ vars + offset)
    sign = -1 if program.sense == "max" else 1
    objective = proto.objective
    objective.vars.extend(range(program.num_variables))
    objective.coeffs.extend((sign * program.objective).tolist())
    objective.offset = float(sign * program.offset)
    objective.scaling_factor = float(sign)
    if names:
        for number, variable in enumerate(proto.variables):
            variable.name = program.variable_name(number)
        for number, constraint in enumerate(proto.constraints):
            constraint.name = program.row_name(number)
    return model


def export(problem: Problem[Any], path: str | Path, format: str | None = None) -> None:  # noqa: A002
    """Write the program of a problem for other software, with the names of variables and rows.

    Numbers are written to the last digit; the LP and MPS writer of OR-Tools keeps six, so that
    1,234,567 becomes 1,234,570.

    `path`: the file, which is written under a temporary name and renamed; `format`: CPLEX LP, free
    MPS, MiniZinc, the text form of CP-SAT's ``CpModelProto``, or, of `optsched.models.WindowMKP`
    alone, the literature's text format of multiple knapsacks; by default that of the suffix:
    ``.lp``, ``.mps``, ``.mzn``, ``.pb.txt`` or ``.pbtxt``, ``.txt``.
    """
    path = Path(path)
    if format is None:
        format = next((FORMATS[end] for end in FORMATS if path.name.endswith(end)), None)  # noqa: A001
    if format is None or format not in FORMATS.values():
        formats = list(dict.fromkeys(FORMATS.values()))
        known = f"{', '.join(formats[:-1])} or {formats[-1]}"
        known += ", or a file that ends in " + ", ".join(FORMATS)
        raise InputError(f"no known export format; expected {known}", file=path)
    try:
        if format == "knapsack":
            text = _knapsack(problem)
        elif format == "minizinc":
            text = minizinc_model(problem.formulate().program)
        elif format == "cp-sat":
            text = str(cp_sat_model(problem.formulate().program, names=True).proto)
        else:
            text = (lp_text if format == "lp" else mps_text)(problem.formulate().program)
    except StatementError:
        raise  # names the file of the model
    except InputError as error:
        raise error.within(path) from None
    write_text(path, text)


def _knapsack(problem: Problem[Any]) -> str:
    """Return a window knapsack as text, which has no labels."""
    from optsched.models.window_mkp import WindowMKP

    if not isinstance(problem, WindowMKP):
        raise InputError(f"{problem.name} has no text format; expected a window-mkp problem")
    capacities = problem.capacities.tolist()
    items = zip(problem.weights.tolist(), problem.profits.tolist())
    lines = [len(capacities), len(problem.weights), *capacities]
    return "".join(f"{line}\n" for line in [*lines, *(f"{w} {p}" for w, p in items)])
