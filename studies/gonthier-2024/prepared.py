"""The columns that need traces or the jobs of runs: loads, and sessions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optsched.metrics.stretch import session_stretches
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

from .workloads import WORKLOADS, offered, sessions_of

SESSIONS = "session_stretch"
"""The column with the stretches of all sessions of a run."""

SINGLE = {
    "single.mean_stretch": "stretch",
    "single.mean_bounded_stretch": "bounded_stretch",
    "single.mean_queue_time": "waiting_time",
    "single.mean_flow": "turnaround_time",
}
"""Means of sums in single precision, as the authors' program prints them, and their columns."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add figures of traces, the time that files take, and the stretches of all sessions."""
    read = cache(read_trace)
    rows = [
        _row(run, read(inputs / WORKLOADS[run["workload"]].file)) for _, run in results.iterrows()
    ]
    frame = results.drop(columns="evaluated").join(pd.DataFrame(rows, results.index))
    return frame.assign(file_time=frame["transfer_time"] + frame["waiting_for_a_load"])


def _row(run: pd.Series, trace: Trace) -> dict[str, Any]:
    workload = WORKLOADS[run["workload"]]
    counts = trace.annotations["category"] == EVALUATED
    jobs = pd.read_parquet(Path(run["folder"]) / "jobs.parquet")[counts]
    session = sessions_of(workload, trace.user[counts], trace.submit[counts])
    return {
        "submitted": len(trace),
        "evaluated": int(counts.sum()),
        "files": len(np.unique(trace.annotations["file"][counts])),
        "load": offered(trace, workload.nodes),
        SESSIONS: session_stretches(jobs["stretch"].to_numpy(np.float64), session),
    } | {name: single_mean(jobs[of].to_numpy(np.float64)) for name, of in SINGLE.items()}


def single_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are summed in single precision, one after the other."""
    total = np.cumsum(values, dtype=np.float32)[-1]
    return float(total / np.float32(len(values)))
