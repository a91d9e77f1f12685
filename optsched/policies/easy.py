"""EASY backfilling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.policies.parts.reservation import Reservation, backfill, reserve
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Policy
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.simulator._replay import Runs
    from optsched.simulator._replay import State as ReplayState


@policies.register("easy")
@dataclass
class Easy(Policy):
    """FCFS in which later jobs may start if they do not delay the queue head.

    References
    ----------
    D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; D. Feitelson, A. Mu'alem Weil,
    "Utilization and predictability in scheduling the IBM SP2 with backfilling", IPPS 1998.
    """

    def begin(self, system: System) -> None:
        """Forget the reservation."""
        self._head = -1
        self._reservation = Reservation(system.now, 0)

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads while they fit, reserve for the blocked head, backfill later jobs.

        As long as no job has ended and the head is the same, a job that could not be backfilled
        still cannot, since its estimated end only moves later. So only new jobs are tried.
        """
        queue, processors, machine = system.queue, system.processors, system.machine
        while queue and processors[queue[0]] <= machine.free:
            yield Start(queue[0])
        if len(queue) < 2 or not machine.free:
            self._head = -1
            return
        if not system.ended and queue[0] == self._head:
            jobs = self.in_order(system.submitted, system)
            self._reservation = yield from backfill(system, jobs, self._reservation)
            return
        self._head = queue[0]
        reservation = reserve(system, self._head)
        jobs = self.in_order(queue[1:], system)
        self._reservation = yield from backfill(system, jobs, reservation)

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return the candidates in backfill order: by submission."""
        return jobs

    def replay(self, state: ReplayState, nodes: int) -> Runs | None:
        """Replay the policy."""
        from optsched.policies.parts._priority_queue import replay_by_score

        return replay_by_score(state, nodes, backfills=True)
