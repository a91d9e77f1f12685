"""The summary of a run: states, waits and slowdowns of jobs, utilization, why jobs are rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.arrays import Floats
from optsched.machines.machine import Machine
from optsched.machines.site import SiteMachine
from optsched.metrics.measure import Group, Measure, Metric, measures_in
from optsched.models.problem import Choice
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.requests import columns_of
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

THRESHOLD = 10.0  # lower limit of the run time in the bounded slowdown, in seconds
LARGE = 0.9  # quantile of sizes from which a job is large by default

FINISHED = "over the finished jobs"

MEASURES = measures_in(
    Group.JOBS,
    jobs=("simulated", "jobs", "Jobs of the cleaned trace, or of the part of it that is run."),
    finished=("finished", "jobs", "Jobs that ran to their end."),
    killed=("killed at the limit", "jobs", "Jobs that were ended at their requested time."),
    rejected=("rejected", "jobs",
        "Jobs that can never start, since they are larger than the machine for instance."),
    waiting=("never started", "jobs", "Jobs that still wait when the run is over."),
    dropped=("dropped by cleaning", "jobs",
        "Jobs of the trace that cleaning leaves out; unknown if only a part of the trace is run."),
    cleaning=("cleaning", "jobs",
        "Jobs of the whole trace that cleaning read, dropped and changed.", "rule"),
)  # fmt: skip
MEASURES |= measures_in(
    Group.MACHINE,
    utilization=("utilization", "share",
        "Processor-seconds in which jobs ran, over the processors of the machine times the"
        " makespan."),
    makespan=("makespan", "seconds", "Time from the first submission to the last end."),
)  # fmt: skip
MEASURES |= measures_in(
    Group.WAITS,
    mean_wait=("mean wait", "seconds", f"Mean time from submission to start {FINISHED}."),
    median_wait=("median wait", "seconds", f"Median time from submission to start {FINISHED}."),
    p95_wait=("95th percentile of the wait", "seconds",
        f"Time from submission to start that 95% do not exceed, {FINISHED}."),
    max_wait=("longest wait", "seconds", f"Longest time from submission to start {FINISHED}."),
    mean_response=("mean response", "seconds", f"Mean time from submission to end {FINISHED}."),
    mean_slowdown=("mean slowdown", "",
        f"Mean of the response over the time that the job ran, {FINISHED}."),
    mean_bounded_slowdown=("mean bounded slowdown", "",
        "Mean of max(1, response / max(run time, 10 s)), the slowdown with a divisor of at least"
        f" 10 s, {FINISHED}."),
    p95_bounded_slowdown=("95th percentile of the bounded slowdown", "",
        "Slowdown with a divisor of at least 10 s, and of at least 1, that 95% do not exceed,"
        f" {FINISHED}."),
    mean_pause=("mean pause", "seconds",
        f"Mean time in which a job held processors and did not run, {FINISHED}."),
)  # fmt: skip
MEASURES |= measures_in(
    Group.LARGE,
    large_from=("least size of a large job", "processors",
        "Processors from which a job is large: an option, or that of the tenth with the most."),
    large_jobs=("large jobs", "jobs", "Large jobs that finished."),
    large_mean_wait=("mean wait of large jobs", "seconds",
        "Mean time from submission to start over the large jobs that finished."),
    large_max_wait=("longest wait of large jobs", "seconds",
        "Longest time from submission to start of a large job that finished."),
    large_mean_response=("mean response of large jobs", "seconds",
        "Mean time from submission to end over the large jobs that finished."),
)  # fmt: skip
MEASURES |= measures_in(
    Group.POLICY,
    decisions=("decisions", "decisions", "Times at which the policy was asked what to start."),
)  # fmt: skip
MEASURES |= measures_in(
    Group.PLACEMENT,
    contiguous_share=("jobs on contiguous nodes", "share",
        "Share of the jobs that ran on one run of nodes."),
    mean_runs=("mean runs of nodes of a job", "runs",
        "Mean number of runs of adjacent nodes that a job ran on."),
    mean_hops=("mean hops between nodes of a job", "hops",
        "Mean over the jobs of the mean distance of two of their nodes in the torus."),
    mean_dispersal=("mean dispersal of a job", "",
        "Mean over the jobs of the mean hops over those between all nodes of the machine: 0 for one"
        " node, 1 for nodes spread like those of the machine."),
    mean_switches=("mean leaf switches of a job", "",
        "Mean number of leaf switches that the nodes of a job are below."),
)  # fmt: skip
MEASURES |= measures_in(
    Group.PROBLEMS,
    problems=("problems", "problems", "Problems that the policy posed to solvers."),
    unproven=("without a proof", "problems",
        "Problems answered without a proof of optimality or infeasibility."),
    unanswered=("without a solution", "problems",
        "Problems for which neither solver nor heuristic found a solution, which may not exist."),
    fallbacks=("decided by the fallback", "problems",
        "Problems in which the solver failed or ran out of budget, so that a heuristic decided."),
    wrong_answers=("wrong answers", "problems",
        "Problems with an answer that verification refuses or another solution refutes; none is"
        " used."),
    nominal_seconds=("nominal solving time", "seconds",
        "Sum of the nominal times of all solver calls, the same on every machine."),
    heuristic_matched=("heuristic as good as the solver", "share",
        "Share of the solved problems in which the heuristic of the policy reaches the objective"
        " of the decision."),
    heuristic_gap=("gap of the heuristic otherwise", "share",
        "Mean relative difference in the objective where the heuristic is worse."),
    one_job=("with one job", "problems", "Solved problems with a single job."),
    all_placed=("with all jobs placed", "problems",
        "Solved problems with several jobs, all of which are placed."),
    contested=("contested", "problems",
        "Solved problems with several jobs, some of which have to wait."),
    contested_matched=("heuristic as good in contested ones", "share",
        "Share of the contested problems in which the heuristic reaches the objective of the"
        " decision."),
)  # fmt: skip
"""The measures of the summaries of all runs, of placements and of problems."""

MEANS = {
    "mean_runs": "runs",
    "mean_hops": "mean_hops",
    "mean_dispersal": "dispersal",
    "mean_switches": "switches",
}
"""Means in the summary, with the measures of the machine that they are taken of."""


def bounded_slowdown(wait: Floats, runtime: Floats) -> Floats:
    """Return ``max(1, (wait + runtime) / max(runtime, THRESHOLD))`` for each job.

    The two are the seconds of the response in which the job did not run, and in which it did.

    D. Feitelson, L. Rudolph, U. Schwiegelshohn, K. Sevcik, P. Wong, "Theory and practice in
    parallel job scheduling", JSSPP 1997.
    """
    return np.maximum(1.0, (wait + runtime) / np.maximum(runtime, THRESHOLD))


def summarise(
    trace: Trace, processors: int, schedule: Schedule, large_from: int | None = None
) -> dict[str, Any]:
    """Return the metrics of a schedule as JSON-able values; times in seconds.

    They are defined in `MEASURES`. Jobs that were never submitted do not count. Jobs of
    `large_from` processors or more are large; by default the largest tenth.
    """
    start, end, state = schedule.start, schedule.end, schedule.state
    counts = {name: int(np.count_nonzero(state == name)) for name in State}
    submit = trace.submit[state != State.UNSUBMITTED]
    finished = state == State.FINISHED
    held = np.isfinite(end)
    runtime = schedule.run_time
    wait = start - trace.submit
    response = end - trace.submit
    makespan = float(end[held].max() - submit.min()) if held.any() else 0.0
    busy = float((runtime[held] * trace.processors[held]).sum())
    slowdown = response[finished] / runtime[finished]
    large_from = least_large(trace, large_from)
    large = finished & (trace.processors >= large_from)
    bounded = bounded_slowdown((response - runtime)[finished], runtime[finished])
    report = trace.cleaning
    dropped: int | None = 0 if report is None else report.dropped
    if report is not None and len(trace) != report.jobs_read - report.dropped:
        dropped = None  # a part of a cleaned trace
    return {
        "jobs": len(submit),
        "finished": counts[State.FINISHED],
        "killed": counts[State.KILLED],
        "rejected": counts[State.REJECTED],
        "waiting": counts[State.WAITING],
        "dropped": dropped,
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
        "cleaning": None if report is None else report.to_json(),
    }


def utilization_between(
    trace: Trace, processors: int, schedule: Schedule, begin: float, end: float
) -> float | None:
    """Return the share of the machine in which jobs ran from `begin` to `end`; None for no time.

    The pauses of a job count as spread evenly over the time in which it held processors.
    """
    held = schedule.end - schedule.start
    within = np.minimum(schedule.end, end) - np.maximum(schedule.start, begin)
    ran = np.isfinite(held) & (held > 0) & (within > 0)
    work = within[ran] * (schedule.run_time[ran] / held[ran]) * trace.processors[ran]
    return float(work.sum()) / (processors * (end - begin)) if end > begin else None


def least_large(trace: Trace, large_from: int | None = None) -> int:
    """Return the number of processors from which a job is large: `large_from`, or a quantile."""
    if large_from is not None:
        return large_from
    return int(np.quantile(trace.processors, LARGE, method="higher"))


def summarise_placement(measures: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the means of the measures of `Machine.job_measures` over the jobs that ran.

    Means without a measure are left out.
    """
    means = {name: measures[measure] for name, measure in MEANS.items() if measure in measures}
    if "runs" in measures:
        means = {"contiguous_share": measures["runs"] == 1} | means
    return {name: _mean(values) for name, values in means.items()}


