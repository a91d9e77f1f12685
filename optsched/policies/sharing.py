"""What policies for nodes that share resources have in common: a reservation, raised limits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from optsched.machines.smp import Smp
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.policies.reservation_table import ReservationTable
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System


@dataclass
class Sharing(Policy):
    """Jobs start in the order of submission; behind the first that cannot, others are backfilled.

    Where each job goes, and when, is asked for as a `threshold-allocation` problem. The first job
    that has to wait holds a reservation, which no other may touch.

    Parameters
    ----------
    limits : {"raised", "requested"}
        Until when a job may run: for its requested time, raised by the penalty factor that its
        place promises, or for its requested time as it is.
    """

    limits: Literal["raised", "requested"] = "raised"

    machines: ClassVar[frozenset[str]] = frozenset({"smp"})
    models: ClassVar[Mapping[str, Answers]] = {
        "threshold-allocation": Answers("less-consume", "first-fit")
    }
    execution: ClassVar[str | None] = "resource-sharing"

    def begin(self, system: System) -> None:
        """Begin with an empty table."""
        self._table = ReservationTable(system)

    @abstractmethod
    def place_head(self, job: int, system: System) -> tuple[ThresholdAllocation, Placement]:
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
            if placement.start > 0:
                break
            yield self.start(head, problem, placement, system)
        if len(queue) > 1 and system.machine.free:
            self._table.reserve(head, placement, self.limit(problem, placement))
            yield from self.backfill(system)

    def collides(self, problem: ThresholdAllocation, placement: Placement) -> bool:
        """Return whether a job that starts now at a place may run into the reservation."""
        return self._table.collides(placement, problem.walltime, self.limit(problem, placement))

    def limit(self, problem: ThresholdAllocation, placement: Placement) -> int:
        """Return the seconds for which a job may hold a place."""
        if self.limits == "requested":
            return problem.walltime
        return penalised_walltime(problem, placement)

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
