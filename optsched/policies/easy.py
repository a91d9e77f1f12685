"""EASY backfilling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from optsched.policies.reservation import QueuePolicy, backfill, promise, reserve
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Action, Start
from optsched.simulator.system import System


@policies.register("easy")
@dataclass
class Easy(QueuePolicy):
    """FCFS in which later jobs may start if they do not delay the queue head.

    On a site there is a head for each partition, or set of partitions that share nodes.

    References
    ----------
    D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; D. Feitelson, A. Mu'alem Weil,
    "Utilization and predictability in scheduling the IBM SP2 with backfilling", IPPS 1998.
    """

    backfills = True
    shortest_first: ClassVar[bool] = False

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads while they fit, reserve for the blocked head, backfill later jobs."""
        if self._queues is not None:
            in_order = partial(self.in_order, system=system)
            yield from self._queues.actions(system, in_order=in_order)
            return
        queue, demands, machine = system.queue, system.demands, system.machine
        while queue and machine.fits(demands[queue[0]]):
            # a job that was held may start before the head that has a reservation
            self._head, self._promised = -1, {}
            yield Start(queue[0])
        if len(queue) < 2 or not machine.free:
            self._head = -1
            return
        candidates = system.submitted
        if system.ended or queue[0] != self._head:
            self._head, candidates = queue[0], queue[1:]
            self._reservation = reserve(system, self._head)
            self._promised = promise(self._promised, self._head, self._reservation)
        candidates = self.in_order(candidates, system)
        self._reservation = yield from backfill(system, candidates, self._reservation)

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return the candidates in backfill order."""
        return sorted(jobs, key=system.requested_time.__getitem__) if self.shortest_first else jobs

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine, unless the order of backfilling is another."""
        if type(self).in_order is not Easy.in_order:
            return None
        return self._bound(run, shortest_first=self.shortest_first)