def summarise_problems(decisions: pd.DataFrame, compared: Collection[str]) -> dict[str, Any]:
    """Return figures on the results of the solvers, see `MEASURES`.

    Those of heuristics are over the solved problems of the compared models; those by choice, over
    models that say what there is to choose (`Problem.choice`).

    `decisions` are those of `Run.decisions`, the `compared` models, whose problems the
    heuristic solved too, those of `ProblemSolver.compared`.
    """
    proven = decisions["status"].isin(["optimal", "infeasible"])
    figures: dict[str, Any] = {"unproven": int((~proven).sum())}
    if len(decisions):
        figures["nominal_seconds"] = float(decisions["price"].sum())
    solved = decisions[decisions["objective"].notna()]
    if len(solved) < len(decisions):
        figures["unanswered"] = len(decisions) - len(solved)
    if len(solved):
        both = solved[solved["model"].isin(compared)]
        objective = both["objective"].astype(np.float64)
        heuristic = both["heuristic"].astype(np.float64)
        differs = objective != heuristic
        worse = differs & heuristic.notna()
        difference = (objective[worse] - heuristic[worse]).abs()
        gap = difference / objective[worse].abs().clip(lower=1.0)
        figures["heuristic_matched"] = _mean(~differs.to_numpy())
        figures["heuristic_gap"] = _mean(gap.to_numpy())
        if (both["choice"] != "").any():
            counts = {choice: int((both["choice"] == choice).sum()) for choice in Choice}
            figures |= {choice.name.lower(): count for choice, count in counts.items()}
            contested = both["choice"] == Choice.CONTESTED
            figures["contested_matched"] = _mean(~differs[contested].to_numpy())
    return figures


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: Floats, q: float) -> float | None:
    return float(np.quantile(values, q)) if len(values) else None


