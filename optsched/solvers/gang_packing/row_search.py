"""Exact gang packing by bounds on free columns and a search for rows.

A sequence of feasibility subproblems leads to an optimal packing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import neg
from typing import Any

from optsched.column_sets import ColumnSet, loads
from optsched.models.gang_packing import NOT_PLACED, GangPacking, Packing
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.gang_packing import _row_tree
from optsched.solvers.gang_packing._row_tree import RowTree, find_rows
from optsched.solvers.gang_packing.fit_rules import FirstFit, QuickAnswer, compacted, fitted

Placement = tuple[list[int], list[int]]
"""Row of each running and of each waiting job, -1 if not placed."""


class FreeColumns:
    """Upper bounds on the free columns in any m of k rows.

    If running jobs keep their rows, the m emptiest rows give the bound. If running jobs may move, a
    column that l of them hold is taken in at least l - (k - m) of any m of k rows.
    """

    def __init__(self, problem: GangPacking) -> None:
        self._columns, self._moves = problem.columns, problem.rerow
        # columns that running jobs take in each of k rows in any case, 0 if they keep their rows
        self.crowded_columns = [0] * (problem.rows + 1)
        taken = [mask for mask in problem.held if mask]
        if problem.rerow:
            taken = loads(problem.held)
            self.crowded_columns[1 : len(taken) + 1] = taken
        self.fewest_rows = len(taken)  # lower bound on the rows that running jobs take
        self._free = sorted((problem.columns - mask.bit_count() for mask in taken), reverse=True)

    def most(self, rows: int) -> list[int]:
        """Return the most free columns in 0, 1, ... of `rows` rows, at least `fewest_rows`."""
        return list(accumulate(self._emptiest_first(rows), initial=0))

    def per_row(self, rows: int) -> list[int] | None:
        """Return the free columns of each row, or None if running jobs may move."""
        return None if self._moves else self._emptiest_first(rows)

    def _emptiest_first(self, rows: int) -> list[int]:
        return [self._columns] * (rows - self.fewest_rows) + self._free


def longest_prefix(sizes: Sequence[int], most_free: Sequence[int]) -> int:
    """Return an upper bound on the number of jobs from the front of the queue that fit.

    For every m, the m largest jobs take at most m rows; and if there are more jobs than rows, two
    of them share a row. Sizes are in columns; `most_free` is the result of `FreeColumns.most`.
    """
    total = 0
    largest: list[int] = []
    for count, size in enumerate(sizes):
        total += size
        insort(largest, size, key=neg)
        del largest[len(most_free) :]
        if total > most_free[-1] or exceed(largest, most_free):
            return count
    return len(sizes)


def exceed(sizes: Sequence[int], most_free: Sequence[int]) -> bool:
    """Return whether jobs of nonincreasing sizes do not fit, see `longest_prefix`."""
    rows = len(most_free) - 1
    if any(together > most for together, most in zip(accumulate(sizes), most_free[1:])):
        return True
    return len(sizes) > rows and sizes[rows - 1] + sizes[rows] > most_free[1]


def largest_sum(sizes: Sequence[int], most_free: Sequence[int], each: Sequence[int] | None) -> int:
    """Return an upper bound on the columns that waiting jobs can take together.

    Jobs larger than half of every row need a row each. Subset sums are exact: bit s of an integer
    is set if some jobs have s columns together. Sizes are in columns; `most_free` and `each` are
    the results of `FreeColumns.most` and `FreeColumns.per_row`.
    """
    fitting = [sizes[job] for job in needed(sizes, most_free)]
    within = [(1 << (most + 1)) - 1 for most in most_free]
    sums = [1] + [0] * (len(most_free) - 1)
    everything = 1
    for size in fitting:
        if 2 * size > most_free[1]:
            for count in range(len(most_free) - 1, 0, -1):
                sums[count] |= sums[count - 1] << size & within[count]
    for some in sums[1:]:
        everything |= some
    single = 1
    for size in fitting:
        if 2 * size <= most_free[1]:
            everything |= everything << size & within[-1]
        if each is not None:
            single |= single << size & within[1]
    most = everything.bit_length() - 1
    if each is None:
        return most
    fills = sum((single & ((1 << (free + 1)) - 1)).bit_length() - 1 for free in each)
    return min(most, fills)


def needed(sizes: Sequence[int], most_free: Sequence[int]) -> list[int]:
    """Return the jobs that fit into a row, of equal jobs no more than fit together."""
    together: dict[int, int] = {}
    jobs = []
    for job, size in enumerate(sizes):
        if len(most_free) > 1 and size <= most_free[1]:
            together[size] = together.get(size, 0) + size
            if together[size] <= most_free[-1]:
                jobs.append(job)
    return jobs


class JobSets:
    """Minimal sets of jobs with at least a given total size.

    If a set of jobs does not fit, a set with a job at least as large for each of them does not fit
    either (dominance). So small sets are enumerated first, and failed ones exclude others. Sizes
    are nonincreasing; `most_free` is the result of `FreeColumns.most`.
    """

    def __init__(self, sizes: Sequence[int], most_free: Sequence[int]) -> None:
        self._sizes = sizes
        self._most_free = most_free
        within = (2 << most_free[-1]) - 1
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
            most = self._most_free[-1] - (total - wanted)
            if most < wanted or not self._sums[job] >> wanted & ((2 << (most - wanted)) - 1):
                continue
            size = self._sizes[job]
            open_sets.append((job + 1, [*chosen, job], [*sizes, size], wanted - size))
            open_sets.append((self._next_smaller[job], chosen, sizes, wanted))

    def _is_infeasible(self, sizes: Sequence[int]) -> bool:
        """Return whether jobs of nonincreasing sizes are known not to fit together."""
        return exceed(sizes, self._most_free) or any(
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
        self._free = FreeColumns(problem)
        self._in_order = problem.admission == "fcfs"
        self._served = list(accumulate(problem.waiting, initial=0))
        self._running = problem.columns_of_running
        self._job_sets: dict[int, tuple[list[int], JobSets]] = {}
        self._take(best)
        self._most = len(problem.waiting) if self._in_order else self._served[-1]
        if self._steps < self._most:
            self._most = self._step_bound(problem.waiting, problem.rows)
        self._min_rows = self._fewest_rows(self._most)

    def bound(self) -> int:
        """Return an upper bound of the objective."""
        placed = self._served[self._most] if self._in_order else self._most
        return (self._problem.rows + 1) * (self._running + placed) - self._min_rows

    def is_open(self) -> bool:
        """Return whether the best packing may still be improved."""
        return self._steps < self._most or self._rows > self._min_rows

    def solve_next(self) -> Packing | None:
        """Solve the next subproblem and return a better packing, or None if it is infeasible."""
        if self._steps < self._most:
            better = self._search(self._steps + 1, self._problem.rows)
            if better is None:
                self._most = self._steps
                self._min_rows = self._fewest_rows(self._most)
        else:
            better = self._search(self._steps, self._rows - 1)
            if better is None:
                self._min_rows = self._rows
        if better is not None:
            self._take(better)
        return better

    def _take(self, best: Packing) -> None:
        placed = [row >= 0 for row in best.rows_of_waiting]
        nodes = sum(size for size, there in zip(self._problem.waiting, placed) if there)
        self._steps = sum(placed) if self._in_order else nodes
        self._rows = len({*best.rows_of_running, *best.rows_of_waiting} - {NOT_PLACED})

    def _step_bound(self, sizes: Sequence[int], rows: int) -> int:
        """Return an upper bound on the steps in `rows` rows."""
        most_free = self._free.most(rows)
        if self._in_order:
            return longest_prefix(sizes, most_free)
        return largest_sum(sizes, most_free, self._free.per_row(rows))

    def _fewest_rows(self, steps: int) -> int:
        """Return a lower bound on the rows for `steps` steps."""
        sizes = self._problem.waiting[:steps] if self._in_order else self._problem.waiting
        for rows in range(self._free.fewest_rows, self._problem.rows):
            if self._step_bound(sizes, rows) >= steps:
                return rows
        return self._problem.rows

    def _search(self, steps: int, rows: int) -> Packing | None:
        """Return a packing of at least `steps` steps in `rows` rows, or None if infeasible."""
        problem = self._problem
        if problem.rerow:
            found = self._search_movable(steps, rows)
        elif self._in_order:
            found = place_waiting(problem, range(steps), rows, 0, self._step)
        else:
            jobs = needed(problem.waiting, self._free.most(rows))
            spare = sum(problem.waiting[job] for job in jobs) - steps
            found = place_waiting(problem, jobs, rows, spare, self._step)
        if found is None:
            return None
        of_running, of_waiting = found
        if rows == problem.rows:
            of_waiting = fitted(problem, of_running, tightest=True, placed=of_waiting)
        return problem.packing(of_running, of_waiting)

    def _search_movable(self, steps: int, rows: int) -> Placement | None:
        """Try sets of waiting jobs one by one, with running jobs in any rows."""
        sizes, crowded = self._problem.waiting, self._free.crowded_columns[rows]
        if self._in_order:
            return place_all(self._problem, range(steps), rows, crowded, self._step)
        if rows not in self._job_sets:
            jobs = sorted(needed(sizes, self._free.most(rows)), key=lambda job: -sizes[job])
            job_sets = JobSets([sizes[job] for job in jobs], self._free.most(rows))
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
    items.sort(key=lambda item: -item[0])
    sizes, masks = [size for size, _, _ in items], [mask for _, mask, _ in items]
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
    (`FreeColumns`) limit the jobs that fit and the rows that they need, and usually prove the
    incumbent. Otherwise, a depth-first search decides a sequence of subproblems: is there a packing
    with one more column (``skip``) or one more job (``fcfs``); is there one with a row fewer? Each
    infeasible subproblem gives a bound.

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
        """Compile the kernels of the search, or load them from the cache."""
        _row_tree.prepare()
        FirstFit().prepare(GangPacking(1, 1, [], [], [1], rerow=True))

    def search(self, problem: GangPacking, progress: Progress, hint: Any, seed: int) -> None:
        """Search for a better packing until there is none; `seed` has no effect."""
        rows = compacted(problem)
        found = [problem.packing(rows, fitted(problem, rows, tightest=False))]
        if NOT_PLACED in found[0].rows_of_waiting:
            found.append(problem.packing(rows, fitted(problem, rows, tightest=True)))
        if hint is not None:
            found.append(hint)
        best = found[0] if len(found) == 1 else max(found, key=problem.objective)

        def step() -> None:
            if progress.work % TURN == 0:
                progress.check()
            progress.work += 1

        subproblems = Subproblems(problem, best, step)
        progress.offer(best, problem.objective(best), subproblems.bound())
        try:
            while subproblems.is_open():
                better = subproblems.solve_next()
                if better is not None:
                    progress.offer(better, problem.objective(better), subproblems.bound())
                progress.prove(subproblems.bound())
        finally:
            progress.prove(subproblems.bound())
