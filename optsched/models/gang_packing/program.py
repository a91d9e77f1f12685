"""The 0-1 program of a gang packing, and its vectors.

Variables are x[j, r], job j (running ones first) in row r, at place ``j * rows + r``, and behind
them y[r], row r in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.program import UNBOUNDED, Program
from optsched.models.statement import Statement

if TYPE_CHECKING:
    from optsched.models.gang_packing.problem import GangPacking

Rows = tuple[int, ...]


def formulate(problem: GangPacking) -> Program:
    """Return the program of the model's page, equations (1) to (10)."""
    n, jobs = len(problem.running), len(problem.running) + len(problem.waiting)
    rows = range(problem.rows)
    sizes = [mask.bit_count() for mask in problem.running] + list(problem.waiting)
    lower = np.zeros((jobs + 1) * len(rows), dtype=np.int64)
    upper = np.ones((jobs + 1) * len(rows), dtype=np.int64)
    if not problem.rerow:
        for job, kept in enumerate(problem.rows_of_running):
            upper[job * len(rows) : (job + 1) * len(rows)] = 0
            lower[job * len(rows) + kept] = upper[job * len(rows) + kept] = 1
            lower[jobs * len(rows) + kept] = 1
        for row, held in enumerate(problem.occupied(problem.rows_of_running)):
            for job in range(n, jobs):
                fits = sizes[job] <= problem.columns - held.bit_count()
                upper[job * len(rows) + row] = fits
    state = Statement()

    def x(job: int, row: int) -> int:
        return job * len(rows) + row

    def y(row: int) -> int:
        return jobs * len(rows) + row

    def name(job: int) -> str:
        return f"run{job + 1}" if job < n else f"wait{job - n + 1}"

    for row in rows:
        terms = {x(job, row): sizes[job] for job in range(jobs)}
        state.add(f"capacity_row{row + 1}", terms | {y(row): -problem.columns}, 0)
        terms = dict.fromkeys(range(row, jobs * len(rows), len(rows)), -1)
        state.add(f"used_row{row + 1}", terms | {y(row): 1}, 0)
    for job in range(jobs):
        terms = {x(job, row): 1 for row in rows}
        state.add(f"once_{name(job)}", terms, 1, 1 if job < n else -UNBOUNDED)
    if problem.rerow:
        for number, group in enumerate(_sharing(problem), start=1):
            for row in rows:
                terms = {x(job, row): 1 for job in group}
                state.add(f"conflict{number}_row{row + 1}", terms | {y(row): -1}, 0)
    if problem.admission == "fcfs":
        for job in range(n, jobs - 1):
            terms = {x(job + 1, row): 1 for row in rows} | {x(job, row): -1 for row in rows}
            state.add(f"order_{name(job + 1)}", terms, 0)
    alike = _alike(problem)
    for row, following in pairwise(alike):
        state.add(f"first_row{row + 1}", {y(row): -1, y(following): 1}, 0)
    gain = np.zeros(len(lower), dtype=np.int64)
    for job in range(n, jobs):
        gain[job * len(rows) : (job + 1) * len(rows)] = (len(rows) + 1) * sizes[job]
    gain[jobs * len(rows) :] = -1

    def variable_name(number: int) -> str:
        job, row = divmod(number, len(rows))
        return f"y_row{row + 1}" if job == jobs else f"x_{name(job)}_row{row + 1}"

    return Program(
        sense="max",
        objective=gain,
        lower=lower,
        upper=upper,
        **state.rows(),
        offset=(len(rows) + 1) * sum(sizes[:n]),
        variable_name=variable_name,
        row_name=state.names.__getitem__,
    )


def rows_of(problem: GangPacking, x: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Return the rows of running and of waiting jobs in a vector; -1 for a job in none."""
    n, jobs = len(problem.running), len(problem.running) + len(problem.waiting)
    placed = np.asarray(x)[: jobs * problem.rows].reshape(jobs, problem.rows)
    found: list[int] = np.where(placed.any(axis=1), placed.argmax(axis=1), -1).tolist()
    return tuple(found[:n]), tuple(found[n:])


def vector(problem: GangPacking, running: Rows, waiting: Rows) -> NDArray[np.int64]:
    """Return the vector of rows; the inverse of `rows_of`."""
    rows = (*running, *waiting)
    x = np.zeros((len(rows) + 1, problem.rows), dtype=np.int64)
    for job, row in enumerate(rows):
        if row >= 0:
            x[job, row] = x[-1, row] = 1
    return x.ravel()


def used_first(problem: GangPacking, running: Rows, waiting: Rows) -> tuple[Rows, Rows]:
    """Return the rows of the jobs, renumbered: of rows that are alike the used ones come first."""
    used = {*running, *waiting}
    alike = _alike(problem)
    there = [row for row in alike if row in used]
    number = dict(zip(there, alike))
    return tuple(number.get(row, row) for row in running), tuple(
        number.get(row, row) for row in waiting
    )


def _alike(problem: GangPacking) -> Sequence[int]:
    """Return the rows that may change their numbers: those that no running job has to keep."""
    kept = set() if problem.rerow else set(problem.rows_of_running)
    return [row for row in range(problem.rows) if row not in kept]


def _sharing(problem: GangPacking) -> list[list[int]]:
    """Return the maximal sets of running jobs that share a column, each once, in order."""
    width = (problem.columns + 7) // 8
    table = np.frombuffer(
        b"".join(mask.to_bytes(width, "little") for mask in problem.running), dtype=np.uint8
    ).reshape(len(problem.running), width)
    held = np.unique(np.unpackbits(table, axis=1, bitorder="little"), axis=1).T
    groups = sorted({tuple(np.flatnonzero(jobs).tolist()) for jobs in held if jobs.any()})
    sets = [frozenset(group) for group in groups]
    return [
        list(group) for group, jobs in zip(groups, sets) if not any(jobs < other for other in sets)
    ]
