"""Load of a run over time: processors in use, waiting jobs, waiting work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.durations import DAY
from optsched.errors import InputError
from optsched.report.steps import Steps
from optsched.schedule import State

if TYPE_CHECKING:
    from optsched.simulator.run import Run


def span(run: Run) -> tuple[float, float]:
    """Return the begin and end of a run, in the trace's own seconds.

    A run lasts from the first submission to the last submission, start or end of a job.
    """
    begin = float(np.min(run.trace.submit))
    end = float(np.max(run.trace.submit))
    for times in (run.start, run.end):
        end = max(end, float(np.max(times[np.isfinite(times)], initial=end)))
    return begin, max(end, begin + 1.0)


Days = tuple[float, float]
"""Period of a run: its begin and end in days since the first submission."""


def period(run: Run, days: Days | None) -> tuple[float, float]:
    """Return the begin and end of a period of a run, in the trace's own seconds.

    The period ends with the run at the latest; None stands for the whole run.
    """
    begin, end = span(run)
    if days is None:
        return begin, end
    length = (end - begin) / DAY
    try:
        first, last = map(float, days)
    except (TypeError, ValueError):
        first = last = math.nan
    if not 0 <= first < min(last, length):  # nan included
        expected = f"expected two ascending days from 0, of a run of {length:.4g} days"
        raise InputError(f"{days!r}; {expected}", field="days")
    return begin + first * DAY, min(begin + last * DAY, end)


def spoken_days(days: Days) -> str:
    """Return a period in words, ``days 10 to 12.5`` for instance."""
    return f"days {days[0]:g} to {days[1]:g}"


def held_until(run: Run) -> NDArray[np.float64]:
    """Return the end of each job; for jobs that never end, the end of the run."""
    return np.where(np.isfinite(run.end), run.end, span(run)[1])


def processors_in_use(run: Run) -> Steps:
    """Return the processors that jobs hold, as a function of time."""
    started = np.isfinite(run.start)
    held = run.start[started], held_until(run)[started]
    return Steps.from_stays(*held, run.trace.processors[started], *span(run))


def waiting_jobs(run: Run) -> Steps:
    """Return the number of submitted jobs that have not started; rejected ones do not wait."""
    return _waiting(run, np.ones_like(run.trace.processors))


def waiting_work(run: Run) -> Steps:
    """Return the work of the waiting jobs, processors x run time, in processor-seconds."""
    return _waiting(run, run.trace.processors * run.trace.runtime)


def accepted(run: Run) -> NDArray[np.bool]:
    """Return a mask of the jobs that joined the queue: all but the rejected ones."""
    return ~np.isin(run.state, (State.REJECTED, State.UNSUBMITTED))


def _waiting(run: Run, amounts: NDArray[Any]) -> Steps:
    begin, end = span(run)
    queued = accepted(run)
    until = np.where(np.isfinite(run.start), run.start, end)
    return Steps.from_stays(run.trace.submit[queued], until[queued], amounts[queued], begin, end)


def subject(run: Run) -> str:
    """Return a title of pictures of the run: trace, jobs, policy, machine."""
    return named(run.trace.name, run.config)


def named(trace: str, config: Mapping[str, Any]) -> str:
    """Return a title of the run of a config, with the name of its trace."""
    jobs = config.get("jobs")
    part = f", jobs {jobs[0]:,} to {jobs[1]:,}" if jobs else ""
    solver = config.get("solver")
    by = f" with {solver}" if solver else ""
    return f"{trace}{part}: {config['policy']}{by} on {config['machine']}"
