"""Jobs with planned starts and places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from optsched.machines.cluster import Cores
from optsched.models.data_placement.solution import Plan


class PlannedStarts:
    """Jobs with planned starts and places, in the order of planning.

    Attributes
    ----------
    next : float
        Time of the next planned start; inf without planned jobs.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all planned jobs."""
        self._start = np.empty(0)
        self._rows = np.empty((3, 0), dtype=np.int64)  # job, node, cores
        self.next = math.inf

    def add(self, jobs: NDArray[np.int64], plan: Plan, now: float) -> None:
        """Add the jobs of a plan that have a place; time 0 of the plan is `now`, in seconds."""
        placed = np.flatnonzero(plan.node >= 0)
        rows = np.array([jobs[placed], plan.node[placed], plan.cores[placed]])
        self._add(now + plan.start[placed].astype(np.float64), rows)

    def add_place(self, job: int, place: Cores, start: float) -> None:
        """Add a single job."""
        row = np.array([[job], [place.node], [place.cores]])
        self._add(np.array([start], dtype=np.float64), row)

    def pop_due(self, now: float, is_free: Callable[[Cores], bool]) -> Iterator[tuple[int, Cores]]:
        """Remove and yield the jobs whose start has come and whose place is free just then."""
        if now < self.next:
            return
        due = self._start <= now
        jobs, nodes, cores = self._rows[:, due].tolist()
        late = self._rows[:, due], self._start[due]
        self._start, self._rows = self._start[~due], self._rows[:, ~due]
        self.next = float(self._start.min(initial=math.inf))
        for at, (job, node, bits) in enumerate(zip(jobs, nodes, cores)):
            place = Cores(node, bits)
            if is_free(place):
                yield job, place
            else:
                self._add(late[1][at : at + 1], late[0][:, at : at + 1])

    @property
    def rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Starts, shape (jobs,), and job, node and cores, shape (3, jobs)."""
        return self._start, self._rows

    def _add(self, start: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
        self._start = np.concatenate([self._start, start])
        self._rows = np.concatenate([self._rows, rows], axis=1)
        self.next = min(self.next, float(start.min(initial=math.inf)))
