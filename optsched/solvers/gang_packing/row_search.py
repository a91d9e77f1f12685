"""Exact gang packing by bounds on free columns and a search for rows.

A sequence of feasibility subproblems leads to an optimal packing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.column_sets import ColumnSet, loads
from optsched.models.gang_packing import NOT_PLACED, GangPacking, Packing
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.gang_packing._root_bound import (
    Matrix,
    empty_queue,
    exceed,
    fewest_rows,
    root_bound,
    step_bound,
)
from optsched.solvers.gang_packing._row_tree import RowTree, find_rows
from optsched.solvers.gang_packing.fit_rules import QuickAnswer, fitted, packed
from optsched.solvers.result import Budget

Placement = tuple[list[int], list[int]]
"""Row of each running and of each waiting job, -1 if not placed."""


class JobSets:
    """Minimal sets of jobs with at least a given total size.

    If a set of jobs does not fit, a set with a job at least as large for each of them does not fit
    either (dominance). So small sets are enumerated first, and failed ones exclude others. Sizes
    are nonincreasing; `most_free` are the most free columns in 0, 1, ... of all rows.
    """

    def __init__(self, sizes: Sequence[int], most_free: Ints) -> None:
        self._sizes = sizes
        self._most_free = most_free
        self._most = int(most_free[-1])
        within = (2 << self._most) - 1
        self._sums = [1]
        for size in reversed(sizes):
            self._sums.append(self._sums[-1] | self._sums[-1] << size & within)
        self._sums.reverse()
        self._next_smaller = [len(sizes)] * len(sizes)
        for job in range(len(sizes) - 2, -1, -1):
            equal = sizes[job] == sizes[job + 1]
            self._next_smaller[job] = self._next_smaller[job + 1] if equal else job + 1
        self._failed: list[list[int]] = []

    def fail(self, chosen: Sequence[int]) -> None:
        """Record that jobs, given by number, do not fit together."""
        self._failed.append([self._sizes[job] for job in chosen])

    def with_total(self, total: int, step: Callable[[], None]) -> Iterator[list[int]]:
        """Yield sets of job numbers with a total size of at least `total`; `step` counts work."""
        open_sets: list[tuple[int, list[int], list[int], int]] = [(0, [], [], total)]
        while open_sets:
            step()
            job, chosen, sizes, wanted = open_sets.pop()
            if self._is_infeasible(sizes):
                continue
            if wanted <= 0:
                yield chosen
                continue
            most = self._most - (total - wanted)
            if most < wanted or not self._sums[job] >> wanted & ((2 << (most - wanted)) - 1):
                continue
            size = self._sizes[job]
            open_sets.append((job + 1, [*chosen, job], [*sizes, size], wanted - size))
            open_sets.append((self._next_smaller[job], chosen, sizes, wanted))

    def _is_infeasible(self, sizes: Sequence[int]) -> bool:
        """Return whether jobs of nonincreasing sizes are known not to fit together."""
        given = np.array(sizes, dtype=np.int64)
        return bool(exceed(given, len(given), self._most_free, len(self._most_free) - 1)) or any(
            len(failed) <= len(sizes) and all(map(int.__le__, failed, sizes))
            for failed in self._failed
        )


class Subproblems:
    """Feasibility subproblems with ever more waiting jobs, and then with ever fewer rows.

    Placed jobs are measured in *steps*: jobs from the front of the queue under ``fcfs``, columns
    under ``skip``. `best` is a feasible packing to start from. `step` is called for each search
    node; it may raise an exception to end the search.
    """

    def __init__(self, problem: GangPacking, best: Packing, step: Callable[[], None]) -> None:
        self._problem = problem
        self._step = step
        self._in_order = problem.admission == "fcfs"
        self._job_sets: dict[int, tuple[list[int], JobSets]] = {}
        # a column that l running jobs take is taken in at least l - (k - m) of any m of k rows
        self._taken = [mask for mask in problem.held if mask]
        if problem.rerow:
            self._taken = loads(self._taken)
        rows = min(problem.rows, len(problem.running) + len(problem.waiting))
        self._matrix = Matrix(problem.columns, rows, not self._in_order, problem.rerow)
        self._queue = empty_queue(self._matrix, len(problem.waiting))
        self._queue.size[:] = problem.waiting
        free = [problem.columns - mask.bit_count() for mask in self._taken]
        self._queue.free[: len(free)] = sorted(free, reverse=True)
        # what the kernels of bounds take: also the fewest rows, and the number of waiting jobs
        self.given = self._queue, self._matrix, len(free), len(problem.waiting)
        self._take(best)
        self._most: int
        self._min_rows: int
        self._most, self._min_rows = root_bound(*self.given, self._steps)

    def bound(self) -> int:
        """Return an upper bound of the objective."""
        problem, placed = self._problem, self._most
        if self._in_order:
            placed = sum(problem.waiting[:placed])
        return (problem.rows + 1) * (problem.columns_of_running + placed) - self._min_rows

    def is_open(self) -> bool:
        """Return whether the best packing may still be improved."""
        return self._steps < self._most or self._rows > self._min_rows

    def solve_next(self) -> Packing | None:
        """Solve the next subproblem and return a better packing, or None if it is infeasible."""
        if self._steps < self._most:
            better = self._search(self._steps + 1, self._matrix.rows)
            if better is None:
                self._most = self._steps
                self._min_rows = fewest_rows(*self.given, self._most)
        else:
            better = self._search(self._steps, self._rows - 1)
            if better is None:
                self._min_rows = self._rows
        if better is not None:
            self._take(better)
        return better

    def _take(self, best: Packing) -> None:
        rows = best.rows_of_waiting
        placed = [size for size, row in zip(self._problem.waiting, rows) if row >= 0]
        self._steps = len(placed) if self._in_order else sum(placed)
        self._rows = len({*best.rows_of_running, *best.rows_of_waiting} - {NOT_PLACED})

    def _needed(self, rows: int) -> list[int]:
        """Return the jobs that fit into a row, of equal jobs no more than fit together."""
        step_bound(*self.given, rows)
        jobs: list[int] = np.flatnonzero(self._queue.fits).tolist()
        return jobs

    def _search(self, steps: int, rows: int) -> Packing | None:
        """Return a packing of at least `steps` steps in `rows` rows, or None if infeasible."""
        problem = self._problem
        if problem.rerow:
            found = self._search_movable(steps, rows)
        elif self._in_order:
            found = place_waiting(problem, range(steps), rows, 0, self._step)
        else:
            jobs = self._needed(rows)
            spare = sum(problem.waiting[job] for job in jobs) - steps
            found = place_waiting(problem, jobs, rows, spare, self._step)
        if found is None:
            return None
        of_running, of_waiting = found
        if rows == self._matrix.rows:
            of_waiting = fitted(problem, of_running, tightest=True, placed=of_waiting)
        return problem.packing(of_running, of_waiting)

    def _search_movable(self, steps: int, rows: int) -> Placement | None:
        """Try sets of waiting jobs one by one, with running jobs in any rows."""
        sizes = self._problem.waiting
        crowded = self._taken[rows - 1] if rows <= len(self._taken) else 0
        if self._in_order:
            return place_all(self._problem, range(steps), rows, crowded, self._step)
        if rows not in self._job_sets:
            jobs = sorted(self._needed(rows), key=lambda job: -sizes[job])
            job_sets = JobSets([sizes[job] for job in jobs], self._queue.most[: rows + 1].copy())
            self._job_sets[rows] = jobs, job_sets
        jobs, job_sets = self._job_sets[rows]
        for chosen in job_sets.with_total(steps, self._step):
            some = [jobs[number] for number in chosen]
            found = place_all(self._problem, some, rows, crowded, self._step)
            if found is not None:
                return found
            job_sets.fail(chosen)
        return None


def place_all(
    problem: GangPacking,
    jobs: Iterable[int],
    rows: int,
    crowded: ColumnSet,
    step: Callable[[], None],
) -> Placement | None:
    """Place all running jobs and the waiting `jobs` in any of `rows` rows, if they fit.

    The columns in `crowded`, which running jobs take in every row in any case, are removed from
    rows and running jobs alike. `step` is called for each search node.
    """
    items = [((mask & ~crowded).bit_count(), mask, job) for job, mask in enumerate(problem.running)]
    items += [(problem.waiting[job], 0, job) for job in jobs]
    items.sort(key=itemgetter(0), reverse=True)
    sizes, masks, _ = zip(*items)
    free = [problem.columns - crowded.bit_count()] * rows
    found = find_rows(sizes, masks, free, problem.columns, step)
    if found is None:
        return None
    of_running, of_waiting = [0] * len(problem.running), [NOT_PLACED] * len(problem.waiting)
    for (_, mask, job), row in zip(items, found, strict=True):
        (of_running if mask else of_waiting)[job] = row
    return of_running, of_waiting


def place_waiting(
    problem: GangPacking, jobs: Iterable[int], rows: int, spare: int, step: Callable[[], None]
) -> Placement | None:
    """Place waiting jobs in `rows` rows, beside running ones that keep their rows, if they fit.

    Jobs of a total size of at most `spare` columns may be left out. `step` is called for each
    search node.
    """
    held = problem.held
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


TURN = 32
"""Search nodes between two checks of the budget."""


@solvers.register("row-search")
@dataclass(frozen=True)
class RowSearch(AnytimeSolver):
    """Search for a packing with one more job, and then for one with one row fewer.

    The better of first fit and best fit is the first incumbent. Bounds on the free columns of rows
    limit the jobs that fit and the rows that they need, and usually prove the incumbent. Otherwise,
    a depth-first search decides a sequence of subproblems: is there a packing with one more column
    (``skip``) or one more job (``fcfs``); is there one with a row fewer? Each infeasible subproblem
    gives a bound.

    Work is counted in search nodes.

    >>> from optsched.solvers.result import Budget
    >>> problem = GangPacking(8, 2, [0b1111, 0b110000], [0, 1], waiting=[6], rerow=True)
    >>> result = RowSearch().solve(problem, budget=Budget())
    >>> result.objective, result.solution.rows_of_running, result.solution.rows_of_waiting
    (34, (0, 0), (1,))
    """

    models = frozenset({"gang-packing"})
    seconds_per_solve = 5e-5
    seconds_per_work = 5e-6
    default_work = 1000
    quick_answer = QuickAnswer.PROVEN_FIT

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache, by a problem that needs all."""
        needs_all = GangPacking(3, 3, [3, 6, 5], [0, 1, 2], [2], "skip", rerow=True)
        self.solve(needs_all, budget=Budget())

    def search(self, problem: GangPacking, progress: Progress, hint: Any, seed: int) -> None:
        """Search for a better packing until there is none; `seed` has no effect."""
        found = [packed(problem, tightest=False)]
        rows = found[0].rows_of_waiting
        if min(rows, default=0) < 0 <= max(rows, default=0):  # else best fit is the same
            found.append(packed(problem, tightest=True))
        if hint is not None:
            found.append(hint)
        best = found[0] if len(found) == 1 else max(found, key=problem.objective)

        def step() -> None:
            if progress.work % TURN == 0:
                progress.check()
            progress.work += 1

        subproblems = Subproblems(problem, best, step)
        progress.offer(best, problem.objective(best), subproblems.bound())
        while subproblems.is_open():
            better = subproblems.solve_next()
            if better is None:
                progress.prove(subproblems.bound())
            else:
                progress.offer(better, problem.objective(better))
