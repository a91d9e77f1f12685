"""Gang packing: rows and columns of an Ousterhout matrix for jobs.

Model page: ``models/gang-packing/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from types import NoneType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.column_sets import ColumnSet, columns_on_file, interval_text, loads, lowest
from optsched.fields import Choice, Fields, Integer, Parsed, Table, flag
from optsched.models.fields import MOST_COLUMNS, ColumnSets, Numbers, from_one
from optsched.models.problem import Problem, Violation, listed, named
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field, labels
from optsched.registry import models

__all__ = ["NOT_PLACED", "GangPacking", "Packing"]

NOT_PLACED = -1

Admission = Literal["fcfs", "skip"]


class Packing(NamedTuple):
    """Rows and columns of the jobs of a matrix.

    Parameters
    ----------
    rows_of_running : tuple of int
        The row of each running job, from 0.
    rows_of_waiting : tuple of int
        The row of each waiting job, from 0; -1 for a job that is not placed.
    columns_of_waiting : tuple of int
        The columns of each waiting job as a bit mask; 0 for a job that is not placed.
    """

    rows_of_running: tuple[int, ...]
    rows_of_waiting: tuple[int, ...]
    columns_of_waiting: tuple[int, ...]


def columns_for(
    columns: int, occupied: Sequence[ColumnSet], rows: Sequence[int], sizes: Sequence[int]
) -> tuple[ColumnSet, ...]:
    """Choose the columns of jobs with known rows.

    One job after the other gets free columns of its row, if it has one (from 0): first the columns
    that running and earlier jobs hold in the fewest rows, and of these the lowest numbers. If a row
    has too few free columns, a job gets the remaining ones. Running jobs hold the columns
    `occupied` of each row.
    """
    chosen = [0] * len(rows)
    every = (1 << columns) - 1
    free = [every & ~held for held in occupied]
    levels, taken = list(occupied), 0
    for job, row in enumerate(rows):
        if row < 0:
            continue
        levels = loads((*levels, taken))
        left, needed, taken = free[row], sizes[job], 0
        for crowded in (*levels, 0):
            fitting = left & ~crowded
            count = fitting.bit_count()
            if count >= needed:
                taken |= lowest(fitting, needed)
                break
            taken |= fitting
            left &= crowded
            needed -= count
        chosen[job] = taken
        free[row] &= ~taken
    return tuple(chosen)


@models.register("gang-packing")
@declared
class GangPacking(Problem[Packing]):
    """Rows and columns of an Ousterhout matrix for running and waiting jobs.

    Raises
    ------
    InputError
        If a size or mask does not fit into the matrix, running jobs of a row share a column, or
        lengths do not match; the message lists all mistakes.

    Notes
    -----
    Masks are plain Python integers, so that the problem is built and its solution verified in some
    ten microseconds.

    References
    ----------
    H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel job
    scheduling for ASCI Blue-Pacific", SC 1999.

    Examples
    --------
    >>> problem = GangPacking(4, 2, running=[0b0011, 0b1100], rows_of_running=[0, 1], waiting=[4])
    >>> problem.objective(Packing((0, 1), (-1,), (0,)))
    10
    >>> problem.violations(Packing((0, 1), (0,), (0b1111,)))
    [Violation(constraint='overlap', detail='waiting job 1 shares columns 0-1 in row 1')]
    """

    columns: int = field(
        Integer(1, MOST_COLUMNS), "columns of the matrix, one for each node", symbol="C"
    )
    rows: int = field(
        Integer(1, MOST_COLUMNS), "most rows of the matrix: the multiprogramming level", symbol="R"
    )
    running: tuple[int, ...] = field(
        ColumnSets(), "columns of each running job; columns count from 0", symbol="M_j"
    )
    rows_of_running: tuple[int, ...] = field(
        Numbers("row", within="rows", like="running"),
        "present row of each running job",
    )
    waiting: tuple[int, ...] = field(
        Numbers("size", 1, within="columns"),
        "size of each waiting job, in the order of the queue; for running ones s_j counts M_j",
        symbol="s_j",
    )
    admission: Admission = field(
        Choice("fcfs", "skip"),
        "`fcfs`: no job is placed after one that is not; `skip`: any job may be placed",
        default="fcfs",
        always=True,
    )
    rerow: bool = field(
        flag(),
        "whether running jobs may change their rows; they keep their columns in any case",
        default=False,
        always=True,
    )
    running_jobs: Sequence[str | int] | None = labels("running", "a label for each running job")
    waiting_jobs: Sequence[str | int] | None = labels("waiting", "a label for each waiting job")

    sense = "max"
    default_solver = "row-search"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return a mistake for each running job that shares columns with another in its row."""
        found: list[str] = []
        running, rows = fields["running"], fields["rows_of_running"]
        held = [0] * fields["rows"]
        for place, (mask, row) in enumerate(zip(running, rows)):
            others = held[row]
            if others & mask:
                text = f"columns {interval_text(others & mask)} of row {row + on_file}"
                found.append(f"running[{place}]: holds {text}, which another job holds")
            held[row] = others | mask
        return found

    @property
    def size(self) -> str:
        """Running jobs + waiting jobs x rows."""
        return f"{len(self.running)}+{len(self.waiting)}x{self.rows}"

    def occupied(self, rows_of_running: Sequence[int]) -> tuple[int, ...]:
        """Return the columns that running jobs with a row (from 0) hold in each row, as masks."""
        return _occupied(self, tuple(rows_of_running))

    @property
    def held(self) -> tuple[int, ...]:
        """The columns that running jobs hold in each row now, as masks."""
        return self.occupied(self.rows_of_running)

    @cached_property
    def columns_of_running(self) -> int:
        """The number of columns that running jobs hold in all rows."""
        return sum(map(int.bit_count, self.running))

    def packing(self, rows_of_running: Sequence[int], rows_of_waiting: Sequence[int]) -> Packing:
        """Return the solution with jobs in given rows and the columns of `columns_for`."""
        chosen = (0,) * len(self.waiting)
        if max(rows_of_waiting, default=NOT_PLACED) >= 0:
            held = self.occupied(rows_of_running)
            chosen = columns_for(self.columns, held, rows_of_waiting, self.waiting)
        return Packing(tuple(rows_of_running), tuple(rows_of_waiting), chosen)

    def objective(self, solution: Packing) -> int:
        """Return (rows + 1) times the columns used in all rows, minus the rows in use."""
        served = self.columns_of_running
        for size, row in zip(self.waiting, solution.rows_of_waiting, strict=True):
            if row >= 0:
                served += size
        used = {*solution.rows_of_running, *solution.rows_of_waiting} - {NOT_PLACED}
        return (self.rows + 1) * served - len(used)

    def violations(self, solution: Packing) -> list[Violation]:
        """Check the rows, the columns and the order of admission."""
        of_running, of_waiting, chosen = solution
        if len(of_running) != len(self.running) or not (
            len(of_waiting) == len(chosen) == len(self.waiting)
        ):
            return [Violation("once", "expected an entry for each running and each waiting job")]
        found = []
        held = [0] * self.rows
        for job, (mask, row) in enumerate(zip(self.running, of_running, strict=True)):
            if not 0 <= row < self.rows:
                found.append(Violation("row", f"running job {job + 1} is in row {row + 1}"))
                continue
            if held[row] & mask:
                found.append(_overlap(f"running job {job + 1}", held[row] & mask, row))
            held[row] |= mask
        if not self.rerow and tuple(of_running) != self.rows_of_running:
            jobs = enumerate(zip(of_running, self.rows_of_running), start=1)
            moved = next(job for job, (row, present) in jobs if row != present)
            found.append(Violation("kept", f"running job {moved} has left its row"))
        first_out = 0
        for job, (size, row, mask) in enumerate(zip(self.waiting, of_waiting, chosen), start=1):
            if row == NOT_PLACED:
                first_out = first_out or job
                if mask:
                    found.append(Violation("size", f"waiting job {job} has columns but no row"))
                continue
            if not 0 <= row < self.rows:
                found.append(Violation("row", f"waiting job {job} is in row {row + 1}"))
                continue
            if mask >> self.columns:
                found.append(Violation("column", f"waiting job {job} is outside the matrix"))
            if mask.bit_count() != size:
                detail = f"waiting job {job} of size {size} has {mask.bit_count()} columns"
                found.append(Violation("size", detail))
            if held[row] & mask:
                found.append(_overlap(f"waiting job {job}", held[row] & mask, row))
            held[row] |= mask
            if first_out and self.admission == "fcfs":
                detail = f"waiting job {job} is placed, job {first_out} before it is not"
                found.append(Violation("order", detail))
        return found

    def solution_to_json(self, solution: Packing) -> dict[str, Any]:
        """Return rows from 1, and columns as intervals; null for a job that is not placed."""
        return {
            "rows_of_running": [row + 1 for row in solution.rows_of_running],
            "rows_of_waiting": [
                None if row == NOT_PLACED else row + 1 for row in solution.rows_of_waiting
            ],
            "columns_of_waiting": [
                interval_text(mask) or None for mask in solution.columns_of_waiting
            ],
        }

    def solution_from_json(self, fields: Mapping[str, Any]) -> Packing:
        """Return the packing written by `solution_to_json`."""
        within = f"a list of column sets such as '0-3 7' within 0-{self.columns - 1}, or null"
        table = Table(fields)
        of_running = table.read("rows_of_running", Parsed(_rows, "a list of rows from 1"))
        kind = Parsed(partial(_rows, optional=True), "a list of rows from 1, or null")
        of_waiting = table.read("rows_of_waiting", kind)
        masks = table.read("columns_of_waiting", Parsed(partial(_masks, self.columns), within))
        table.done(self.name)
        return Packing(of_running, of_waiting, masks)

    def describe(self, solution: Packing | None = None) -> list[tuple[str, str]]:
        """Return the rows with their jobs, of which + marks placed ones, and the waiting jobs."""
        running = named(self.running_jobs, [mask.bit_count() for mask in self.running], "r")
        waiting = named(self.waiting_jobs, self.waiting, "w")
        if solution is None:
            nothing = (NOT_PLACED,) * len(self.waiting)
            solution = Packing(self.rows_of_running, nothing, (0,) * len(self.waiting))
        lines = [("matrix", f"{self.columns} columns, at most {self.rows} rows")]
        for row in range(self.rows):
            inside = [job for job, at in zip(running, solution.rows_of_running) if at == row]
            inside += [f"+{job}" for job, at in zip(waiting, solution.rows_of_waiting) if at == row]
            lines.append((f"row {row + 1}", listed(inside)))
        left = (job for job, at in zip(waiting, solution.rows_of_waiting) if at == NOT_PLACED)
        return [*lines, ("waiting", listed(left))]


