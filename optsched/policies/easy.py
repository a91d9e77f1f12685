"""EASY backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies.reservation import QueuePolicy
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
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

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return the candidates in backfill order."""
        return sorted(jobs, key=system.requested_time.__getitem__) if self.shortest_first else jobs

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine, unless the order of backfilling is another."""
        if type(self).in_order is not Easy.in_order:
            return None
        return self._bound(run, shortest_first=self.shortest_first)