def measures_of(config: Mapping[str, Any]) -> dict[str, Measure]:
    """Return the measures of a run, by their keys in its summary.

    They are those of the jobs, of all metrics, and of the policy and the execution model that the
    config names, unless these are in no registry.
    """
    named = (registry.policies, config["policy"]), (registry.executions, config.get("execution"))
    owners: list[Any] = [*registry.metrics.values()]
    owners += [known[name] for known, name in named if name is not None and name in known]
    return MEASURES | {key: one for owner in owners for key, one in owner.measures.items()}


def unstated(key: str) -> Measure:
    """Return the measure of a key that nobody states: its name is the key, its unit unknown."""
    return Measure(key.replace("_", " "), "", Group.OTHER, "")


BY_POLICY = "the policy can never start it"
"""Reason of jobs that the machine can run and the engine did not reject for another reason."""


def why_rejected(trace: Trace, machine: Machine, schedule: Schedule) -> dict[int, str]:
    """Return the reason of each rejected job, by its row in the trace."""
    rows = np.flatnonzero(schedule.state == State.REJECTED)
    if not len(rows):
        return {}
    idle = machine.emptied()
    demands = idle.demands(columns_of(trace.select(rows)))
    return {
        row: schedule.reasons.get(row) or idle.why_never(asked) or BY_POLICY
        for row, asked in zip(rows.tolist(), demands)
    }


@metrics.register("rejections")
@dataclass(frozen=True)
class Rejections(Metric):
    """The jobs that can never start on a site."""

    counts: Mapping[str, int]  # number of jobs by reason

    of_jobs = True
    measures = measures_in(
        Group.JOBS,
        rejected_because=("rejected jobs", "jobs",
            "Jobs that can never start, by what keeps them from it.", "reason"),
    )  # fmt: skip

    @classmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> Rejections | None:
        """Count the reasons; None on other machines."""
        if not isinstance(machine, SiteMachine):
            return None
        return cls(Counter(why_rejected(trace, machine, schedule).values()))

    def summary(self) -> dict[str, Any]:
        """Return ``rejected_because``, the number of rejected jobs by reason."""
        return {"rejected_because": dict(sorted(self.counts.items()))} if self.counts else {}
