"""The figures of each run, and the improvement of its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.machines.cluster import Cluster
from optsched.machines.machine import read_machine
from optsched.metrics.sessions import consecutive_sessions, session_stretches, window_sessions
from optsched.studies.gonthier_2024.plan import (
    AUTHORS,
    CONTENT,
    DAY,
    MAIN,
    OVER_TIME,
    READINGS,
    SCHEDULERS,
    WORKLOADS,
    Reading,
    Workload,
    offered,
    runs,
)
from optsched.studies.gonthier_2024.queues import solve_queues
from optsched.studies.gonthier_2024.usage import COLUMNS, over_time
from optsched.studies.offered import with_figures
from optsched.studies.results import check_results, labelled
from optsched.text_files import read_toml
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

METRICS = (
    *("mean_stretch", "mean_bounded_stretch", "max_stretch", "mean_queue_time", "mean_flow"),
    *("transfer_time", "waiting_for_a_load", "core_time", "data_reuse", "evaluated", "killed"),
    *("max_queue_time", "max_flow", "max_bounded_stretch"),
)
FILE_TIME = "file_time"
"""The paper's transfer time: jobs wait for files that they or others load."""

QUEUE_TIME = "queue_time"
"""The total queue time of the evaluated jobs, from submission to start."""

SESSIONS = "session_stretch"
"""The column with the stretches of all sessions of a run, an array each."""

SESSION_JOBS = "session_jobs"
"""The column with the numbers of their jobs."""

TIME, QUEUE = "time.", "queue."
"""What the columns begin with of which each has an array of times, and of queues."""

SINGLE = {
    "single.mean_stretch": "stretch",
    "single.mean_bounded_stretch": "bounded_stretch",
    "single.mean_queue_time": "waiting_time",
    "single.mean_flow": "turnaround_time",
}
"""Means of sums in single precision, as the authors' program prints them, and their columns."""


ALIKE = 0.01
"""Stretches no further apart than this, relatively, are equal, as in Figure 2."""

SHARES = (0.125, 0.25, 0.5, 0.75, 0.875)
"""Whiskers, box and median of Figures 8 and 10."""


class Improvement(NamedTuple):
    """The stretches of sessions with a scheduler, compared with those of another.

    An improvement of 2 is a stretch that is half of the other one.

    Parameters
    ----------
    sessions : int
        How many.
    whisker_low, box_low, median, box_high, whisker_high, mean : float
        Quantiles of the improvement, at `SHARES`, and its mean.
    not_worse : float
        Share of the sessions whose improvement is 1 or more.
    faster, slower : float
        Shares of those that are faster and slower by more than `ALIKE`.
    speedup, slowdown : float
        Mean improvements of those two; nan if there are none.
    """

    sessions: int
    whisker_low: float
    box_low: float
    median: float
    box_high: float
    whisker_high: float
    mean: float
    not_worse: float
    faster: float
    slower: float
    speedup: float
    slowdown: float

    @property
    def equal(self) -> float:
        """The share of the sessions that are neither faster nor slower."""
        return 1 - self.faster - self.slower


_PUBLISHED = read_toml(CONTENT / "published.toml")
DAY_RESULTS = _PUBLISHED["day"]
REDUCTIONS = _PUBLISHED["reductions"]
SINGLE_PRECISION = _PUBLISHED["single_precision"]
THROTTLE, WEEKS = _PUBLISHED["throttle"], _PUBLISHED["weeks"]
PER_JOB = {
    week: {name: Improvement(*row) for name, row in own.items()}
    for week, own in _PUBLISHED["per_job"].items()
}


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add ``workload``, ``scheduler``, ``file_time``, figures of traces, and sessions.

    ``session_stretch`` and ``session_jobs`` are arrays, and so are the columns ``time.``, of the
    workloads `OVER_TIME` with FCFS, and ``queue.``, of the day with FCFS.
    """
    import pandas as pd

    check_results(results, ("trace", "machine", "solver", "jobs", "folder", *METRICS))
    frame = labelled(results, runs(WORKLOADS), ("workload", "scheduler"))
    own = [next(one for one in WORKLOADS if one.name == name) for name in frame["workload"]]
    frame = with_figures(frame, inputs, figures_of)
    frame[FILE_TIME] = frame["transfer_time"] + frame["waiting_for_a_load"]
    session_of = {one: evaluated_sessions(one, inputs) for one in dict.fromkeys(own)}
    columns = list(SINGLE.values())
    sums, counts, means, times = [], [], [], []
    for folder, scheduler, workload in zip(frame["folder"], frame["scheduler"], own):
        evaluated, session = session_of[workload]
        file = Path(folder) / "jobs.parquet"
        jobs = pd.read_parquet(file, columns=columns)[evaluated].astype(np.float64)
        sums.append(session_stretches(jobs["stretch"].to_numpy(), session))
        counts.append(np.bincount(session))
        means.append([single_mean(jobs[column].to_numpy()) for column in columns])
        if scheduler == "FCFS" and workload in OVER_TIME:
            every = pd.read_parquet(file, columns=[*COLUMNS])
            times.append(_prefixed(TIME, over_time(every, evaluated, session)))
        else:
            times.append({})
    frame[SESSIONS] = pd.Series(sums, frame.index, dtype=object)
    frame[SESSION_JOBS] = pd.Series(counts, frame.index, dtype=object)
    frame = frame.assign(**dict(zip(SINGLE, np.array(means).T)))
    return frame.join(pd.DataFrame(times, frame.index)).join(_queues(frame, inputs))


def _queues(frame: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the queues of the day, an array in each column, in the row of its run with FCFS."""
    import pandas as pd

    row = frame.index[(frame["workload"] == DAY.name) & (frame["scheduler"] == "FCFS")]
    if not len(row):
        return pd.DataFrame(index=frame.index)
    solved = solve_queues(inputs / DAY.file, DAY.machine)
    arrays = {name: column.to_numpy() for name, column in solved.items()}
    return pd.DataFrame([_prefixed(QUEUE, arrays)], row)


