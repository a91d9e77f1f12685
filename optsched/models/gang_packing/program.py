"""The 0-1 program of a gang packing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.models.gang_packing.problem import NOT_PLACED, GangPacking, Packing
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations


@formulations.register("gang-packing")
class GangFormulation(Formulation[GangPacking, Packing]):
    """Equations (1) to (10) of the model's page.

    ``x[j, r]`` is 1 if job j is in matrix row r, running jobs first, and ``y[r]`` if row r is in
    use. Matrix rows that no running job has to keep are interchangeable; of these, the rows in use
    come first.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables x[j, r] by job, then y[r]."""
        problem, rows = self.problem, self.problem.rows
        running = [f"run{job + 1}" for job in range(len(problem.running))]
        waiting = [f"wait{job + 1}" for job in range(len(problem.waiting))]
        n = len(running)
        sizes = np.array([*map(int.bit_count, problem.running), *problem.waiting], dtype=np.int64)
        lower, upper = np.zeros((len(sizes), rows), dtype=np.int64), np.ones((len(sizes), rows))
        kept = np.zeros(rows, dtype=np.int64)
        if not problem.rerow:
            of_running = list(problem.rows_of_running)
            held = problem.occupied(of_running)
            lower[range(n), of_running] = kept[of_running] = 1
            upper[:n] = lower[:n]
            upper[n:] = sizes[n:, None] <= [problem.columns - mask.bit_count() for mask in held]
        gain = np.where(np.arange(len(sizes)) < n, 0, (rows + 1) * sizes)

        builder = ProgramBuilder("max")
        x = builder.variables(
            "x_{}_row{}", running + waiting, rows, lower=lower, upper=upper, objective=gain[:, None]
        )
        y = builder.variables("y_row{}", rows, lower=kept, objective=-1)
        for row in range(rows):
            used = (-problem.columns, y[row])
            builder.row(f"capacity_row{row + 1}", (sizes, x[:, row]), used, at_most=0)
            builder.row(f"used_row{row + 1}", (-1, x[:, row]), (1, y[row]), at_most=0)
        builder.rows("once_{}", (1, x[:n]), over=(running,), equal=1)
        builder.rows("once_{}", (1, x[n:]), over=(waiting,), at_most=1)
        if problem.rerow:
            for number, jobs in enumerate(_sharing(problem), start=1):
                name = f"conflict{number}_row{{}}"
                builder.rows(name, (1, x[jobs].T), (-1, y[:, None]), at_most=0)
        if problem.admission == "fcfs":
            behind = (1, x[n + 1 :]), (-1, x[n:-1])
            builder.rows("order_{}", *behind, over=(waiting[1:],), at_most=0)
        alike = np.array(_interchangeable(problem), dtype=np.int64)
        pair = (-1, y[alike[:-1], None]), (1, y[alike[1:], None])
        builder.rows("first_row{}", *pair, over=((alike[:-1] + 1).tolist(),), at_most=0)
        return builder.build(offset=(rows + 1) * int(sizes[:n].sum()))

    def decode(self, x: NDArray[np.int64]) -> Packing:
        """Return the renumbered rows of jobs, and the columns that `columns_for` chooses."""
        problem = self.problem
        n, jobs = len(problem.running), len(problem.running) + len(problem.waiting)
        placed = np.asarray(x)[: jobs * problem.rows].reshape(jobs, problem.rows)
        chosen = np.where(placed.any(axis=1), placed.argmax(axis=1), NOT_PLACED)
        rows = _used_first(problem, chosen.tolist())
        return problem.packing(rows[:n], rows[n:])

    def encode(self, solution: Packing) -> NDArray[np.int64]:
        """Return the 0-1 vector of the renumbered rows; columns are not part of the vector."""
        of_jobs = (*solution.rows_of_running, *solution.rows_of_waiting)
        rows = _used_first(self.problem, of_jobs)
        x = np.zeros((len(rows) + 1, self.problem.rows), dtype=np.int64)
        for job, row in enumerate(rows):
            if row != NOT_PLACED:
                x[job, row] = x[-1, row] = 1
        return x.ravel()


def _used_first(problem: GangPacking, rows: Sequence[int]) -> tuple[int, ...]:
    """Return the rows of jobs, renumbered so that used interchangeable rows come first."""
    alike = _interchangeable(problem)
    used = set(rows)
    number = dict(zip([row for row in alike if row in used], alike))
    return tuple(number.get(row, row) for row in rows)


def _interchangeable(problem: GangPacking) -> list[int]:
    """Return the matrix rows that no running job has to keep."""
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
