"""Base of the policies for nodes that share resources: a reservation, raised limits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from optsched.errors import InputError
from optsched.machines.smp import Smp
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.policies.parts.reservation_table import ReservationTable, is_place
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System

LARGEST_FACTOR = 1000
"""Largest penalty factor of a threshold."""

WEIGHED = {
    "threshold-allocation": Answers(
        "bottleneck-search", "less-consume-threshold", by_objective=True
    )
}
"""Solvers of problems with an objective that the published rules ignore."""


class Found(NamedTuple):
    """Place and start of a job: the solution of a problem."""

    problem: ThresholdAllocation
    placement: Placement

    @property
    def starts_now(self) -> bool:
        """Whether the job can start now."""
        return self.placement.start == 0

    @property
    def penalized_walltime(self) -> int:
        """Requested time of the job in whole seconds, raised by the penalty of the place."""
        problem = self.problem
        return problem.walltime + -(-problem.penalised_time(self.placement) // problem.unit)

    @property
    def end(self) -> int:
        """Seconds until the end of the penalized requested time."""
        return self.placement.start + self.penalized_walltime


class HeadReservation(NamedTuple):
    """Reservation of the queue head: a start in seconds, and a place."""

    job: int
    start: float
    found: Found


@dataclass
class Sharing(Policy):
    """Jobs start in the order of submission, with backfilling behind a blocked queue head.

    Place and start of each job are the solution of a `threshold-allocation` problem. The blocked
    head has a reservation: no other job may take its processors, or raise its penalty there above
    the threshold. The head starts at its first reserved start, or earlier.

    Parameters
    ----------
    limits : {"raised", "requested"}
        Walltime of a job: its requested time, raised by the penalty factor of its placement, or
        its requested time unchanged.
    """

    limits: Literal["raised", "requested"] = "raised"

    machines: ClassVar[frozenset[str]] = frozenset({"smp"})
    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume", "less-consume-threshold")
    }
    execution: ClassVar[str | None] = "resource-sharing"

    def begin(self, system: System) -> None:
        """Begin with an empty table, without a reservation."""
        self._table = ReservationTable(system, self.factors())
        self._reservation: HeadReservation | None = None
        self._wakes_at = -math.inf

    @abstractmethod
    def factors(self) -> Sequence[int]:
        """Return the thresholds in thousandths, ascending; none for no limit."""

    @abstractmethod
    def place_head(self, job: int, system: System) -> Found:
        """Return place and start of the queue head."""

    @abstractmethod
    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs behind the queue head, which has a reservation."""

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads, reserve for the first that has to wait, backfill later jobs."""
        for job in system.ended:
            self._table.end(job)
        self._table.forget_reservation()
        queue = system.queue
        while queue:
            head = queue[0]
            found = self.place_head(head, system)
            kept = self._kept(head, found, system)
            found = found if kept is None else kept
            if not found.starts_now:
                break
            yield self.start(head, found, system)
        else:
            return
        start = system.now + found.placement.start
        if self._reservation is not None and self._reservation.job == head:
            start = min(start, self._reservation.start)
        if kept is None:
            self._reservation = HeadReservation(head, start, found)
        elif start != self._wakes_at:
            self._wakes_at = start
            yield Wake(start)
        if len(queue) > 1 and system.machine.free:
            threshold, placement = found.problem.threshold, found.placement
            self._table.reserve(head, threshold, placement, self.limit(found), start)
            yield from self.backfill(system)

    def _kept(self, job: int, found: Found, system: System) -> Found | None:
        """Return the reserved place and start of a job, if the new ones are later.

        Solvers start jobs at ends of running jobs only. If a running job ends early, its estimated
        end, and with it the reserved start, is no longer among these times.
        """
        reserved = self._reservation
        if reserved is None or reserved.job != job:
            return None
        if system.now + found.placement.start < reserved.start + 1:
            return None
        start = max(0, math.ceil(reserved.start - system.now))
        same = self._table.problem(job, "start", reserved.found.problem.threshold)
        kept = Found(same, Placement(start, reserved.found.placement.processes))
        return kept if is_place(*kept) else None

    def breaks_reservation(self, job: int, found: Found) -> bool:
        """Return whether a job that starts now would make the reservation infeasible."""
        return self._table.breaks_reservation(job, found.placement, self.limit(found))

    def limit(self, found: Found) -> int:
        """Return the seconds for which a job may run at a place."""
        requested = self.limits == "requested"
        return found.problem.walltime if requested else found.penalized_walltime

    def pose(self, problem: ThresholdAllocation, system: System) -> Found | None:
        """Pose a problem; return the place found, None without one."""
        placement = system.pose(problem)
        return None if placement is None else Found(problem, placement)

    def pose_head(self, job: int, problem: ThresholdAllocation, system: System) -> Found:
        """Pose a problem of the queue head; return the place found, which must exist.

        Raises
        ------
        InputError
            If the solver finds no place, as rules that try a single start time may.
        """
        found = self.pose(problem, system)
        if found is None:
            raise InputError(
                f"no place for job {system.job_id[job]} within a factor of "
                f"{(problem.threshold or 0) / 1000:g}; expected a solver that tries later times, "
                "such as less-consume-threshold or bottleneck-search",
                field="solver",
            )
        return found

    def start(self, job: int, found: Found, system: System) -> Start:
        """Return the action that starts a job at a place, and record the start in the table."""
        assert isinstance(system.machine, Smp)
        limit, processes = self.limit(found), found.placement.processes
        self._table.start(job, processes, system.now + limit)
        return Start(job, system.machine.place(processes), float(limit))
