"""Speed of gang scheduling: the 81 workloads of Franke et al. 1999 under its five strategies.

    python benchmarks/gang.py -o benchmarks/results

Protocol: workloads of the bundled spec franke-1999, with nine interarrival and nine service
factors, are run through a sweep with one process per core: FCFS, conservative backfilling, and gang
scheduling with 2, 3 and 5 rows (jobs in order of arrival, matrix filled), packed by first fit and
once more by the exact row-search. "simulation" is the policy with its solver; "solver" is the part
of it spent in the solver, 0 in the replay of first fit; "all" is the whole sweep, from start to
exit. Its first run compiles kernels where that has not been done before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep

import optsched
from optsched.traces.reading import write_trace

INTERARRIVAL = (1.0, 0.975, 0.95, 0.925, 0.9, 0.875, 0.85, 0.825, 0.8)
SERVICE = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8)
LEVELS = (2, 3, 5)
NODES = 320
COLUMNS = ("strategy", "runs", "simulation_s", "slowest_s", "solver_s", "jobs_per_s")


def written(folder: Path, jobs: int, workloads: int) -> list[str]:
    """Write the workloads, evenly chosen if not all are wanted; return their files."""
    factors = list(product(INTERARRIVAL, SERVICE))
    files = []
    for interarrival, service in factors[:: -(-len(factors) // workloads)]:
        trace = optsched.generate_workload(
            "franke-1999",
            jobs=jobs,
            seed=1,
            interarrival_factor=interarrival,
            service_factor=service,
        )
        files.append(str(folder / f"{interarrival}_{service}.swf"))
        write_trace(trace, files[-1])
    return files


def study(traces: list[str], solver: str) -> dict[str, Any]:
    """Return the sweep of the five strategies with that solver behind gang scheduling."""
    settings = {"mpl": list(LEVELS), "sharing": "fill"}
    gang = {"machine": f"matrix:{NODES}", "policy": "gang", "settings": settings, "solver": solver}
    space = {"machine": f"nodes:{NODES}", "policy": ["fcfs", "conservative"]}
    return {"keep": "summary", "trace": traces, "runs": [space, gang]}


def measure(traces: list[str], solver: str) -> tuple[float, list[dict[str, Any]]]:
    """Run a sweep; return its seconds, and what each run says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        optsched.sweep(study(traces, solver), f"{folder}/sweep")
        seconds = time.perf_counter() - began
        runs = [
            json.loads((run / "run.json").read_text())
            | json.loads((run / "timing.json").read_text())
            for run in sorted(Path(folder, "sweep", "runs").iterdir())
        ]
    return seconds, runs


def rows_of(runs: list[dict[str, Any]], jobs: int) -> list[dict[str, Any]]:
    """Return a row for each strategy."""
    by_strategy: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        name = run["policy"]
        if name == "gang":
            name += f", MPL {run['settings']['mpl']}, {run['solver']}"
        by_strategy.setdefault(name, []).append(run)
    rows = []
    for name, own in sorted(by_strategy.items()):
        seconds = statistics.median(run["simulation_seconds"] for run in own)
        solver = statistics.median(run["solver_seconds"] for run in own)
        slowest = max(run["simulation_seconds"] for run in own)
        values = (name, len(own), round(seconds, 3), round(slowest, 3), round(solver, 3))
        rows.append(dict(zip(COLUMNS, (*values, round(jobs / seconds)))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of a workload")
    parser.add_argument("--workloads", type=int, default=9, help="largest number of workloads")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    measured_on = circumstances()
    table, rows, times = [], {}, Times()
    with tempfile.TemporaryDirectory() as folder:
        traces = written(Path(folder), options.jobs, options.workloads)
        for solver in ("first-fit", "row-search"):
            seconds, runs = measure(traces, solver)
            table.append(
                f"{len(runs)} simulations of {options.jobs:,} jobs, packed by {solver}: "
                f"{seconds:.0f} s in all on {os.cpu_count()} cores"
            )
            own = rows_of(runs, options.jobs)
            times.add_all({row["strategy"]: row["simulation_s"] for row in own})
            rows |= {row["strategy"]: row for row in own}
    widths = [
        max(len(str(row[c])) for row in [dict(zip(COLUMNS, COLUMNS)), *rows.values()])
        for c in COLUMNS
    ]
    table += ["", "  ".join(c.ljust(w) for c, w in zip(COLUMNS, widths))]
    table += [
        "  ".join(str(row[c]).ljust(w) for c, w in zip(COLUMNS, widths)) for row in rows.values()
    ]
    table = [line.rstrip() for line in table]
    keep(options.output, "gang", measured_on, table, list(rows.values()), times)


if __name__ == "__main__":
    main()
