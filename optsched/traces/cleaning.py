"""Cleaning of a trace by fixed rules, with a count of every change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optsched.errors import InputError
from optsched.traces.cleaning_report import CleaningReport
from optsched.traces.trace import Trace


def clean(trace: Trace) -> Trace:
    """Return the valid jobs of `trace`, in the order (submit time, job number).

    The size of a job is its allocated processors if positive, else its requested ones. Jobs with a
    run time below 1 s, fewer than 1 processor or no submit time are dropped. A requested time that
    is missing or shorter than the run time is set to the run time; where limits hold
    (`Trace.limits_hold`), only a missing one is. A cleaned trace is returned unchanged.

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
    raised = ~missing & (requested < runtime) & (not trace.limits_hold)
    report = CleaningReport(
        jobs_read=len(trace),
        dropped_runtime=int(too_short.sum()),
        dropped_processors=int(too_small.sum()),
        dropped_submit=int(never_submitted.sum()),
        processors_from_request=int(from_request[rows].sum()),
        requested_time_missing=int(missing.sum()),
        requested_time_raised=int(raised.sum()),
        reordered=int((order != np.arange(len(order))).sum()),
    )
    if not len(rows):
        raise InputError(f"all {len(trace)} jobs were dropped by cleaning", file=trace.path)
    return replace(
        trace.select(rows),
        processors=processors[rows],
        requested_time=np.where(missing | raised, runtime, requested),
        cleaning=report,
    )
