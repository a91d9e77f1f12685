"""Simple rules: compaction of running jobs, fits of waiting jobs, and coloring; compiled.

In the graph that is colored, running jobs that share a column get different rows. Sets of columns
are rows of words in kernels, see `optsched.machines.matrix`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from optsched.arrays import Ints, Words
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines.matrix import WORD, add, overlap, remove, words_of
from optsched.models.gang_packing import GangPacking, Packing
from optsched.registry import solvers
from optsched.solvers.solver import Heuristic, Solver

NOT_PLACED = -1
"""The row of a job without one, as in the model; kernels take constants from files of kernels."""


@by_reference
class Rows(NamedTuple):
    """The rows of a matrix, and scratch of compaction."""

    held: Words  # columns held in each row
    number: Ints  # of columns held in each row
    fullest: Ints  # the rows, the fullest first
    # scratch
    sources: Ints  # the rows in that order before compaction
    first: Ints  # order[first[row]:first[row + 1]] are the places of the jobs of a row
    order: Ints


def empty_rows(rows: int, jobs: int, words: int) -> Rows:
    """Return empty rows for at most `jobs` jobs, sets of columns being `words` long."""
    held = np.zeros((rows, words), np.uint64)
    number, sources, first, order = (np.zeros(n, np.int64) for n in (rows, rows, rows + 1, jobs))
    return Rows(held, number, np.arange(rows), sources, first, order)


@kernel(allocates=False)
def sort_rows(rows: Rows) -> None:
    """Sort the rows: the fullest first, of equal ones that of lowest number."""
    fullest, count = rows.fullest, rows.number
    for place in range(1, len(fullest)):
        row = fullest[place]
        while place > 0 and (
            count[fullest[place - 1]] < count[row]
            or (count[fullest[place - 1]] == count[row] and fullest[place - 1] > row)
        ):
            fullest[place] = fullest[place - 1]
            place -= 1
        fullest[place] = row


@kernel(allocates=False)
def sort_by_row(rows: Rows, row: Ints, count: int) -> None:
    """Sort the places of `count` jobs by row; in a row the first job is first."""
    first = rows.first
    first[:] = 0
    for place in range(count):
        first[row[place] + 1] += 1
    for r in range(1, len(first)):
        first[r] += first[r - 1]
    for place in range(count):
        rows.order[first[row[place]]] = place
        first[row[place]] += 1
    for r in range(len(first) - 1, 0, -1):
        first[r] = first[r - 1]
    first[0] = 0


@kernel(allocates=False)
def compact(
    rows: Rows, width: int, columns: Words, size: Ints, jobs: Ints, count: int, row: Ints
) -> None:
    """Move the first `count` of the running jobs to fuller rows, and note the row of each.

    Rows are processed from the emptiest (of equal rows, that of highest number first). Each job of
    a row, in the order of jobs, moves to the fullest row (of equal rows, that of lowest number)
    that is fuller than its own and has its columns free.

    `columns` and `size` are those of all jobs; a row has `width` columns.
    """
    held, number, fullest = rows.held, rows.number, rows.fullest
    sort_rows(rows)
    sort_by_row(rows, row, count)
    for rank in range(len(fullest)):
        rows.sources[rank] = fullest[rank]
    for turn in range(len(fullest) - 1, -1, -1):
        source = rows.sources[turn]
        for entry in range(rows.first[source], rows.first[source + 1]):
            place = rows.order[entry]
            job = jobs[place]
            for rank in range(len(fullest)):
                target = fullest[rank]
                if target == source:
                    break
                has_room = width - number[target] >= size[job]
                if has_room and not overlap(held[target], columns[job]):
                    row[place] = target
                    add(held[target], columns[job])
                    remove(held[source], columns[job])
                    number[target] += size[job]
                    number[source] -= size[job]
                    sort_rows(rows)
                    break


@kernel(allocates=False)
def fit(
    used: Ints, width: int, skips: bool, tightest: bool, size: Ints, count: int, row: Ints
) -> None:
    """Choose the row of each of the first `count` waiting jobs, `NOT_PLACED` if it gets none.

    Each job, in order, goes into a row in use with enough free columns, else into the first empty
    row: into the row with the fewest free columns if `tightest` (best fit), else into the first
    (first fit). Unless the rule `skips`, placement ends at the first job that does not fit.

    `used` are the columns used in each row, also by the jobs placed here.
    """
    for place in range(count):
        row[place] = NOT_PLACED
    for place in range(count):
        chosen, empty = NOT_PLACED, NOT_PLACED
        for one in range(len(used)):
            if used[one] == 0:
                if empty == NOT_PLACED:
                    empty = one
            elif used[one] + size[place] <= width:
                if chosen == NOT_PLACED or used[one] > used[chosen]:
                    chosen = one
                if not tightest:
                    break
        if chosen == NOT_PLACED and size[place] <= width:
            chosen = empty
        if chosen != NOT_PLACED:
            row[place] = chosen
            used[chosen] += size[place]
        elif not skips:
            break


class QuickAnswer(IntEnum):
    """What a solver answers without a search, from the rows of `compacted`.

    A solver that states one as its ``quick_answer`` is imitated by the kernel of gang scheduling.
    ``PROVEN_FIT``: first fit, or best fit if first fit leaves a job out and best fit is better,
    where the bounds of row search prove it; other problems go to the solver itself, which must
    choose the columns of `columns_for`.
    """

    FIRST_FIT = 0
    BEST_FIT = 1
    PROVEN_FIT = 2


def quick_answer(solver: Solver) -> QuickAnswer | None:
    """Return the quick answer of a solver; a subclass, which may answer otherwise, has none."""
    stated: QuickAnswer | None = vars(type(solver)).get("quick_answer")
    return stated


class FitHeuristic(Heuristic):
    """Base class of the simple rules, whose work is counted in jobs times rows."""

    models = frozenset({"gang-packing"})
    work_unit = "jobs times rows"
    seconds_per_work = 1e-7

    def effort(self, problem: GangPacking) -> int:
        """Return the number of jobs times the number of rows."""
        return (len(problem.running) + len(problem.waiting)) * problem.rows


class CompactingFit(FitHeuristic):
    """Base class of compaction, then best fit (`tightest`) or first fit."""

    tightest: ClassVar[bool]

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by compaction, then by the fit."""
        return packed(problem, tightest=self.tightest)


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(CompactingFit):
    """Compaction of running jobs, then first fit of waiting jobs.

    If running jobs may change their rows, the rows are compacted first (`compacted`), as in the
    compaction step of gang schedulers of this family. Then each waiting job, in the order of the
    queue, goes into the first row in use with enough free columns, else into the first empty row.
    Under ``fcfs``, placement ends at the first job that does not fit; under ``skip``, the next job
    is tried.

    H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel job
    scheduling for ASCI Blue-Pacific", SC 1999.

    Y. Zhang, H. Franke, J. E. Moreira, A. Sivasubramaniam, "Improving parallel job scheduling by
    combining gang scheduling and backfilling techniques", IPDPS 2000.

    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, running=[0b0011], rows_of_running=[0], waiting=[1, 2])
    >>> FirstFit().place(problem).rows_of_waiting
    (0, 1)
    """

    is_rule = True
    tightest = False
    quick_answer = QuickAnswer.FIRST_FIT


