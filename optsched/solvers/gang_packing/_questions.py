"""The questions that lead to the best packing, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from optsched.models.gang_packing import NOT_PLACED
from optsched.solvers.gang_packing._bounds import Room, largest_sum, longest_prefix, needed
from optsched.solvers.gang_packing._choices import Choices
from optsched.solvers.gang_packing._placements import Placement, moved, stayed
from optsched.solvers.gang_packing.placing import fitted

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking, Packing


class Questions:
    """Asks for more and more waiting jobs, and then for fewer and fewer rows.

    What is placed is measured in *steps*: jobs from the front of the queue under ``fcfs``, nodes
    under ``skip``.

    Parameters
    ----------
    problem : GangPacking
        The problem.
    best : Packing
        A feasible packing to start from.
    step : callable
        Told of each node; raises what ends the search.
    """

    def __init__(self, problem: GangPacking, best: Packing, step: Callable[[], None]) -> None:
        self._problem = problem
        self._step = step
        self._room = Room(problem)
        self._in_order = problem.admission == "fcfs"
        self._served = list(accumulate(problem.waiting, initial=0))
        self._running = sum(map(int.bit_count, problem.running))
        self._choices: dict[int, tuple[list[int], Choices]] = {}
        self._take(best)
        self._most = len(problem.waiting) if self._in_order else self._served[-1]
        if self._steps < self._most:
            self._most = self._reach(problem.waiting, problem.rows)
        self._least_rows = self._fewest_rows(self._most)

    def bound(self) -> int:
        """Return the bound of the objective: no packing has more."""
        placed = self._served[self._most] if self._in_order else self._most
        return (self._problem.rows + 1) * (self._running + placed) - self._least_rows

    def is_open(self) -> bool:
        """Return whether the best packing so far may not be optimal."""
        return self._steps < self._most or self._rows > self._least_rows

    def ask(self) -> Packing | None:
        """Ask the next question and return the better packing that it leads to, if any."""
        if self._steps < self._most:
            better = self._search(self._steps + 1, self._problem.rows)
            if better is None:
                self._most = self._steps
                self._least_rows = self._fewest_rows(self._most)
        else:
            better = self._search(self._steps, self._rows - 1)
            if better is None:
                self._least_rows = self._rows
        if better is not None:
            self._take(better)
        return better

    def _take(self, best: Packing) -> None:
        placed = [row >= 0 for row in best.rows_of_waiting]
        nodes = sum(size for size, there in zip(self._problem.waiting, placed) if there)
        self._steps = sum(placed) if self._in_order else nodes
        self._rows = len({*best.rows_of_running, *best.rows_of_waiting} - {NOT_PLACED})

    def _reach(self, sizes: Sequence[int], rows: int) -> int:
        """Return the most steps in so many rows, as far as their room tells."""
        room = self._room.of(rows)
        if self._in_order:
            return longest_prefix(sizes, room)
        return largest_sum(sizes, room, self._room.of_each(rows))

    def _fewest_rows(self, steps: int) -> int:
        """Return the fewest rows that may hold so many steps, as far as their room tells."""
        sizes = self._problem.waiting[:steps] if self._in_order else self._problem.waiting
        for rows in range(self._room.least_rows, self._problem.rows):
            if self._reach(sizes, rows) >= steps:
                return rows
        return self._problem.rows

    def _search(self, steps: int, rows: int) -> Packing | None:
        """Return a packing of so many steps, or more, in so many rows; none if there is none."""
        problem = self._problem
        if problem.rerow:
            found = self._moved(steps, rows)
        elif self._in_order:
            found = stayed(problem, range(steps), rows, 0, self._step)
        else:
            jobs = needed(problem.waiting, self._room.of(rows))
            spare = sum(problem.waiting[job] for job in jobs) - steps
            found = stayed(problem, jobs, rows, spare, self._step)
        if found is None:
            return None
        of_running, of_waiting = found
        if rows == problem.rows:
            of_waiting = fitted(problem, of_running, tightest=True, placed=of_waiting)
        return problem.packing(of_running, of_waiting)

    def _moved(self, steps: int, rows: int) -> Placement | None:
        """Try one choice of waiting jobs after the other, running jobs in any rows."""
        sizes, crowded = self._problem.waiting, self._room.everywhere[rows]
        if self._in_order:
            return moved(self._problem, range(steps), rows, crowded, self._step)
        if rows not in self._choices:
            jobs = sorted(needed(sizes, self._room.of(rows)), key=lambda job: -sizes[job])
            choices = Choices([sizes[job] for job in jobs], self._room.of(rows))
            self._choices[rows] = jobs, choices
        jobs, choices = self._choices[rows]
        for chosen in choices.of(steps, self._step):
            some = [jobs[number] for number in chosen]
            found = moved(self._problem, some, rows, crowded, self._step)
            if found is not None:
                return found
            choices.fail(chosen)
        return None
