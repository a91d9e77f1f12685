"""Runs by workload and variant, and what they are compared by."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.machines.machine import read_machine
from optsched.metrics.node_time import PARTS
from optsched.studies.li_2015.plan import (
    CEILING,
    CONVEX,
    FULL,
    MAIN,
    READINGS,
    SINGLE,
    SMALL,
    VARIANTS,
    WORKLOADS,
    workload_of,
)
from optsched.studies.offered import load_on, with_figures
from optsched.studies.results import check_results, labelled

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

NODE_TIME = {part: f"recorded_node_time.{part}" for part in PARTS}
"""The columns with the parts of the recorded node time."""

LEVELS = tuple(range(0, 100, 5))
"""Percent of the nodes at which the levels of a histogram begin."""

PARTS_OF_METRICS = ("recorded_held", "recorded_running")
"""Histograms: metrics that are tables of their own, of which each number is a column."""

BUFFERS = (
    *("large_detected", "large_mean_buffer", "large_mean_ahead"),
    *("prepared", "prepared_starts", "prepared_mean_buffer"),
)
"""Metrics of the proactive scan."""

METRICS = (
    *("occupied", "useful", "utilization", "makespan"),
    *("mean_wait", "large_mean_wait", "mean_bounded_slowdown", "large_mean_drain"),
    *("migrations", "migration_processor_hours", "problems", "unproven", "fallbacks"),
    *("heuristic_matched", "nominal_seconds", "recorded_from", "recorded_until", "rejected"),
    *("unanswered", *BUFFERS),
)


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add ``variant``, ``file``, ``workload``, ``days`` and the ``offered`` load.

    Parts of metrics are 0 where they do not occur in a run that has others.
    """
    check_results(results, ("trace", "policy", "machine", "solver", "jobs", *METRICS))
    planned = {(name,): _label(name) for name in (*MAIN, CEILING, *SINGLE)}
    machines = results["machine"].astype(str)
    results = results.assign(convex=machines.str.endswith(CONVEX))
    frame = labelled(results, planned, ("variant",))
    frame["file"] = [PurePath(trace).name for trace in frame["trace"]]
    frame["workload"] = [workload_of(file) for file in frame["file"]]
    places = zip(frame["workload"].map(WORKLOADS.index), frame["file"], range(len(frame)))
    rows = [row for *_, row in sorted(places)]
    frame = with_figures(frame.iloc[rows].reset_index(drop=True), inputs, figures_of)
    recorded = frame["recorded_from"].notna()
    levels = [f"{name}.{level}" for name in PARTS_OF_METRICS for level in LEVELS]
    for name in (*NODE_TIME.values(), *levels):
        frame[name] = np.where(recorded, np.nan_to_num(frame.get(name, 0.0)), np.nan)
    return frame


def figures_of(trace: Trace, machine: str) -> dict[str, float]:
    """Return the load of a trace, its large jobs, their share of the work, and the largest job."""
    size = read_machine(machine).size
    above = next(one.large for one in (FULL, SMALL) if one.nodes == size)
    large, work = trace.processors > above, trace.processors * trace.runtime
    return load_on(trace, machine) | {
        "large_jobs": int(large.sum()),
        "large_work": float(work[large].sum() / work.sum()),
        "largest_job": int(trace.processors.max()),
    }


def _label(variant: str) -> dict[str, Any]:
    """Return the columns that all runs of a variant share."""
    if variant == CEILING:
        return {"policy": "easy", "convex": False}
    settings, solver, convex = VARIANTS[variant]
    stated = {key: value for key, value in settings.items() if key != "per_node"}
    own = {"solver": solver.get("solver"), "settings": stated}
    return {"policy": "torus", "convex": convex} | own


def variants(frame: pd.DataFrame) -> list[str]:
    """Return the variants of the comparison that were run, in order."""
    there = set(frame["variant"])
    return [name for name in (*MAIN, CEILING) if name in there]


def read_as(frame: pd.DataFrame, reading: str) -> pd.DataFrame:
    """Return the runs with the variants of the paper's system as a reading has them.

    The column ``run_as`` has the variant that was run.
    """
    replaced = READINGS[reading]
    frame = frame.assign(run_as=frame["variant"])
    names = {variant: name for name, variant in replaced.items()}
    others = frame[~frame["variant"].isin(replaced)]
    return others.assign(variant=others["variant"].replace(names))


def run_as(frame: pd.DataFrame, variant: str) -> str:
    """Return the name of the variant that a reading has in the place of one."""
    return str(frame.loc[frame["variant"] == variant, "run_as"].iloc[0])


def of(frame: pd.DataFrame, variant: str, metric: str) -> pd.Series[float]:
    """Return a metric of a variant, by file; nan where there is none."""
    own = frame.loc[frame["variant"] == variant, ["file", metric]]
    return own.set_index("file")[metric].astype(float).sort_index()


def both(
    frame: pd.DataFrame, one: str, other: str, metric: str
) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return a metric of two variants on the files that both were run on."""
    first, second = of(frame, one, metric), of(frame, other, metric)
    shared = first.index.intersection(second.index)
    return first[shared], second[shared]


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return workload, variant and figures of every run, one row each."""
    columns = ["workload", "file", "days", "offered", "variant", "jobs", *METRICS]
    return frame[[*columns, *NODE_TIME.values()]]
