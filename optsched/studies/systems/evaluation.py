"""Runs by world and system, and what each gains over its baseline."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.schedule import State
from optsched.studies.offered import offered_by, with_figures
from optsched.studies.results import check_results, labelled
from optsched.studies.systems.plan import BLUE, LOG, SAMPLE, Key, Site, runs, worlds

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

TIMES = {
    "mean_wait": "mean wait",
    "p95_wait": "wait, 95th percentile",
    "mean_bounded_slowdown": "bounded slowdown",
    "mean_response": "mean response",
    "large_mean_wait": "wait of large jobs",
}
"""The times that systems shorten or lengthen, by their names in a summary, and their headings."""

GAIN = {metric: f"{metric}_gain" for metric in TIMES}
"""The columns with the relative gains."""

POINTS = "utilization_gain"
"""The column with the gain in utilization, a difference."""

OF_RUN = (
    *("jobs", "finished", "killed", "rejected", "waiting", "large_jobs", "utilization", "makespan"),
    *("problems", "unproven", "fallbacks"),
)
SECONDS = "nominal_seconds"
"""Of the solvers; a run without problems has none."""

TIMES_OF_JOBS = {"mean_wait": "waiting_time", "mean_response": "turnaround_time"}
"""Means that are compared on the same jobs, and the column of the jobs that has the times."""

SAME = {metric: f"{metric}_gain_same_jobs" for metric in TIMES_OF_JOBS}
"""The columns with the relative gains on the jobs that finish with both."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add ``world``, ``system``, ``base_world``, ``base``, the load of the trace, and the gains."""
    stated = ("trace", "machine", "policy", "large_from", "folder")
    check_results(results, (*stated, *TIMES, *OF_RUN))
    site = site_run(results)
    every = {world.name: world for world in worlds(site)}
    frame = labelled(results, runs(site), ("world", "system"))
    keys = [Key(*key) for key in zip(frame["world"], frame["system"])]
    needed = [base for world in every.values() for base in world.baselines.values()]
    if lost := [base for base in needed if base not in set(keys)]:
        raise InputError(f"no run of {lost[0].system} on {lost[0].world}; expected the baselines")
    bases = [every[key.world].baselines[key.system] for key in keys]
    frame = frame.assign(
        base_world=[base.world for base in bases],
        base=[base.system for base in bases],
    )
    frame = with_figures(frame, inputs, lambda trace, _: _offered(trace, site))
    figures = (*OF_RUN, *TIMES, SECONDS, *(name for one in every.values() for name in one.own))
    for name in dict.fromkeys(figures):
        frame[name] = frame[name].astype(float) if name in frame else np.nan
    all_large = frame["large_jobs"] == frame["finished"]
    frame = frame.assign(large_mean_wait=frame["large_mean_wait"].mask(all_large))
    return with_same_jobs(with_gains(frame))


def _offered(trace: Trace, site: Site) -> dict[str, float]:
    days, load, runtime = offered_by(trace, site.processors)
    return {"days": days, "offered": load, "mean_runtime": runtime}


def with_gains(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the gain of each run over its baseline.

    Of the `TIMES` it is the share by which they are shorter; of utilization the difference. More is
    better, and a baseline gains nothing over itself.
    """
    base = _bases(frame)
    gains = {GAIN[name]: gain(base[name].to_numpy(), frame[name].to_numpy()) for name in TIMES}
    points = frame["utilization"].to_numpy() - base["utilization"].to_numpy()
    return frame.assign(**gains, **{POINTS: points})


def with_same_jobs(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the gain of each run on the jobs that finish with its baseline, too.

    Where all jobs finish with both, that is its gain.
    """
    found = frame[[GAIN[metric] for metric in SAME]].to_numpy(copy=True)
    base = _bases(frame)
    lost = (frame["finished"] < frame["jobs"]).to_numpy() | (
        base["finished"] < base["jobs"]
    ).to_numpy()
    for row in np.flatnonzero(lost):
        jobs = (jobs_of(runs["folder"].iloc[row]) for runs in (base, frame))
        found[row] = gain(*means_of_both(*jobs))
    return frame.assign(**dict(zip(SAME.values(), found.T)))


def means_of_both(
    before: pd.DataFrame, after: pd.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of `TIMES_OF_JOBS` in two runs of a trace, over jobs that finish in both."""
    both = (before["final_state"] == State.FINISHED) & (after["final_state"] == State.FINISHED)
    columns = list(TIMES_OF_JOBS.values())
    old, new = (jobs.loc[both, columns].mean().to_numpy(dtype=float) for jobs in (before, after))
    return old, new


def jobs_of(folder: str) -> pd.DataFrame:
    """Return state and times of the jobs of a run."""
    import pandas as pd

    columns = ["final_state", *TIMES_OF_JOBS.values()]
    return pd.read_parquet(Path(folder) / "jobs.parquet", columns=columns)


def _bases(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the baseline of each run, in the order of the runs."""
    row_of = {key: row for row, key in enumerate(zip(frame["world"], frame["system"]))}
    return frame.iloc[[row_of[key] for key in zip(frame["base_world"], frame["base"])]]


def gain(before: ArrayLike, after: ArrayLike) -> NDArray[np.float64]:
    """Return by which share times are shorter: 0.1 is ten percent.

    Where there was nothing to shorten it is 0 if that is still so, else nan.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    known = np.where(old > 0, old, np.nan)
    return np.where((old == 0) & (new == 0), 0.0, 1 - new / known)


def site_run(frame: pd.DataFrame) -> Site:
    """Return the log that was run, and its machine, by the runs on plain nodes."""
    plain = frame[frame["machine"].str.startswith("nodes:")].iloc[0]
    log = PurePath(plain["trace"]).name.removesuffix(LOG)
    names = {site.log: site.name for site in (BLUE, SAMPLE)}
    processors = read_machine(plain["machine"]).size
    jobs, large_from = int(plain["jobs"]), int(plain["large_from"])
    return Site(names.get(log, log), f"{log}{LOG}", jobs, processors, large_from)


def systems_of(frame: pd.DataFrame, world: str) -> pd.DataFrame:
    """Return the runs of a world, in order."""
    return frame[frame["world"] == world]


def run_of(frame: pd.DataFrame, key: Key) -> pd.Series[Any]:
    """Return the run of a system."""
    return frame[(frame["world"] == key.world) & (frame["system"] == key.system)].iloc[0]


def is_baseline(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return a mask of the runs that are their own baselines."""
    return (frame["world"] == frame["base_world"]) & (frame["system"] == frame["base"])


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return world, system, baseline, figures and gains of every run, one row each."""
    labels = ["world", "system", "base_world", "base", "machine", "execution"]
    own = dict.fromkeys(name for one in worlds(site_run(frame)) for name in one.own)
    return frame[[*labels, *OF_RUN, SECONDS, *TIMES, *GAIN.values(), POINTS, *SAME.values(), *own]]
