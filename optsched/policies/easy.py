"""EASY backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optsched.policies.policy import Policy
from optsched.policies.reservation import backfill, reserve
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


@policies.register("easy")
@dataclass
class Easy(Policy):
    """FCFS in which later jobs may start if they do not delay the head of the queue.

    References
    ----------
    D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; D. Feitelson, A. Mu'alem Weil,
    "Utilization and predictability in scheduling the IBM SP2 with backfilling", IPPS 1998.
    """

    def decide(self, system: System) -> Iterable[Action]:
        """Start heads while they fit, reserve for the blocked head, backfill behind it."""
        queue, processors = system.queue, system.processors
        while queue and processors[queue[0]] <= system.machine.free:
            yield Start(queue[0])
        if len(queue) < 2 or not system.machine.free:
            return
        candidates = self.candidates(system)
        if candidates:
            yield from backfill(system, candidates, reserve(system, queue[0]))

    def candidates(self, system: System) -> Sequence[int]:
        """Return the jobs behind the head that fit now, in the order in which they are tried."""
        processors, free = system.processors, system.machine.free
        return [job for job in system.queue[1:] if processors[job] <= free]
