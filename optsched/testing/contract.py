"""Contract of problems and of solvers."""

from __future__ import annotations

import copy
import ctypes
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import FrozenInstanceError, fields, is_dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.export import PORTABLE_NAME
from optsched.models.problem import Problem
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations
from optsched.models.snapshot import Snapshot
from optsched.registry import models
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import solve

POINTS = 4096
"""Most points within the bounds of a program that is checked at every point."""


def expect(condition: object, otherwise: str) -> None:
    """Raise `AssertionError` with the text `otherwise` unless `condition` holds."""
    if not condition:
        raise AssertionError(otherwise)


def is_small(program: Program) -> bool:
    """Return whether the program has at most `POINTS` points within the bounds of its variables."""
    widths = program.upper.astype(float) - program.lower + 1
    return bool(np.log2(widths).sum() <= np.log2(POINTS))


def points(program: Program) -> Iterator[NDArray[np.int64]]:
    """Yield all points of a small program, or `POINTS` of a large one, the sparse ones first."""
    lower, upper = program.lower, program.upper
    if is_small(program):
        for offset in np.ndindex(*(upper - lower + 1).tolist()):
            yield lower + np.array(offset, dtype=np.int64)
        return
    rng = np.random.default_rng(0)
    highest = np.minimum(upper, UNBOUNDED - 1)
    for number in range(POINTS):
        x = rng.integers(lower, highest, endpoint=True)
        share = number / POINTS * 2.0 ** -rng.integers(0, 1 + int(np.log2(len(x))))
        yield np.where(rng.random(len(x)) < share, x, lower)


def brute_force(problem: Problem[Any]) -> int | None:
    """Return the optimal objective over all points, by verification alone; None if infeasible.

    A program with more than `POINTS` points is refused.
    """
    formulation = problem.formulate()
    program = formulation.program
    if not is_small(program):
        raise InputError(f"more than {POINTS} points to try")
    solutions = (formulation.decode(x) for x in points(program))
    values = [problem.objective(s) for s in solutions if not problem.violations(s)]
    return (max if problem.sense == "max" else min)(values, default=None)


def check_solver(
    solver: Solver,
    problem: Problem[Any],
    *,
    optimum: int | None = None,
    budget: Budget | None = None,
) -> Result:
    """Check that `solver` keeps the contract on `problem`, and return its result.

    The solver is called with `budget`, with very little work and very little time, with hints and
    with seeds. Each result must pass verification; status, objective, bound, gap, limit and
    incumbents must agree. An exact solver must prove its solution if no limit stops it, must name
    the limit otherwise, and must not return less than a hint. The same work must give the same
    result, nothing may be printed, and the problem and the hints must not be changed. Otherwise, an
    `AssertionError` is raised.

    `solver` has its default options, and supports the `problem`. The `optimum`, if it is not given,
    is computed for a small problem, see `brute_force`. The `budget` is that of a solve call;
    without one, it is unlimited, for problems that are solved fast.
    """
    expect(solver.supports(problem.name), f"does not support {problem.name}")
    if optimum is None and problem.name in formulations and is_small(problem.formulate().program):
        optimum = brute_force(problem)
    before = problem.copy()
    full = budget or Budget()
    whole = check_answer(solver, problem, optimum, full)
    if solver.exact and full == Budget():
        proven = whole.status in (Status.OPTIMAL, Status.INFEASIBLE)
        expect(proven, f"without a limit, an exact solver ended with {whole.status}")
    for seed in (1, 2**40):
        check_answer(solver, problem, optimum, full, seed=seed)
    least = 1e-6 * solver.default_work
    for little in (Budget(work=least), Budget(seconds=1e-4), Budget(seconds=1e-4, work=least)):
        check_answer(solver, problem, optimum, little)
    formulation = problem.formulate()
    nothing = formulation.decode(formulation.program.lower)
    hints = [] if whole.solution is None else [whole.solution]
    hints += [] if problem.violations(nothing) else [nothing]
    for hint in hints:
        as_given = copy.deepcopy(hint)
        for given in (full, Budget(work=least)):
            check_answer(solver, problem, optimum, given, hint=hint)
        expect(_same(problem, "solution", hint, as_given), "altered the hint")
    within_work = Budget(work=full.work or solver.default_work)
    one, other = (check_answer(solver, problem, optimum, within_work, seed=3) for _ in range(2))
    for name in ("status", "solution", "objective", "bound", "limit", "work"):
        values = getattr(one, name), getattr(other, name)
        expect(_same(problem, name, *values), f"the same work, but the {name} differs: {values}")
    for field in fields(problem):
        one, other = (getattr(which, field.name) for which in (before, problem))
        expect(_equal(one, other), f"altered {field.name} of the problem")
    return whole


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other) and one.flags.writeable == other.flags.writeable
    if is_dataclass(one):
        return all(_equal(value, vars(other)[name]) for name, value in vars(one).items())
    return bool(one == other)


