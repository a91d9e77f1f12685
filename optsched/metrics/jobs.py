"""The summary of a run: what became of the jobs, how long they waited, how busy the machine was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.schedule import Schedule, State
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

THRESHOLD = 10.0
"""Run times below this many seconds count as this many in the bounded slowdown."""

LARGE = 0.9
"""Jobs of at least this quantile of processors are large."""

MEANS = {"mean_runs": "runs", "mean_hops": "mean_hops", "mean_dispersal": "dispersal"}
"""Means of measures that stand in a summary, and the measures."""


def bounded_slowdown(
    wait: NDArray[np.float64], runtime: NDArray[np.float64], threshold: float = THRESHOLD
) -> NDArray[np.float64]:
    """Return ``max(1, (wait + runtime) / max(runtime, threshold))`` for each job.

    Parameters
    ----------
    wait, runtime : float64 array, shape (jobs,)
        Seconds of the response time in which the job did not run, and in which it did.
    threshold : float
        Seconds.

    References
    ----------
    D. Feitelson, L. Rudolph, U. Schwiegelshohn, K. Sevcik, P. Wong, "Theory and practice in
    parallel job scheduling", JSSPP 1997.
    """
    return np.maximum(1.0, (wait + runtime) / np.maximum(runtime, threshold))


def summarise(
    trace: Trace, processors: int, schedule: Schedule, large_from: int | None = None
) -> dict[str, Any]:
    """Return the metrics of a schedule as JSON-able values; times in seconds.

    Means and percentiles are over finished jobs. Utilisation is the time that jobs ran on
    processors, over the machine's processors times the makespan; the makespan is from the first
    submission to the last end. Waiting ends at the start; slowdowns are those of the response time
    against the time that the job ran, without the pauses in which others had its processors.

    Parameters
    ----------
    trace : Trace
        The cleaned trace.
    processors : int
        Processors of the machine.
    schedule : Schedule
        When and where its jobs ran.
    large_from : int, optional
        Jobs of so many processors are large; the tenth that needs most if left out.
    """
    start, end, state = schedule.start, schedule.end, schedule.state
    counts = {name: int(np.count_nonzero(state == name)) for name in State}
    finished = state == State.FINISHED
    held = np.isfinite(end)
    runtime = schedule.run_time
    wait = start - trace.submit
    response = end - trace.submit
    makespan = float(end[held].max() - trace.submit.min()) if held.any() else 0.0
    busy = float((runtime[held] * trace.processors[held]).sum())
    slowdown = response[finished] / runtime[finished]
    large_from = least_large(trace, large_from)
    large = finished & (trace.processors >= large_from)
    bounded = bounded_slowdown((response - runtime)[finished], runtime[finished])
    return {
        "jobs": len(trace),
        "finished": counts[State.FINISHED],
        "killed": counts[State.KILLED],
        "rejected": counts[State.REJECTED],
        "waiting": counts[State.WAITING],
        "dropped": _dropped(trace),
        "utilization": busy / (processors * makespan) if makespan else None,
        "makespan": makespan,
        "mean_wait": _mean(wait[finished]),
        "median_wait": _quantile(wait[finished], 0.5),
        "p95_wait": _quantile(wait[finished], 0.95),
        "max_wait": _quantile(wait[finished], 1.0),
        "mean_response": _mean(response[finished]),
        "mean_slowdown": _mean(slowdown),
        "large_from": large_from,
        "large_jobs": int(large.sum()),
        "large_mean_wait": _mean(wait[large]),
        "large_max_wait": _quantile(wait[large], 1.0),
        "large_mean_response": _mean(response[large]),
        "mean_bounded_slowdown": _mean(bounded),
        "p95_bounded_slowdown": _quantile(bounded, 0.95),
        "decisions": schedule.decisions,
        "cleaning": trace.cleaning.to_json() if trace.cleaning is not None else None,
    }


def least_large(trace: Trace, large_from: int | None = None) -> int:
    """Return from how many processors on jobs are large: as given, or the tenth that needs most."""
    if large_from is not None:
        return large_from
    return int(np.quantile(trace.processors, LARGE, method="higher"))


def summarise_placement(measures: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return means over the jobs that ran of what the machine measures of their allocations.

    Parameters
    ----------
    measures : mapping of str to array, shape (jobs,)
        What `Machine.job_measures` gives; a mean is left out if it has no such measure.
    """
    means = {name: measures[measure] for name, measure in MEANS.items() if measure in measures}
    if "runs" in measures:
        means = {"contiguous_share": measures["runs"] == 1} | means
    return {name: _mean(values) for name, values in means.items()}


def summarise_problems(decisions: pd.DataFrame, compared: Collection[str]) -> dict[str, Any]:
    """Return how the problems of a run were answered.

    ``unproven`` counts the answers without a proof, of optimality or that there is no solution,
    ``heuristic_matched`` is the share of answered problems where the policy's heuristic finds as
    much as the answer that counted, and ``heuristic_gap`` its mean relative distance from that
    where it finds less, both of the models that are compared; ``unanswered`` counts the problems
    without any solution.
    ``nominal_seconds`` is what their solves are priced at, together.

    Parameters
    ----------
    decisions : pandas.DataFrame
        One row per problem, see `Posing.frame`.
    compared : collection of str
        The models whose problems the heuristic answered too, see `Posing.compared`.
    """
    proven = decisions["status"].isin(["optimal", "infeasible"])
    figures: dict[str, Any] = {"unproven": int((~proven).sum())}
    if len(decisions):
        figures["nominal_seconds"] = float(decisions["price"].sum())
    answered = decisions[decisions["objective"].notna()]
    if len(answered) < len(decisions):
        figures["unanswered"] = len(decisions) - len(answered)
    if len(answered):
        both = answered[answered["model"].isin(compared)]
        answer = both["objective"].astype(np.float64)
        heuristic = both["heuristic"].astype(np.float64)
        apart = answer != heuristic
        less = apart & heuristic.notna()
        gap = (answer[less] - heuristic[less]).abs() / answer[less].abs().clip(lower=1.0)
        figures["heuristic_matched"] = _mean(~apart.to_numpy())
        figures["heuristic_gap"] = _mean(gap.to_numpy())
    return figures


def _dropped(trace: Trace) -> int | None:
    """Return how many jobs cleaning dropped; none for a part of a cleaned trace.

    Jobs are counted in the cleaned trace, so no dropped job lies within a part of it or without.
    """
    report = trace.cleaning
    if report is None:
        return 0
    return report.dropped if len(trace) == report.jobs_read - report.dropped else None


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: NDArray[np.float64], q: float) -> float | None:
    return float(np.quantile(values, q)) if len(values) else None
