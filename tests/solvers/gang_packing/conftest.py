"""Gang packings to solve, and their optima by brute force."""

from __future__ import annotations

import itertools

import pytest

from optsched.models import GangPacking


def optimum_of(problem):
    """Try every row for every job."""
    rows = range(problem.rows)
    for_running = [problem.rows_of_running]
    if problem.rerow:
        for_running = itertools.product(rows, repeat=len(problem.running))
    solutions = (
        problem.packing(of_running, of_waiting)
        for of_running in for_running
        for of_waiting in itertools.product((-1, *rows), repeat=len(problem.waiting))
    )
    return max(problem.objective(s) for s in solutions if not problem.violations(s))


@pytest.fixture
def example():
    """Return the worked example of the model's page."""
    running = [0b0000_0110, 0b1000_0000, 0b0001_1100, 0b1100_0000, 0b0001_1110]
    return GangPacking(8, 3, running, [0, 0, 1, 2, 2], [6, 3], rerow=True)
