"""Seconds of the Slurm commands on a large queue: what users wait for.

    python benchmarks/slurm_size.py --capture ../shared/slurm/fixtures/24.11.5 -o benchmarks/results

Protocol: a captured cluster is copied next to itself, with its switches and running jobs, until it
has `--nodes` nodes; the pending jobs are copies of its own, `--pending` of them, drawn at random
from those that depend on no other. Each command is a process of its own that reads the capture; its
output is thrown away, and kernels are compiled before. A row is a command, with the best of
`--repeats` processes. "explain" is for the job with the most nodes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep, shown

COMMANDS = (
    ("plan",),
    ("plan", "--order", "strict"),
    ("explain", "JOB"),
    ("forecast", "--draws", "0"),
    ("forecast", "--draws", "100"),
    ("report", "-o", "FILE"),
)

KEPT = ("config.txt", "licenses.json", "sacct.json.gz", "now")
"""Files of a capture that need no change."""

HOSTS = re.compile(r"(^|,)([a-z]+)(?=[\[\d])")
"""Where the name of a node begins in a list of hosts."""


def renamed(hosts: str, copy: int) -> str:
    """Return a list of hosts with the names in a copy of the cluster."""
    return HOSTS.sub(rf"\1r{copy:03}\2", hosts)


def text_of(folder: Path, name: str) -> str:
    """Return the text of a captured file, which may be compressed."""
    packed = folder / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else (
        folder / name
    ).read_text()  # fmt: skip


def copied(job: dict[str, Any], number: int, copy: int) -> dict[str, Any]:
    """Return a job as another one, in a copy of the cluster."""
    job = json.loads(json.dumps(job)) | {"job_id": number}
    for name in ("nodes", "required_nodes", "excluded_nodes", "scheduled_nodes"):
        job[name] = renamed(job[name], copy)
    held = job["job_resources"]
    if held and held.get("nodes"):
        held["nodes"]["list"] = renamed(held["nodes"]["list"], copy)
        for each in held["nodes"]["allocation"]:
            each["name"] = renamed(each["name"], copy)
    return job


def scaled_lines(text: str, copies: int) -> Iterator[str]:
    """Yield the lines of partitions or switches for copies of a cluster: leaves and spines, too."""
    for line in text.splitlines():
        hosts = re.search(r" Nodes=(\S+)", line)
        if hosts is None:
            yield line
        elif line.startswith("SwitchName=") and "Level=2" not in line:
            for copy in range(copies):
                own = re.sub(r"(SwitchName|Switches)=", rf"\1=r{copy:03}", line)
                yield own.replace(hosts[0], f" Nodes={renamed(hosts[1], copy)}")
        else:
            everywhere = ",".join(renamed(hosts[1], copy) for copy in range(copies))
            line = line.replace(hosts[0], f" Nodes={everywhere}")
            if below := re.search(r"Switches=(\S+)", line):
                switches = ",".join(f"r{copy:03}{below[1]}" for copy in range(copies))
                line = line.replace(below[0], f"Switches={switches}")
            yield line


def write_scaled(capture: Path, folder: Path, nodes: int, pending: int) -> tuple[int, int]:
    """Write the capture of copies of a cluster; return its nodes and running jobs."""
    site, queue = (json.loads(text_of(capture, f"{name}.json")) for name in ("nodes", "squeue"))
    copies = -(-nodes // len(site["nodes"]))
    site["nodes"] = [
        node | {"name": renamed(node["name"], copy)}
        for copy in range(copies)
        for node in site["nodes"]
    ]
    jobs = queue["jobs"]
    running = [job for job in jobs if job["job_state"] == ["RUNNING"]]
    waiting = [
        job
        for job in jobs
        if job["job_state"] == ["PENDING"]
        and not (job["dependency"] or job["array_task_string"] or job["resv_name"])
    ]
    rng = random.Random(1)
    chosen = [(job, copy) for copy in range(copies) for job in running]
    chosen += [(rng.choice(waiting), rng.randrange(copies)) for _ in range(pending)]
    queue["jobs"] = [copied(job, at, copy) for at, (job, copy) in enumerate(chosen, 1)]
    folder.joinpath("nodes.json").write_text(json.dumps(site))
    folder.joinpath("squeue.json").write_text(json.dumps(queue))
    for name in ("partitions.txt", "topology.txt"):
        lines = scaled_lines(text_of(capture, name), copies)
        folder.joinpath(name).write_text("\n".join(lines) + "\n")
    for name in KEPT:
        folder.joinpath(name).write_bytes(capture.joinpath(name).read_bytes())
    return len(site["nodes"]), copies * len(running)


def largest(folder: Path) -> str:
    """Return the number of the pending job with the most nodes."""
    jobs = json.loads(folder.joinpath("squeue.json").read_text())["jobs"]
    waiting = [job for job in jobs if job["job_state"] == ["PENDING"]]
    return str(max(waiting, key=lambda job: job["node_count"]["number"])["job_id"])


def timed(words: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds, and those of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "optsched", "slurm", *words]
    subprocess.run(command, check=True, capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--capture", type=Path, required=True, help="folder of a captured cluster")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=1000, help="jobs that wait")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on, times, rows = circumstances(), Times(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes, running = write_scaled(options.capture, folder, options.nodes, options.pending)
        job = largest(folder)
        for command in shown(COMMANDS, len(COMMANDS)):
            found = min(
                timed(
                    [
                        *({"JOB": job, "FILE": f"{folder}/{at}.html"}.get(w, w) for w in command),
                        *("--from", os.fspath(folder)),
                    ]
                )
                for at in range(options.repeats)
            )
            label = " ".join(word for word in command if word not in ("-o", "FILE", "JOB"))
            rows.append({"command": label, "seconds": found[0], "cpu_s": found[1]})
            times.add(label, found[0])
    table = [
        f"{nodes:,} nodes, {running:,} running and {options.pending:,} pending jobs",
        "",
        f"{'command':24}{'seconds':>10}{'CPU s':>10}",
        *(f"{row['command']:24}{row['seconds']:>10.1f}{row['cpu_s']:>10.1f}" for row in rows),
    ]
    keep(options.output, "slurm-size", measured_on, table, rows, times)


if __name__ == "__main__":
    main()
