"""Programs as MiniZinc models."""

from __future__ import annotations

import re
from collections.abc import Iterable

from optsched.errors import InputError
from optsched.models.program import UNBOUNDED, Program

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
    >>> from optsched.models.program_builder import ProgramBuilder
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
    names = [_legal(name) for name in given]
    bounds = zip(names, program.lower.tolist(), program.upper.tolist())
    lines = [f"var {_domain(lower, upper)}: {name};" for name, lower, upper in bounds]
    columns, values, start = (
        array.tolist() for array in (program.columns, program.values, program.row_start)
    )
    limits = zip(program.row_lower.tolist(), program.row_upper.tolist())
    for row, (lower, upper) in enumerate(limits):
        entries = slice(start[row], start[row + 1])
        total = _sum(zip(values[entries], (names[column] for column in columns[entries])))
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


def _domain(lower: int, upper: int) -> str:
    """Return the domain of a variable; a range needs both ends."""
    if lower > -UNBOUNDED and upper < UNBOUNDED:
        return f"{lower}..{upper}"
    raise InputError("a variable has no bounds; MiniZinc needs both")


def _sum(terms: Iterable[tuple[int, str]], constant: int = 0) -> str:
    parts = [f"{a}*{name}" for a, name in terms if a]
    parts = [re.sub(r"^(-?)1\*", r"\1", part) for part in parts]
    parts += [str(constant)] if constant or not parts else []
    return " + ".join(parts).replace("+ -", "- ")


def _legal(name: str) -> str:
    """Return a name as MiniZinc reads it."""
    if PLAIN_NAME.fullmatch(name) and name not in KEYWORDS:
        return name
    return f"'{_text(name)}'"


def _text(name: str) -> str:
    if not name or UNQUOTABLE.search(name):
        raise InputError(f"{name!r} cannot be the name of a variable or row")
    return name