def _prefixed(prefix: str, arrays: Mapping[Any, Any]) -> dict[str, Any]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def arrays_of(frame: pd.DataFrame, workload: str, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of the run with FCFS whose columns begin with a prefix; {} if absent."""
    rows = frame[(frame["workload"] == workload) & (frame["scheduler"] == "FCFS")]
    columns = [name for name in map(str, frame) if name.startswith(prefix)]
    found = {name.removeprefix(prefix): row for name in columns for row in rows[name]}
    return {name: np.asarray(value) for name, value in found.items() if np.ndim(value)}


def figures_of(trace: Trace, machine: str) -> dict[str, float]:
    """Return the numbers of jobs and of evaluated jobs and their files, and the load of these."""
    cluster = read_machine(machine)
    assert isinstance(cluster, Cluster)
    counts = trace.annotations["category"] == EVALUATED
    return {
        "submitted": len(trace),
        "evaluated": int(counts.sum()),
        "files": len(np.unique(trace.annotations["file"][counts])),
        "load": offered(trace, cluster.nodes),
    }


def describe(ratios: NDArray[np.float64]) -> Improvement:
    """Describe improvements, the stretch before over that after, of at least one session."""
    faster, slower = ratios > 1 + ALIKE, ratios < 1 - ALIKE
    speedup, slowdown = (
        float(ratios[which].mean()) if which.any() else float("nan") for which in (faster, slower)
    )
    quantiles = np.quantile(ratios, SHARES).tolist()
    means = [float(values.mean()) for values in (ratios, ratios >= 1, faster, slower)]
    return Improvement._make((len(ratios), *quantiles, *means, speedup, slowdown))


def evaluated_sessions(
    workload: Workload, inputs: Path
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask of the evaluated jobs of a workload, and the session of each of them."""
    trace = read_trace(inputs / workload.file)
    counts = trace.annotations["category"] == EVALUATED
    user, submit = trace.user[counts], trace.submit[counts]
    if workload.consecutive:
        return counts, consecutive_sessions(user)
    return counts, window_sessions(user, submit)


def single_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are summed in single precision, one after the other."""
    total = np.cumsum(values, dtype=np.float32)[-1]
    return float(total / np.float32(len(values)))


def read_as(frame: pd.DataFrame, reading: Reading = READINGS[AUTHORS]) -> pd.DataFrame:
    """Return the runs of a reading, under the names of the ten schedulers of the paper.

    They have the column `QUEUE_TIME`, too.
    """
    names = dict(zip(reading.schedulers, MAIN))
    workloads = [one.name for one in reading.workloads]
    own = frame[frame["workload"].isin(workloads) & frame["scheduler"].isin(names)]
    total = own["mean_queue_time"] * own["evaluated"]
    return own.assign(**{"scheduler": own["scheduler"].map(names), QUEUE_TIME: total})


def of(frame: pd.DataFrame, scheduler: str, metric: str) -> pd.Series[Any]:
    """Return a metric of a scheduler, by workload."""
    own = frame["scheduler"].to_numpy() == scheduler
    values: pd.Series[Any] = frame[metric][own].set_axis(frame["workload"][own])
    return values


def run_of(frame: pd.DataFrame, workload: str, scheduler: str) -> dict[str, Any]:
    """Return the figures of the run of a scheduler on a workload, by metric."""
    own = frame[(frame["workload"] == workload) & (frame["scheduler"] == scheduler)]
    return {metric: own[metric].iloc[0] for metric in (*METRICS, FILE_TIME, *SINGLE)}


def _both(
    frame: pd.DataFrame, scheduler: str, metric: str, base: str | None = None
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return a metric of the base and of a scheduler on the workloads that both were run on."""
    names = (base or SCHEDULERS[scheduler].base, scheduler)
    before, after = (of(frame, name, metric) for name in names)
    if before.index.equals(after.index):
        return before, after
    shared = [name for name in after.index if name in before.index]
    return before[shared], after[shared]


def ratios(frame: pd.DataFrame, scheduler: str, base: str | None = None) -> NDArray[np.float64]:
    """Return the improvement of every session by a scheduler, of all workloads one after the other.

    It is the stretch with the base, by default the scheduler's own, over that with the scheduler.
    """
    before, after = _both(frame, scheduler, SESSIONS, base)
    return np.concatenate((before / after).tolist())


def improvement(frame: pd.DataFrame, scheduler: str, base: str | None = None) -> Improvement:
    """Return the improvement of sessions with a scheduler over its base."""
    return describe(ratios(frame, scheduler, base))


def reduction(frame: pd.DataFrame, scheduler: str, metric: str) -> float:
    """Return the share by which a scheduler lowers the sum of a metric over the workloads."""
    before, after = _both(frame, scheduler, metric)
    return float(1 - after.sum() / before.sum())


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, scheduler and figures of every run, one row each."""
    described = [
        improvement(frame[frame["workload"] == workload], scheduler)._asdict()
        for workload, scheduler in zip(frame["workload"], frame["scheduler"])
    ]
    import pandas as pd

    figures = frame[["workload", "scheduler", "machine", "jobs", *METRICS, FILE_TIME]]
    base = frame["scheduler"].map(lambda name: SCHEDULERS[name].base).rename("base")
    return pd.concat([figures, base, pd.DataFrame(described, index=frame.index)], axis=1)
