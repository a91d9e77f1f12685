"""Response and stretch of the evaluated jobs that load input files, and sessions of users.

M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware batch
scheduling", APDCM 2024, section V.B.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Floats, Ints
from optsched.metrics.measure import Group, measures_in
from optsched.schedule import Schedule
from optsched.traces.rackham import EVALUATED
from optsched.traces.trace import UNKNOWN, Trace

WINDOW = 300  # longest time in seconds from the first job of a session to the last, as in the paper


def window_sessions(user: Ints, submit: NDArray[Any]) -> Ints:
    """Return the session of each job, from 0: jobs that a user submits within `WINDOW`.

    The paper states this rule. The window opens with the first job of a session; the user's first
    job after the window opens the next session. Jobs of other users may come in between. A job
    without a known user is a session of its own. Jobs are in the order of submission; times are in
    seconds.
    """
    opened: dict[int, tuple[float, int]] = {}
    session = np.empty(len(user), dtype=np.int64)
    sessions = 0
    for job, (who, when) in enumerate(zip(user.tolist(), submit.tolist())):
        first, own = opened.get(who, (-np.inf, -1))
        if who == UNKNOWN or when - first > WINDOW:
            own = sessions
            opened[who] = when, own
            sessions += 1
        session[job] = own
    return session


def session_stretches(stretch: Floats, session: Ints) -> Floats:
    """Return the stretch of each session: the sum of its jobs' stretches, shape (sessions,)."""
    return np.bincount(session, stretch).astype(np.float64)


MEASURES = measures_in(
    Group.EVALUATED,
    evaluated=("evaluated jobs", "jobs",
        "Jobs that ran and are of category 1, or of any category if the trace has none."),
    mean_queue_time=("mean wait", "seconds",
        "Mean time from submission to start over the evaluated jobs."),
    max_queue_time=("longest wait", "seconds",
        "Longest time from submission to start of an evaluated job."),
    mean_flow=("mean response", "seconds",
        "Mean time from submission to end over the evaluated jobs."),
    max_flow=("longest response", "seconds",
        "Longest time from submission to end of an evaluated job."),
    transfer_time=("time of loading files", "seconds",
        "Sum over the evaluated jobs of the time in which the job loads its file."),
    waiting_for_a_load=("time of waiting for loads", "seconds",
        "Sum over the evaluated jobs of the time in which the job waits for another job's load of"
        " its file."),
    core_time=("core time", "processor-seconds",
        "Sum over the evaluated jobs of cores times time from start to end, loading included."),
    mean_stretch=("mean stretch", "",
        "Mean of the response over the response on an empty cluster, which is the run time and a"
        " full load of the file; the slowdown divides by the time that the job ran, instead."),
    max_stretch=("highest stretch", "",
        "Highest response over the response on an empty cluster of an evaluated job."),
    mean_bounded_stretch=("mean bounded stretch", "",
        "Mean of the stretch with a divisor of at least 300 s."),
    max_bounded_stretch=("highest bounded stretch", "",
        "Highest stretch of an evaluated job, with a divisor of at least 300 s."),
    data_reuse=("jobs that reuse data", "jobs",
        "Evaluated jobs with a load of a second or more whose file was there, or was being loaded."
    ),
    sessions=("sessions", "sessions",
        "Sets of evaluated jobs that one user submits within five minutes of the first of them."),
    mean_session_stretch=("mean stretch of a session", "",
        "Mean over the sessions of the sum of the stretches of their jobs."),
    median_session_stretch=("median stretch of a session", "",
        "Median over the sessions of the sum of the stretches of their jobs."),
)  # fmt: skip

SHORTEST = 300.0
"""Lower limit in seconds of the response on an empty cluster, in the bounded stretch."""


def stretches(trace: Trace, schedule: Schedule, loads: Ints) -> dict[str, Floats]:
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


def evaluated(trace: Trace, schedule: Schedule) -> Flags:
    """Return the mask of evaluated jobs, shape (jobs,): those of that category that ran."""
    ran = np.isfinite(schedule.end)
    category = trace.annotations.get("category")
    return ran if category is None else ran & (category == EVALUATED)


def summarise_stretches(
    trace: Trace,
    schedule: Schedule,
    # ``transfer_time``, ``waiting_for_a_load``, ``stretch``, ``bounded_stretch``, shape
    # (jobs,)
    columns: Mapping[str, NDArray[Any]],
    # Seconds to load the file of each job. A job with 0 s does not count as data reuse. Shape
    # (jobs,).
    loads: Ints,
) -> dict[str, Any]:
    """Return the figures of the evaluated jobs; times in seconds.

    Figures of sessions are left out if no job states its user.
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
