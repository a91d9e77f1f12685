"""Runs by workload and scheduler: their figures, and the stretches of their sessions."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.metrics.sessions import consecutive_sessions, session_stretches, window_sessions
from optsched.studies.gonthier_2024.improvement import Improvement, describe
from optsched.studies.gonthier_2024.plan import (
    SCHEDULERS,
    UNTIL_NEXT,
    WORKLOADS,
    Workload,
    base_of,
)
from optsched.studies.results import check_results
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""What all workloads together are called."""

METRICS = (
    *("mean_stretch", "mean_bounded_stretch", "max_stretch", "mean_queue_time", "mean_flow"),
    *("transfer_time", "waiting_for_a_load", "core_time", "data_reuse", "evaluated", "killed"),
    *("max_queue_time", "max_flow", "max_bounded_stretch"),
)
SETTINGS = ("backfill", "replan", "threshold", "throttle", "stop")
"""Settings that tell schedulers apart."""

NEEDED = ("trace", "machine", "solver", "jobs", "folder", *METRICS)
"""Columns of the results that the evaluation reads."""

FILE_TIME = "file_time"
"""What the paper calls transfer time: jobs wait for files that they or others load."""

SESSIONS = "session_stretch"
"""The column with the stretches of all sessions of a run, an array each."""

SESSION_JOBS = "session_jobs"
"""The column with the numbers of their jobs."""

SINGLE = {
    "single.mean_stretch": "stretch",
    "single.mean_bounded_stretch": "bounded_stretch",
    "single.mean_queue_time": "waiting_time",
    "single.mean_flow": "turnaround_time",
}
"""Means of sums in single precision, as the authors' program prints them, and of what."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``workload``, ``scheduler``, ``path`` (of the trace), ``session_stretch`` and
    ``session_jobs`` (arrays), `METRICS`, and ``file_time``, in the order of tables.

    Raises
    ------
    InputError
        If a column or a trace is missing, or runs have failed: nothing can be said then.
    """
    import pandas as pd

    check_results(results, NEEDED)
    frame = results.copy()
    known = {(one.file, one.machine): one for one in WORKLOADS}
    kept = [UNTIL_NEXT if text.endswith(UNTIL_NEXT) else "" for text in frame["machine"]]
    own = [
        known[PurePath(trace).name, machine.removesuffix(UNTIL_NEXT)]
        for trace, machine in zip(frame["trace"], frame["machine"])
    ]
    scheduler_of = {_key(*one): name for name, one in SCHEDULERS.items()}
    columns = {f"settings.{name}": name for name in SETTINGS}
    stated = frame.reindex(columns=list(columns)).rename(columns=columns)
    frame["scheduler"] = [
        scheduler_of[_key(*told)]
        for told in zip(frame["solver"], stated.to_dict(orient="records"), kept)
    ]
    frame["workload"] = [one.name for one in own]
    frame["path"] = [str(inputs / one.file) for one in own]
    frame[FILE_TIME] = frame["transfer_time"] + frame["waiting_for_a_load"]
    session_of = {one: evaluated_sessions(one, inputs) for one in dict.fromkeys(own)}
    jobs = [
        _evaluated_jobs(Path(folder), session_of[one][0])
        for folder, one in zip(frame["folder"], own)
    ]
    sums = [
        session_stretches(rows["stretch"].to_numpy(), session_of[one][1])
        for rows, one in zip(jobs, own)
    ]
    frame[SESSIONS] = pd.Series(sums, frame.index, dtype=object)
    for name, column in SINGLE.items():
        frame[name] = [single_mean(rows[column].to_numpy()) for rows in jobs]
    counts = [np.bincount(session_of[one][1]) for one in own]
    frame[SESSION_JOBS] = pd.Series(counts, frame.index, dtype=object)
    order = {name: place for place, name in enumerate(SCHEDULERS)}
    places = {one.name: place for place, one in enumerate(WORKLOADS)}
    by = pd.DataFrame({"w": frame["workload"].map(places), "s": frame["scheduler"].map(order)})
    return frame.loc[by.sort_values(["w", "s"]).index].reset_index(drop=True)


