"""What policies for nodes that share resources have in common: a reservation, raised limits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from optsched.errors import InputError
from optsched.machines.smp import Smp
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.policies.parts.reservation_table import ReservationTable, is_place
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System

Found = tuple[ThresholdAllocation, Placement]


LARGEST_FACTOR = 1000
"""The largest penalty factor that may be a threshold."""

WEIGHED = {
    "threshold-allocation": Answers(
        "bottleneck-search", "less-consume-threshold", by_objective=True
    )
}
"""What answers where more is asked for than a published rule looks at."""


class Promise(NamedTuple):
    """What the first job of the queue was promised.

    Parameters
    ----------
    job : int
        The job.
    start : float
        The time.
    problem : ThresholdAllocation
        What it was the answer to.
    placement : Placement
        The place.
    """

    job: int
    start: float
    problem: ThresholdAllocation
    placement: Placement


@dataclass
class Sharing(Policy):
    """Jobs start in the order of submission; behind the first that cannot, others are backfilled.

    Where each job goes, and when, is asked for as a `threshold-allocation` problem. The first job
    that has to wait holds a reservation: no other may touch its processors, or raise its penalty
    there above its threshold. It starts at the time it was promised first, or before.

    Parameters
    ----------
    limits : {"raised", "requested"}
        Until when a job may run: for its requested time, raised by the penalty factor that its
        place promises, or for its requested time as it is.
    """

    limits: Literal["raised", "requested"] = "raised"

    machines: ClassVar[frozenset[str]] = frozenset({"smp"})
    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume", "less-consume-threshold")
    }
    execution: ClassVar[str | None] = "resource-sharing"

    def begin(self, system: System) -> None:
        """Begin with an empty table, and no promise."""
        self._table = ReservationTable(system)
        self._promise: Promise | None = None
        self._wakes_at = -math.inf

    @abstractmethod
    def place_head(self, job: int, system: System) -> Found:
        """Return where and when the first job of the queue goes."""

    @abstractmethod
    def backfill(self, system: System) -> Iterator[Action]:
        """Start jobs behind the first of the queue, which holds its reservation."""

    def decide(self, system: System) -> Iterable[Action]:
        """Start heads of the queue, reserve for the first that has to wait, backfill behind it."""
        for job in system.ended:
            self._table.end(job)
        self._table.forget_reservation()
        queue = system.queue
        while queue:
            head = queue[0]
            problem, placement = self.place_head(head, system)
            kept = self._kept(head, problem, placement, system)
            if kept is not None:
                problem, placement = kept
            if placement.start > 0:
                break
            yield self.start(head, problem, placement, system)
        else:
            return
        start = self._promised_start(head, system.now + placement.start)
        if kept is None:
            self._promise = Promise(head, start, problem, placement)
        elif start != self._wakes_at:
            self._wakes_at = start
            yield Wake(start)
        if len(queue) > 1 and system.machine.free:
            limit = self.limit(problem, placement)
            self._table.reserve(head, problem, placement, limit, start)
            yield from self.backfill(system)

    def _promised_start(self, job: int, start: float) -> float:
        """Return when a job will start, at least when it was promised to."""
        if self._promise is None or self._promise.job != job:
            return start
        return min(start, self._promise.start)

    def _kept(
        self, job: int, problem: ThresholdAllocation, placement: Placement, system: System
    ) -> Found | None:
        """Return the place and start promised to a job earlier, if it would now start later.

        What runs may end before its limit, and with it the start that was promised: jobs end at
        none of the times left at which it would have enough.
        """
        promise = self._promise
        if (
            promise is None
            or promise.job != job
            or system.now + placement.start < promise.start + 1
        ):
            return None
        start = max(0, math.ceil(promise.start - system.now))
        same = self._table.problem(job, "start", promise.problem.threshold)
        kept = Placement(start, promise.placement.processes)
        return (same, kept) if is_place(same, kept) else None

    def breaks_promise(self, job: int, problem: ThresholdAllocation, placement: Placement) -> bool:
        """Return whether a job that starts now at a place keeps the reserved one from its owner."""
        return self._table.breaks_promise(job, placement, self.limit(problem, placement))

    def limit(self, problem: ThresholdAllocation, placement: Placement) -> int:
        """Return the seconds for which a job may hold a place."""
        if self.limits == "requested":
            return problem.walltime
        return penalised_walltime(problem, placement)

    def found(self, job: int, problem: ThresholdAllocation, system: System) -> Found:
        """Return the answer for the first job of the queue, which has to start some time.

        Raises
        ------
        InputError
            If there is none: some rules look at the first time only at which processors are free.
        """
        placement = system.pose(problem)
        if placement is None:
            raise InputError(
                f"no place for job {system.job_id[job]} within a factor of "
                f"{(problem.threshold or 0) / 1000:g}; expected a solver that tries later times, "
                "such as less-consume-threshold or bottleneck-search",
                field="solver",
            )
        return problem, placement

    def start(
        self, job: int, problem: ThresholdAllocation, placement: Placement, system: System
    ) -> Start:
        """Return the action that starts a job at a place, and note it in the table."""
        assert isinstance(system.machine, Smp)
        limit = self.limit(problem, placement)
        self._table.start(job, placement.processes, system.now + limit)
        return Start(job, system.machine.place(placement.processes), float(limit))


def penalised_walltime(problem: ThresholdAllocation, placement: Placement) -> int:
    """Return the whole seconds that a job asks for, raised by the penalty of a place."""
    return problem.walltime + -(-problem.penalised_time(placement) // problem.unit)
