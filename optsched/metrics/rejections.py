"""Why jobs were rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.machines.machine import Machine
from optsched.machines.site import SiteMachine
from optsched.metrics.measure import Group, Measure, Metric
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.requests import columns_of
from optsched.traces.trace import Trace

BY_POLICY = "the policy can never start it"
"""Reason of jobs that the machine can run and the engine did not reject for another reason."""


def why_rejected(trace: Trace, machine: Machine, schedule: Schedule) -> dict[int, str]:
    """Return the reason of each rejected job, by its row in the trace."""
    rows = np.flatnonzero(schedule.state == State.REJECTED)
    if not len(rows):
        return {}
    idle = machine.emptied()
    demands = idle.demands(columns_of(trace.select(rows)))
    return {
        row: schedule.reasons.get(row) or idle.why_never(asked) or BY_POLICY
        for row, asked in zip(rows.tolist(), demands)
    }


@metrics.register("rejections")
@dataclass(frozen=True)
class Rejections(Metric):
    """The jobs that can never start on a site."""

    counts: Mapping[str, int]  # number of jobs by reason

    of_jobs = True
    measures = {
        "rejected_because": Measure(
            "rejected jobs", "jobs", Group.JOBS,
            "Jobs that can never start, by what keeps them from it.",
            by="reason",
        ),
    }  # fmt: skip

    @classmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> Rejections | None:
        """Count the reasons; None on other machines."""
        if not isinstance(machine, SiteMachine):
            return None
        return cls(Counter(why_rejected(trace, machine, schedule).values()))

    def summary(self) -> dict[str, Any]:
        """Return ``rejected_because``, the number of rejected jobs by reason."""
        return {"rejected_because": dict(sorted(self.counts.items()))} if self.counts else {}
