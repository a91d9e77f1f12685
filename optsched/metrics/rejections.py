"""Why jobs were rejected by a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.machines.machine import Machine
from optsched.machines.site import SiteMachine
from optsched.metrics.metric import Metric
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.trace import Trace

HELD_FOR_EVER = "a job that it depends on has ended otherwise"
"""Reason of jobs that fit on the site."""


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
        numbers = np.array(machine.requests.numbers)[schedule.state == State.REJECTED]
        reasons = [machine.why_never(number) or HELD_FOR_EVER for number in numbers.tolist()]
        return cls(Counter(reasons))

    def summary(self) -> dict[str, Any]:
        """Return ``rejected_because``, the number of rejected jobs by reason."""
        return {"rejected_because": dict(sorted(self.counts.items()))} if self.counts else {}