def check_answer(
    solver: Solver,
    problem: Problem[Any],
    optimum: int | None,
    budget: Budget,
    *,
    hint: Any = None,
    seed: int = 0,
) -> Result:
    """Check one result of `solver`, and return the result; see `check_solver`.

    The result must pass verification, its status, objective, bound, gap, limit and incumbents must
    agree with each other and with the optimum, and nothing may be printed. The optimum is None if
    unknown or infeasible. A hint is a feasible solution, which an exact solver must not lose.
    """
    reported: list[Incumbent] = []
    with _nothing_printed():
        result = solve(
            problem,
            solver,
            budget=budget,
            hint=hint,
            seed=seed,
            on_incumbent=reported.append,
            interruptible=False,
            explain=False,
        )
    expect(result.status is not Status.ERROR, result.message)
    expect(result.verified, "not verified")
    expect(result.work >= 0, f"work {result.work}")
    _check_status(solver, problem, result, budget)
    _check_incumbents(problem, result)
    if reported:
        improving = tuple(next(own) for _, own in groupby(reported, lambda one: one.objective))
        same = improving == result.incumbents
        expect(same, "reported other incumbents than it returned")
    if solver.exact and hint is not None:
        value = problem.objective(hint)
        lost = result.objective is None or _better(problem, value, result.objective)
        expect(not lost, f"was given {value}, returns {result.objective}")
    if result.status is Status.INFEASIBLE:
        expect(optimum is None, f"claims infeasibility; the optimum is {optimum}")
    if optimum is not None:
        if result.objective is not None:
            expect(not _better(problem, result.objective, optimum), "better than the optimum")
        for bound in (result.bound, *(incumbent.bound for incumbent in result.incumbents)):
            if bound is not None:
                expect(not _better(problem, optimum, bound), f"{bound} is not a bound")
        if result.status is Status.OPTIMAL:
            expect(result.objective == optimum, f"{result.objective} is not the optimum")
    return result


def _check_status(solver: Solver, problem: Problem[Any], result: Result, budget: Budget) -> None:
    status, objective, bound = result.status, result.objective, result.bound
    answered = status in (Status.OPTIMAL, Status.FEASIBLE)
    expect(answered == (result.solution is not None), f"{status} with {result.solution}")
    expect(answered == (objective is not None), f"{status} with objective {objective}")
    if objective is not None and bound is not None:
        expect(not _better(problem, objective, bound), f"objective {objective}, bound {bound}")
        gap = abs(bound - objective) / max(1.0, abs(objective))
        expect(result.gap == gap, f"gap {result.gap}, expected {gap}")
    if status is Status.OPTIMAL:
        expect(bound == objective, f"optimal, but objective {objective} and bound {bound}")
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        expect(result.limit is None, f"{status}, but stopped by {result.limit}")
    elif solver.exact:
        given = {Limit.TIME: budget.seconds, Limit.WORK: budget.work}
        limit = result.limit
        named = limit is Limit.MEMORY or (limit is not None and given.get(limit) is not None)
        refused = status is Status.NO_SOLUTION and result.message
        expected = "expected a proof, or a limit of the budget, of a solver that is `exact`"
        expect(named or refused, f"{status}, stopped by {limit} under {budget}; {expected}")


def _check_incumbents(problem: Problem[Any], result: Result) -> None:
    previous: Incumbent | None = None
    for incumbent in result.incumbents:
        seconds, objective, bound = incumbent
        expect(0 <= seconds <= result.seconds, f"{incumbent} after the {result.seconds} s")
        if bound is not None:
            expect(not _better(problem, objective, bound), f"{incumbent} beats its bound")
        if previous is not None:
            ordered = previous.seconds <= seconds and _better(problem, objective, previous[1])
            if bound is not None and previous.bound is not None:
                ordered = ordered and not _better(problem, bound, previous.bound)
            expect(ordered, f"{incumbent} after {previous}")
        previous = incumbent
    last = None if previous is None else previous.objective
    expect(last == result.objective, f"last incumbent {last}, objective {result.objective}")


def _better(problem: Problem[Any], one: float, other: float) -> bool:
    return one > other if problem.sense == "max" else one < other


def _same(problem: Problem[Any], name: str, one: Any, other: Any) -> bool:
    if name == "solution" and one is not None and other is not None:
        return problem.solution_to_json(one) == problem.solution_to_json(other)
    return bool(one == other)


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Fail if anything is written to standard output or error, by Python or by C."""
    said = io.StringIO()
    _flush_c()
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as caught:
        try:
            for number in (1, 2):
                os.dup2(caught.fileno(), number)
            with redirect_stdout(said), redirect_stderr(said):
                yield
        finally:
            _flush_c()
            for number, original in enumerate(kept, start=1):
                os.dup2(original, number)
                os.close(original)
        caught.seek(0)
        printed = said.getvalue() + caught.read().decode(errors="replace")
    expect(not printed, f"printed {printed[:200]!r}")


def _flush_c() -> None:
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


WRITTEN = 20
"""Number of feasible solutions that are written and read, too."""


def check_problem(problem: Problem[Any], *, solutions: Sequence[Any] = ()) -> None:
    """Check that `problem` keeps the contract: program, verification and files agree.

    At every point within the bounds of the program's variables, or at a few thousand if there are
    more, the program must admit the solutions that pass verification, at the same objective. Every
    solution must survive encoding and its JSON form, and so must the problem its JSON form.
    Otherwise, an `AssertionError` is raised.

    The problem is preferably small, with all optional fields in use. Further `solutions` are
    checked: feasible ones, for a problem whose points are mostly infeasible.
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
        value, is_frozen = getattr(problem, field.name), False
        try:
            setattr(problem, field.name, value)
        except FrozenInstanceError:
            is_frozen = True
        expect(is_frozen, f"{field.name} can be set; expected a frozen dataclass")
        if isinstance(value, np.ndarray):
            expect(not value.flags.writeable, f"the array {field.name} can be written to")


def _check_program(program: Program) -> None:
    n, m = program.num_variables, program.num_rows
    sizes = dict.fromkeys(("objective", "lower", "upper"), n) | {"row_start": m + 1}
    sizes |= dict.fromkeys(("columns", "values"), len(program.values))
    sizes |= dict.fromkeys(("row_lower", "row_upper"), m)
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
