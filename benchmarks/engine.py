"""Speed and memory of the simulator, by trace and policy.

Each cell runs in a process of its own, `--repeats` times; the median counts. "simulation" is the
event engine with the policy, per-job output included; "write" is the run folder without pictures;
"whole" is the process from start to exit; "bare" is a plain loop that computes EASY start times
and nothing else, run beside each trace: the ratio of the two says what generality costs.

    python benchmarks/engine.py --traces ../shared/traces -o results
"""

from __future__ import annotations

import argparse
import csv
import heapq
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import insort
from pathlib import Path

TRACES = (
    "SDSC-SP2-1998-4.2-cln",
    "CTC-SP2-1996-3.1-cln",
    "SDSC-BLUE-2000-4.2-cln",
    "CEA-Curie-2011-2.1-cln",
    "RICC-2010-2",
)
POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative", "sjf", "window")
COLUMNS = (
    "trace",
    "policy",
    "jobs",
    "read_s",
    "simulation_s",
    "write_s",
    "whole_s",
    "jobs_per_s",
    "bare_jobs_per_s",
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


def measure(path: str, policy: str) -> dict[str, float]:
    """Run one cell in this process."""
    import optsched

    trace = optsched.read_trace(path)
    if policy == "bare":
        lists = [trace.submit, trace.runtime, trace.requested_time, trace.processors]
        fits = trace.processors <= trace.header.max_procs
        lists = [column[fits].tolist() for column in lists]
        began = time.perf_counter()
        bare_easy(*lists, trace.header.max_procs)
        return {"jobs": len(lists[0]), "simulation_s": time.perf_counter() - began}
    began = time.perf_counter()
    run = optsched.simulate(path, policy=policy)
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


def cell(path: Path, policy: str, repeats: int) -> dict[str, float]:
    """Run one cell in processes of its own, and return the medians."""
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--cell", str(path), policy],
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stdout) | {"whole_s": time.perf_counter() - began})
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, default=Path(__file__).parents[2] / "shared/traces")
    parser.add_argument("--only", default=",".join(TRACES), help="traces, separated by commas")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="folder for engine.csv")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(*options.cell)))
        return
    rows = []
    print("".join(f"{name:>24}" if name == "trace" else f"{name:>16}" for name in COLUMNS))
    for name in options.only.split(","):
        path = options.traces / f"{name}.swf.gz"
        bare = cell(path, "bare", options.repeats)
        for policy in options.policies.split(","):
            row = {"trace": name, "policy": policy} | cell(path, policy, options.repeats)
            row["jobs_per_s"] = row["jobs"] / row["simulation_s"]
            row["bare_jobs_per_s"] = bare["jobs"] / bare["simulation_s"]
            row["ratio"] = row["jobs_per_s"] / row["bare_jobs_per_s"]
            rows.append(row)
            cells = [row[c] if isinstance(row[c], str) else f"{row[c]:,.2f}" for c in COLUMNS]
            print("".join(f"{c:>24}" if k == 0 else f"{c:>16}" for k, c in enumerate(cells)))
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / "engine.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
