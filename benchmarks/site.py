"""Speed of simulations on a site of 1,000 nodes, whose jobs ask for more than processors.

    python benchmarks/site.py -o benchmarks/results

Protocol: 800 nodes of 64 cores and 256 GB, and 200 with 4 GPUs too, in three partitions. Seven of
ten jobs are for the first ones, two for GPUs, and one for all nodes; four of ten name a number of
nodes, up to 32, the others have up to 64 tasks; half of them state memory, one of three amounts per
core. In "varied" workloads nearly every job asks for something else: any number of nodes up to 100,
of cores on each, and of tasks up to 128; seven of ten state memory, one of 35 amounts per core.
Jobs run for 18 minutes in the median (log-normal), request one to five times that, and arrive at an
offered load, over all cores. One run after the other in one process, kernels compiled before;
"(compiled)" is by the kernel; "waiting" the mean number of waiting jobs until the last one comes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import COMPILED, Times, circumstances, decided, keep, shown

import optsched
from optsched.machines.site import SiteMachine
from optsched.sites.site import Partition, Site
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

NODES, CORES = 1000, 64


def site() -> Site:
    """Return the site."""
    capacity = np.tile([CORES, 256_000, 0], (NODES, 1))
    capacity[800:, 2] = 4
    return Site(
        "thousand",
        tuple(f"n{node:03}" for node in range(NODES)),
        ("cores", "memory", "gpu"),
        capacity,
        partitions=(
            Partition("cpu", np.arange(800), default=True),
            Partition("gpu", np.arange(800, NODES)),
            Partition("all", np.arange(NODES)),
        ),
    )


def workload(jobs: int, load: float, *, varied: bool = False, seed: int = 1) -> Trace:
    """Return jobs at an offered load."""
    random = np.random.default_rng(seed)

    def up_to(most: int) -> NDArray[np.int64]:
        """Return numbers whose logarithms are uniform: any, or powers of two."""
        if varied:
            return np.exp(random.uniform(0, np.log(most + 1), jobs)).astype(np.int64)
        return 2 ** random.integers(0, most.bit_length(), jobs)

    partition = random.choice(["", "gpu", "all"], jobs, p=[0.7, 0.2, 0.1]).astype(object)
    nodes = np.where(random.random(jobs) < 0.4, up_to(100 if varied else 32), -1)
    on_nodes, on_gpus = nodes > 0, partition == "gpu"
    cores = random.choice(np.arange(1, 65) if varied else [16, 32, 64], jobs)
    processors = np.where(on_nodes, nodes * cores, up_to(128 if varied else 64))
    memory = np.arange(500, 4000, 100) if varied else [1000, 2000, 4000]
    runtime = random.lognormal(7, 1.5, jobs).astype(np.int64) + 1
    gap = (runtime * processors).mean() / (NODES * CORES) / load
    asks = {
        "nodes": nodes,
        "gpus_per_node": np.where(on_gpus & on_nodes, random.integers(1, 5, jobs), -1),
        "gpus": np.where(on_gpus & ~on_nodes, random.integers(1, 3, jobs), -1),
        "memory_per_core": np.where(
            random.random(jobs) < (0.7 if varied else 0.5), random.choice(memory, jobs), -1
        ),
    }
    return clean(
        Trace(
            np.arange(1, jobs + 1),
            np.cumsum(random.exponential(gap, jobs)).astype(np.int64),
            runtime,
            (runtime * random.choice([1, 1.5, 2, 5], jobs)).astype(np.int64) + 60,
            processors,
            name=f"load {load}, varied" if varied else f"load {load}",
            annotations=asks,
            texts={"partition_name": partition},
        )
    )


def measure(trace: Trace, machine: SiteMachine, policy: str) -> dict[str, Any]:
    """Return the measurements of one run."""
    run = optsched.simulate(trace, machine, decided(policy), compiled_from=0)
    seconds = run.timing["simulation_seconds"]
    waits = np.nansum(run.start - trace.submit)
    return {
        "workload": trace.name,
        "jobs": len(trace),
        "policy": policy,
        "seconds": round(seconds, 3),
        "jobs_per_s": round(len(trace) / seconds),
        "mean_wait": round(run.summary["mean_wait"], 1),
        "waiting": round(waits / (trace.submit[-1] - trace.submit[0]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=30_000)
    parser.add_argument("--loads", default="0.6,0.8,0.95")
    compiled = ",".join(name + COMPILED for name in ("fcfs", "easy", "conservative"))
    parser.add_argument("--policies", default=f"easy,{compiled}")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    measured_on = circumstances()
    machine, chosen = SiteMachine(site()), options.policies.split(",")
    for policy in chosen:
        measure(workload(300, 0.95), machine, policy)
    loads = [float(load) for load in options.loads.split(",")]
    traces = [
        workload(options.jobs, load, varied=varied) for varied in (False, True) for load in loads
    ]
    rows, times = [], Times()
    for trace, policy in shown([(trace, policy) for trace in traces for policy in chosen]):
        rows.append(measure(trace, machine, policy))
        times.add("{workload}, {policy}".format_map(rows[-1]), rows[-1]["seconds"])
    widths = {name: max(len(str(row[name])) for row in [*rows, {name: name}]) for name in rows[0]}
    table = ["  ".join(name.ljust(width) for name, width in widths.items())]
    table += ["  ".join(str(row[n]).ljust(w) for n, w in widths.items()) for row in rows]
    keep(options.output, "site", measured_on, [line.rstrip() for line in table], rows, times)


if __name__ == "__main__":
    main()
