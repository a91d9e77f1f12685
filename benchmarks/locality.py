"""Speed of planning on a cluster whose nodes keep files: the rules of Gonthier et al. 2024.

    python benchmarks/locality.py --traces ../shared/traces -o benchmarks/results

Protocol: 486 nodes of 20 cores; one run after the other in one process, kernels compiled before.
Two workloads: the authors' day (left out where it is not) by rule and backfilling (none, that of
the authors, or full profiles); and the beginning of a synthetic week of 165,000 jobs in bursts that
share a file, at an offered load of 0.95, under some of the rules without backfilling.
"simulation" is the policy with its rule and the verification of every plan.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from results import Times, circumstances, keep, shown

import optsched
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

DAY = "rackham/2022-09-10_V10000_anonymous.txt.gz"
MACHINE = "cluster:486x20"
WEEK_JOBS = 165_000
WEEK = 7 * 86_400
CORES = {1: 0.55, 2: 0.1, 4: 0.1, 8: 0.08, 16: 0.05, 20: 0.12}
BURST = 15
"""Jobs that are submitted together and share a file, in the mean."""


def week(jobs: int, load: float = 0.95, seed: int = 1) -> Trace:
    """Return jobs in bursts, spread over their share of the week."""
    random = np.random.default_rng(seed)
    sizes = random.geometric(1 / BURST, size=jobs)
    burst = np.repeat(np.arange(jobs), sizes)[:jobs]
    bursts = burst[-1] + 1
    cores = random.choice(list(CORES), size=bursts, p=list(CORES.values()))[burst]
    length = random.lognormal(0, 1.3, size=bursts)[burst] * random.uniform(0.7, 1.3, size=jobs)
    span = WEEK * jobs / WEEK_JOBS
    length *= load * 486 * 20 * span / (length * cores).sum()
    runtime = np.clip(length, 30, 10 * 86_400).astype(np.int64)
    walltime = np.minimum(runtime * random.uniform(1.2, 8, size=jobs), 10 * 86_400)
    begins = np.sort(random.uniform(0, span, size=bursts))
    submit = np.sort((begins[burst] + random.uniform(0, 60, size=jobs)).astype(np.int64))
    return clean(
        Trace(
            np.arange(1, jobs + 1),
            submit,
            runtime,
            np.maximum(walltime.astype(np.int64), runtime),
            cores,
            name="synthetic week",
            annotations={"file": burst + 1, "file_size": 6400 * cores},
        )
    )


def measure(trace: Trace, rule: str, backfill: str) -> dict[str, Any]:
    """Return the measurements of one run."""
    run = optsched.simulate(
        trace, MACHINE, "locality", solver=rule, settings={"backfill": backfill}
    )
    seconds = run.timing["simulation_seconds"]
    plans = run.summary["problems"]
    return {
        "workload": trace.name,
        "jobs": len(trace),
        "rule": rule,
        "backfill": backfill,
        "simulation_s": round(seconds, 2),
        "plans": plans,
        "ms_a_plan": round(1000 * seconds / plans, 2),
        "jobs_per_s": round(len(trace) / seconds),
        "mean_stretch": round(run.summary["mean_stretch"], 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of the synthetic week")
    parser.add_argument("--rules", default="fcfs,lea,lem", help="fcfs, eft, lea, leo, lem")
    parser.add_argument(
        "--backfills", default="none,conservative", help="none, holes, conservative"
    )
    parser.add_argument("--week-rules", default="fcfs,lea")
    parser.add_argument("--week-backfills", default="none")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    measured_on = circumstances()
    backfills, of_week = options.backfills.split(","), options.week_backfills.split(",")
    for backfill in dict.fromkeys([*backfills, *of_week]):
        measure(week(200), "fcfs", backfill)
    runs = [
        (week(options.jobs), rule, own) for own in of_week for rule in options.week_rules.split(",")
    ]
    if (options.traces / DAY).exists():
        day = optsched.read_trace(options.traces / DAY)
        runs = [(day, rule, own) for own in backfills for rule in options.rules.split(",")] + runs
    rows, times = [], Times()
    for run in shown(runs):
        rows.append(measure(*run))
        name = "{workload}, {rule}, {backfill}".format_map(rows[-1])
        times.add(name, rows[-1]["simulation_s"])
    widths = {name: max(len(str(row[name])) for row in [*rows, {name: name}]) for name in rows[0]}
    table = ["  ".join(name.ljust(width) for name, width in widths.items())]
    table += ["  ".join(str(row[n]).ljust(w) for n, w in widths.items()) for row in rows]
    table = [line.rstrip() for line in table]
    keep(options.output, "locality", measured_on, table, rows, times)


if __name__ == "__main__":
    main()
