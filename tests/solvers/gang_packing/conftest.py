"""Gang packings to solve, and their optima by brute force."""

import itertools
import random

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


def random_matrix(seed, *, columns=64, rows=4, jobs=34, waiting=14, **options):
    """Draw jobs that arrived and left for a while: their columns are in pieces."""
    rng = random.Random(seed)
    free, running = [(1 << columns) - 1] * rows, []
    for _ in range(4 * jobs):
        row, size = rng.randrange(rows), int(columns ** rng.uniform(0, 5 / 6))
        there = [column for column in range(columns) if free[row] >> column & 1]
        if len(there) >= size:
            mask = sum(1 << column for column in sorted(rng.sample(there, size)))
            free[row] ^= mask
            running.append((mask, row))
        while len(running) > jobs:
            mask, row = running.pop(rng.randrange(len(running)))
            free[row] |= mask
    masks, in_rows = zip(*running)
    sizes = [int(columns ** rng.uniform(1 / 3, 1)) for _ in range(waiting)]
    return GangPacking(columns, rows, masks, in_rows, sizes, **options)
