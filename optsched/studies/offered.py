"""The load that a workload offers to a machine."""

from __future__ import annotations

from typing import NamedTuple

from optsched.traces.trace import Trace


class Offered(NamedTuple):
    """The load of a workload.

    Parameters
    ----------
    days : float
        From the first to the last submission.
    load : float
        Its work over what the machine can do in that time.
    runtime : float
        Mean run time of its jobs, in seconds.
    """

    days: float
    load: float
    runtime: float


def offered_by(trace: Trace, processors: int) -> Offered:
    """Measure the load of a trace on a machine of so many processors."""
    seconds = float(trace.submit.max() - trace.submit.min())
    work = float((trace.processors * trace.runtime).sum())
    load = work / (processors * seconds) if seconds else float("inf")
    return Offered(seconds / 86_400, load, float(trace.runtime.mean()))
