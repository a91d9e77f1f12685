"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from optsched.policies.reservation import QueuePolicy
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Action, Start
from optsched.simulator.system import System


@policies.register("fcfs")
@dataclass
class FCFS(QueuePolicy):
    """Jobs start strictly in order of submission; all wait for the queue head.

    On a site, jobs wait for the heads of partitions whose nodes they may use.
    """

    backfills = False

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads while they fit."""
        if self._queues is not None:
            yield from self._queues.actions(system)
            return
        queue, demands = system.queue, system.demands
        while queue and system.machine.fits(demands[queue[0]]):
            yield Start(queue[0])

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine."""
        return self._bound(run)
