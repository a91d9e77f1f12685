"""The summary of a run: what became of the jobs, how long they waited, how busy the machine was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.simulator.schedule import State

if TYPE_CHECKING:
    from optsched.simulator.run import Run

THRESHOLD = 10.0
"""Run times below this many seconds count as this many in the bounded slowdown."""


def bounded_slowdown(
    wait: NDArray[np.float64], runtime: NDArray[np.float64], threshold: float = THRESHOLD
) -> NDArray[np.float64]:
    """Return ``max(1, (wait + runtime) / max(runtime, threshold))`` for each job.

    Parameters
    ----------
    wait, runtime : float64 array, shape (jobs,)
        Seconds.
    threshold : float
        Seconds.

    References
    ----------
    D. Feitelson, L. Rudolph, U. Schwiegelshohn, K. Sevcik, P. Wong, "Theory and practice in
    parallel job scheduling", JSSPP 1997.
    """
    return np.maximum(1.0, (wait + runtime) / np.maximum(runtime, threshold))


def summarise(run: Run) -> dict[str, Any]:
    """Return the summary of a run as JSON-able values; times in seconds.

    Means and percentiles are over finished jobs. Utilisation is the time that jobs held
    processors, over the machine's processors times the makespan; the makespan is from the first
    submission to the last end.
    """
    state = run.state
    counts = {name: int(np.count_nonzero(state == name)) for name in State}
    finished = state == State.FINISHED
    submit = np.asarray(run.trace.submit, dtype=np.float64)
    processors = np.asarray(run.trace.processors, dtype=np.float64)
    held = np.isfinite(run.end)
    runtime = run.end - run.start
    wait = run.start - submit
    makespan = float(run.end[held].max() - submit.min()) if held.any() else 0.0
    busy = float((runtime[held] * processors[held]).sum())
    slowdown = (wait + runtime)[finished] / runtime[finished]
    bounded = bounded_slowdown(wait[finished], runtime[finished])
    cleaning = run.trace.cleaning
    return {
        "jobs": len(run.trace),
        "finished": counts[State.FINISHED],
        "killed": counts[State.KILLED],
        "rejected": counts[State.REJECTED],
        "waiting": counts[State.WAITING],
        "dropped": cleaning.dropped if cleaning is not None else 0,
        "utilization": busy / (run.machine.size * makespan) if makespan else None,
        "makespan": makespan,
        "mean_wait": _mean(wait[finished]),
        "median_wait": _quantile(wait[finished], 0.5),
        "p95_wait": _quantile(wait[finished], 0.95),
        "max_wait": _quantile(wait[finished], 1.0),
        "mean_response": _mean((wait + runtime)[finished]),
        "mean_slowdown": _mean(slowdown),
        "mean_bounded_slowdown": _mean(bounded),
        "p95_bounded_slowdown": _quantile(bounded, 0.95),
        "decisions": run.schedule.decisions,
        "problems": len(run.decisions),
        "unproven": int((run.decisions["status"] != "optimal").sum()) if len(run.decisions) else 0,
        "fallbacks": run.fallbacks,
    }


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: NDArray[np.float64], q: float) -> float | None:
    return float(np.quantile(values, q)) if len(values) else None