def _key(solver: str, settings: Any, kept: str) -> tuple[Any, ...]:
    import pandas as pd

    told = (solver, kept, *(settings.get(name) for name in SETTINGS))
    return tuple(None if pd.isna(value) else value for value in told)


def evaluated_sessions(
    workload: Workload, inputs: Path
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which jobs of a workload are evaluated, and the session of each of these."""
    trace = read_trace(inputs / workload.file)
    counts = trace.annotations["category"] == EVALUATED
    user, submit = trace.user[counts], trace.submit[counts]
    if workload.consecutive:
        return counts, consecutive_sessions(user)
    return counts, window_sessions(user, submit)


def _evaluated_jobs(folder: Path, counts: NDArray[np.bool_]) -> pd.DataFrame:
    import pandas as pd

    columns = list(SINGLE.values())
    return pd.read_parquet(folder / "jobs.parquet", columns=columns)[counts].astype(np.float64)


def single_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are summed in single precision, one after the other."""
    total = np.cumsum(values, dtype=np.float32)[-1]
    return float(total / np.float32(len(values)))


def workloads(frame: pd.DataFrame) -> list[str]:
    """Return the workloads that were run, in order."""
    return list(dict.fromkeys(frame["workload"]))


def schedulers(frame: pd.DataFrame) -> list[str]:
    """Return the schedulers that were run, in order."""
    there = set(frame["scheduler"])
    return [name for name in SCHEDULERS if name in there]


def of(frame: pd.DataFrame, scheduler: str, metric: str) -> pd.Series[Any]:
    """Return a metric of a scheduler, by workload."""
    own = frame[frame["scheduler"] == scheduler]
    return own.set_index("workload")[metric]


def run_of(frame: pd.DataFrame, workload: str, scheduler: str) -> dict[str, Any]:
    """Return the figures of the run of a scheduler on a workload, by metric."""
    own = frame[(frame["workload"] == workload) & (frame["scheduler"] == scheduler)]
    return {metric: own[metric].iloc[0] for metric in (*METRICS, FILE_TIME, *SINGLE)}


def ratios(frame: pd.DataFrame, scheduler: str, base: str | None = None) -> NDArray[np.float64]:
    """Return the improvement of every session by a scheduler, of all workloads one after the other.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `prepare` returns, or some rows of it.
    scheduler : str
        What is judged.
    base : str, optional
        What it is compared with; `base_of` it if left out.

    Returns
    -------
    float64 array, shape (sessions,)
        The stretch with the base over that with the scheduler.
    """
    before, after = of(frame, base or base_of(scheduler), SESSIONS), of(frame, scheduler, SESSIONS)
    shared = [name for name in after.index if name in before.index]
    return np.concatenate([before[name] / after[name] for name in shared])


def improvement(frame: pd.DataFrame, scheduler: str, base: str | None = None) -> Improvement:
    """Return how much better sessions fare with a scheduler than with its base."""
    return describe(ratios(frame, scheduler, base))


def reduction(frame: pd.DataFrame, scheduler: str, metric: str, base: str | None = None) -> float:
    """Return by which share a scheduler lowers the sum of a metric over the workloads."""
    before, after = of(frame, base or base_of(scheduler), metric), of(frame, scheduler, metric)
    shared = [name for name in after.index if name in before.index]
    return float(1 - after[shared].sum() / before[shared].sum())


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, scheduler and figures of every run, one row each."""
    described = [
        improvement(frame[frame["workload"] == workload], scheduler)._asdict()
        for workload, scheduler in zip(frame["workload"], frame["scheduler"])
    ]
    import pandas as pd

    figures = frame[["workload", "scheduler", "machine", "jobs", *METRICS, FILE_TIME]]
    base = frame["scheduler"].map(base_of).rename("base")
    return pd.concat([figures, base, pd.DataFrame(described, index=frame.index)], axis=1)
