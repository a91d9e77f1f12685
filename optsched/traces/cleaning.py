"""Cleaning: which jobs count, with how many processors and for how long; everything counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from optsched.errors import InputError
from optsched.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """What cleaning did, in jobs.

    A job is dropped for the first reason that applies; the counts below the drops are of the jobs
    that were kept.

    Parameters
    ----------
    jobs_read : int
        Jobs in the raw trace.
    dropped_runtime : int
        Dropped: run time unknown or less than 1 s.
    dropped_processors : int
        Dropped: fewer than 1 processor, allocated and requested.
    dropped_submit : int
        Dropped: submit time unknown.
    processors_from_request : int
        Processors taken from the request, because none are stated as allocated.
    requested_time_missing : int
        Without a requested time; it was set to the run time.
    requested_time_raised : int
        With a requested time shorter than the run time; it was raised to the run time.
    reordered : int
        Jobs at another place after ordering by submit time and job number.
    """

    jobs_read: int
    dropped_runtime: int
    dropped_processors: int
    dropped_submit: int
    processors_from_request: int
    requested_time_missing: int
    requested_time_raised: int
    reordered: int

    @property
    def dropped(self) -> int:
        """Number of jobs dropped, for whatever reason."""
        return self.dropped_runtime + self.dropped_processors + self.dropped_submit

    def to_json(self) -> dict[str, int]:
        """Return the counts by name, with their sum ``dropped``."""
        return {"dropped": self.dropped, **asdict(self)}

    def lines(self) -> list[str]:
        """Return the counts as lines for a terminal; what did not happen is left out."""
        counts = (
            (self.dropped_runtime, "dropped: run time unknown or less than 1 s"),
            (self.dropped_processors, "dropped: less than 1 processor"),
            (self.dropped_submit, "dropped: submit time unknown"),
            (self.processors_from_request, "processors taken from the request"),
            (self.requested_time_missing, "requested time missing, set to the run time"),
            (self.requested_time_raised, "requested time raised to the run time"),
            (self.reordered, "moved when ordered by submit time and job number"),
        )
        return [f"{self.jobs_read:>9,} jobs read"] + [
            f"{count:>9,} {what}" for count, what in counts if count
        ]


def clean(trace: Trace) -> Trace:
    """Return the jobs of `trace` that count, in the order (submit time, job number).

    Processors are those allocated if positive, else those requested. Jobs with a run time below
    1 s, fewer than 1 processor or no submit time are dropped. A requested time that is missing or
    shorter than the run time is raised to the run time. A trace that was cleaned before is
    returned as it is.

    Raises
    ------
    InputError
        If no job is left.
    """
    if trace.cleaning is not None:
        return trace
    from_request = (trace.processors <= 0) & (trace.requested_processors > 0)
    processors = np.where(from_request, trace.requested_processors, trace.processors)
    too_short = trace.runtime < 1
    too_small = ~too_short & (processors < 1)
    never_submitted = ~too_short & ~too_small & (trace.submit < 0)
    kept = np.flatnonzero(~(too_short | too_small | never_submitted))
    order = np.lexsort((trace.job_id[kept], trace.submit[kept]))
    rows = kept[order]
    requested, runtime = trace.requested_time[rows], trace.runtime[rows]
    missing = requested <= 0
    report = CleaningReport(
        jobs_read=len(trace),
        dropped_runtime=int(too_short.sum()),
        dropped_processors=int(too_small.sum()),
        dropped_submit=int(never_submitted.sum()),
        processors_from_request=int(from_request[rows].sum()),
        requested_time_missing=int(missing.sum()),
        requested_time_raised=int((~missing & (requested < runtime)).sum()),
        reordered=int((order != np.arange(len(order))).sum()),
    )
    if not len(rows):
        raise InputError(f"none of the {len(trace)} jobs is left after cleaning", file=trace.path)
    return replace(
        trace.select(rows),
        processors=processors[rows],
        requested_time=np.maximum(requested, runtime),
        cleaning=report,
    )
