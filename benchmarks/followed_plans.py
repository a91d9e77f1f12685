"""Plans that a real Slurm follows, beside the same Slurm alone.

    python benchmarks/followed_plans.py -o benchmarks/results

Protocol: for each seed, three Slurms of 64 nodes with their default cycles get the same jobs at the
same times, drawn as in ``real_slurm.py``, with priorities (``--nice``, below 0) at random. The
first is left alone; for the second ``optsched slurm apply --yes`` is run every ``--every`` seconds
with ``--order strict --reserve 1``; for the third ``optsched slurm watch --yes`` runs with the same
options. Nothing is held. After ``--minutes`` what has started counts: jobs, node-hours that have
been used, the sum of the priorities of started jobs, and the mean wait of all submitted jobs, those
that still wait with what they have waited. Of the pins that are set, those are met whose jobs start
on them. Slurms run side by side, one for each way of ``--at-once`` seeds; a row is a seed and a
way. Below the means are those of the paired differences from the Slurm that is left alone, and half
their 95 % intervals.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from real_slurm import CYCLES, GPUS, HAVE, SETTINGS, Job, drawn, table
from results import Times, circumstances, keep
from scipy.stats import t

from optsched.sites.slurm_files import printed_lines

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from slurm.real_slurm import CORES, RealSlurm, why_not

WAYS = ("alone", "apply", "watch")

MEASURED = ("jobs", "node_hours", "priority", "wait_s", "pins", "met")

PLANNING = ("--yes", "--order", "strict", "--reserve", "1", "--time-limit", "5")
"""Options of ``apply`` and ``watch``."""

MULTIFACTOR = SETTINGS.replace("priority/basic", "priority/multifactor")
"""Priorities are those that the jobs come with: all weights are 0, and each has a nice value."""


def priorities(jobs: Sequence[Job], seed: int) -> list[int]:
    """Return the priority of each job, at random."""
    rng = random.Random(seed)
    return [rng.randint(1, 1000) for _ in jobs]


def run_way(seed: int, way: str, minutes: float, every: float, load: float) -> dict[str, Any]:
    """Run the jobs of a seed in one way, and return what has started after some minutes."""
    with tempfile.TemporaryDirectory() as name:
        found = run_in(Path(name), seed, way, minutes, every, load)
    print(found, file=sys.stderr, flush=True)
    return found


def run_in(
    folder: Path, seed: int, way: str, minutes: float, every: float, load: float
) -> dict[str, Any]:
    """Do the same with all files in a folder."""
    jobs = drawn(seed, 60 * minutes, load)
    slurm = RealSlurm(folder / way, CYCLES["default"], MULTIFACTOR, HAVE, gres=GPUS)
    variables = os.environ | slurm.variables
    stop = threading.Event()
    helper: subprocess.Popen[bytes] | None = None

    def applies() -> None:
        words = [sys.executable, "-m", "optsched", "slurm", "apply", *PLANNING]
        while not stop.wait(every):
            subprocess.run(words, env=variables, capture_output=True, check=False)

    follower = threading.Thread(target=applies)
    submitted: dict[int, float] = {}
    try:
        slurm.start()
        if way == "apply":
            follower.start()
        if way == "watch":
            words = [sys.executable, "-m", "optsched", "slurm", "watch", *PLANNING]
            words += ["--every", f"{every:g}"]
            with (folder / "watch.log").open("wb") as log:
                helper = subprocess.Popen(words, env=variables, stdout=log, stderr=log)
        began = time.time()
        for job, priority in zip(jobs, priorities(jobs, seed)):
            time.sleep(max(0.0, began + job.at - time.time()))
            number = slurm.submit(*job.options, f"--nice=-{priority}", seconds=job.seconds)
            submitted[int(number)] = time.time()
        time.sleep(max(0.0, began + 60 * minutes - time.time()))
        now = time.time()
        printed = folder / f"{way}.txt"
        printed.write_text(slurm.call("scontrol", "-o", "show", "jobs"))
    finally:
        stop.set()
        if helper is not None:
            helper.terminate()
            helper.wait()
        if follower.is_alive():
            follower.join()
        slurm.stop()
    log = (slurm.folder / "slurmctld.log").read_text()
    pins = sum(log.count(f"setting {kind}_nodes to n") for kind in ("req", "exc"))
    return {"seed": seed, "way": way, **counted(printed, submitted, now), "pins": pins}


def counted(printed: Path, submitted: dict[int, float], now: float) -> dict[str, Any]:
    """Return figures of the jobs that started before `now`, from ``scontrol show jobs``."""
    started = node_hours = priority = met = 0.0
    waits = []
    for line in printed_lines(printed):
        number = line.count("jobid")
        if number not in submitted:
            continue
        text = line.text("starttime")
        state = line.text("jobstate")
        start = now
        if state != "PENDING" and text not in ("Unknown", "None"):
            start = datetime.fromisoformat(text).timestamp()
            end = now
            if state != "RUNNING":
                end = min(now, datetime.fromisoformat(line.text("endtime")).timestamp())
            started += 1
            priority += line.count("priority")
            met += any(line.text(f"{kind}nodelist") for kind in ("req", "exc"))
            node_hours += line.count("numcpus") / CORES * max(0.0, end - start) / 3600
        waits.append(max(0.0, start - submitted[number]))
    return {
        "jobs": int(started),
        "node_hours": node_hours,
        "priority": priority,
        "wait_s": float(np.mean(waits)),
        "met": int(met),
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the means of each way, and of its differences from the Slurm alone, as rows."""
    found = []
    of = {way: [row for row in rows if row["way"] == way] for way in WAYS}
    for way in WAYS:
        means = {name: float(np.mean([row[name] for row in of[way]])) for name in MEASURED}
        found.append({"seed": "mean", "way": way, **means})
    for way in WAYS[1:]:
        both = [*zip(of[way], of[WAYS[0]])]
        by = {name: [row[name] - alone[name] for row, alone in both] for name in MEASURED}
        half = {name: interval(values) for name, values in by.items()}
        means = {name: float(np.mean(values)) for name, values in by.items()}
        found.append({"seed": "difference", "way": way, **means})
        found.append({"seed": "+-", "way": way, **half})
    return found


def interval(values: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of a mean; nan for a single value."""
    if len(values) < 2:
        return math.nan
    return float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="1,2,3,4,5,6,7,8,9,10")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between plans")
    parser.add_argument("--load", type=float, default=1.3, help="work over the cores in the span")
    parser.add_argument("--at-once", type=int, default=1, help="seeds that run side by side")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(f"no real Slurm: {reason}")
    measured_on = circumstances()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    cells = [(seed, way) for seed in seeds for way in WAYS]
    given = [[value] * len(cells) for value in (options.minutes, options.every, options.load)]
    # a process has ports of its own
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        options.at_once * len(WAYS), mp_context=spawning, max_tasks_per_child=1
    ) as pool:
        rows = [*pool.map(run_way, *zip(*cells), *given)]
    rows += summary(rows)
    keep(options.output, "followed-plans", measured_on, table(rows), rows, Times())


if __name__ == "__main__":
    main()
