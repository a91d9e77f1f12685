"""Placement of given jobs into rows, with movable or fixed running jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from optsched.column_sets import ColumnSet
from optsched.models.gang_packing import NOT_PLACED
from optsched.solvers.gang_packing._row_tree import RowTree

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking

Placement = tuple[list[int], list[int]]
"""Row of each running and of each waiting job, -1 if not placed."""


def place_all(
    problem: GangPacking,
    jobs: Iterable[int],
    rows: int,
    crowded: ColumnSet,
    step: Callable[[], None],
) -> Placement | None:
    """Place all running jobs and some waiting ones, if they fit.

    Parameters
    ----------
    problem : GangPacking
        The problem.
    jobs : iterable of int
        Numbers of the waiting jobs.
    rows : int
        Number of rows.
    crowded : column set
        Columns that running jobs take in every row in any case. They are removed from rows and
        running jobs alike.
    step : callable
        Callback for each search node; may raise an exception to end the search.
    """
    items = [((mask & ~crowded).bit_count(), mask, job) for job, mask in enumerate(problem.running)]
    items += [(problem.waiting[job], 0, job) for job in jobs]
    items.sort(key=lambda item: -item[0])
    conflicts = [0] * len(items)
    for place, (_, mask, _) in enumerate(items):
        for other in range(place if mask else 0):
            if items[other][1] & mask:
                conflicts[place] |= 1 << other
                conflicts[other] |= 1 << place
    free = [problem.columns - crowded.bit_count()] * rows
    found = RowTree([size for size, _, _ in items], conflicts, 0, 0, free).search(step)
    if found is None:
        return None
    of_running, of_waiting = [0] * len(problem.running), [NOT_PLACED] * len(problem.waiting)
    for (_, mask, job), row in zip(items, found, strict=True):
        (of_running if mask else of_waiting)[job] = row
    return of_running, of_waiting


def place_waiting(
    problem: GangPacking, jobs: Iterable[int], rows: int, spare: int, step: Callable[[], None]
) -> Placement | None:
    """Place waiting jobs beside running ones that keep their rows, if they fit.

    Parameters
    ----------
    problem : GangPacking
        The problem.
    jobs : iterable of int
        Numbers of the waiting jobs.
    rows : int
        Number of rows that may be used.
    spare : int
        Largest total size of the waiting jobs that are not placed, in columns.
    step : callable
        Callback for each search node; may raise an exception to end the search.
    """
    held = problem.occupied(problem.rows_of_running)
    names = sorted(range(problem.rows), key=lambda row: (not held[row], row))[:rows]
    free = [problem.columns - held[row].bit_count() for row in names]
    items = sorted(jobs, key=lambda job: -problem.waiting[job])
    optional = (1 << len(items)) - 1 if spare else 0
    sizes = [problem.waiting[job] for job in items]
    found = RowTree(sizes, [0] * len(items), optional, spare, free).search(step)
    if found is None:
        return None
    of_waiting = [NOT_PLACED] * len(problem.waiting)
    for job, row in zip(items, found, strict=True):
        if row != NOT_PLACED:
            of_waiting[job] = names[row]
    return list(problem.rows_of_running), of_waiting
