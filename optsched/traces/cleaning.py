"""Cleaning of a trace by fixed rules, with a count of every change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.traces.trace import CleaningReport, Trace

WHOLE = (0, 1, 5)
"""Status of a line of a whole job in the Standard Workload Format."""


def clean(trace: Trace) -> Trace:
    """Return the valid jobs of `trace`, in the order (submit time, job number).

    The size of a job is its allocated processors if positive, else its requested ones. Jobs with a
    run time below 1 s, fewer than 1 processor or no submit time are dropped, and so are the parts
    of a checkpointed job of which another line is the whole. A requested time that
    is missing or shorter than the run time is set to the run time; where limits hold
    (`Trace.limits_hold`), only a missing one is. A cleaned trace is returned unchanged.
    """
    if trace.cleaning is not None:
        return trace
    from_request = (trace.processors <= 0) & (trace.requested_processors > 0)
    processors = _changed(trace.processors, from_request, trace.requested_processors)
    too_short = trace.runtime < 1
    too_small = ~too_short & (processors < 1)
    never_submitted = ~too_short & ~too_small & (trace.submit < 0)
    kept = ~(too_short | too_small | never_submitted)
    parts = _parts(trace, kept)
    kept &= ~parts
    reordered = 0
    if not kept.all() or not _in_order(trace):
        rows = np.flatnonzero(kept)
        order = np.lexsort((trace.job_id[rows], trace.submit[rows]))
        reordered = int((order != np.arange(len(order))).sum())
        rows = rows[order]
        selected = trace.select(rows)
        processors, from_request = processors[rows], from_request[rows]
    else:
        selected = trace
    requested, runtime = selected.requested_time, selected.runtime
    missing = requested <= 0
    raised = ~missing & (requested < runtime) & (not trace.limits_hold)
    report = CleaningReport(
        jobs_read=len(trace),
        dropped_runtime=int(too_short.sum()),
        dropped_processors=int(too_small.sum()),
        dropped_submit=int(never_submitted.sum()),
        dropped_parts=int(parts.sum()),
        processors_from_request=int(from_request.sum()),
        requested_time_missing=int(missing.sum()),
        requested_time_raised=int(raised.sum()),
        reordered=reordered,
    )
    if not len(selected):
        raise InputError(f"all {len(trace)} jobs were dropped by cleaning", file=trace.path)
    return replace(
        selected,
        processors=processors,
        requested_time=_changed(requested, missing | raised, runtime),
        cleaning=report,
    )


def _parts(trace: Trace, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the kept lines that are parts of a job of which another kept line is the whole."""
    parts = kept & (trace.status >= 2) & (trace.status <= 4)
    if parts.any():
        whole = trace.job_id[kept & np.isin(trace.status, WHOLE)]
        parts &= np.isin(trace.job_id, whole)
    return parts


def _in_order(trace: Trace) -> bool:
    """Return whether the jobs are in the order of a cleaned trace."""
    submit, job_id = trace.submit, trace.job_id
    later, same = submit[1:] > submit[:-1], submit[1:] == submit[:-1]
    return bool((later | (same & (job_id[1:] >= job_id[:-1]))).all())


def _changed(column: NDArray[Any], rows: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[Any]:
    """Return a column with the values in some rows; without a copy if there are no such rows."""
    if rows.any():
        return np.where(rows, values, column)
    return column.astype(np.result_type(column, values), copy=False)
