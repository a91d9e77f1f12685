"""EASY backfilling on one log by optsched and by other simulators, in one run.

    python benchmarks/peers.py --traces ../shared/traces --hpcopt FOLDER --pyss FOLDER \
        -o benchmarks/results

FOLDER is a checkout of ErenAri/HPC-workload-optimizer, whose engine in Rust is measured if
``cargo build --release`` has been run in its folder rust, or of dinesh121991/pyss, which runs under
`--python2`. Protocol: all get the same jobs, those that optsched keeps of the log, each in the
format that it reads. Each command is a process of its own, parsing included; they take turns, and
the median of `--repeats` counts. There are two tasks: a *schedule* by the users' estimates, with a
row for each job on disk, and *aggregates* only, with the run times in place of the estimates, which
is all that the engine in Rust does. "CPU s" depends less on other processes than "seconds" does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from commands import DONT_WRITE
from results import Times, circumstances, keep, shown

import optsched
from optsched.traces.reading import write_trace

LOG = "SDSC-SP2-1998-4.2-cln.swf.gz"
AGGREGATES = """
import sys, optsched
run = optsched.simulate(sys.argv[1], policy="easy")
print(run.summary["mean_wait"], run.summary["utilization"])
"""
HPCOPT = """
import sys, pandas
from hpcopt.simulate.core import run_simulation_from_trace
jobs = pandas.read_csv(sys.argv[1])
done = run_simulation_from_trace(jobs, "EASY_BACKFILL_BASELINE", int(sys.argv[2]), "run")
done.jobs_df.to_csv(sys.argv[3])
"""


FIELDS = {
    "job_id": "job_id",
    "submit_ts": "submit",
    "runtime_actual_sec": "runtime",
    "runtime_requested_sec": "requested_time",
    "requested_cpus": "processors",
}
"""The columns of HPCOpt, and those of a trace."""


@dataclass(frozen=True)
class Peer:
    """A command to measure: its task, its program, its words, and PYTHONPATH."""

    task: str
    program: str
    words: tuple[Any, ...]
    path: str = ""


def peers(given: argparse.Namespace, folder: Path) -> Iterator[Peer]:
    """Yield the commands, after writing the jobs in all formats into a folder."""
    trace = optsched.read_trace(given.traces / LOG if given.traces else "sample-256")
    processors = trace.header.max_procs
    write_trace(trace, folder / "jobs.swf")
    write_trace(trace.changed(requested_time=trace.runtime), folder / "exact.swf")
    frame = pd.DataFrame({field: getattr(trace, column) for field, column in FIELDS.items()})
    frame.to_csv(folder / "jobs.csv", index=False)
    frame.to_json(folder / "jobs.json", orient="records")
    python, swf = sys.executable, ("--input-file", folder / "jobs.swf")
    easy = ("simulate", folder / "jobs.swf", "--policy", "easy", "--no-plots", "-o", folder / "run")
    yield Peer("schedule", "optsched", (python, "-m", "optsched", *easy))
    yield Peer("aggregates", "optsched", (python, "-c", AGGREGATES, folder / "exact.swf"))
    if given.pyss:
        options = ("--num-processors", processors, "--scheduler", "EasyBackfillScheduler", *swf)
        script = given.pyss / "src" / "run_simulator.py"
        yield Peer("schedule", "pyss", (given.python2, "-O", script, *options))
    if given.hpcopt:
        words = (python, "-c", HPCOPT, folder / "jobs.csv", processors, folder / "done.csv")
        yield Peer("schedule", "HPCOpt in Python", words, str(given.hpcopt / "python"))
        engine = given.hpcopt / "rust" / "target" / "release" / "sim-runner"
        if engine.exists():
            options = ("--policy", "EASY_BACKFILL_BASELINE", "--capacity-cpus", processors)
            words = (engine, *options, "--input", folder / "jobs.json")
            yield Peer("aggregates", "HPCOpt in Rust", words)


def measure(peer: Peer) -> tuple[float, float]:
    """Run a command; return its seconds and CPU seconds."""
    # with this variable set, Python compiles every module again
    kept = {name: value for name, value in os.environ.items() if name != DONT_WRITE}
    environment = kept | ({"PYTHONPATH": peer.path} if peer.path else {})
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [*map(str, peer.words)], env=environment, capture_output=True, check=False
    )
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"{peer.program}: {done.stderr.decode(errors='replace')[-2000:]}")
    used = after.children_user + after.children_system
    return seconds, used - before.children_user - before.children_system


def measure_all(given: argparse.Namespace, times: Times) -> Iterator[dict[str, Any]]:
    """Yield one row for each command, whose runs take turns with those of the others."""
    with tempfile.TemporaryDirectory() as temporary:
        all_peers = list(peers(given, Path(temporary)))
        for peer in all_peers[:2]:
            measure(peer)  # compiles kernels
        figures: dict[Peer, list[tuple[float, float]]] = {}
        for _ in range(given.repeats):
            for peer in all_peers:
                figures.setdefault(peer, []).append(measure(peer))
                times.add(f"{peer.task}, {peer.program}", figures[peer][-1][0])
        for peer, measured in figures.items():
            seconds, cpu = (statistics.median(one) for one in zip(*measured))
            yield {"task": peer.task, "program": peer.program, "seconds": seconds, "cpu_s": cpu}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows as lines for people, with the CPU seconds relative to those of optsched."""
    ours = {row["task"]: row["cpu_s"] for row in rows if row["program"] == "optsched"}
    lines = [f"{'task':12}{'program':20}{'seconds':>10}{'CPU s':>10}{'ratio':>10}"]
    for row in sorted(rows, key=lambda row: -len(row["task"])):
        ratio = row["cpu_s"] / ours[row["task"]]
        figures = f"{row['seconds']:10.2f}{row['cpu_s']:10.2f}{ratio:10.2f}"
        lines.append(f"{row['task']:12}{row['program']:20}{figures}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="folder of the logs; the sample if left out")
    parser.add_argument("--hpcopt", type=Path, help="checkout of HPCOpt")
    parser.add_argument("--pyss", type=Path, help="checkout of pyss")
    parser.add_argument("--python2", default="python2", help="interpreter of pyss")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    given = parser.parse_args()
    measured_on = circumstances()
    times = Times()
    rows = list(shown(measure_all(given, times)))
    keep(given.output, "peers", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
