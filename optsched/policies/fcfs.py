"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Policy
from optsched.simulator.system import System


@policies.register("fcfs")
@dataclass
class FCFS(Policy):
    """Jobs start strictly in order of submission; all wait for the queue head."""

    replay: ClassVar[str | None] = "NO_BACKFILLING"

    def decide(self, system: System) -> Iterable[Action]:
        """Start queue heads while they fit."""
        queue, processors = system.queue, system.processors
        while queue and processors[queue[0]] <= system.machine.free:
            yield Start(queue[0])
