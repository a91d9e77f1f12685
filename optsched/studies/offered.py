"""Figures of workloads: the load that they offer to a machine, and others of their traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

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


def load_on(trace: Trace, machine: str) -> dict[str, float]:
    """Return ``days``, ``offered`` load and ``mean_runtime`` of a trace on a machine."""
    days, load, runtime = offered_by(trace, read_machine(machine).size)
    return {"days": days, "offered": load, "mean_runtime": runtime}


def with_figures(
    frame: pd.DataFrame, inputs: Path, figures: Callable[[Trace, str], Mapping[str, Any]]
) -> pd.DataFrame:
    """Add figures of the trace of each run, each a column.

    Parameters
    ----------
    inputs : path
        The folder of the traces, which have the names of the column ``trace``.
    figures : callable
        Takes a trace and the text of a machine, and returns figures by name.
    """
    import pandas as pd

    files = [str(inputs / PurePath(trace).name) for trace in frame["trace"]]
    cases = list(zip(files, frame["machine"]))
    found = {case: figures(read_trace(case[0]), case[1]) for case in dict.fromkeys(cases)}
    return frame.assign(**pd.DataFrame([found[case] for case in cases], frame.index))
