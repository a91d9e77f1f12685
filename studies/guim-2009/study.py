"""Guim et al. 2009: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optsched.machines.machine import read_machine
from optsched.metrics.jobs import bounded_slowdown
from optsched.schedule import State
from optsched.studies.plan import find_log
from optsched.traces.bandwidth import drawn
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

NAMES = ("bounded_slowdown", "wait", "penalised_percent", "penalised_slowdown", "requested_slowdown")
KINDS = ("p95", "mean")

# ---- The runs


def workloads(plan: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield centre, mix, part and amount of each workload of a block."""
    own = plan["own"]
    mixes = [mix for mix in run["mix"] if mix in own.get("mixes", run["mix"])]
    highs = [high for high in run["high"] if high in own.get("highs", run["high"])]
    several = run["centre"] if isinstance(run["centre"], list) else [run["centre"]]
    yield from product(several, mixes, own["parts"], highs)


def file_of(centre: str, mix: str, part: int, high: int) -> str:
    """Return the name of the trace of a workload."""
    return f"{centre.partition(' ')[0]}-{mix}-{part}-{high}.swf.gz"


def runs(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a block for each workload of the blocks of the plan."""
    return [
        {key: value for key, value in run.items() if key not in ("mix", "high")}
        | {"centre": centre, "trace": f"inputs/{file_of(centre, mix, part, high)}"}
        | {"label": {"mix": mix, "part": str(part), "high": str(high)}}
        for run in plan["runs"]
        for centre, mix, part, high in workloads(plan, run)
    ]


def inputs(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Draw the demands of the jobs of each part of each log."""
    jobs, logs = plan["own"]["jobs"], plan["own"]["logs"]
    whole = {name: read_trace(find_log(file, folders)) for name, file in logs.items()}
    needed = {file_of(*one): one for run in plan["runs"] for one in workloads(plan, run)}
    return {
        file: drawn(
            whole[file.partition("-")[0]].jobs((part - 1) * jobs + 1, part * jobs),
            mix,
            part,
            {"high": high},
        )
        for file, (_, mix, part, high) in needed.items()
    }


FIGURES = ("killed", "killed_with_slack", *(f"{kind}_{name}" for name in NAMES for kind in KINDS))
LABELS = ("centre", "scheduler", "limits", "worst", "mix", "part", "high", "ties", "seed", "shake", "shake_seed")
OF_TRACE = ("demand_high", "without_slack", "load")


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Keep what is evaluated: labels, figures of the measured jobs, and what the traces are like."""
    jobs = (pd.read_parquet(Path(folder) / "jobs.parquet") for folder in results["folder"])
    frame = results.assign(**pd.DataFrame(map(figures_of, jobs), index=results.index))
    known = {}
    for (file, machine), own in frame.groupby(["trace", "machine"]):
        known |= dict.fromkeys(own.index, of_trace(read_trace(file), machine))
    frame = frame.join(pd.DataFrame(known).T)
    stated = ("run", "trace", "machine", "folder", *LABELS, "problems")
    return frame[[name for name in (*stated, *FIGURES, *OF_TRACE) if name in frame]]


def figures_of(jobs: pd.DataFrame) -> dict[str, float]:
    """Compute the figures of the measured jobs; slowdowns, waits and penalties of finished ones."""
    own = jobs[jobs["measured"]]
    finished = own[own["final_state"] == State.FINISHED]
    killed = own[own["final_state"] == State.KILLED]
    found = {
        "killed": len(killed),
        "killed_with_slack": int((killed["requested_time"] > killed["run_time"]).sum()),
    }
    columns = {
        "bounded_slowdown": slowdown(finished, "run_time"),
        "penalised_slowdown": finished["bounded_slowdown"],
        "requested_slowdown": slowdown(finished, "requested_time"),
        "wait": finished["waiting_time"],
        "penalised_percent": finished["penalised_percent"],
    }
    for name, column in columns.items():
        values = np.asarray(column, dtype=float)
        found[f"p95_{name}"] = float(np.percentile(values, 95))
        found[f"mean_{name}"] = float(values.mean())
    return found


def slowdown(jobs: pd.DataFrame, over: str) -> np.ndarray:
    """Return the bounded slowdown over a column of times."""
    response, time = (jobs[name].to_numpy(float) for name in ("turnaround_time", over))
    return bounded_slowdown(response - time, time)


def of_trace(trace: Trace, machine: str) -> dict[str, float]:
    """Return the load of a trace, and the shares of jobs with high demands, and without slack."""
    demand, span = trace.annotations["bandwidth"], np.ptp(trace.submit)
    work = float((trace.processors * trace.runtime).sum())
    return {
        "demand_high": float((demand == demand.max()).mean()),
        "without_slack": float((trace.requested_time <= trace.runtime).mean()),
        "load": work / (span * read_machine(machine).size),
    }
