"""Reservation table of nodes that share resources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from optsched.executions.resource_sharing import demands
from optsched.machines.smp import Smp
from optsched.models.threshold_allocation import Goal, Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import can_start_now, penalty_within
from optsched.simulator.system import System


class ReservationTable:
    """Processes of running jobs until their limits, and of one reservation (section 3.2).

    Attributes
    ----------
    least_threshold : list of int
        The least penalty factor of each job, in thousandths: that on an empty machine, with its
        processes spread evenly.
    """

    def __init__(self, system: System) -> None:
        machine = system.machine
        assert isinstance(machine, Smp)
        self._system = system
        self._machine = machine
        self._capacity = np.array(list(machine.capacity.values()), dtype=np.int64)
        self._capacity.flags.writeable = False
        self._resources = tuple(machine.capacity)
        self._demands = np.ascontiguousarray(demands(system, machine).T)
        self._demands.flags.writeable = False
        self._asked = np.array(system.processors, dtype=np.int64)
        self._walltime = np.ceil(system.requested_time).astype(np.int64)
        self._unit = math.lcm(*machine.capacity.values())
        self.least_threshold = self._least_thresholds()
        self._held: dict[int, NDArray[np.int64]] = {}
        self._until: dict[int, float] = {}
        self._none = np.empty((0, 4 + len(self._capacity)), dtype=np.int64)
        self._reserved = self._none
        self._reservation: tuple[ThresholdAllocation, Placement, float] | None = None
        self._now = -math.inf
        self._rows: NDArray[np.int64] | None = None

    def start(self, job: int, processes: NDArray[np.int64], until: float) -> None:
        """Record the start of a job with given processes on each node, until its limit."""
        self._held[job] = self._rows_of(job, processes, 0, 0)
        self._until[job] = until
        self._rows = None

    def end(self, job: int) -> None:
        """Record the end of a job."""
        del self._held[job], self._until[job]
        self._rows = None

    def reserve(
        self,
        job: int,
        problem: ThresholdAllocation,
        placement: Placement,
        seconds: int,
        exact_start: float,
    ) -> None:
        """Reserve the placement, which solves the problem, for a job; the only reservation.

        Parameters
        ----------
        seconds : int
            Length of the reservation.
        exact_start : float
            Time of the start, from which the whole seconds of the placement may deviate by one.
        """
        start = placement.start
        self._reserved = self._rows_of(job, placement.processes, start, start + seconds)
        self._reservation = problem, placement, exact_start
        self._rows = None

    def forget_reservation(self) -> None:
        """Drop the reservation."""
        self._reserved = self._none
        self._reservation = None
        self._rows = None

    def breaks_reservation(self, job: int, placement: Placement, limit: int) -> bool:
        """Return whether a job that started now would make the reserved place infeasible.

        A placement avoids the reservation for the walltime of the job only. With a raised limit, in
        seconds, it may overlap the reservation, or raise the penalty there above the threshold.
        """
        if self._reservation is None:
            return False
        problem, reserved, at = self._reservation
        shared = (placement.processes > 0) & (reserved.processes > 0)
        if self._system.now + limit <= at or not shared.any():
            return False
        if limit <= reserved.start:
            return True
        running = self._rows_now()[len(self._reserved) :]
        held = np.concatenate((running, self._rows_of(job, placement.processes, 0, limit)))
        return not is_place(replace(problem, held=held), reserved)

    def problem(
        self, job: int, goal: Goal, threshold: int | None = None, latest: int | None = None
    ) -> ThresholdAllocation:
        """Return the problem of placing a job; times count from now."""
        return ThresholdAllocation(
            nodes=self._machine.nodes,
            processors=self._machine.processors,
            capacity=self._capacity,
            resources=self._resources,
            held=self._rows_now(),
            asked=self._system.processors[job],
            walltime=math.ceil(self._system.requested_time[job]),
            demand=self._demands[job],
            threshold=threshold,
            goal=goal,
            latest=latest,
            job=self._system.job_id[job],
        )

    def first_start(self, job: int) -> int:
        """Return the seconds until enough processors are free for a job, if no other starts."""
        processors, now = self._system.processors[job], self._system.now
        missing = processors - self._machine.free
        if missing <= 0:
            return 0
        held = {job: int(rows[:, 1].sum()) for job, rows in self._held.items()}
        for job in sorted(held, key=self._until.__getitem__):
            missing -= held[job]
            if missing <= 0:
                return max(1, math.ceil(self._until[job] - now))
        raise ValueError(f"{processors} processors on a machine of {self._machine.size}")

    def placeable_now(
        self, candidates: Sequence[tuple[int, int | None]]
    ) -> list[tuple[int, int | None]]:
        """Return the candidates, pairs of a job and a threshold, that have a feasible place now.

        No problem needs to be posed for other candidates.
        """
        jobs = [job for job, _ in candidates]
        walltimes = self._walltime[jobs]
        limits = [
            penalty_within(threshold, walltime * self._unit)
            for (_, threshold), walltime in zip(candidates, walltimes.tolist())
        ]
        found = can_start_now(
            self._rows_now(),
            self._machine.nodes,
            self._machine.processors,
            self._capacity,
            self._asked[jobs],
            walltimes,
            self._demands[jobs],
            np.array(limits, dtype=np.int64),
        )
        return [*compress(candidates, found.tolist())]

    def _least_thresholds(self) -> list[int]:
        capacity = self._capacity[:, None]
        on_a_node = -(-self._asked // self._machine.nodes)
        excess = np.maximum(on_a_node * self._demands.T - capacity, 0) / capacity
        factors: list[int] = (1000 + np.ceil(1000 * excess.sum(axis=0))).astype(int).tolist()
        return factors

    def _rows_of(
        self, job: int, processes: NDArray[np.int64], start: int, end: int
    ) -> NDArray[np.int64]:
        nodes = np.flatnonzero(processes)
        rows = np.empty((len(nodes), 4 + len(self._capacity)), dtype=np.int64)
        rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = nodes, processes[nodes], start, end
        rows[:, 4:] = self._demands[job]
        return rows

    def _rows_now(self) -> NDArray[np.int64]:
        """Return all rows, with times from now; the same array until a row changes."""
        now = self._system.now
        if self._rows is None or self._now != now:
            if self._rows is None:
                held = self._held.values()
                self._all = np.concatenate([self._reserved, *held])
                until = np.array([self._until[job] for job in self._held])
                self._ends = np.repeat(until, [len(rows) for rows in held])
            rows = self._all.copy()
            # a running job holds its processors for at least a second
            rows[len(self._reserved) :, 3] = np.maximum(np.ceil(self._ends - now), 1)
            rows.flags.writeable = False
            self._rows, self._now = rows, now
        return self._rows


def is_place(problem: ThresholdAllocation, placement: Placement) -> bool:
    """Return whether a placement is feasible, apart from starts that must be at an event."""
    return all(one.constraint == "start" for one in problem.violations(placement))
