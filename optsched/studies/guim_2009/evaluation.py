"""The figures of the evaluated jobs of each run, and the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.machines.machine import read_machine
from optsched.metrics.jobs import bounded_slowdown
from optsched.schedule import State
from optsched.studies.guim_2009.plan import (
    CENTRES,
    CONTENT,
    OTHER_TIES,
    READINGS,
    STATED,
    VARIANTS,
    runs,
)
from optsched.studies.offered import offered_by, with_figures
from optsched.studies.results import check_results, labelled
from optsched.studies.student import mean_of
from optsched.text_files import read_toml
from optsched.traces.bandwidth import LEVELS

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

_PUBLISHED = read_toml(CONTENT / "published.toml")
PUBLISHED = _PUBLISHED["tables"]
TABULATED = _PUBLISHED["policies"]
LCT = [name for name in TABULATED if name.startswith("LCT")]
"""Tables 1 to 7, the policies that are their columns, and those of them with a threshold, from the
least on."""

KILLED = "killed"

WITH_SLACK = "killed_with_slack"
"""Killed jobs whose requested time is above their run time in the log. Jobs without such slack are
killed by any penalty; most have none since cleaning raises requests that are too short."""

OF_FINISHED = ("bounded_slowdown", "wait", "penalised_percent")
"""Figures of the evaluated jobs that finished."""

SLOWDOWNS = ("penalised_slowdown", "requested_slowdown")
"""Bounded slowdowns over the penalized run time and over the requested time.

``bounded_slowdown`` is over the run time without penalties.
"""

METRICS = (*(f"{kind}_{name}" for name in OF_FINISHED for kind in ("p95", "mean")), KILLED)
"""The figures of the evaluated jobs, by their names in a summary."""

PERCENTILES = (50, 75, 90, 95, 99)

FIGURES = (
    KILLED,
    WITH_SLACK,
    *(
        f"{kind}_{name}"
        for name in (*OF_FINISHED, *SLOWDOWNS)
        for kind in ("mean", *(f"p{percentile}" for percentile in PERCENTILES))
    ),
)
"""All figures of the evaluated jobs."""

LABELS = ("reading", "centre", "mix", "part", "scheduler")

OF_RUN = ("utilization", "problems", "unproven", "fallbacks", "heuristic_matched")
"""Figures of the whole run."""


class Spread(NamedTuple):
    """Mean over the parts of logs, and what stands beside it.

    Parameters
    ----------
    mean : float
        The mean; nan if there is none.
    low, high : float
        The least and the largest value of a part, or the ends of a confidence interval; nan if
        there are too few parts.
    """

    mean: float
    low: float
    high: float


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Name the runs by `LABELS`, and add figures of the trace and `FIGURES`.

    The column ``reading`` is empty where the run is of no reading alone.
    """
    import pandas as pd

    check_results(results, ("trace", "machine", "policy", "solver", "jobs", "folder", *OF_RUN))
    planned = runs(quick=False) | runs(quick=True)
    frame = labelled(results, planned, LABELS)
    frame = with_figures(frame, inputs, figures_of_trace)
    jobs = (pd.read_parquet(Path(folder) / "jobs.parquet") for folder in frame["folder"])
    return frame.assign(**pd.DataFrame(map(figures_of, jobs)))


def figures_of_trace(trace: Trace, machine: str) -> dict[str, float]:
    """Return the load of a trace, its largest job, its mean demand, and who has which demand."""
    demand, work = trace.annotations["bandwidth"], trace.processors * trace.runtime
    amounts = {**LEVELS, "high": int(demand.max())}
    shares = {f"demand_{level}": float((demand == mb).mean()) for level, mb in amounts.items()}
    return shares | {
        "without_slack": float((trace.requested_time <= trace.runtime).mean()),
        "load": offered_by(trace, read_machine(machine).size).load,
        "largest_job": int(trace.processors.max()),
        "mean_demand": float((work * demand).sum()) / float(work.sum()),
    }


