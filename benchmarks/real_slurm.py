"""Start times of a real Slurm beside simulated ones, on the same submissions.

    python benchmarks/real_slurm.py -o benchmarks/results

Protocol: a Slurm of 64 nodes runs on the loopback interface of this machine, as in the tests, with
select/cons_tres, a tree of eight leaf switches, and jobs in the order of submission
(priority/basic). Random jobs, the same in all runs, are submitted over `--span` seconds and sleep.
What Slurm says of them gives the trace: submissions and run times as they were, and the requests as
they were made. The captured output of the same Slurm is the site. The trace is simulated there
under each policy. Slurm runs with the cycles that are its defaults, and with the shortest ones: as
jobs here are some hundred times as short as on a real site, these are nearer to what the defaults
are there, measured by run times. "real again" is a second run of the real Slurm with the same jobs:
no simulation can be expected to come closer.

A difference is that of two waits, simulated less real; "within" is the share of the jobs with one
of at most so many seconds. Slurm states whole seconds. "started" counts the jobs that were
started by Slurm's main loop and by its backfilling; "completing" is the time from the end of a job
to its nodes being free, by the log of the controller; "jobs with other requests" have other cores
or memory on the site than Slurm gave them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from results import Times, circumstances, keep, shown

import optsched
from optsched.sites.loading import load_site
from optsched.sites.requests import Requests
from optsched.sites.slurm_files import printed_lines
from optsched.sites.slurm_notation import tres
from optsched.slurm.capture import capture
from optsched.traces.requests import TEXTS
from optsched.traces.trace import UNKNOWN

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from slurm.real_slurm import CORES, NODES, RealSlurm, why_not

CYCLES = {
    "default": "sched_interval=60,bf_interval=30",
    "shortest": "sched_interval=1,bf_interval=1,bf_resolution=1,batch_sched_delay=0",
}
"""Parameters of the scheduler. All others are the defaults of Slurm."""

SETTINGS = """\
DefMemPerCPU=1000
PriorityType=priority/basic
TopologyPlugin=topology/tree
GresTypes=gpu
MinJobAge=86400
SlurmctldDebug=verbose
DebugFlags=TraceJobs
"""
"""MinJobAge keeps ended jobs until they are read; the log is for the times of completion."""

HAVE = {
    "n[01-48]": "RealMemory=16000 Weight=1",
    "n[49-56]": "RealMemory=64000 Feature=big Weight=2",
    "n[57-64]": "RealMemory=16000 Gres=gpu:2 Weight=3",
}
"""Nodes, of eight cores each. As is usual, scarce ones have a weight and are taken last."""

GPUS = "NodeName=n[57-64] Name=gpu File={folder}/gpu[0-1]\n"

POLICIES = ("as-logged", "fcfs", "easy", "conservative")

WITHIN = (1, 5, 30)
"""Seconds of difference up to which jobs are counted."""

LIMITS = (1, 2, 3)
"""Time limits in minutes, the unit of Slurm; all are above the run times, by a factor of five in
the mean: that is what users ask for."""


class Job(NamedTuple):
    """A job to submit: when, for how long, how, and the same request in the columns of a trace."""

    at: float
    seconds: int
    options: tuple[str, ...]
    columns: Mapping[str, int | str]


def drawn(seed: int, span: float, load: float) -> list[Job]:
    """Return random jobs that are submitted within a span of time, in seconds.

    A third of the jobs asks for tasks anywhere, a quarter for whole nodes, the others for threads
    with memory, GPUs, or a feature and much memory, so that each resource has jobs that wait for
    it. Jobs are drawn until their cores and run times, of 2 to 40 s, reach the load of the nodes.
    """
    rng = random.Random(seed)
    found: list[Job] = []
    work = 0
    while work < load * span * NODES * CORES:
        kind = rng.choices(("tasks", "whole", "threads", "gpus", "memory"), (35, 25, 15, 15, 10))
        options, columns = _request(kind[0], rng)
        seconds, minutes = rng.randint(2, 40), rng.choice(LIMITS)
        options += (f"-t{minutes}",)
        columns |= {"requested_time": 60 * minutes}
        found.append(Job(rng.uniform(0, span), seconds, options, columns))
        work += seconds * int(columns["processors"])
    return sorted(found)


def _request(kind: str, rng: random.Random) -> tuple[tuple[str, ...], dict[str, int | str]]:
    """Return the options of a kind of job, and its columns."""
    if kind == "tasks":
        tasks = rng.choice((1, 2, 4, 8, 16, 32))
        return (f"-n{tasks}",), {"processors": tasks, "tasks": tasks, "cores_per_task": 1}
    if kind == "whole":
        nodes = rng.choice((1, 2, 4, 8, 16))
        columns = {"processors": CORES * nodes, "nodes": nodes, "exclusive": 1}
        return (f"-N{nodes}", "--exclusive"), columns
    if kind == "gpus":
        nodes, gpus = rng.choice((1, 2)), rng.choice((1, 2))
        options = (f"-N{nodes}", "-c2", f"--gpus-per-node={gpus}")
        columns = {"processors": 2 * nodes, "nodes": nodes, "tasks": nodes, "cores_per_task": 2}
        return options, columns | {"gpus_per_node": gpus}
    cores = rng.choice((1, 2, 4))
    columns = {"processors": cores, "nodes": 1, "tasks": 1, "cores_per_task": cores}
    if kind == "threads":
        options = ("-N1", "-n1", f"-c{cores}", "--mem-per-cpu=3000")
        return options, columns | {"memory_per_core": 3000}
    options = ("-N1", "-n1", f"-c{cores}", "--mem=30000", "-Cbig")
    return options, columns | {"memory_per_node": 30_000, "features": "big"}


CPU, MEM = "got_cores", "got_memory"
"""Columns of a real job that a trace has not, beside the scheduler that started it."""


class Ran(NamedTuple):
    """What a real Slurm did: its jobs as a table, its captured site, and its log."""

    jobs: pd.DataFrame
    site: Path
    log: str


def run_really(jobs: list[Job], cycles: str, folder: Path) -> Ran:
    """Run jobs on a real Slurm.

    Raises
    ------
    RuntimeError
        If a job did not end well, or is not there.
    """
    slurm = RealSlurm(folder / "slurm", cycles, SETTINGS, HAVE, gres=GPUS)
    os.environ |= slurm.variables  # for the commands of `capture`
    try:
        slurm.start()
        (folder / "site").mkdir()
        capture(folder / "site")
        began = time.monotonic()
        columns = {}
        for job in shown(jobs, len(jobs)):
            time.sleep(max(0.0, began + job.at - time.monotonic()))
            columns[int(slurm.submit(*job.options, seconds=job.seconds))] = job.columns
        while slurm.call("squeue", "-h"):
            time.sleep(1)
        printed = folder / "jobs.txt"
        printed.write_text(slurm.call("scontrol", "-o", "show", "jobs"))
    finally:
        slurm.stop()
    log = (slurm.folder / "slurmctld.log").read_text()
    return Ran(jobs_of(printed, columns), folder / "site", log)


def jobs_of(printed: Path, columns: Mapping[int, Mapping[str, int | str]]) -> pd.DataFrame:
    """Return the jobs that ``scontrol -o show jobs`` printed, with their columns by number.

    Raises
    ------
    RuntimeError
        If a job did not end well, or is not there.
    """
    rows = {}
    for line in printed_lines(printed):
        number, state = line.count("jobid"), line.text("jobstate")
        if state != "COMPLETED":
            raise RuntimeError(f"job {number} ended as {state}")
        amounts = line.parsed("tres", tres)
        told = {"scheduler": line.text("scheduler"), CPU: amounts["cpu"], MEM: amounts["mem"]}
        for name in ("submit", "start", "end"):
            told[name] = pd.Timestamp(line.text(f"{name}time"))
        rows[number] = {"job_id": number, **told}
    if rows.keys() != columns.keys():
        raise RuntimeError(f"{len(columns)} jobs were submitted, Slurm has {len(rows)}")
    table = pd.DataFrame([rows[number] for number in sorted(columns)])
    asked = pd.DataFrame([columns[number] for number in sorted(columns)])
    for name in asked:
        if name in TEXTS:
            table[name] = asked[name].fillna("")
        else:
            table[name] = asked[name].fillna(UNKNOWN).astype("int64")
    return table


def waits(jobs: pd.DataFrame) -> NDArray[np.float64]:
    """Return the waits of the jobs of a real Slurm, in seconds."""
    return (jobs.start - jobs.submit).dt.total_seconds().to_numpy()


def compared(real: NDArray[np.float64], other: NDArray[np.float64]) -> dict[str, Any]:
    """Return how far the waits of jobs are from the real ones.

    Parameters
    ----------
    real, other : array of float, shape (jobs,)
        Waits in seconds; those of `other` are nan for jobs that it never started.
    """
    apart = np.abs(other - real)
    return {
        "jobs": len(real),
        "never": int(np.isnan(other).sum()),
        **{f"within_{limit}s": float((apart <= limit).mean()) for limit in WITHIN},
        "mean_s": float(np.nanmean(apart)),
        "median_s": float(np.nanmedian(apart)),
        "real_wait_s": float(real.mean()),
        "wait_s": float(np.nanmean(other)),
    }


def completing(log: str) -> NDArray[np.float64]:
    """Return the seconds from the end of each job to its nodes being free, by the log."""
    ended, freed = (
        {job: datetime.fromisoformat(at) for at, job in re.findall(pattern, log, re.MULTILINE)}
        for pattern in (
            r"^\[(\S+)\] _job_complete: JobId=(\d+) done",
            r"^\[(\S+)\] TRACE_JOBS: cleanup_completing: JobId=(\d+)",
        )
    )
    both = ended.keys() & freed.keys()
    return np.array([(freed[job] - ended[job]).total_seconds() for job in both])


def asked_otherwise(ran: Ran) -> int:
    """Return the number of jobs with other cores or memory on the site than Slurm gave them."""
    site = load_site(ran.site)
    requests = Requests(site, {name: ran.jobs[name].to_numpy() for name in ran.jobs})
    places = [site.resources.index(name) for name in ("cores", "memory")]
    asked = []
    for number in requests.numbers:
        first = requests.of(number)[0]
        asked.append([first.chunks * first.demand[place] for place in places])
    return int((ran.jobs[[CPU, MEM]].to_numpy() != asked).any(axis=1).sum())


def described(ran: Ran) -> str:
    """Return who started the jobs, how long they were completing, and how many ask otherwise."""
    started = ran.jobs.scheduler.value_counts()
    who = ", ".join(f"{count} by {name}" for name, count in started.items())
    seconds = completing(ran.log)
    return (
        f"started: {who}; completing: {np.median(seconds):.2f} s in the median, "
        f"at most {seconds.max():.2f} s; jobs with other requests: {asked_otherwise(ran)}"
    )


def measure(
    cycles: str, jobs: list[Job], runs: int, folder: Path, times: Times
) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of some cycles, and what the log of the first run says."""
    ran = [run_really(jobs, CYCLES[cycles], folder / f"{cycles}-{run}") for run in range(runs)]
    first = ran[0]
    real = waits(first.jobs)
    trace = optsched.trace_from_frame(first.jobs.drop(columns=["scheduler", CPU, MEM]))
    rows = [
        {"cycles": cycles, "policy": "real again", **compared(real, waits(again.jobs))}
        for again in ran[1:]
    ]
    for policy in POLICIES:
        run = optsched.simulate(trace, f"site:{first.site}", policy)
        times.add(f"{cycles}, {policy}", run.timing["simulation_seconds"])
        of_job = dict(zip(run.trace.job_id.tolist(), run.schedule.start - run.trace.submit))
        other = np.array([of_job.get(job, np.nan) for job in first.jobs.job_id])
        rows.append({"cycles": cycles, "policy": policy, **compared(real, other)})
    return rows, described(first)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people."""
    widths = {name: max(len(name), 12) + 2 for name in rows[0]}
    lines = ["".join(f"{name:>{width}}" for name, width in widths.items())]
    for row in rows:
        texts = {
            name: value
            if not isinstance(value, float)
            else f"{100 * value:.0f} %"
            if name.startswith("within")
            else f"{value:.1f}"
            for name, value in row.items()
        }
        lines.append("".join(f"{texts[name]:>{width}}" for name, width in widths.items()))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the jobs")
    parser.add_argument("--span", type=float, default=120.0, help="seconds of submissions")
    parser.add_argument("--load", type=float, default=1.1, help="work over the cores in the span")
    parser.add_argument("--cycles", default=",".join(CYCLES), help="parameters of the scheduler")
    parser.add_argument("--runs", type=int, default=2, help="of the real Slurm, by cycles")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(f"no real Slurm: {reason}")
    measured_on = circumstances()
    jobs = drawn(options.seed, options.span, options.load)
    times = Times()
    rows: list[dict[str, Any]] = []
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for cycles in options.cycles.split(","):
            own, said = measure(cycles, jobs, options.runs, Path(folder), times)
            rows += own
            lines.append(f"{cycles} cycles ({CYCLES[cycles]}): {said}")
    keep(options.output, "real-slurm", measured_on, [*lines, "", *table(rows)], rows, times)


if __name__ == "__main__":
    main()
