"""All points of a small program, or a sample of the points of a large one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.models.program import UNBOUNDED, Program

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

    Raises
    ------
    InputError
        If the program has more than `POINTS` points.
    """
    formulation = problem.formulate()
    program = formulation.program
    if not is_small(program):
        raise InputError(f"more than {POINTS} points to try")
    solutions = (formulation.decode(x) for x in points(program))
    values = [problem.objective(s) for s in solutions if not problem.violations(s)]
    return (max if problem.sense == "max" else min)(values, default=None)
