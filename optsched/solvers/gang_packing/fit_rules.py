"""Simple rules: compaction of running jobs, fits of waiting jobs, and coloring.

In the graph that is colored, running jobs that share a column get different rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from optsched.machines.matrix import WORD, words_of
from optsched.models.gang_packing import NOT_PLACED, GangPacking, Packing
from optsched.registry import solvers
from optsched.solvers.gang_packing._fits import compact, empty_rows, fit
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.solver import Solver


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


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(FitHeuristic):
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
    quick_answer = QuickAnswer.FIRST_FIT

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by first fit."""
        return compacted_and_fitted(problem, tightest=False)


@solvers.register("best-fit")
@dataclass(frozen=True)
class BestFit(FitHeuristic):
    """Compaction of running jobs, then best fit of waiting jobs.

    As `FirstFit`, but a waiting job goes into the row in use with the fewest sufficient free
    columns; of equal rows, into that of lowest number.

    >>> from optsched.models import GangPacking
    >>> problem = GangPacking(4, 2, [0b0001, 0b0011], rows_of_running=[0, 1], waiting=[2, 3])
    >>> BestFit().place(problem).rows_of_waiting
    (1, 0)
    """

    quick_answer = QuickAnswer.BEST_FIT

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by best fit."""
        return compacted_and_fitted(problem, tightest=True)


def compacted_and_fitted(problem: GangPacking, *, tightest: bool) -> Packing:
    """Return the packing by compaction, then best fit (`tightest`) or first fit."""
    rows = compacted(problem)
    return problem.packing(rows, fitted(problem, rows, tightest=tightest))


@lru_cache(maxsize=1)  # a solver and then its fallback compact the same problem
def compacted(problem: GangPacking) -> Sequence[int]:
    """Return the row of each running job after compaction, see `_fits.compact`.

    Nothing moves if running jobs keep their rows.
    """
    if not problem.rerow:
        return problem.rows_of_running
    jobs, width = len(problem.running), -(-problem.columns // WORD)
    held, rows = problem.held, empty_rows(problem.rows, jobs, width)
    rows.held[:], rows.number[:] = words_of(held, width), [mask.bit_count() for mask in held]
    size = np.array([mask.bit_count() for mask in problem.running], dtype=np.int64)
    row = np.array(problem.rows_of_running, dtype=np.int64)
    columns = words_of(problem.running, width)
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
    """Return the row of each waiting job, -1 if not placed, see `_fits.fit`.

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
