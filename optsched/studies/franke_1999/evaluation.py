"""Runs by workload and strategy, and what they are compared by."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.machine import read_machine
from optsched.studies.franke_1999.changes import Change
from optsched.studies.franke_1999.closer import add_closer_looks
from optsched.studies.franke_1999.plan import (
    MPLS,
    SEEDS,
    SHOWN,
    Part,
    Workload,
    generated,
    workloads,
)
from optsched.studies.offered import load_on, with_figures
from optsched.studies.paired import Interval, mean_interval
from optsched.studies.results import check_results

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

FCFS, BACKFILLING, EASY = "FCFS", "backfilling", "EASY"
GANG = {f"MPL {mpl}": mpl for mpl in MPLS}
STRATEGIES = (FCFS, BACKFILLING, *GANG)
"""The names of the figures of the paper."""

SPACE_SHARING = {"fcfs": FCFS, "conservative": BACKFILLING, "easy": EASY}
"""The strategies without time slices, by policy."""

METRICS = {
    "mean_response": "response time, all jobs",
    "mean_wait": "wait time, all jobs",
    "large_mean_response": "response time, large jobs",
    "large_mean_wait": "wait time, large jobs",
}
"""The metrics of Figures 5, 6, 7 and 8, by their names in a summary."""

FIRST_FIT = "first-fit"

KEPT_UP = 0.97
"""A strategy keeps up with a workload whose jobs arrive in at least this share of the makespan.
Where it does not, queues grow as long as jobs are submitted, and means depend on how long was
simulated."""

SETTINGS = (
    *("mpl", "admission", "sharing", "compact", "context_switch"),
    *("job_memory", "variation", "node_memory"),
)
WORKLOAD = ("interarrival", "service", "seed", "change", "first", "stand_in")
KINDS = {Workload: "model", Part: "blue"}


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add the columns on which the evaluation rests.

    ``kind`` (``model``, ``blue`` or ``instances``) and the figures of the workload (`_figures`),
    ``strategy`` and ``variant``, whether it ``kept_up``, settings, and what a closer look at a few
    runs shows (`add_closer_looks`).
    """
    needed = ("trace", "policy", "solver", "error", "utilization", "makespan", "jobs", *METRICS)
    check_results(results, needed)
    frame = results.rename(columns={f"settings.{name}": name for name in SETTINGS})
    files = [PurePath(trace).name for trace in frame["trace"]]
    frame = with_figures(frame, inputs, _figures)
    frame["kept_up"] = frame["utilization"] / frame["offered"] >= KEPT_UP
    known = {
        one.file: one
        for quick in (False, True)
        for own in workloads(quick=quick).values()
        for one in own
    }
    own = [known[file] for file in files]
    frame["kind"] = [KINDS.get(type(one), "instances") for one in own]
    for name in WORKLOAD:
        frame[name] = [getattr(one, name, None) for one in own]
    frame["change"] = [one.key if isinstance(one, Change) else None for one in frame["change"]]
    gang = frame["policy"] == "gang"
    frame["strategy"] = frame["policy"].map(SPACE_SHARING)
    frame.loc[gang, "strategy"] = [f"MPL {mpl:.0f}" for mpl in frame.loc[gang, "mpl"]]
    frame["variant"] = frame["admission"] + ", " + frame["sharing"]
    frame["compact"] = frame["compact"].isna() | (frame["compact"] == True)  # noqa: E712
    frame["context_switch"] = frame["context_switch"].fillna(0.0)
    frame["variation"] = frame["variation"].fillna(0.0)
    frame["solver"] = frame["solver"].where(~gang | frame["solver"].notna(), FIRST_FIT)
    return add_closer_looks(frame, inputs)


def _figures(trace: Trace, machine: str) -> dict[str, float]:
    """Return figures of a workload: ``offered`` load, ``mean_runtime``, and two more.

    ``runtime_cv`` is the coefficient of variation of the run times, ``side_by_side`` the number of
    jobs of mean size for which the machine has nodes.
    """
    return load_on(trace, machine) | {
        "runtime_cv": float(trace.runtime.std() / trace.runtime.mean()),
        "side_by_side": read_machine(machine).size / float(trace.processors.mean()),
    }


def usual(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of modeled workloads, changed or not, with first fit and without costs."""
    own = (frame["kind"] == "model") & frame["compact"] & frame["execution"].isna()
    own &= (frame["context_switch"] == 0) & frame["solver"].fillna(FIRST_FIT).eq(FIRST_FIT)
    return frame[own]


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the usual runs of the paper's workloads and strategies, and EASY."""
    known = frame["seed"].isin(SEEDS) & frame["strategy"].isin([*STRATEGIES, EASY])
    return usual(frame[known & (frame["change"] == "")])


def compared(
    frame: pd.DataFrame, variant: str = SHOWN, seed: int | None = SEEDS[0]
) -> pd.DataFrame:
    """Arrange the plain runs of a variant side by side: a row per workload of a seed, or of all.

    The index is interarrival, service and seed; columns are (metric, strategy), with ``offered``
    among the metrics.
    """
    runs = plain(frame)
    runs = runs[runs["variant"].isna() | (runs["variant"] == variant)]
    if seed is not None:
        runs = runs[runs["seed"] == seed]
    values = ["offered", "kept_up", "mean_runtime", "utilization", *METRICS]
    table = runs.pivot(index=["interarrival", "service", "seed"], columns="strategy", values=values)
    return table.sort_index(ascending=[False, True, True])


def baseline(frame: pd.DataFrame) -> Trace:
    """Return the baseline workload: all factors 1."""
    at = (frame["interarrival"] == 1) & (frame["service"] == 1) & (frame["seed"] == SEEDS[0])
    jobs = frame.loc[at & (frame["change"] == ""), "jobs"].iloc[0]
    return generated(Workload(1, 1, SEEDS[0]), int(jobs))


def keeping_up(table: pd.DataFrame, *strategies: str) -> pd.DataFrame:
    """Return the workloads of `compared` that are run with all these strategies, which keep up."""
    kept = np.logical_and.reduce([table["kept_up", name].eq(True) for name in strategies])
    return table[kept]


def ratios(table: pd.DataFrame, metric: str, one: str, other: str) -> pd.Series[float]:
    """Return a mean over that of another strategy, in the workloads that both keep up with."""
    both = keeping_up(table, one, other)
    return (both[metric, one] / both[metric, other]).astype(float)


def mean_ratio(every: pd.DataFrame, metric: str, one: str, other: str) -> Interval:
    """Return the mean logarithm of `ratios` with its interval over the seeds.

    Only workloads that are run with all seeds count; `every` has those of `compared` of all seeds.
    """
    seeds = every["offered", one].groupby(level=["interarrival", "service"]).transform("size")
    found = ratios(every[seeds == seeds.max()], metric, one, other)
    found = found[found > 0]
    if found.empty:  # of a quick look, for example
        return Interval(np.nan, np.nan, np.nan, 0)
    return mean_interval(np.log(found), found.index.get_level_values("seed"))


def in_words(logarithm: Interval) -> str:
    """Write a mean ratio, given as a logarithm, with its interval."""
    mean, low, high = np.exp(logarithm[:3])
    ends = f" [{low:.2f}, {high:.2f}]" if np.isfinite(low) else ""
    return f"{mean:.2f} times{ends}"


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, strategy and means of every run, one row each."""
    columns = ["kind", *WORKLOAD, "offered", "strategy", "variant", "solver"]
    columns += [name for name in SETTINGS if name in frame]
    return frame[[*columns, "utilization", "makespan", *METRICS]]
