"""Why jobs of a run never started."""

from __future__ import annotations

import numpy as np

from optsched.machines.machine import Machine
from optsched.metrics.rejections import why_rejected
from optsched.schedule import Schedule, State
from optsched.simulator.holds import NEVER, Holds
from optsched.traces.trace import Trace

HELD = "a job that it depends on never ends"
QUEUED = "the policy never starts it"


def why_never_started(trace: Trace, machine: Machine, schedule: Schedule) -> dict[int, str]:
    """Return the reason of each job that was rejected or waits at the end, by its row."""
    reasons = why_rejected(trace, machine, schedule)
    waiting = np.flatnonzero(schedule.state == State.WAITING).tolist()
    reasons |= dict.fromkeys(waiting, QUEUED)
    if waiting and machine.follows_requests:
        start = [at if at == at else None for at in schedule.start.tolist()]
        holds = Holds(trace, schedule.state.tolist(), start)
        reasons |= {job: HELD for job in waiting if holds.eligible(job) == NEVER}
    return reasons
