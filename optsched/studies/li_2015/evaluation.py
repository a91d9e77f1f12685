"""Runs by workload and variant, and what they are compared by."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.metrics.node_time import PARTS
from optsched.studies.li_2015.plan import CEILING, MAIN, SINGLE, VARIANTS, WORKLOADS, workload_of
from optsched.studies.offered import offered_by
from optsched.studies.results import check_results
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

NODE_TIME = {part: f"recorded_node_time.{part}" for part in PARTS}
"""The columns with the parts of the recorded node time."""

LEVELS = tuple(range(0, 100, 5))
"""Percent of the nodes at which the levels of a histogram begin."""

PARTS_OF_METRICS = ("recorded_node_time", "recorded_held", "recorded_running")
"""Metrics that are tables of their own, of which each number is a column."""

SETTINGS = ("depth", "detect", "place", "migrate", "backfill", "pause", "restart")
"""Settings that tell variants apart."""

METRICS = (
    *("occupied", "useful", "utilization", "makespan"),
    *("mean_wait", "large_mean_wait", "mean_bounded_slowdown", "large_mean_drain"),
    *("migrations", "migration_processor_hours", "problems", "unproven", "fallbacks"),
    *("heuristic_matched", "nominal_seconds", "recorded_from", "recorded_until", "rejected"),
)
NEEDED = ("trace", "policy", "machine", "solver", "jobs", *METRICS)
"""Columns of the results that the evaluation reads."""


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Return the results of the sweep with the columns that the evaluation goes by.

    ``file``, ``path``, ``workload``, ``variant``, ``days``, the ``offered`` load, and the metrics;
    parts of metrics are 0 where they do not occur in a run that has others.

    Raises
    ------
    InputError
        If a column or a trace is missing, or runs have failed: nothing can be said then.
    """
    check_results(results, NEEDED)
    frame = results.copy()
    frame["file"] = [PurePath(trace).name for trace in frame["trace"]]
    frame["path"] = [str(inputs / file) for file in frame["file"]]
    frame["workload"] = [workload_of(file) for file in frame["file"]]
    variant_of = {_key(one.settings, one.solver): name for name, one in VARIANTS.items()}
    frame["variant"] = [
        CEILING if policy == "easy" else variant_of[_key(settings, solver)]
        for policy, solver, settings in zip(
            frame["policy"], frame["solver"], _stated(frame).to_dict(orient="records")
        )
    ]
    frame["nodes"] = frame["file"].map(_nodes(frame))
    offered = {
        file: offered_by(read_trace(inputs / file), int(nodes))
        for file, nodes in zip(frame["file"], frame["nodes"])
    }
    frame["days"] = [offered[file].days for file in frame["file"]]
    frame["offered"] = [offered[file].load for file in frame["file"]]
    recorded = frame["recorded_from"].notna()
    levels = [f"{name}.{level}" for name in PARTS_OF_METRICS[1:] for level in LEVELS]
    for name in (*NODE_TIME.values(), *levels):
        frame[name] = np.where(recorded, np.nan_to_num(frame.get(name, 0.0)), np.nan)
    return frame


def _stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of each run, by their own names."""
    columns = {f"settings.{name}": name for name in SETTINGS}
    return frame.reindex(columns=list(columns)).rename(columns=columns)


def _key(settings: Any, solver: Any) -> tuple[Any, ...]:
    import pandas as pd

    told = (*(settings.get(name) for name in SETTINGS), solver)
    return tuple(None if pd.isna(value) else value for value in told)


def _nodes(frame: pd.DataFrame) -> dict[str, int]:
    """Return the nodes of the machine that each file is run on."""
    counting = frame[frame["variant"] == CEILING]
    return {
        file: int(machine.partition(":")[2])
        for file, machine in zip(counting["file"], counting["machine"])
    }


def workloads(frame: pd.DataFrame) -> list[str]:
    """Return the workloads that were run, in order."""
    there = set(frame["workload"])
    return [name for name in WORKLOADS if name in there]


def variants(frame: pd.DataFrame) -> list[str]:
    """Return the variants of the comparison that were run, in order."""
    there = set(frame["variant"])
    return [name for name in (*MAIN, CEILING) if name in there]


def of(frame: pd.DataFrame, variant: str, metric: str) -> pd.Series[float]:
    """Return a metric of a variant, by file; nan where there is none."""
    own = frame[frame["variant"] == variant]
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
    order = {name: number for number, name in enumerate((*MAIN, CEILING, *SINGLE))}
    rows = frame.assign(
        _workload=frame["workload"].map(WORKLOADS.index), _variant=frame["variant"].map(order)
    ).sort_values(["_workload", "file", "_variant"], kind="stable")
    columns = ["workload", "file", "days", "offered", "variant", "jobs", *METRICS]
    return rows[[*columns, *NODE_TIME.values()]]
