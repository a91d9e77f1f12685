"""Response and stretch of the evaluated jobs that load input files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.metrics.sessions import session_stretches, window_sessions
from optsched.schedule import Schedule
from optsched.traces.rackham import EVALUATED
from optsched.traces.trace import UNKNOWN, Trace

SHORTEST = 300.0
"""Lower limit in seconds of the response on an empty cluster, in the bounded stretch."""


def stretches(
    trace: Trace, schedule: Schedule, loads: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Return the stretch of each job: its response over that on an empty cluster.

    `loads` are the seconds to load the file of each job. The results, ``stretch`` and
    ``bounded_stretch``, have shape (jobs,); they are nan for jobs that did not run.
    """
    response = schedule.end - trace.submit
    reference = trace.runtime + loads
    return {
        "stretch": response / reference,
        "bounded_stretch": response / np.maximum(SHORTEST, reference),
    }


def evaluated(trace: Trace, schedule: Schedule) -> NDArray[np.bool_]:
    """Return the mask of evaluated jobs, shape (jobs,): those of that category that ran."""
    ran = np.isfinite(schedule.end)
    category = trace.annotations.get("category")
    return ran if category is None else ran & (category == EVALUATED)


def summarise_stretches(
    trace: Trace,
    schedule: Schedule,
    columns: Mapping[str, NDArray[Any]],
    loads: NDArray[np.int64],
) -> dict[str, Any]:
    """Return the figures of the evaluated jobs; times in seconds.

    Figures of sessions are left out if no job states its user.

    Parameters
    ----------
    columns : mapping of str to float64 array, shape (jobs,)
        ``transfer_time``, ``waiting_for_a_load``, ``stretch``, ``bounded_stretch``.
    loads : int64 array, shape (jobs,)
        Seconds to load the file of each job. A job with 0 s does not count as data reuse.
    """
    counts = evaluated(trace, schedule)
    if not counts.any():
        return {"evaluated": 0}
    start, end = schedule.start[counts], schedule.end[counts]
    submit, processors = trace.submit[counts], trace.processors[counts]
    values = {name: column[counts] for name, column in columns.items()}
    reuses = (loads[counts] > 0) & (values["transfer_time"] == 0)
    figures = {
        "evaluated": int(counts.sum()),
        "mean_queue_time": float((start - submit).mean()),
        "max_queue_time": float((start - submit).max()),
        "mean_flow": float((end - submit).mean()),
        "max_flow": float((end - submit).max()),
        "transfer_time": float(values["transfer_time"].sum()),
        "waiting_for_a_load": float(values["waiting_for_a_load"].sum()),
        "core_time": float(((end - start) * processors).sum()),
        "mean_stretch": float(values["stretch"].mean()),
        "max_stretch": float(values["stretch"].max()),
        "mean_bounded_stretch": float(values["bounded_stretch"].mean()),
        "max_bounded_stretch": float(values["bounded_stretch"].max()),
        "data_reuse": int(reuses.sum()),
    }
    if (trace.user[counts] != UNKNOWN).any():
        session = window_sessions(trace.user[counts], submit)
        of_sessions = session_stretches(values["stretch"], session)
        figures |= {
            "sessions": len(of_sessions),
            "mean_session_stretch": float(of_sessions.mean()),
            "median_session_stretch": float(np.median(of_sessions)),
        }
    return figures
