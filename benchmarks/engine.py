"""Speed and memory of the simulator, by trace and policy.

    python benchmarks/engine.py --traces ../shared/traces -o benchmarks/results

Protocol: each cell runs in processes of its own, one after the other, `--repeats` times; the median
counts. "simulation" is the event engine with the policy, per-job output included, after the kernels
are compiled; policies marked ``(compiled)`` decide by their kernel, the others in Python.
"write" is the run folder without pictures; "whole" is the process from start to exit. "bare" is a
plain loop that computes EASY start times and nothing else, run beside each trace: "ratio", jobs per
second over those of the loop, says what generality costs. Machines are those of the headers.
The bare loop and policies in Python take the first `--engine-jobs` jobs of a log, kernels all.
"""

from __future__ import annotations

import argparse
import heapq
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import insort
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from results import COMPILED, Times, circumstances, decided, keep, shown

from optsched.content import bundled

TRACES = ("SDSC-SP2-1998-4.2-cln", "SDSC-BLUE-2000-4.2-cln", "RICC-2010-2")
POLICIES = (
    "fcfs",
    f"fcfs{COMPILED}",
    "easy",
    f"easy{COMPILED}",
    "easy-sjbf",
    f"easy-sjbf{COMPILED}",
    "conservative",
    f"conservative{COMPILED}",
    "sjf",
    f"sjf{COMPILED}",
    f"window{COMPILED}",
)
COLUMNS = (
    "trace",
    "policy",
    "jobs",
    "read_s",
    "simulation_s",
    "write_s",
    "whole_s",
    "jobs_per_s",
    "ratio",
    "peak_MB",
)


def bare_easy(submit, runtime, estimate, size, processors):
    """Start times under EASY, batched, by a plain loop over a heap, a queue and a sorted list."""
    starts = [0] * len(submit)
    ends, running, queue = [], [], []
    free, arrived, jobs = processors, 0, len(submit)
    while arrived < jobs or ends:
        now = ends[0][0] if ends else submit[arrived]
        if arrived < jobs and submit[arrived] < now:
            now = submit[arrived]
        while ends and ends[0][0] == now:
            _, job, estimated = heapq.heappop(ends)
            running.remove((estimated, job))
            free += size[job]
        while arrived < jobs and submit[arrived] == now:
            queue.append(arrived)
            arrived += 1
        started = []
        while queue and size[queue[0]] <= free:
            started.append(queue.pop(0))
            free -= size[started[-1]]
            insort(running, (now + estimate[started[-1]], started[-1]))
        if queue and free:
            needed, shadow = size[queue[0]] - free, now
            for estimated, job in running:
                if needed <= 0 and estimated > shadow:
                    break
                needed -= size[job]
                shadow = estimated
            extra = -needed
            for job in queue[1:]:
                if size[job] <= free:
                    if now + estimate[job] > shadow:
                        if size[job] > extra:
                            continue
                        extra -= size[job]
                    started.append(job)
                    free -= size[job]
                    insort(running, (now + estimate[job], job))
                    if not free:
                        break
            kept = set(started)
            queue = [job for job in queue if job not in kept] if kept else queue
        for job in started:
            starts[job] = now
            heapq.heappush(ends, (now + runtime[job], job, now + estimate[job]))
    return starts


def measure(path: str, policy: str, engine_jobs: int) -> dict[str, float]:
    """Run one cell in this process."""
    import optsched

    compiled = policy.endswith(COMPILED)
    trace = optsched.read_trace(path)
    jobs = len(trace) if compiled else min(engine_jobs, len(trace))
    if policy == "bare":
        trace = trace.jobs(1, jobs)
        lists = [trace.submit, trace.runtime, trace.requested_time, trace.processors]
        fits = trace.processors <= trace.header.max_procs
        lists = [column[fits].tolist() for column in lists]
        began = time.perf_counter()
        bare_easy(*lists, trace.header.max_procs)
        return {"jobs": len(lists[0]), "simulation_s": time.perf_counter() - began}
    options = {"policy": decided(policy), "compiled_from": 0}
    optsched.simulate(trace, jobs=(1, min(500, len(trace))), **options)
    run = optsched.simulate(path, jobs=(1, jobs), **options)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        optsched.save(run, Path(folder) / "run", plots=False)
        written = time.perf_counter() - began
    return {
        "jobs": len(run.trace),
        "read_s": run.timing["read_seconds"],
        "simulation_s": run.timing["simulation_seconds"],
        "write_s": written,
        "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def cell(path: Path, policy: str, repeats: int, jobs: int, times: Times) -> dict[str, Any]:
    """Run one cell in processes of its own, and return the medians."""
    runs = []
    trace = name_of(path)
    for _ in range(repeats):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--cell", str(path), policy, str(jobs)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stdout) | {"whole_s": time.perf_counter() - began})
        times.add_all(
            {
                f"{trace}, {policy}, {part}": runs[-1][f"{part}_s"]
                for part in ("simulation", "whole")
            }
        )
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def name_of(path: Path) -> str:
    """Return the name of a log."""
    return path.name.partition(".swf")[0]


def measure_all(
    paths: list[Path], policies: list[str], repeats: int, engine_jobs: int, times: Times
) -> Iterator[dict[str, Any]]:
    """Yield one row for each policy on each trace."""
    for path in paths:
        bare = cell(path, "bare", repeats, engine_jobs, times)
        for policy in policies:
            measured = cell(path, policy, repeats, engine_jobs, times)
            rate = measured["jobs"] / measured["simulation_s"]
            yield {
                "trace": name_of(path),
                "policy": policy,
                **measured,
                "jobs_per_s": rate,
                "ratio": rate * bare["simulation_s"] / bare["jobs"],
            }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows as lines for people."""
    lines = [f"{'trace':24}{'policy':22}" + "".join(f"{name:>14}" for name in COLUMNS[2:])]
    for row in rows:
        cells = (f"{row[c]:,.0f}" if row[c] >= 100 else f"{row[c]:.2f}" for c in COLUMNS[2:])
        lines.append(f"{row['trace']:24}{row['policy']:22}" + "".join(f"{c:>14}" for c in cells))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="folder of the logs; the sample if left out")
    parser.add_argument("--only", default=",".join(TRACES), help="logs, with commas between")
    parser.add_argument("--policies", default=",".join(POLICIES), help="with commas between")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--engine-jobs", type=int, default=50_000, help="jobs of each log, at most")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    if "--cell" in sys.argv:
        path, policy, jobs = sys.argv[sys.argv.index("--cell") + 1 :]
        print(json.dumps(measure(path, policy, int(jobs))))
        return
    options = parser.parse_args()
    measured_on = circumstances()
    if options.traces is None:
        paths = [bundled("traces") / "samples" / "sample-256.swf"]
    else:
        paths = [options.traces / f"{name}.swf.gz" for name in options.only.split(",")]
    policies = options.policies.split(",")
    times = Times()
    measured = measure_all(paths, policies, options.repeats, options.engine_jobs, times)
    rows = list(shown(measured, len(paths) * len(policies)))
    keep(options.output, "engine", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