def figures_of(jobs: pd.DataFrame) -> dict[str, float]:
    """Compute the `FIGURES` of the second half of the jobs, and their number, ``evaluated``.

    Slowdowns, waiting times and penalties are those of jobs that finished; nan if none has.
    """
    own = jobs.iloc[len(jobs) // 2 :]
    finished = own[own["final_state"] == State.FINISHED]
    killed = own[own["final_state"] == State.KILLED]
    figures: dict[str, float] = {
        "evaluated": len(own),
        KILLED: len(killed),
        WITH_SLACK: int((killed["requested_time"] > killed["run_time"]).sum()),
    }
    columns = {
        "bounded_slowdown": _bounded_slowdown(finished, "run_time"),
        "penalised_slowdown": finished["bounded_slowdown"],
        "requested_slowdown": _bounded_slowdown(finished, "requested_time"),
        "wait": finished["waiting_time"],
        "penalised_percent": finished["penalised_percent"],
    }
    for name, column in columns.items():
        values = np.asarray(column, dtype=float)
        known = len(values) > 0
        for percentile in PERCENTILES:
            found = float(np.percentile(values, percentile)) if known else float("nan")
            figures[f"p{percentile}_{name}"] = found
        figures[f"mean_{name}"] = float(values.mean()) if known else float("nan")
    return figures


def _bounded_slowdown(jobs: pd.DataFrame, over: str) -> NDArray[np.float64]:
    """Return the bounded slowdown over a column of times."""
    response, time = (jobs[name].to_numpy(float) for name in ("turnaround_time", over))
    return bounded_slowdown(response - time, time)


def read_as(frame: pd.DataFrame, reading: str = "") -> pd.DataFrame:
    """Return the runs of a reading, and those that it has in common with all others.

    A metric that the reading replaces has the values of the figure in its place.
    """
    import pandas as pd

    own = frame[frame["reading"] == reading]
    if not reading:
        return own
    common = frame[frame["reading"] == ""]
    labels = ["centre", "mix", "part", "scheduler"]
    found, all_own = (pd.MultiIndex.from_frame(one[labels]) for one in (common, own))
    metrics = READINGS[reading].get("metrics", {})
    whole = pd.concat([common[~found.isin(all_own)], own])
    return whole.assign(
        **{
            column: whole[column.replace(name, other)]
            for name, other in metrics.items()
            for column in METRICS
            if column == name or column.partition("_")[2] == name
        }
    )


def as_stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of `STATED`, each by the name of its policy."""
    policies = {run: policy for policy, run in VARIANTS[STATED].items()}
    own = frame[frame["scheduler"].isin(list(policies))]
    return own.assign(scheduler=own["scheduler"].map(policies))


def by_part(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each centre, mix and part, a column for each metric and scheduler."""
    labels = ["centre", "mix", "part"]
    return frame.pivot(index=labels, columns="scheduler", values=[*METRICS]).astype(float)


def same_runs(parts: pd.DataFrame, one: str, other: str) -> bool:
    """Return whether two schedulers have the same metrics in all rows of `by_part`."""
    return all(parts[metric, one].equals(parts[metric, other]) for metric in METRICS)


def range_of(values: ArrayLike) -> Spread:
    """Return the mean of the values of parts with the least and the largest of them.

    Values that are nan are left out. An interval of Student's t distribution would go below 0.
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if len(known) < 2:
        return Spread(float(known[0]) if len(known) else np.nan, np.nan, np.nan)
    return Spread(float(known.mean()), float(known.min()), float(known.max()))


def mean(frame: pd.DataFrame, centre: str, mix: str, scheduler: str, metric: str) -> Spread:
    """Return the mean of a metric over the parts of a log, with its range."""
    wanted = {"centre": centre, "mix": mix, "scheduler": scheduler}
    own = np.logical_and.reduce([frame[name].to_numpy() == value for name, value in wanted.items()])
    return range_of(frame[metric].to_numpy()[own])


def change(parts: pd.DataFrame, one: str, other: str, metric: str) -> Spread:
    """Return a metric of a scheduler over that of another on the same jobs, of `by_part`.

    The mean is over the parts of logs; nan if there is nothing to compare with. Killed jobs are
    summed over the mixes of a part, and have the range of the parts. Of other metrics it is the
    geometric mean over mixes and parts with its confidence interval; where one of the two is 0
    they are left out.
    """
    of_part = ["centre", "part"]
    above, below = parts[metric, one], parts[metric, other]
    if metric == KILLED:
        above, below = (killed.groupby(level=of_part).sum() for killed in (above, below))
        return range_of(above / below.where(below > 0))
    logarithms = (above.where(above > 0) / below.where(below > 0)).map(np.log)
    return Spread(*np.exp(mean_of(logarithms.groupby(level=of_part).mean())).tolist())


def noise(parts: pd.DataFrame, metric: str) -> float:
    """Return how far another choice of equally good placements changes a metric, of `by_part`.

    It is the median, over the runs, of the relative difference in either direction.
    """
    own, other = parts[metric, OTHER_TIES[1]], parts[metric, OTHER_TIES[0]]
    difference = ((other - own).abs() / own.where(own > 0)).dropna()
    return float(difference.median()) if len(difference) else float("nan")


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, scheduler and figures of every run, one row each."""
    labels = [*LABELS, "machine", "jobs", "evaluated"]
    return frame[[*labels, *FIGURES, *OF_RUN]]


def published(metric: str, centre: str, mix: str, policy: str) -> float | None:
    """Return a published number: nan if it is lost, None if there is none."""
    table = next(one for one in PUBLISHED if one["metric"] == metric)
    if centre not in CENTRES:
        return None
    row = table[centre][_PUBLISHED["mixes"].index(mix)]
    return float(row[TABULATED.index(policy)])
