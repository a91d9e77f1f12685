"""Growth of the cost of a simulation with the jobs and with the queue, for every policy.

    python benchmarks/growth.py -o benchmarks/results

Protocol: random workloads for 256 processors, the same for all policies. Jobs need 1 to 16
processors (log-uniform), run for about an hour (log-normal), and request one to four times that,
rounded up to 5 minutes. "by jobs": arrivals at a load of 0.8, so that the queue stays short. "by
queue": a number of jobs is there at the start, besides 50 that fill the machine, and as many, at
least 1,000, arrive at a load of 1; the table shows how many wait in the mean until the last comes.
Each policy runs on its own kind of machine, with its default solver: deciding in Python, if it
can, and by its kernel, marked ``(compiled)``, if it has one. Each size is run in one process, after
a small run that compiles the kernels, three times if that takes less than `--limit` s in all; the
median counts. A series ends behind the first run of more than `--limit` s.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from results import COMPILED, Times, circumstances, decided, keep, shown

import optsched
from optsched.registry import policies
from optsched.report.style import STROKES, applied, new_figure, save_as
from optsched.simulator.policy import by_kernel
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn

PROCESSORS = 256
MACHINES = {
    "nodes": "nodes:256",
    "matrix": "matrix:256",
    "torus": "torus:8x8x4",
    "cluster": "cluster:16x16",
    "smp": "smp:64x4",
    "site": "site:sample-site",
}
REPEATS = 3
BY_JOBS, BY_QUEUE = AXES = ("by jobs", "by queue")
MEANINGS = {BY_JOBS: "jobs", BY_QUEUE: "jobs that wait, in the mean"}


def workload(jobs: int, waiting: int, load: float, seed: int = 1) -> Trace:
    """Return jobs of which some are there at the start, and the others arrive at that load."""
    random = np.random.default_rng(seed)
    processors = np.exp2(random.uniform(0, 4, size=jobs)).round().astype(np.int64)
    runtime = np.clip(random.lognormal(8, 1, size=jobs), 60, 86_400).astype(np.int64)
    requested = 300 * np.ceil(runtime * random.uniform(1, 4, size=jobs) / 300).astype(np.int64)
    work = int((processors * runtime)[waiting:].sum())
    submit = np.sort(random.uniform(0, work / PROCESSORS / load, size=jobs)).astype(np.int64)
    submit[:waiting] = 0
    numbers = np.arange(1, jobs + 1)
    stated = {
        "file": numbers // 10 + 1,
        "file_size": np.full(jobs, 6400),
        "priority": random.integers(1, 1000, size=jobs),
    }
    none = np.zeros(jobs, dtype=np.int64)
    trace = Trace(
        numbers, np.sort(submit), runtime, requested, processors, wait=none, annotations=stated
    )
    return drawn(clean(trace), "HIGH", seed=seed)


def sizes(largest: int, least: int) -> list[int]:
    """Return ascending sizes, two for each power of ten."""
    powers = (10**exponent for exponent in range(2, 8))
    return [size for power in powers for size in (power, 3 * power) if least <= size <= largest]


def measure(trace: Trace, name: str) -> tuple[float, float]:
    """Return the seconds of a simulation, and the mean number of waiting jobs, see above."""
    policy = decided(name)
    machine = MACHINES[min(policy.machines or {"nodes"})]
    run = optsched.simulate(trace, machine, policy, compiled_from=0)
    last = trace.submit[-1]
    waited = np.fmin(run.start, last) - trace.submit
    return run.timing["simulation_seconds"], float(waited.sum() / max(last, 1))


def measure_all(options: argparse.Namespace, times: Times) -> Iterator[dict[str, Any]]:
    """Yield a row for each run."""
    for policy in options.policies.split(","):
        kind = policies[policy]
        in_python, by_name = kind.decide is not by_kernel, policy + COMPILED
        names = [policy] * in_python + [by_name] * bool(kind.compiled)
        for name in names:
            measure(workload(100, 50, 1.0), name)
            for axis, largest in ((BY_JOBS, options.jobs), (BY_QUEUE, options.queue)):
                for size in sizes(largest, least=1000 if axis == BY_JOBS else 100):
                    if axis == BY_JOBS:
                        trace = workload(size, 1, 0.8)
                    else:
                        trace = workload(50 + size + max(size, 1000), 50 + size, 1.0)
                    measured: list[float] = []
                    while len(measured) < REPEATS and sum(measured) < options.limit:
                        seconds, waiting = measure(trace, name)
                        measured.append(seconds)
                        times.add(f"{name}, {axis}, {size}", seconds)
                    seconds = statistics.median(measured)
                    yield {
                        "axis": axis,
                        "policy": name,
                        "size": size,
                        "jobs": len(trace),
                        "waiting": round(waiting, 1),
                        "seconds": round(seconds, 6),
                        "jobs_per_s": round(len(trace) / seconds),
                    }
                    if seconds > options.limit:
                        break


def series(rows: list[dict[str, Any]], axis: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each policy along an axis."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["axis"] == axis:
            found.setdefault(row["policy"], []).append(row)
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table for each axis: a line for each policy, a column for each size."""
    lines = ["jobs/s; by queue also the jobs that wait, in the mean"]
    for axis in AXES:
        found = series(rows, axis)
        columns = sorted({row["size"] for own in found.values() for row in own})
        lines += ["", f"{axis:24}" + "".join(f"{size:>20,}" for size in columns)]
        for name, own in found.items():
            cells = [f"{row['jobs_per_s']:,}" for row in own]
            if axis == BY_QUEUE:
                cells = [f"{cell} {row['waiting']:>8,.0f}" for cell, row in zip(cells, own)]
            lines.append(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells))
    return lines


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw jobs/s over both axes, decided in Python above and by kernels below."""
    with applied():
        figure = new_figure(8.0, "Speed of simulation")
        panels = figure.subplots(2, 2, sharex="col", sharey="row")
        names = sorted({row["policy"].removesuffix(COMPILED) for row in rows})
        strokes = dict(zip(names, STROKES))
        for column, axis in enumerate(AXES):
            for name, own in series(rows, axis).items():
                color, dashes = strokes[name.removesuffix(COMPILED)]
                panels[int(name.endswith(COMPILED)), column].plot(
                    [row["size" if axis == BY_JOBS else "waiting"] for row in own],
                    [row["jobs_per_s"] for row in own],
                    color=color,
                    linestyle=dashes,
                    marker=".",
                    label=name.removesuffix(COMPILED),
                )
            panels[1, column].set_xlabel(MEANINGS[axis])
        for panel in panels.flat:
            panel.set(xscale="log", yscale="log")
        for line, title in zip(panels, ("decided in Python", "by kernels")):
            line[0].set_title(title)
            line[0].set_ylabel("jobs/s")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside right center", title="policy"
        )
        save_as(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--policies", default=",".join(policies), help="with commas between")
    parser.add_argument("--jobs", type=int, default=100_000, help="largest number of jobs")
    parser.add_argument("--queue", type=int, default=10_000, help="most jobs at the start")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds of a run, see above")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    times = Times()
    rows = list(shown(measure_all(options, times)))
    keep(options.output, "growth", measured_on, table(rows), rows, times)
    draw(rows, options.output / "growth.svg")


if __name__ == "__main__":
    main()