@solvers.register("best-fit")
@dataclass(frozen=True)
class BestFit(CompactingFit):
    """Compaction of running jobs, then best fit of waiting jobs.

    As `FirstFit`, but a waiting job goes into the row in use with the fewest sufficient free
    columns; of equal rows, into that of lowest number.

    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, [0b0001, 0b0011], rows_of_running=[0, 1], waiting=[2, 3])
    >>> BestFit().place(problem).rows_of_waiting
    (1, 0)
    """

    tightest = True
    quick_answer = QuickAnswer.BEST_FIT


@lru_cache(maxsize=2)  # a solver and then its fallback pack the same problem
def packed(problem: GangPacking, *, tightest: bool) -> Packing:
    """Return the packing by compaction, then by best fit (`tightest`) or first fit."""
    rows = compacted(problem)
    return problem.packing(rows, fitted(problem, rows, tightest=tightest))


@lru_cache(maxsize=1)  # for one fit and then the other
def compacted(problem: GangPacking) -> Sequence[int]:
    """Return the row of each running job after compaction, see `compact`.

    Nothing moves if running jobs keep their rows.
    """
    if not problem.rerow:
        return problem.rows_of_running
    jobs, width = len(problem.running), -(-problem.columns // WORD)
    rows, masks = empty_rows(problem.rows, jobs, width), (*problem.running, *problem.held)
    columns, size = words_of(masks, width), np.array([mask.bit_count() for mask in masks])
    rows.held[:], rows.number[:] = columns[jobs:], size[jobs:]
    row = np.array(problem.rows_of_running, dtype=np.int64)
    compact(rows, problem.columns, columns, size, np.arange(jobs), jobs, row)
    return tuple(row.tolist())


def fitted(
    problem: GangPacking,
    rows_of_running: Sequence[int],
    *,
    tightest: bool,
    order: Iterable[int] | None = None,
    placed: Sequence[int] | None = None,
) -> list[int]:
    """Return the row of each waiting job, -1 if not placed, see `fit`.

    Jobs are placed in `order` or that of the queue. Those whose row in `placed` is not -1 keep it.
    """
    waiting, skips = problem.waiting, problem.admission == "skip"
    rows = list(placed or (NOT_PLACED,) * len(waiting))
    jobs = [job for job in order or range(len(rows)) if rows[job] == NOT_PLACED]
    if not jobs:
        return rows
    used = np.array([mask.bit_count() for mask in problem.occupied(rows_of_running)])
    for job, row in enumerate(rows):
        if row != NOT_PLACED:
            used[row] += waiting[job]
    size = np.array([waiting[job] for job in jobs], dtype=np.int64)
    found = np.empty_like(size)
    fit(used, problem.columns, skips, tightest, size, len(jobs), found)
    for job, row in zip(jobs, found.tolist()):
        rows[job] = row
    return rows


@solvers.register("greedy-colouring")
@dataclass(frozen=True)
class GreedyColoring(FitHeuristic):
    """Coloring of running jobs by DSATUR, then first fit of waiting jobs.

    Running jobs that share a column are adjacent in a graph whose colors are the rows. DSATUR
    (Brelaz 1979) colors next the one with the most colors nearby, of equal ones that with the most
    neighbors, in the lowest color that is free. Running jobs keep their rows if that is required,
    or if DSATUR needs more colors than there are rows. Waiting jobs are placed in the order of the
    queue under ``fcfs``, and by decreasing size under ``skip``. This is a baseline, since a
    coloring ignores how full rows are.

    D. Brelaz, "New methods to color the vertices of a graph", Communications of the ACM 22,
    251-256, 1979.
    """

    seconds_per_solve = 1e-3
    seconds_per_work = 1e-5

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by coloring."""
        order = None
        if problem.admission == "skip":
            order = sorted(range(len(problem.waiting)), key=lambda job: -problem.waiting[job])
        rows = _colors(problem) if problem.rerow else problem.rows_of_running
        return problem.packing(rows, fitted(problem, rows, tightest=False, order=order))


def _colors(problem: GangPacking) -> Sequence[int]:
    """Return the color of each running job, or its row if there are too few colors."""
    running = problem.running
    near = [
        [other for other, shared in enumerate(running) if mask & shared and other != job]
        for job, mask in enumerate(running)
    ]
    taken, colors = [0] * len(running), [NOT_PLACED] * len(running)  # colors nearby, as a mask
    rank = [len(others) for others in near]  # number of these, then of neighbors
    left = dict.fromkeys(range(len(running)))
    while left:
        job = max(left, key=rank.__getitem__)
        del left[job]
        color = ~taken[job] & (taken[job] + 1)
        colors[job] = color.bit_length() - 1
        for other in near[job]:
            if not taken[other] & color:
                taken[other] |= color
                rank[other] += len(running)
    return problem.rows_of_running if max(colors, default=0) >= problem.rows else colors
