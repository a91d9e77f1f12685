"""The compiled bound of the root against the readable one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from optsched.solvers.gang_packing import _root_bound
from optsched.solvers.gang_packing._bounds import FreeColumns
from optsched.solvers.gang_packing._subproblems import Subproblems
from optsched.solvers.gang_packing.fit_rules import FirstFit
from optsched.testing import gang_packings

from .conftest import random_matrix


def assert_same_bound(problem):
    best = FirstFit().place(problem)
    matrix = _root_bound.Matrix(
        problem.columns, problem.rows, problem.admission == "skip", problem.rerow
    )
    queue = _root_bound.empty_queue(matrix, len(problem.waiting))
    queue.size[:] = problem.waiting
    free = FreeColumns(problem)
    most = free.most(free.fewest_rows)
    queue.free[: free.fewest_rows] = np.diff(most)
    placed = [size for size, row in zip(problem.waiting, best.rows_of_waiting) if row >= 0]
    steps = sum(placed) if matrix.skips else len(placed)
    columns, rows = _root_bound.root_bound(
        queue, matrix, free.fewest_rows, len(problem.waiting), steps
    )
    running = sum(map(int.bit_count, problem.running))
    bound = (problem.rows + 1) * (running + columns) - rows
    assert bound == Subproblems(problem, best, lambda: None).bound()


@settings(max_examples=300)
@given(gang_packings(max_running=6, max_waiting=8))
def test_the_compiled_bound_is_the_readable_one(problem):
    assert_same_bound(problem)


def test_the_compiled_bound_of_wide_matrices_is_the_readable_one():
    for seed in range(40):
        options = {"admission": ("fcfs", "skip")[seed % 2], "rerow": seed % 4 < 2}
        assert_same_bound(random_matrix(seed, jobs=34, waiting=14, **options))
