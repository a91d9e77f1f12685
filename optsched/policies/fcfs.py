"""First come, first served."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.policies.reservation import QueuePolicy
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun


@policies.register("fcfs")
@dataclass
class FCFS(QueuePolicy):
    """Jobs start strictly in order of submission; all wait for the queue head.

    On a site, jobs wait for the heads of partitions whose nodes they may use.
    """

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine."""
        return self._bound(run)
