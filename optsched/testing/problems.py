"""Contract of problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models.export import PORTABLE_NAME
from optsched.models.formulation import Formulation
from optsched.models.problem import Problem
from optsched.models.program import Program
from optsched.models.snapshot import Snapshot
from optsched.registry import models
from optsched.testing.points import expect, points

WRITTEN = 20
"""Number of feasible solutions that are written and read, too."""


def check_problem(problem: Problem[Any], *, solutions: Sequence[Any] = ()) -> None:
    """Check that `problem` keeps the contract: program, verification and files agree.

    At every point within the bounds of the program's variables, or at a few thousand if there are
    more, the program must admit the solutions that pass verification, at the same objective. Every
    solution must survive encoding and its JSON form, and so must the problem its JSON form.

    Parameters
    ----------
    problem : Problem
        The problem; preferably small, with all optional fields in use.
    solutions : sequence, optional
        Further solutions to check: feasible ones for a problem whose points are mostly infeasible.

    Raises
    ------
    AssertionError
        If the contract is broken.
    """
    _check_class(problem)
    formulation = problem.formulate()
    program = formulation.program
    _check_program(program)
    feasible = 0
    for x in points(program):
        solution = formulation.decode(x)
        broken = problem.violations(solution)
        if program.admits(x):
            expect(not broken, f"the program admits {x}, verification says {broken[:1]}")
            value = problem.objective(solution)
            expect(value == program.value(x), f"objective {value}, program {program.value(x)}")
        if not broken:
            feasible += 1
            _check_encoding(problem, formulation, solution)
            if feasible <= WRITTEN:
                _check_solution_files(problem, solution)
    for solution in solutions:
        if not problem.violations(solution):
            _check_encoding(problem, formulation, solution)
        _check_solution_files(problem, solution)
    _check_files(problem)


def _check_class(problem: Problem[Any]) -> None:
    expect(models[problem.name] is type(problem), f"{problem.name} is another class")
    expect(problem.sense in ("max", "min"), f"sense {problem.sense!r}")
    expect(bool(problem.size), "size is empty")
    expect(is_dataclass(problem), f"{type(problem).__name__} is not a dataclass")
    for field in fields(problem):
        value = getattr(problem, field.name)
        try:
            setattr(problem, field.name, value)
        except FrozenInstanceError:
            pass
        else:
            raise AssertionError(f"{field.name} can be set; expected a frozen dataclass")
        if isinstance(value, np.ndarray):
            expect(not value.flags.writeable, f"the array {field.name} can be written to")


def _check_program(program: Program) -> None:
    n, m = program.num_variables, program.num_rows
    sizes = {
        "objective": n,
        "lower": n,
        "upper": n,
        "row_start": m + 1,
        "columns": len(program.values),
        "values": len(program.values),
        "row_lower": m,
        "row_upper": m,
    }
    for name, size in sizes.items():
        array = getattr(program, name)
        expect(array.shape == (size,), f"{name} has shape {array.shape}, expected {(size,)}")
        expect(array.dtype == np.int64, f"{name} is {array.dtype}, expected int64")
    start = program.row_start
    expect(start[0] == 0 and start[-1] == len(program.values), "row_start does not span values")
    expect(bool((np.diff(start) >= 0).all()), "row_start decreases")
    expect(bool((program.lower <= program.upper).all()), "a lower bound above the upper")
    for row in range(m):
        columns = program.columns[start[row] : start[row + 1]]
        within = len(columns) == 0 or (columns.min() >= 0 and columns.max() < n)
        expect(bool(within), f"row {row} names a variable that does not exist")
        expect(len(np.unique(columns)) == len(columns), f"row {row} names a variable twice")
    for call, count in ((program.variable_name, n), (program.row_name, m)):
        names = [call(number) for number in range(count)]
        expect(len(set(names)) == count, "two variables or two rows have the same name")
        for name in names:
            expect(bool(PORTABLE_NAME.fullmatch(name)), f"{name!r} is not a name for an LP file")


def _check_encoding(
    problem: Problem[Any], formulation: Formulation[Any, Any], solution: Any
) -> None:
    x, program = formulation.encode(solution), formulation.program
    decoded = formulation.decode(x)
    same = problem.solution_to_json(decoded) == problem.solution_to_json(solution)
    expect(same, f"{solution} comes back from its vector as {decoded}")
    expect(program.admits(x), f"feasible, but the program does not admit {solution}")
    value = problem.objective(solution)
    expect(value == program.value(x), f"{solution}: objective {value}, program {program.value(x)}")


def _check_solution_files(problem: Problem[Any], solution: Any) -> None:
    written = problem.solution_to_json(solution)
    read = problem.solution_from_json(json.loads(json.dumps(written)))
    expect(problem.solution_to_json(read) == written, f"{solution} comes back as {read}")
    expect(problem.violations(read) == problem.violations(solution), "read back, it differs")
    for lines in (problem.describe(), problem.describe(solution)):
        texts = [text for line in lines for text in line]
        expect(all(isinstance(text, str) for text in texts), f"describe gives {lines}")
    for wrong in ({}, {"nonsense": 1}, {key: {"nonsense": 1} for key in written}):
        _expect_refused(problem.solution_from_json, wrong)


def _check_files(problem: Problem[Any]) -> None:
    fields_on_file = problem.to_json()
    written = json.loads(json.dumps(Snapshot(problem).to_json()))
    read = Snapshot.from_json(written).problem
    expect(read.to_json() == fields_on_file, "the problem comes back differently from its file")
    one, other = problem.formulate().program, read.formulate().program
    for name in ("objective", "lower", "upper", "columns", "values", "row_lower", "row_upper"):
        same = np.array_equal(getattr(one, name), getattr(other, name))
        expect(same, f"read back, the program has another {name}")
    unknown = {"nonsense_1": 1, "nonsense_2": 2}
    mistakes = _expect_refused(problem.from_json, fields_on_file | unknown)
    for name in unknown:
        expect(any(name in mistake for mistake in mistakes), f"says nothing about {name}")
    for name in fields_on_file:
        mistakes = _expect_refused(problem.from_json, fields_on_file | {name: {"nonsense": 1}})
        expect(any(name in mistake for mistake in mistakes), f"says nothing about {name}")
    for name in fields_on_file:
        left = {other: value for other, value in fields_on_file.items() if other != name}
        try:
            problem.from_json(left)
        except InputError as error:
            named = any(name in mistake for mistake in error.mistakes)
            expect(named, f"does not say that {name} is missing")


def _expect_refused(read: Callable[[Any], Any], written: Any) -> tuple[str, ...]:
    try:
        accepted = read(written)
    except InputError as error:
        return error.mistakes
    raise AssertionError(f"accepts {written} as {accepted}")
