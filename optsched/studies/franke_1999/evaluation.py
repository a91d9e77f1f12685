"""Runs by workload and strategy, and what they are compared by."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.studies.franke_1999.plan import SEEDS, SHOWN
from optsched.studies.franke_1999.published import MPLS
from optsched.studies.offered import offered_by
from optsched.studies.results import check_results
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

MODEL = re.compile(
    r"model_interarrival([\d.]+)_service([\d.]+)_seed(\d+)(?:_requests([\d.]+))?\.swf\.gz"
)
BLUE = re.compile(r"blue_from(\d+)_([a-z]+?)(?:_seed(\d+))?\.swf\.gz")

FCFS, BACKFILLING = "FCFS", "backfilling"
GANG = {f"MPL {mpl}": mpl for mpl in MPLS}
STRATEGIES = (FCFS, BACKFILLING, *GANG)
"""As the figures of the paper name them."""

METRICS = {
    "mean_response": "response time, all jobs",
    "mean_wait": "wait time, all jobs",
    "large_mean_response": "response time, large jobs",
    "large_mean_wait": "wait time, large jobs",
}
"""What Figures 5, 6, 7 and 8 show, by its name in a summary."""

KEPT_UP = 0.97
"""A strategy keeps up with a workload whose jobs arrive in at least this share of the makespan.
Where it does not, queues grow as long as jobs arrive, and means tell how long was simulated."""

SETTINGS = {
    "mpl": "mpl",
    "admission": "admission",
    "sharing": "sharing",
    "compact": "compact",
    "context_switch": "context_switch",
    "job_memory": "job_memory",
    "node_memory": "node_memory",
}
NEEDED = ("trace", "policy", "solver", "error", "utilization", "makespan", "jobs", *METRICS)
"""Columns of the results that the evaluation reads."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``kind`` (``model``, ``blue`` or ``instances``), ``interarrival``, ``service``, ``seed``,
    ``requests``, ``first`` and ``stand_in`` of the workload, its ``offered`` load and
    ``mean_runtime``, ``strategy`` and ``variant``, whether it ``kept_up``, the settings, and the
    metrics.

    Raises
    ------
    InputError
        If a column or a trace is missing, or runs have failed: nothing can be said then.
    """
    check_results(results, NEEDED)
    frame = results.rename(columns={f"settings.{name}": name for name in SETTINGS})
    frame["file"] = [PurePath(trace).name for trace in frame["trace"]]
    frame["path"] = [str(inputs / file) for file in frame["file"]]
    sizes = {
        file: int(machine.partition(":")[2])
        for file, machine in zip(frame["file"], frame["machine"])
    }
    offered = {file: offered_by(read_trace(inputs / file), sizes[file]) for file in sizes}
    frame["offered"] = [offered[file].load for file in frame["file"]]
    frame["kept_up"] = frame["utilization"] / frame["offered"] >= KEPT_UP
    frame["mean_runtime"] = [offered[file].runtime for file in frame["file"]]
    told = [_workload(file) for file in frame["file"]]
    for name in ("kind", "interarrival", "service", "seed", "requests", "first", "stand_in"):
        frame[name] = [workload.get(name) for workload in told]
    gang = frame["policy"] == "gang"
    frame["strategy"] = np.where(frame["policy"] == "fcfs", FCFS, BACKFILLING)
    frame.loc[gang, "strategy"] = [f"MPL {mpl:.0f}" for mpl in frame.loc[gang, "mpl"]]
    frame["variant"] = frame["admission"] + ", " + frame["sharing"]
    frame["compact"] = frame["compact"].isna() | (frame["compact"] == True)  # noqa: E712
    frame["context_switch"] = frame["context_switch"].fillna(0.0)
    frame["solver"] = frame["solver"].where(~gang | frame["solver"].notna(), "first-fit")
    return frame


def _workload(file: str) -> dict[str, Any]:
    """Return what the name of a file says of the workload."""
    if model := MODEL.fullmatch(file):
        interarrival, service, seed, requests = model.groups()
        return {
            "kind": "model",
            "interarrival": float(interarrival),
            "service": float(service),
            "seed": int(seed),
            "requests": float(requests or 1),
        }
    if blue := BLUE.fullmatch(file):
        first, stand_in, seed = blue.groups()
        return {"kind": "blue", "first": int(first), "stand_in": stand_in, "seed": int(seed or 0)}
    return {"kind": "instances"}


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the paper's strategies: perfect estimates, first fit, no costs."""
    usual = (frame["kind"] == "model") & (frame["requests"] == 1) & frame["compact"]
    usual &= (frame["context_switch"] == 0) & frame["execution"].isna()
    return frame[usual & (frame["solver"].isna() | (frame["solver"] == "first-fit"))]


def compared(
    frame: pd.DataFrame, variant: str = SHOWN, seed: int | None = SEEDS[0]
) -> pd.DataFrame:
    """Return the plain runs side by side: a row per workload.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `prepare` returns.
    variant : str
        The variant of gang scheduling.
    seed : int or None
        Of the workloads; all if none.

    Returns
    -------
    pandas.DataFrame
        Indexed by interarrival, service and seed; columns are (metric, strategy), with ``offered``
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
    return read_trace(frame.loc[at & (frame["requests"] == 1), "path"].iloc[0])


def keeping_up(table: pd.DataFrame, *strategies: str) -> pd.DataFrame:
    """Return the workloads of `compared` that all of these strategies keep up with."""
    kept = np.logical_and.reduce([table["kept_up", name].astype(bool) for name in strategies])
    return table[kept]


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, strategy and means of every run, one row each."""
    columns = ["kind", "interarrival", "service", "seed", "requests", "first", "stand_in"]
    columns += ["offered", "strategy", "variant", "solver", *(n for n in SETTINGS if n in frame)]
    return frame[[*columns, "utilization", "makespan", *METRICS]]
