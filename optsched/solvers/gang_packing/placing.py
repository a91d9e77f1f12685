"""Rows by simple rules: compaction of the running jobs, and fits for the waiting ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from optsched.models.gang_packing import NOT_PLACED
from optsched.solvers.heuristic import Heuristic

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking, Packing


class FitHeuristic(Heuristic):
    """Compacts the rows if running jobs may move, and then places waiting jobs one by one.

    Work is counted in jobs times rows.
    """

    models = frozenset({"gang-packing"})
    work_unit = "jobs times rows"
    seconds_per_work = 1e-7

    @abstractmethod
    def place(self, problem: GangPacking) -> Packing:
        """Return a feasible packing."""

    def effort(self, problem: GangPacking) -> int:
        """Return jobs times rows."""
        return (len(problem.running) + len(problem.waiting)) * problem.rows


def compacted(problem: GangPacking) -> Sequence[int]:
    """Return the row of each running job after jobs of thin rows have moved to full ones.

    Row after row, from the one that holds the fewest columns (of equal ones that with the highest
    number first), each job goes, in the order of the jobs, to the fullest row (of equal ones that
    with the lowest number) where its columns are free and that is fuller than its own row. So full
    rows become fuller, and thin ones empty. Where running jobs keep their rows, nothing moves.
    """
    if not problem.rerow:
        return problem.rows_of_running
    running, rows = problem.running, list(problem.rows_of_running)
    held = problem.occupied(rows)
    inside: list[list[int]] = [[] for _ in held]
    for job, row in enumerate(rows):
        inside[row].append(job)

    def fullest_first(row: int) -> tuple[int, int]:
        return -held[row].bit_count(), row

    fullest = sorted(range(problem.rows), key=fullest_first)
    for row in reversed(fullest.copy()):
        for job in inside[row]:
            mask = running[job]
            for target in fullest:
                if target == row:
                    break
                if not held[target] & mask:
                    rows[job] = target
                    held[target] |= mask
                    held[row] ^= mask
                    fullest.sort(key=fullest_first)
                    break
    return rows


def fitted(
    problem: GangPacking,
    rows_of_running: Sequence[int],
    *,
    tightest: bool,
    order: Iterable[int] | None = None,
    placed: Sequence[int] | None = None,
) -> list[int]:
    """Return a row for each waiting job, -1 for none.

    One after the other, a job goes into a row in use with enough free columns, else into the empty
    row with the lowest number, if there is one. Under ``fcfs`` the first that fits nowhere ends it.

    Parameters
    ----------
    problem : GangPacking
        The problem.
    rows_of_running : sequence of int
        The row of each running job.
    tightest : bool
        Whether the row with the fewest free columns is taken, or that with the lowest number.
    order : iterable of int, optional
        The waiting jobs in turn; as they queue if left out.
    placed : sequence of int, optional
        Rows that waiting jobs have already, -1 for none; they keep them.
    """
    free = [problem.columns - mask.bit_count() for mask in problem.occupied(rows_of_running)]
    rows = list(placed or (NOT_PLACED,) * len(problem.waiting))
    for size, row in zip(problem.waiting, placed or ()):
        if row != NOT_PLACED:
            free[row] -= size
    used = [room < problem.columns for room in free]
    widest = max(free)
    for job in range(len(rows)) if order is None else order:
        size = problem.waiting[job]
        if rows[job] != NOT_PLACED:
            continue
        if size > widest:
            if problem.admission == "fcfs":
                break
            continue
        chosen = NOT_PLACED
        for row, room in enumerate(free):
            if used[row] and room >= size and (chosen < 0 or room < free[chosen]):
                chosen = row
                if not tightest:
                    break
        if chosen < 0:
            chosen = used.index(False)
            used[chosen] = True
        rows[job] = chosen
        free[chosen] -= size
        widest = max(free)
    return rows
