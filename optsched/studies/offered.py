"""The load that a workload offers to a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.machines.machine import read_machine
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    import pandas as pd


class Offered(NamedTuple):
    """The load of a workload: its work over what the machine can do in the days of its submissions.

    The days are from the first to the last one; `runtime` is the mean run time in seconds.
    """

    days: float
    load: float
    runtime: float


def offered_by(trace: Trace, processors: int) -> Offered:
    """Measure the load of a trace on a machine with this number of processors."""
    seconds = float(trace.submit.max() - trace.submit.min())
    work = float((trace.processors * trace.runtime).sum())
    load = work / (processors * seconds) if seconds else float("inf")
    return Offered(seconds / 86_400, load, float(trace.runtime.mean()))


def with_offered(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``days``, ``offered`` load and ``mean_runtime`` of the trace at ``path`` of each run."""
    size = {machine: read_machine(machine).size for machine in frame["machine"].unique()}
    cases = list(zip(frame["path"], frame["machine"].map(size)))
    found = {case: offered_by(read_trace(case[0]), case[1]) for case in dict.fromkeys(cases)}
    days, load, runtime = zip(*map(found.__getitem__, cases))
    return frame.assign(days=days, offered=load, mean_runtime=runtime)
