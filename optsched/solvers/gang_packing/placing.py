"""Simple rules: compaction of running jobs, and fits of waiting jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from optsched.models.gang_packing import NOT_PLACED
from optsched.solvers.heuristic import Heuristic

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking


class FitHeuristic(Heuristic):
    """Base class of the simple rules, whose work is counted in jobs times rows."""

    models = frozenset({"gang-packing"})
    work_unit = "jobs times rows"
    seconds_per_work = 1e-7

    def effort(self, problem: GangPacking) -> int:
        """Return the number of jobs times the number of rows."""
        return (len(problem.running) + len(problem.waiting)) * problem.rows


def compacted(problem: GangPacking) -> Sequence[int]:
    """Return the row of each running job after compaction.

    Rows are processed from the emptiest (of equal rows, that of highest number first). Each job of
    a row, in the order of jobs, moves to the fullest row (of equal rows, that of lowest number)
    that is fuller than its own and has its columns free. Nothing moves if running jobs keep their
    rows.
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
    """Return the row of each waiting job, -1 if not placed.

    Each job goes into a row in use with enough free columns, else into the first empty row. Under
    ``fcfs``, placement ends at the first job that does not fit.

    `tightest` is whether to choose the row with the fewest free columns (best fit) or the first
    (first fit), `order` that of the waiting jobs (by default that of the queue), and `placed`
    has fixed rows of waiting jobs, -1 for jobs to be placed.
    """
    free = [problem.columns - mask.bit_count() for mask in problem.occupied(rows_of_running)]
    rows = list(placed or (NOT_PLACED,) * len(problem.waiting))
    for size, row in zip(problem.waiting, placed or ()):
        if row != NOT_PLACED:
            free[row] -= size
    used = [columns < problem.columns for columns in free]
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
        for row, columns in enumerate(free):
            if used[row] and columns >= size and (chosen < 0 or columns < free[chosen]):
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
