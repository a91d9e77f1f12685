"""Why jobs were rejected by a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optsched.machines.machine import Machine
from optsched.machines.site import SiteMachine
from optsched.metrics.metric import Metric
from optsched.registry import metrics
from optsched.schedule import Schedule
from optsched.traces.trace import Trace


@metrics.register("rejections")
@dataclass(frozen=True)
class Rejections(Metric):
    """The jobs that can never start on a site.

    Parameters
    ----------
    counts : mapping of str to int
        Number of jobs by reason.
    """

    counts: Mapping[str, int]

    @classmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> Rejections | None:
        """Count the reasons; None on other machines."""
        if not isinstance(machine, SiteMachine):
            return None
        reasons = map(machine.why_never, machine.requests.numbers)
        return cls(Counter(filter(None, reasons)))

    def summary(self) -> dict[str, Any]:
        """Return ``rejected_because``, the number of rejected jobs by reason."""
        return {"rejected_because": dict(sorted(self.counts.items()))} if self.counts else {}
