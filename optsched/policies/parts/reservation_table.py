"""Reservation table of nodes that share resources."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.executions.resource_sharing import demands
from optsched.machines.smp import Smp
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import (
    first_starts,
    least_thresholds,
    penalty_within,
)
from optsched.policies.parts._reservation_table import JobNumbers
from optsched.simulator.system import System


class ReservationTable:
    """Processes of running jobs until their limits, and of one reservation (section 3.2).

    Parameters
    ----------
    system : System
        The system, on a machine of type smp.
    factors : sequence of int
        Thresholds in thousandths, ascending; none for no limit.
    """

    def __init__(self, system: System, factors: Sequence[int]) -> None:
        machine = system.machine
        assert isinstance(machine, Smp)
        self._system = system
        self._machine = machine
        self._factors = factors
        self._capacity = np.array(list(machine.capacity.values()), dtype=np.int64)
        self._capacity.flags.writeable = False
        self._demands = np.ascontiguousarray(demands(system, machine).T)
        self._demands.flags.writeable = False
        self._asked = np.array(system.processors, dtype=np.int64)
        self._walltime = np.ceil(system.requested_time).astype(np.int64)
        self.walltimes: list[int] = self._walltime.tolist()
        self._least_threshold = self._least_thresholds()
        self._given: dict[str, Any] = {
            "nodes": machine.nodes,
            "processors": machine.processors,
            "capacity": self._capacity,
            "resources": tuple(machine.capacity),
        }
        self._check_numbers()
        self._limits = self._penalty_limits()
        self._rows: dict[int, NDArray[np.int64]] = {}
        self._until: dict[int, NDArray[np.float64]] = {}
        self._by_limit: list[tuple[float, int]] = []
        self._none = np.empty((0, 4 + len(self._capacity)), dtype=np.int64)
        self._running: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        self._reserved = self._none
        self._reservation: tuple[int, int | None, Placement, float] | None = None
        self._now = -math.inf
        self._held: NDArray[np.int64] | None = None

    @property
    def jobs(self) -> JobNumbers:
        """The jobs of the run, as a replay needs them."""
        count = len(self._asked)
        thresholds = np.full((count, 1), -1)
        if self._factors:
            thresholds = np.array([self.thresholds(job) for job in range(count)])
        jobs = (self._asked, self._walltime, self._demands, thresholds, self._limits)
        return JobNumbers(*jobs, self._capacity)

    def thresholds(self, job: int) -> list[int | None]:
        """Return the thresholds of a job in thousandths, ascending; None for no limit.

        Each is at least the penalty factor of the job on an empty machine, with its processes
        spread evenly.
        """
        if not self._factors:
            return [None]
        least = self._least_threshold[job]
        return [max(factor, least) for factor in self._factors]

    def start(self, job: int, processes: NDArray[np.int64], until: float) -> None:
        """Record the start of a job with given processes on each node, until its limit."""
        self._rows[job] = rows = self._rows_of(job, processes, 0, 0)
        self._until[job] = np.full(len(rows), until)
        insort(self._by_limit, (until, job))
        self._running = self._held = None

    def end(self, job: int) -> None:
        """Record the end of a job."""
        del self._rows[job]
        until = float(self._until.pop(job)[0])
        del self._by_limit[bisect_left(self._by_limit, (until, job))]
        self._running = self._held = None

    def reserve(
        self,
        job: int,
        threshold: int | None,
        placement: Placement,
        seconds: int,
        exact_start: float,
    ) -> None:
        """Reserve a place for a job, within a threshold; the only reservation.

        Parameters
        ----------
        seconds : int
            Length of the reservation.
        exact_start : float
            Time of the start, from which the whole seconds of the placement may deviate by one.
        """
        start = placement.start
        self._reserved = self._rows_of(job, placement.processes, start, start + seconds)
        self._reservation = job, threshold, placement, exact_start
        self._held = None

    def forget_reservation(self) -> None:
        """Drop the reservation."""
        if self._reservation is not None:
            self._reserved = self._none
            self._reservation = None
            self._held = None

    def breaks_reservation(self, job: int, placement: Placement, limit: int) -> bool:
        """Return whether a job that started now would make the reserved place infeasible.

        A placement avoids the reservation for the walltime of the job only. With a raised limit, in
        seconds, it may overlap the reservation, or raise the penalty there above the threshold.
        """
        if self._reservation is None:
            return False
        head, threshold, reserved, at = self._reservation
        if self._system.now + limit <= at:
            return False
        if not ((placement.processes > 0) & (reserved.processes > 0)).any():
            return False
        if limit <= reserved.start:
            return True
        if self._system.now + reserved.start > at:  # a later event may round the start to less
            limit += 1
        running = self._held_now()[len(self._reserved) :]
        held = np.concatenate((running, self._rows_of(job, placement.processes, 0, limit)))
        held.flags.writeable = False
        return not is_place(self._problem(head, held, "start", threshold), reserved)

    def problem(
        self, job: int, goal: Goal, threshold: int | None = None, latest: int | None = None
    ) -> ThresholdAllocation:
        """Return the problem of placing a job; times count from now."""
        return self._problem(job, self._held_now(), goal, threshold, latest)

    def first_room(self, job: int) -> int:
        """Return the seconds until enough processors are free for a job, if no other starts."""
        processors, now = self._system.processors[job], self._system.now
        missing = processors - self._machine.free
        if missing <= 0:
            return 0
        for until, running in self._by_limit:
            missing -= self._system.processors[running]
            if missing <= 0:
                return max(1, math.ceil(until - now))
        raise ValueError(f"{processors} processors on a machine of {self._machine.size}")

    def placeable_now(self, candidates: Sequence[int]) -> list[tuple[int, int]]:
        """Return the candidates that have a feasible place now, with their least thresholds.

        Thresholds are numbered as in `thresholds`. No problem needs to be posed for other
        candidates, or for other thresholds.
        """
        jobs = np.array(candidates, dtype=np.int64)
        jobs = jobs[self._asked[jobs] <= self._machine.free]
        if not len(jobs):
            return []
        least = least_thresholds(
            self._held_now(),
            self._machine.nodes,
            self._machine.processors,
            self._capacity,
            self._asked[jobs],
            self._walltime[jobs],
            self._demands[jobs],
            self._limits[jobs],
        )
        thresholds = self._limits.shape[1]
        pairs = zip(jobs.tolist(), least.tolist())
        return [(job, number) for job, number in pairs if number < thresholds]

    def first_starts(self, job: int) -> list[int]:
        """Return the first start of a job within each of its thresholds."""
        return first_starts(
            self._held_now(),
            self._machine.nodes,
            self._machine.processors,
            self._capacity,
            self._system.processors[job],
            self.walltimes[job],
            self._demands[job],
            self._limits[job],
        )

    def _problem(
        self,
        job: int,
        held: NDArray[np.int64],
        goal: Goal,
        threshold: int | None,
        latest: int | None = None,
    ) -> ThresholdAllocation:
        return ThresholdAllocation.trusted(
            **self._given,
            held=held,
            asked=self._system.processors[job],
            walltime=self.walltimes[job],
            demand=self._demands[job],
            threshold=threshold,
            goal=goal,
            latest=latest,
            job=self._system.job_id[job],
        )

    def _check_numbers(self) -> None:
        """Check the largest problem that can be posed, in place of every problem.

        At worst, the job has the largest numbers of all jobs, behind a running job and a
        reservation whose limits were raised on full nodes.

        Raises
        ------
        InputError
            If a demand is negative, or numbers are too large.
        """
        machine, most = self._machine, self._demands.max(axis=0)
        worst = self._given | {"asked": machine.size, "walltime": max(self.walltimes)}
        worst["threshold"] = self.thresholds(int(np.argmax(self._least_threshold)))[-1]
        alone = ThresholdAllocation(**worst, held=[], demand=most)
        full = Placement(0, np.full(machine.nodes, machine.processors))
        limit = alone.walltime - (-alone.penalised_time(full) // alone.unit)
        held = [[0, 1, 0, 2 * limit, *most.tolist()]]
        ThresholdAllocation(**worst, held=held, demand=self._demands.min(axis=0))

    def _least_thresholds(self) -> list[int]:
        capacity = self._capacity[:, None]
        on_a_node = -(-self._asked // self._machine.nodes)
        excess = np.maximum(on_a_node * self._demands.T - capacity, 0) / capacity
        factors: list[int] = (1000 + np.ceil(1000 * excess.sum(axis=0))).astype(int).tolist()
        return factors

    def _penalty_limits(self) -> NDArray[np.int64]:
        """Return the largest penalized times within the thresholds, shape (jobs, thresholds)."""
        unit = math.lcm(*self._machine.capacity.values())
        return np.array(
            [
                [penalty_within(threshold, walltime * unit) for threshold in self.thresholds(job)]
                for job, walltime in enumerate(self.walltimes)
            ],
            dtype=np.int64,
        )

    def _rows_of(
        self, job: int, processes: NDArray[np.int64], start: int, end: int
    ) -> NDArray[np.int64]:
        nodes = processes.nonzero()[0]
        rows = np.empty((len(nodes), 4 + len(self._capacity)), dtype=np.int64)
        rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = nodes, processes[nodes], start, end
        rows[:, 4:] = self._demands[job]
        return rows

    def _held_now(self) -> NDArray[np.int64]:
        """Return all rows, with times from now; the same array until a row changes."""
        from optsched.policies.parts._reservation_table import held_from_now

        now = self._system.now
        if self._held is None or self._now != now:
            if self._running is None:
                rows = np.concatenate([self._none, *self._rows.values()])
                self._running = rows, np.concatenate([np.empty(0), *self._until.values()])
            self._held = held_from_now(self._reserved, *self._running, now)
            self._held.flags.writeable = False
            self._now = now
        return self._held


def is_place(problem: ThresholdAllocation, placement: Placement) -> bool:
    """Return whether a placement is feasible, apart from starts that must be at an event."""
    if problem.passes_quick_check(placement, any_start=True):
        return True
    return all(one.constraint == "start" for one in problem.violations(placement))
