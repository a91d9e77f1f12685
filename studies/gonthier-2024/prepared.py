"""The columns that need traces or the jobs of runs: loads, sessions, and queues of the day."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optsched.metrics.sessions import session_stretches
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

from .queues import solve_queues
from .workloads import DAY, WORKLOADS, Workload, offered, sessions_of

SESSIONS = "session_stretch"
"""The column with the stretches of all sessions of a run."""

QUEUE = "queue."
"""What the columns begin with of which each has an array of queues."""

SINGLE = {
    "single.mean_stretch": "stretch",
    "single.mean_bounded_stretch": "bounded_stretch",
    "single.mean_queue_time": "waiting_time",
    "single.mean_flow": "turnaround_time",
}
"""Means of sums in single precision, as the authors' program prints them, and their columns."""


class Jobs(NamedTuple):
    """Which jobs of a workload are evaluated, and the session of each of these."""

    trace: Trace
    evaluated: NDArray[np.bool_]
    session: NDArray[np.int64]


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add figures of traces, the time that files take, and arrays of sessions and of queues.

    The run of the day with FCFS has the queues.
    """

    @cache
    def jobs_of(name: str) -> Jobs:
        return jobs(WORKLOADS[name], inputs)

    rows = [_row(run, jobs_of(run["workload"]), inputs) for _, run in results.iterrows()]
    frame = results.drop(columns="evaluated").join(pd.DataFrame(rows, results.index))
    return frame.assign(file_time=frame["transfer_time"] + frame["waiting_for_a_load"])


def _row(run: pd.Series, own: Jobs, inputs: Path) -> dict[str, Any]:
    workload = WORKLOADS[run["workload"]]
    counts = own.trace.annotations["category"] == EVALUATED
    row: dict[str, Any] = {
        "submitted": len(own.trace),
        "evaluated": int(counts.sum()),
        "files": len(np.unique(own.trace.annotations["file"][counts])),
        "load": offered(own.trace, workload.nodes),
    }
    table = pd.read_parquet(Path(run["folder"]) / "jobs.parquet")
    evaluated = table[own.evaluated]
    row[SESSIONS] = session_stretches(evaluated["stretch"].to_numpy(np.float64), own.session)
    row |= {name: single_mean(evaluated[of].to_numpy(np.float64)) for name, of in SINGLE.items()}
    if workload == DAY and run["scheduler"] == "FCFS":
        queues = solve_queues(inputs / DAY.file, DAY.machine)
        row |= {f"{QUEUE}{name}": one.to_numpy() for name, one in queues.items()}
    return row


def jobs(workload: Workload, inputs: Path) -> Jobs:
    """Return the evaluated jobs of a workload and their sessions."""
    trace = read_trace(inputs / workload.file)
    counts = trace.annotations["category"] == EVALUATED
    session = sessions_of(workload, trace.user[counts], trace.submit[counts])
    return Jobs(trace, counts, session)


def single_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are summed in single precision, one after the other."""
    total = np.cumsum(values, dtype=np.float32)[-1]
    return float(total / np.float32(len(values)))