@lru_cache(maxsize=2)  # the rows of now, and those after compaction
def _occupied(problem: GangPacking, rows_of_running: tuple[int, ...]) -> tuple[int, ...]:
    held = [0] * problem.rows
    for mask, row in zip(problem.running, rows_of_running, strict=True):
        if row >= 0:
            held[row] |= mask
    return tuple(held)


def _overlap(job: str, shared: int, row: int) -> Violation:
    return Violation("overlap", f"{job} shares columns {interval_text(shared)} in row {row + 1}")


def _rows(value: Any, *, optional: bool = False) -> tuple[int, ...]:
    rows = from_one(value)
    if rows is None or (None in rows and not optional):
        raise ValueError
    return tuple(NOT_PLACED if row is None else row for row in rows)


def _masks(columns: int, value: Any) -> tuple[int, ...]:
    texts = value if isinstance(value, list) else [0]
    masks = [0 if text is None else columns_on_file(str(text), columns) for text in texts]
    if None in masks or not {*map(type, texts)} <= {str, NoneType}:
        raise ValueError
    return tuple(mask for mask in masks if mask is not None)


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
        pair = (-1, y[alike[:-1]]), (1, y[alike[1:]])
        builder.paired_rows("first_row{}", (alike[:-1] + 1).tolist(), *pair, at_most=0)
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
